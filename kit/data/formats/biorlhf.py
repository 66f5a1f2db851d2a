"""BioRLHF's own truths and verifier numbers, read by what a row holds.

A truth there is {pathway, direction, expected_confidence}, {tissue_directions, is_consistent},
{missions_up,
missions_down, correct_behavior}, {key_facts | expected_answer | ...}. V3 is consistency and V4
uncertainty
everywhere; V1 is the direction verifier and V2 the factual one in its files, the other way round in
its README.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ...checks.quantities import quantities, readable
from ...checks.units import said
from ...claims.choice import is_name
from ...claims.lexicon import WAYS, way

VERIFIERS = ("factual", "direction", "consistency", "uncertainty")
_PREFIX = re.compile(r"^(?:HALLMARK|KEGG|REACTOME|MITOCARTA|BIOCARTA|GOBP|GO|WP)_")
_CHANGED = re.compile(
    r"\b(?P<before>[a-z]+)(?: (?:by|of|to|about|around|roughly|approximately))*[ ~+-]*(?=\d)"
    r"|\d(?:%| ?percent|[ -]?fold| times)? (?P<after>[a-z]+)\b"
)
_RANGE = re.compile(r"(.*?\d)\s*[-–]\s*(\d.*)")
_FACT_LISTS = (
    "facts",
    "key_facts",
    "ground_truth_key_facts",
    "expected_reasoning",
    "correct_steps",
)
_FACT_TEXTS = ("expected_answer", "conservation_level")
_THEIRS = {  # the kit's key -> the row's own words for the same
    "facts": (*_FACT_LISTS[1:], *_FACT_TEXTS, "is_consistent"),
    "claims": ("direction", "expected_direction", "tissue_directions"),
    "warranted": ("expected_confidence", "correct_behavior"),
    "answerable": ("correct_behavior",),
}
_YES, _NO = ("yes", "true"), ("no", "false")
_SHORT = {
    "oxidative phosphorylation": ("OXPHOS",),
    "reactive oxygen species": ("ROS",),
    "unfolded protein response": ("UPR",),
    "epithelial mesenchymal transition": ("EMT", "epithelial-to-mesenchymal transition"),
    "tnfa signaling via nfkb": ("NF-kB", "NFkB", "NF-κB", "TNFA", "TNF-α"),
    "mtorc1": ("mTOR",),
    "pi3k akt mtor": ("PI3K/AKT",),
    "interferon gamma": ("IFN-γ",),
    "interferon alpha": ("IFN-α",),
    "p53": ("TP53",),
    "g2m": ("G2/M",),
    "wnt beta catenin": ("Wnt", "β-catenin"),
    "inflammatory response": ("inflammation",),
    "apoptosis": ("apoptotic",),
    "complement": ("complement system",),
    "fatty acid metabolism": ("fatty acid oxidation", "lipid metabolism"),
    "dna repair": ("DNA damage repair",),
}


_KIND = re.compile(r"(?: (?:pathway|signaling|response|targets))+$")
_WHICH = re.compile(r"(.+) (v\d|up|dn|early|late)$")  # of two sets of one name
_SIDES = {"up": ("(up)",), "dn": ("(dn)", "down", "(down)")}


def truth_of(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The truth with facts, claims, warranted confidence and answerability added, each where it
    has none in the kit's own form; the row's own keys stay.

    >>> row = {"pathway": "HALLMARK_DNA_REPAIR", "direction": "UP", "expected_confidence": "high"}
    >>> t = truth_of(row)
    >>> t["claims"][0]["aliases"], t["warranted"]
    (['HALLMARK_DNA_REPAIR', 'DNA damage repair'], 'high')
    """
    out = {**raw, **{k: v for k, v in _made(raw).items() if not _given(raw, k)}}
    if raw.get("correct_behavior") == "context_dependent":
        up, down = (_listed(raw.get(k)) for k in ("missions_up", "missions_down"))
        out["depends"] = dict.fromkeys(map(str, up), "up") | dict.fromkeys(map(str, down), "down")
    return out


