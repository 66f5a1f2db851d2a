"""BioRLHF's ground truths in the kit's form: claims, facts, warranted confidence."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

# A gene set's name is its collection and its words: HALLMARK_DNA_REPAIR.
_COLLECTION = re.compile(r"^(?:HALLMARK|KEGG|REACTOME|MITOCARTA|BIOCARTA|GOBP|GO|WP)_")
_FACTS = ("key_facts", "ground_truth_key_facts", "expected_reasoning", "correct_steps")
_ONE_FACT = ("expected_answer", "conservation_level")
_QUANTITY = re.compile(r"([-+]?\d[\d,]*(?:\.\d+)?)(?:\s*(\D.*))?")
# Words of its truths. "none" is what it writes where a pathway does not change.
WORDS = {
    "up": "up,upregulated,activated,increased,increase,positive",
    "down": "down,downregulated,suppressed,decreased,decrease,negative",
    "unchanged": "none,unchanged,no change,not significant,ns",
}
DIRECTIONS = {word: way for way, words in WORDS.items() for word in words.split(",")}


def direction_of(raw: Any) -> str | None:
    """up, down or unchanged; None for any other word.

    >>> direction_of("UP"), direction_of("none"), direction_of("mixed")
    ('up', 'unchanged', None)
    """
    return DIRECTIONS.get(str(raw).casefold())


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
    claims = []
    for name, word in ways.items():
        # A direction that is no word of the table ("mixed") is left out: it claims nothing.
        if name and (way := direction_of(word)):
            claims.append({"subject": name.replace("_", " "), "direction": way})
    texts = [str(text) for key in _FACTS for text in raw.get(key) or ()]
    texts += [str(raw[key]) for key in _ONE_FACT if raw.get(key)]
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
    if quantity := _QUANTITY.fullmatch(text):
        fact["number"] = float(quantity[1].replace(",", ""))
    return fact


def verifiers_of(names: Sequence[str], truth: Mapping[str, Any]) -> list[str]:
    """The kit's names of BioRLHF's verifiers "V1" to "V4".

    Its README and its files number the first two differently, so they are read by content.

    >>> verifiers_of(["V1", "V4"], {"facts": [{"text": "46"}]})
    ['factual', 'uncertainty']
    """
    numbers = {"V3": "consistency", "V4": "uncertainty"}
    out = []
    if {"V1", "V2"} & set(names):
        keys = {"direction": "claims", "factual": "facts"}
        out += [name for name, key in keys.items() if truth.get(key)]
    return out + [numbers[n] for n in names if n in numbers]
