"""The direction verifier against a table of our own, and against the naive matcher that it replaces."""

import csv
from collections import Counter
from pathlib import Path

import pytest

from kit.claims.direction import DIRECTIONS, claims, settle

TABLE = Path(__file__).with_name("direction_sentences.tsv")


def rows():
    with TABLE.open(encoding="utf-8") as f:
        return list(csv.DictReader(f, delimiter="\t"))


def said(row):
    others = dict.fromkeys((o for o in row["others"].split("|") if o), ())
    found = settle(claims(row["sentence"], {row["subject"]: (), **others}))
    return found.get(row["subject"], "unstated")


def test_table_of_sentences(capsys):
    table = rows()
    pairs = Counter((r["label"], said(r)) for r in table)
    right = sum(n for (a, b), n in pairs.items() if a == b)
    with capsys.disabled():
        print(f"\ndirection verifier: {right}/{len(table)} = {right / len(table):.3f}")
        print("label \\ said".ljust(14) + "".join(d.rjust(10) for d in DIRECTIONS))
        for a in DIRECTIONS:
            print(a.ljust(14) + "".join(str(pairs[a, b]).rjust(10) for b in DIRECTIONS))
        for r in table:
            if said(r) != r["label"]:
                print("  ", r["label"], "read as", said(r), ":", r["subject"], "|", r["sentence"])
    assert len(table) >= 150 and {r["kind"] for r in table} >= {
        "negation",
        "comparison",
        "enrichment",
        "double",
        "hedge",
        "two",
    }
    assert right / len(table) >= 0.95


@pytest.mark.parametrize(
    "text",
    [
        "Insulin: ↑; glucagon: ↓",
        "insulin: up; glucagon: down.",
        "insulin: increased; glucagon: decreased",
        "Insulin +, glucagon -",
        "Insulin: +; glucagon: −",
        "Up: insulin. Down: glucagon.",
        "Increased: insulin; decreased: glucagon",
        "Insulin was stimulated and glucagon suppressed.",
        "Insulin is enriched positively; glucagon is enriched negatively.",
    ],
)
def test_the_plainest_forms_are_read(text):
    """ "Insulin: up; glucagon: down" on one line earned 0, with line breaks the maximum."""
    found = settle(claims(text, {"insulin": [], "glucagon": []}))
    assert found == {"insulin": "up", "glucagon": "down"}