def faults(raw: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What is not read of a truth, and what to do about it.

    >>> faults({"pathway": "HALLMARK_DNA_REPAIR", "direction": "SIDEWAYS"})[0][0]
    "the direction 'SIDEWAYS' is not read: nothing is paid for it"
    >>> faults({"facts": [{"text": "liver"}], "key_facts": ["eye"]})[0][0]
    'facts and key_facts say different things: facts is read'
    """
    made = _made({k: v for k, v in raw.items() if k not in _THEIRS})
    names = [
        (k, ", ".join(t for t in _THEIRS[k] if t in raw))
        for k, v in made.items()
        if _given(raw, k) and _gist(raw[k]) != _gist(v)
    ]
    sure = raw.get("expected_confidence")
    unsure = [] if sure is None or _warranted(sure) or raw.get("warranted") else [sure]
    lost = [d for _, d, _ in _directed(raw) if not way(d)]
    return [
        *(
            (
                f"{k} and {other} say different things: {k} is read",
                f"write the same in both, or leave {other} out",
            )
            for k, other in names
        ),
        *(
            (
                f"expected_confidence {sure!r} is no high, medium, low or share from 0 to 1",
                "without it a high confidence is warranted, where nothing can be known a low one",
            )
            for sure in unsure
        ),
        *(
            (
                f"the direction {lost[0]!r} is not read: nothing is paid for it",
                "write UP, DOWN or unchanged",
            )
            for _ in lost[:1]
        ),
    ]


def _given(raw: Mapping[str, Any], key: str) -> bool:
    """True where the truth has the key in the kit's own form: a list of texts is none."""
    value = raw.get(key)
    return value not in (None, [], ()) and not any(isinstance(x, str) for x in _listed(value))


def _made(raw: Mapping[str, Any]) -> dict[str, Any]:
    """What the row's own words say, under the kit's keys."""
    depends = raw.get("correct_behavior") == "context_dependent"
    sure = _warranted(raw.get("expected_confidence")) or ("low" if depends else None)
    made = {"claims": _claims(raw), "facts": _facts(raw), "warranted": sure}
    return {k: v for k, v in made.items() if v} | ({"answerable": False} if depends else {})


def _gist(value: Any) -> Any:
    """A value for comparison: of facts the texts, of claims subjects and directions."""
    rows = [x for x in _listed(value) if isinstance(x, Mapping)]
    said = {str(x.get("text") or (x.get("subject"), x.get("direction"))).casefold() for x in rows}
    return said or value


def _warranted(value: Any) -> str | None:
    """The level that a word names, or that a share from 0 to 1 is nearest to; else None."""
    from ...claims.uncertainty import EXPECTED  # with numpy

    if isinstance(value, (int, float)) and 0 <= value <= 1:
        return min(EXPECTED, key=lambda level: abs(EXPECTED[level] - value))
    return str(value).casefold() if str(value).casefold() in EXPECTED else None


def subject_of(pathway: str) -> str:
    """The words of a gene set's name.

    >>> subject_of("HALLMARK_OXIDATIVE_PHOSPHORYLATION")
    'oxidative phosphorylation'
    """
    return _PREFIX.sub("", pathway).replace("_", " ").strip().casefold()


def _shorter(subject: str) -> list[str]:
    """What an answer calls a gene set: "p53 signaling" and "p53 genes" are the p53 pathway.

    >>> _shorter("p53 pathway"), _shorter("uv response up")
    (['p53'], ['uv response', 'uv', 'uv response (up)'])
    """
    which = _WHICH.fullmatch(subject)
    name = which[1] if which else subject
    forms = [name, _KIND.sub("", name)]
    forms += [f"{name} {side}" for side in _SIDES.get(which[2] if which else "", ())]
    return [f for f in dict.fromkeys(forms) if f != subject]


def _directed(raw: Mapping[str, Any]) -> list[tuple[str, Any, Sequence[str]]]:
    """Subject, direction as it is written, and aliases of each directed claim."""
    by_tissue = raw.get("tissue_directions")
    direction = raw.get("direction") or raw.get("expected_direction")
    if isinstance(by_tissue, Mapping):
        return [(str(t).replace("_", " "), d, ()) for t, d in by_tissue.items()]
    if not raw.get("pathway") or not direction:
        return []
    out = []
    for pathway in map(str, _listed(raw["pathway"]) or [raw["pathway"]]):
        subject = subject_of(pathway)
        short = [a for k, names in _SHORT.items() if k in subject for a in names]
        out.append((subject, direction, (pathway, *_shorter(subject), *short)))
    return out


def _claims(raw: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {"subject": s, "direction": way(d), "aliases": list(names)}
        | ({"kind": "tissue"} if isinstance(raw.get("tissue_directions"), Mapping) else {})
        for s, d, names in _directed(raw)
        if way(d)
    ]


def _facts(raw: Mapping[str, Any]) -> list[dict[str, Any]]:
    texts = [_named(x) for k in (*_FACT_LISTS, *_FACT_TEXTS) for x in _listed(raw.get(k)) if x]
    texts += [str(raw[k]) for k in _FACT_TEXTS if isinstance(raw.get(k), (str, int, float))]
    out = [_fact(t, i) for i, t in enumerate(dict.fromkeys(filter(str.strip, texts)), 1)]
    if isinstance(raw.get("is_consistent"), bool):
        alike = raw["is_consistent"]
        pole, other = ["consistent", "tissue-specific"][:: 1 if alike else -1]
        out.append({"id": "consistency", "text": pole, "poles": [other], "alike": alike})
    return out


def _named(fact: Any) -> str:
    """The text of a fact that is a text, or an object with one."""
    if not isinstance(fact, Mapping):
        return str(fact)
    return str(next((fact[k] for k in ("fact", "text", "name", "statement") if k in fact), fact))


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, (list, tuple)) else ()


