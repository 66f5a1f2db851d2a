"""What an outsider's training met: leaks, quoted flags, values that are none. Offline."""

from __future__ import annotations

import json

import pytest

from kit.errors import DataError, KitError
from kit.settings.read import parse
from kit.train import job

CRITERIA = [{"id": "c", "text": "Short.", "check": {"name": "words", "max": 3}}]


def write(path, rows):
    text = "\n".join(json.dumps({"criteria": CRITERIA, **r}) for r in rows)
    path.write_text(text)
    return str(path)


def built(**values):
    return job.build({"model": "tiny-random", "preset": "test", **values})


@pytest.fixture
def file(tmp_path):
    return write(tmp_path / "a.jsonl", [{"id": f"q{i}", "prompt": f"P{i}"} for i in range(6)])


def test_a_heldout_file_and_a_split_are_not_both_taken(file, tmp_path):
    """The split was ignored without a word, and its groups were trained on."""
    other = write(tmp_path / "b.jsonl", [{"id": "x", "prompt": "Another"}])
    for words in ({"train_ratio": 0.5}, {"holdout_by": "tissue"}, {"holdout": ["eye"]}):
        with pytest.raises(KitError, match="both say what is held out"):
            built(tasks=file, heldout=other, **words)
    with pytest.raises(DataError, match="6 held-out tasks are also trained on"):
        built(tasks=file, heldout=file)
    assert len(built(tasks=file, heldout=other).tasks) == 6


def test_a_prompt_stands_on_one_side_only(tmp_path):
    """Twenty rows of five prompts: all five were trained on and held out."""
    rows = [{"id": f"q{i}", "prompt": f"Same  prompt {i % 5}"} for i in range(20)]
    got = built(tasks=write(tmp_path / "a.jsonl", rows), train_ratio=0.6)
    assert len(got.tasks) == 12 and len(got.heldout) == 8
    assert not {t.prompt for t in got.tasks} & {t.prompt for t in got.heldout}
    again = write(tmp_path / "b.jsonl", [{"id": "other", "prompt": "same prompt 1"}])
    left = built(tasks=str(tmp_path / "a.jsonl"), heldout=again).tasks
    assert len(left) == 16 and "Same  prompt 1" not in {t.prompt for t in left}


@pytest.mark.parametrize("words", [{}, {"train_ratio": 0.5}])
def test_marked_rows_are_never_trained_on(tmp_path, words):
    """Test and validation rows were trained on; with train_ratio heldout rows too."""
    marks = ["train", "test", "Heldout", "validation"]
    rows = [{"id": f"q{i}", "prompt": f"P{i}", "split": marks[i % 4]} for i in range(16)]
    got = built(tasks=write(tmp_path / "a.jsonl", rows), **words)
    assert {t.split for t in got.tasks} == {"train"}
    assert len(got.heldout) == 12 + (2 if words else 0)


@pytest.mark.parametrize("group", [1, "Eye", "eye "])
def test_numbers_and_spellings_of_groups(tmp_path, group):
    """Groups 0, 1, 2 could not be named; eye, Eye and "eye " were three groups."""
    tissues = [0, 1, 2, "eye", "Eye", "eye "]
    rows = [{"id": f"q{i}", "prompt": f"P{i}", "tissue": t} for i, t in enumerate(tissues)]
    got = built(tasks=write(tmp_path / "a.jsonl", rows), holdout_by="tissue", holdout=[group])
    assert len(got.heldout) == (1 if group == 1 else 3)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"mask_truncated_completions": "false"}, "mask_truncated_completions is 'false'"),
        ({"use_4bit": "no"}, "without quotation marks"),
        ({"use_wandb": "false"}, "without quotation marks"),
        ({"verifier_weights": [0.35, 0.3]}, "it is a mapping"),
        ({"verifier_weights": {}}, "it is a mapping"),
        ({"verifier_weights": {"V1": "x"}}, "not a number"),
        ({"verifier_weights": {"V9": 0.3}}, "no verifier 'V9'"),
        ({"judge_model": ["a"]}, "judge_model is"),
        ({"judge_model": "a", "judge_max_retries": "three"}, "judge_max_retries is"),
        ({"judge_model": "a", "judge_temperature": -5}, "judge_temperature is"),
        ({"data_seed": "x"}, "data_seed is"),
        ({"ask": ["a"]}, "ask is"),
    ],
)
def test_values_that_are_none_are_refused_when_the_job_is_built(file, values, said):
    """A quoted "false" turned the option on; the others were taken, or a raw traceback."""
    with pytest.raises(KitError, match=said):
        built(tasks=file, **values)
    assert built(tasks=file, use_4bit=False).settings.quantize == "none"


def test_a_key_that_stands_there_twice():
    """`steps` twice: the last one won without a word."""
    with pytest.raises(Exception, match="'steps' stands there twice"):
        parse("steps: 3\nsteps: 30")
    assert parse("a: &a {x: 1}\nb: {<<: *a, x: 2}")["b"] == {"x": 2}
