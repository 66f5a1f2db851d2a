"""The shipped recording of the 1.5B judge: the whole tuning loop is replayed, search included, and nothing is asked."""

import pytest

import kit
from kit.data import judge_model
from kit.errors import MissingError
from kit.judge.attacks import ATTACKS
from kit.system import paths
from kit.tuning import Seals

ROWS = 140
TRICKS = ("nothing added", "fake verdict", "rubric echo", "self-praise", "control tokens")


@pytest.fixture(scope="module")
def ledger(tmp_path_factory):
    path = tmp_path_factory.mktemp("recorded") / "small.sqlite"
    with kit.Ledger(path) as book:
        book.load(paths.data("judge_recording.jsonl.gz"))
    return path


@pytest.fixture
def bench(ledger, tmp_path, monkeypatch):
    monkeypatch.setattr(judge_model, "judge_cached", lambda: None)  # a miss is an error, no call
    seals = Seals(tmp_path / "seals.sqlite")
    bench = kit.workbench(
        paths.data("judge_labels.jsonl"), judge="small", ledger=ledger, seals=seals
    )
    for name in ("strict", "fair", "evidence", "examples"):
        text = paths.data("judge_prompts", f"{name}.txt").read_text("utf-8")
        bench.try_(name, text.strip())
    bench.try_("one by one", how="one")
    return bench


def test_the_loop_and_the_search_are_replayed_bit_for_bit(bench, ledger):
    n = len(kit.Ledger(ledger))
    first = bench.search(rows=ROWS)
    again = bench.search(rows=ROWS)
    assert first == again and "found 1" in bench.trials
    assert 130 < first.judged_rows <= ROWS
    read = bench.test()
    assert read.gain.n > 50 and read.reads == 1
    assert len(kit.Ledger(ledger)) == n  # nothing new was judged
    assert all(t.asked == 204 for t in bench.trials.values())


def test_what_was_not_recorded_says_how_to_go_on(bench):
    with pytest.raises(MissingError, match="fetch judge"):
        bench.try_("mine", bench.prompt + " Be kind.")


def test_the_attacks_of_the_notebook_are_in_the_recording(bench):
    tricks = [a for a in ATTACKS if a.name in TRICKS]
    for audit in bench.attack("baseline", "strict", attacks=tricks, answers=8).values():
        assert {r.name for r in audit.rows} == set(TRICKS) and audit.n_responses == 8
        assert all("not recorded" not in r.note for r in (*audit.rows, *audit.ladder))