_CONSERVED = {
    "high": [
        "highly conserved",
        "strongly conserved",
        "well conserved",
        "strong conservation",
    ],
    "moderate": [
        "moderately conserved",
        "moderate conservation",
    ],
    "low": [
        "poorly conserved",
        "weakly conserved",
        "weak conservation",
    ],
}


def _also(text: str) -> list[str]:
    """The other everyday forms of a range, a limit, a ratio, and of no change."""
    if ends := _RANGE.fullmatch(text):
        low, high = ends.groups()
        unit = high.lstrip("0123456789.,")
        joints = "{} to {}", "{}-{}", "{}–{}", "between {} and {}"
        return [j.format(lower, high) for j in joints for lower in dict.fromkeys((low, low + unit))]
    if WAYS.get(text.casefold()) == "none":
        return ["unchanged", "did not change", "does not change"]
    if re.fullmatch(r"\d+:\d+", text):
        return [text.replace(":", " to ")]
    if re.fullmatch(r"(?:[A-Z]\.){2,}", text):
        return [text.replace(".", "")]
    if text.casefold() in _CONSERVED:
        return _CONSERVED[text.casefold()]
    names = "limit of detection", "detection limit"
    return [text.replace("LOD", name) for name in names if re.fullmatch(r"\W*LOD", text)]


def _fact(text: str, number: int) -> dict[str, Any]:
    """A fact; where its text holds one number, an answer that states the number states the fact,
    with its direction where the text says one ("decreased by 12.5%", "2-fold increase").
    """
    fact: dict[str, Any] = {"id": f"f{number}", "text": text}
    for (name, *same), other in ((_YES, _NO), (_NO, _YES)):
        if text.casefold() in (name, *same):
            return fact | {"text": name, "aliases": same, "poles": list(other)}
    if also := _also(text):
        fact["aliases"] = also
    found = quantities(readable(text))
    if len(found) != 1 or found[0].part or is_name(text):
        return fact
    fact |= {"number": found[0].value, "tolerance": 0}
    moved = _CHANGED.search(text.casefold())
    direction = WAYS.get(moved["before"] or moved["after"]) if moved else None
    if direction not in ("up", "down"):
        return fact
    size = abs(found[0].value)
    fact |= {"unit": said(found[0].tail), "direction": direction}
    return fact | {"number": size if direction == "up" else -size}


def verifiers(asked: Sequence[str], truth: Mapping[str, Any]) -> dict[str, str]:
    """Each verifier that a row names, and the kit's name for it; one that finds nothing to judge is
    left out.

    >>> verifiers(["V1", "V4"], {"claims": [{"subject": "dna repair", "direction": "up"}]})
    {'V1': 'direction', 'V4': 'uncertainty'}
    >>> verifiers(["V1", "V2"], {"facts": [{"text": "liver"}]})
    {'V2': 'factual'}
    >>> verifiers(["V1"], {"facts": [{"text": "liver"}]})
    {'V1': 'factual'}
    >>> verifiers(["V1", "V4"], {"direction": "SIDEWAYS"})  # no rightness: no confidence in it
    {}
    """
    fixed = {"v3": "consistency", "v4": "uncertainty", "pathway": "direction"}
    holds = {"direction": bool(truth.get("claims")), "factual": bool(truth.get("facts"))}
    numbered = {"v1": ("direction", "factual"), "v2": ("factual", "direction")}
    out: dict[str, str] = {}
    for name in asked:
        low = name.casefold()
        if low not in numbered:
            out[name] = fixed.get(low, low)
            continue
        first, second = numbered[low]
        if holds[first]:
            out[name] = first
        elif holds[second] and not {"v1", "v2"} <= {a.casefold() for a in asked}:
            out[name] = second
    judged = any(truth.get(k) for k in ("claims", "facts", "comparison"))
    if not judged and truth.get("answerable") is not False:
        return {k: v for k, v in out.items() if v not in ("consistency", "uncertainty")}
    return out
