"""BioRLHF's ground truths in the kit's form: claims, facts, warranted confidence."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

# A gene set's name is its collection and its words: HALLMARK_DNA_REPAIR.
COLLECTION_PREFIX = re.compile(
    r"^(?:HALLMARK|KEGG|REACTOME|MITOCARTA|BIOCARTA|GOBP|GO|WP)_"
)
# Lists of texts; the last two hold one text each.
FACT_FIELDS = (
    "key_facts", "ground_truth_key_facts", "expected_reasoning", "correct_steps",
    "expected_answer", "conservation_level",
)  # fmt: skip
LEADING_QUANTITY = re.compile(r"([-+]?\d[\d,]*(?:\.\d+)?)(?:\s*(\D.*))?")
# Words of its truths. "none" is what it writes where a pathway does not change.
DIRECTION_OF_WORD = {
    **dict.fromkeys(
        ("up", "upregulated", "activated", "increased", "increase", "positive"),
        "up",
    ),
    **dict.fromkeys(
        (
            "down",
            "downregulated",
            "suppressed",
            "decreased",
            "decrease",
            "negative",
        ),
        "down",
    ),
    **dict.fromkeys(
        ("none", "unchanged", "no change", "not significant", "ns"), "unchanged"
    ),
}
# Its README and its files number the first two differently: what the truth holds decides which applies.
VERIFIERS_OF = {
    **dict.fromkeys(("V1", "V2"), ("direction", "factual")),
    "V3": ("consistency",),
    "V4": ("uncertainty",),
}


def direction_of(word: object) -> str | None:
    """up, down or unchanged; None for any other word, and where there is none.

    >>> direction_of("UP"), direction_of("none"), direction_of("mixed"), direction_of(None)
    ('up', 'unchanged', None, None)
    """
    # The word "none" means unchanged; str(None) would be that word.
    return DIRECTION_OF_WORD.get(str(word or "").casefold())


def truth_of(raw: Mapping[str, Any]) -> dict[str, Any]:
    """A ground truth with the kit's keys beside its own: claims, facts, answerable, warranted.

    >>> truth_of({"pathway": "HALLMARK_DNA_REPAIR", "direction": "UP"})["claims"]
    [{'subject': 'dna repair', 'direction': 'up'}]
    """
    truth = dict(raw)
    directions = raw.get("tissue_directions")
    if not isinstance(directions, Mapping):
        pathway = COLLECTION_PREFIX.sub("", str(raw.get("pathway") or ""))
        directions = {pathway.casefold(): raw.get("direction")}
    # A direction that is not a word of the table ("mixed") is left out: it claims nothing.
    claims = [
        {"subject": name.replace("_", " "), "direction": direction}
        for name, word in directions.items()
        if name and (direction := direction_of(word))
    ]
    if claims:
        truth["claims"] = claims
    # each fact once, with the number that it begins with
    facts: dict[str, dict[str, Any]] = {}
    for field in FACT_FIELDS:
        value = raw.get(field) or []
        for text in map(str, value if isinstance(value, list) else [value]):
            facts[text] = {"text": text}
            if quantity := LEADING_QUANTITY.fullmatch(text):
                facts[text]["number"] = float(quantity[1].replace(",", ""))
    if facts:
        truth["facts"] = list(facts.values())
    if raw.get("correct_behavior") == "context_dependent":
        # The direction differs between missions, so the right answer is that it depends.
        truth |= {"answerable": False, "depends": True}
    if raw.get("expected_confidence") in ("high", "medium", "low"):
        truth["warranted"] = raw["expected_confidence"]
    return truth


def verifiers_of(names: Sequence[str]) -> list[str]:
    """The kit's names of BioRLHF's verifiers "V1" to "V4"; other names stay as they are.

    >>> verifiers_of(["V1", "V4"])
    ['direction', 'factual', 'uncertainty']
    """
    return list(
        dict.fromkeys(v for name in names for v in VERIFIERS_OF.get(name, (name,)))
    )
