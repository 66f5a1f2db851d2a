"""The lint is quick by shortcuts: each of them must find what the plain way finds."""

import random
import re
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kit.data import load_tasks
from kit.data.seen import Seen
from kit.records import Criterion, Task
from kit.rubrics import lint
from kit.rubrics.corpus import SIZE, Sketches
from kit.rubrics.words import WORD, words

NOTES = [
    line.split("\t")[1]
    for line in (Path(__file__).parent / "annotator_notes.tsv")
    .read_text(encoding="utf-8")
    .splitlines()
]


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(), st.text(alphabet="aB3 '_-.\n\x1c\x85", max_size=40)))
def test_words_without_the_pattern_are_those_of_the_pattern(text):
    import unicodedata

    assert words(text) == WORD.findall(
        unicodedata.normalize("NFKC", text).lower() if not text.isascii() else text.lower()
    )


def sketch(tokens):
    h = [zlib.crc32(w.encode()) for w in tokens]
    if len(h) < 3:
        return (zlib.crc32(" ".join(tokens).encode()),)
    mixed = {
        (a * 0x9E3779B97F4A7C15 + b * 0xC2B2AE3D27D4EB4F + c * 0x165667B19E3779F9) >> 24
        & 0xFFFFFFFF
        for a, b, c in zip(h, h[1:], h[2:], strict=False)
    }
    return tuple(sorted(mixed)[:SIZE])


def test_near_equal_prompts_are_those_of_a_plain_search():
    rng = random.Random(0)
    texts = [
        [rng.choice("abcdefgh") for _ in range(rng.choice([1, 2, 3, 4, 30]))] for _ in range(200)
    ]
    many = Sketches()
    for tokens in texts:
        many.add(tokens)
    assert [many.sketch(i) for i in range(len(many))] == [sketch(t) for t in texts]
    side = [i % 2 for i in range(len(texts))]
    found = {(j, i) for j, i, _ in many.alike(side, least=0.8)}
    wanted = set()
    keys = [set(many.sketch(i)[:4]) for i in range(len(texts))]
    for i in range(len(texts)):
        for j in range(i):
            shared = [h for h in keys[i] & keys[j] if 2 <= sum(h in k for k in keys) <= 20]
            if side[i] != side[j] and len(shared) >= 2 and many.overlap(j, i) >= 0.8:
                wanted.add((j, i))
    assert found == wanted
    assert list(Sketches().alike([], least=0.8)) == [] and not many.limited


def test_a_set_of_one_phrase_does_not_fill_the_memory_with_pairs(monkeypatch):
    """A million prompts, each like twenty others, have ten million pairs: the search ends at PAIRS of them and says so."""
    monkeypatch.setattr("kit.rubrics.corpus.PAIRS", 80)
    long = "one two three four five six seven eight nine ten eleven twelve thirteen number"
    tasks = [
        Task(
            id=str(i),
            prompt=f"{long} {'abcdefghijkl'[i]}",
            split="ab"[i % 2],
            criteria=(Criterion(id="c", text="x"),),
        )
        for i in range(12)
    ]
    counts = lint(tasks).counts
    assert counts["rule-limited"] == 1 and counts["split-leak"] > 0
    monkeypatch.undo()
    assert "rule-limited" not in lint(tasks).counts


def test_seen_texts_are_numbered_as_a_dict_numbers_them():
    rng, seen, plain = random.Random(1), Seen(), {}
    for _ in range(20_000):
        text = f"id {rng.randrange(9_000)} \ud800"
        new = text not in plain
        assert seen.add(text) == (plain.setdefault(text, len(plain)), new)
    assert len(seen) == len(plain) > 1024  # the table has grown several times


def test_ids_that_occur_again_get_names_of_their_own():
    t = load_tasks(
        [
            {"task_id": i, "prompt": "p", "rubrics": ["x"]}
            for i in ("a", "a#2", "a", "a", "b", "a#2")
        ]
    )
    assert [x.id for x in t.tasks] == ["a", "a#2", "a#3", "a#4", "b", "a#2#2"] and len(
        [f for f in t.findings if f.code == "duplicate-id"]
    ) == 3


def test_rlvr_rows_of_one_layout_are_read_each_by_itself():
    """The fields of a row are looked at once per set of names: values, doubles and gaps must stay those of the row."""
    rows = [
        {
            "task_id": f"t{i}",
            "prompt": "p",
            "rubric - 2. criterion": f"two {i}",
            "rubric - 1. criterion": None if i == 1 else f"one {i}",
            "rubric - 1. ratingA": [1, 5][i % 2],
            "rubric - 01. weight": i,
            "rubric - 1. weight": 9,
            "responseA": None if i == 2 else f"r{i}",
        }
        for i in range(3)
    ]
    t = load_tasks(rows)
    assert [[(c.id, c.text, c.weight) for c in x.criteria] for x in t.tasks] == [
        [("c1", "one 0", 9.0), ("c2", "two 0", 1.0)],
        [("c2", "two 1", 1.0)],
        [("c1", "one 2", 9.0), ("c2", "two 2", 1.0)],
    ]
    assert [f.code for f in t.findings if f.row == 2 and f.field].count(
        "duplicate-field"
    ) == 1 and [r.text for r in t.responses] == ["r0", "r1"]
    assert [(v.task_id, v.status, v.value) for v in t.verdicts] == [("t0", "level", 0.0)]


@pytest.mark.parametrize("repeat", [1, 3])
def test_a_text_in_many_rows_gets_its_findings_in_each(repeat):
    tasks = [
        Task(id=f"{i}", prompt=f"Describe steam engine {i}.", criteria=(Criterion(id="c", text=t),))
        for i, t in enumerate(NOTES[:20] * repeat)
    ]
    assert (
        lint(tasks).counts["annotator-note"]
        == repeat * lint(tasks[:20]).counts["annotator-note"]
        > 0
    )
    assert re.fullmatch(r"[\d.]+", str(lint(tasks).note_share))
