"""BioRLHF's ground truths in the kit's form: claims, facts, warranted confidence."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

# A gene set's name is its collection and its words: HALLMARK_DNA_REPAIR.
_COLLECTION = re.compile(
    r"^(?:HALLMARK|KEGG|REACTOME|MITOCARTA|BIOCARTA|GOBP|GO|WP)_"
)
# Lists of texts; the last two hold one text each.
_FACTS = (
    *("key_facts", "ground_truth_key_facts", "expected_reasoning", "correct_steps"),
    *("expected_answer", "conservation_level"),
)
_QUANTITY = re.compile(r"([-+]?\d[\d,]*(?:\.\d+)?)(?:\s*(\D.*))?")
# Words of its truths. "none" is what it writes where a pathway does not change.
WORDS = {
    "up": "up,upregulated,activated,increased,increase,positive",
    "down": "down,downregulated,suppressed,decreased,decrease,negative",
    "unchanged": "none,unchanged,no change,not significant,ns",
}
# Its README and its files number the first two differently: what the truth holds decides which applies.
VERIFIERS_OF = {
    **dict.fromkeys(("V1", "V2"), ("direction", "factual")),
    "V3": ("consistency",),
    "V4": ("uncertainty",),
}
DIRECTIONS = {
    word: way for way, words in WORDS.items() for word in words.split(",")
}


def direction_of(raw: Any) -> str | None:
    """up, down or unchanged; None for any other word, and where there is none.

    >>> direction_of("UP"), direction_of("none"), direction_of("mixed"), direction_of(None)
    ('up', 'unchanged', None, None)
    """
    # The word "none" means unchanged; str(None) would be that word.
    return DIRECTIONS.get(str(raw or "").casefold())


def truth_of(raw: Mapping[str, Any]) -> dict[str, Any]:
    """A ground truth with the kit's keys beside its own: claims, facts, answerable, warranted.

    >>> truth_of({"pathway": "HALLMARK_DNA_REPAIR", "direction": "UP"})["claims"]
    [{'subject': 'dna repair', 'direction': 'up'}]
    """
    out = dict(raw)
    ways = raw.get("tissue_directions")
    if not isinstance(ways, Mapping):
        pathway = _COLLECTION.sub("", str(raw.get("pathway") or ""))
        ways = {pathway.casefold(): raw.get("direction")}
    # A direction that is no word of the table ("mixed") is left out: it claims nothing.
    claims = [
        {"subject": name.replace("_", " "), "direction": way}
        for name, word in ways.items()
        if name and (way := direction_of(word))
    ]
    values = [raw.get(key) or [] for key in _FACTS]
    texts = [str(x) for v in values for x in (v if isinstance(v, list) else [v])]
    if claims:
        out["claims"] = claims
    if texts:
        out["facts"] = [_fact(text) for text in dict.fromkeys(texts)]
    if raw.get("correct_behavior") == "context_dependent":
        # The direction differs between missions, so the right answer is that it depends.
        out |= {"answerable": False, "depends": True}
    if raw.get("expected_confidence") in ("high", "medium", "low"):
        out["warranted"] = raw["expected_confidence"]
    return out


def _fact(text: str) -> dict[str, Any]:
    fact: dict[str, Any] = {"text": text}
    quantity = _QUANTITY.fullmatch(text)
    if quantity:
        fact["number"] = float(quantity[1].replace(",", ""))
    return fact


def verifiers_of(names: Sequence[str]) -> list[str]:
    """The kit's names of BioRLHF's verifiers "V1" to "V4"; other names stay as they are.

    >>> verifiers_of(["V1", "V4"])
    ['direction', 'factual', 'uncertainty']
    """
    return list(dict.fromkeys(v for n in names for v in VERIFIERS_OF.get(n, (n,))))
