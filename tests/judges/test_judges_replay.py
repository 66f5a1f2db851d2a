"""Replay: recorded real judges give the published agreement; ledgers and exports replay; a miss names its key."""

import dataclasses
import functools
import json
import socket

import pytest

from kit.data import recorded
from kit.data.schemas import SCHEMAS
from kit.errors import DataError, MissingError
from kit.judge.ledger import Ledger
from kit.judge.replay import ReplayJudge, parse_score
from kit.records import Criterion, Response, Task, Verdict
from kit.tuning import paraphrase_flips

TASK = Task(id="t", prompt="p")
ANSWER = Response(task_id="t", id="r", text="a")
C = Criterion(id="c", text="x")


def cached():
    folder = recorded.paths.home() / "recorded" / f"flakyjudge-{recorded.SHA256[:12]}"
    return (folder / "complete").is_file()


needs_data = pytest.mark.skipif(
    not cached(), reason="the recordings are not in the cache: python -m kit fetch recorded"
)
KAPPA = {
    "gpt-4o": (0.525, 0.504),
    "claude-sonnet": (0.506, 0.545),
    "gpt-4o-mini": (0.465, 0.491),
    "claude-haiku": (0.412, 0.405),
    "llama-8b": (0.027, 0.055),
}
FLIPS = {
    "gpt-4o": (16, 78),
    "gpt-4o-mini": (11, 78),
    "claude-sonnet": (17, 68),
    "claude-haiku": (16, 78),
    "llama-8b": (4, 78),
}


@pytest.fixture(scope="module")
def data():
    return recorded.load()


@pytest.fixture(scope="module")
def replayed(data):
    """f(judge, prompt) -> verdicts on all 998 items, with every network call forbidden."""
    ts = data.taskset()
    by_id = {r.task_id: r for r in ts.responses}

    @functools.cache
    def run(judge, prompt):
        replay = ReplayJudge.recorded(judge, prompt, data=data)
        return [replay.verdict(t, by_id[t.id], t.criteria[0]) for t in ts.tasks]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", None)
        yield run


@needs_data
@pytest.mark.parametrize("judge", KAPPA)
@pytest.mark.parametrize("prompt", ["bare", pytest.param("parity", marks=pytest.mark.slow)])
def test_kappa_with_humans_is_the_published_one(data, replayed, judge, prompt):
    from kit.stats.agreement import kappa

    got = replayed(judge, prompt)
    human = [item["label"] >= 3 for item in data.items.values()]
    estimate = kappa([None if not v.known else v.status == "met" for v in got], human)
    assert float(estimate) == pytest.approx(KAPPA[judge][recorded.PROMPTS.index(prompt)], abs=0.001)
    assert estimate.n + estimate.missing == 998


@needs_data
def test_replies_that_do_not_parse_are_unknown(replayed):
    got = [v for v in replayed("claude-sonnet", "bare") if v.task_id.startswith("biggen")]
    assert len(got) == 499 and sum(v.known for v in got) == 467
    assert {v.failure for v in got if not v.known} == {"parse"}


def test_paraphrase_flips_heed_the_threshold_and_what_items_share():
    """Notebook 2 showed those of threshold 3 whatever its own was, its rows as independent."""
    rows = [
        {"judge": "j", "item_id": str(i), "variant_type": kind, "score_direct": score}
        for i in range(12)
        for kind, score in (("original", 3), ("lexical", 4 if i < 6 else 3))
    ]
    tasks = [Task(id=str(i), prompt="p", group=str(i // 6)) for i in range(12)]
    more = {"kinds": ("original", "lexical"), "tasks": tasks}
    assert paraphrase_flips(rows, **more)["j"].value == 0
    found = paraphrase_flips(rows, threshold=4, **more)["j"]
    assert (found.value, found.n_clusters) == (0.5, 2)


@needs_data
@pytest.mark.parametrize("judge", FLIPS)
def test_paraphrase_flips_are_the_published_ones(data, judge):
    kinds = (
        "original",
        "lexical",
        "syntactic",
        "register_formal",
        "register_casual",
        "form_question",
        "form_imperative",
    )
    replay = ReplayJudge.recorded(judge, threshold=2.5, data=data)
    by_item = {}
    for row in data.paraphrases:
        if row["judge"] == data.judge(judge) and row["variant_type"] in kinds:
            item = data.items[row["item_id"]]
            task, answer = (
                Task(id="t", prompt=item["query"]),
                Response(task_id="t", id="r", text=item["response"]),
            )
            v = replay.verdict(task, answer, Criterion(id="c", text=row["unit_test"]))
            by_item.setdefault(row["item_id"], {})[row["variant_type"]] = v.status
    full = [
        set(s.values())
        for s in by_item.values()
        if len(s) == len(kinds) and "unknown" not in s.values()
    ]
    assert (sum(len(s) > 1 for s in full), len(full)) == FLIPS[judge]


@needs_data
def test_p_is_the_mass_at_or_above_the_threshold(data, replayed):
    for v in replayed("gpt-4o", "bare")[:50]:
        if v.known:
            assert (
                v.p is not None
                and 1 <= v.meta["expected"] <= 5
                and v.meta["paid"]["cost"] > 0
                and v.cost == 0
            )
    assert all(v.p is None for v in replayed("claude-haiku", "bare"))
    ts = data.taskset()
    level = ReplayJudge.recorded("gpt-4o", threshold=None, data=data).verdict(
        ts.tasks[0], ts.responses[0], ts.tasks[0].criteria[0]
    )
    assert (
        level.status == "level"
        and level.value in (0, 0.25, 0.5, 0.75, 1)
        and level.p == pytest.approx((level.meta["expected"] - 1) / 4)
    )


@needs_data
def test_a_miss_names_the_key(data):
    judge = ReplayJudge.recorded(data=data)
    with pytest.raises(MissingError, match=judge.key(TASK, ANSWER, C)):
        judge.verdict(TASK, ANSWER, C)


@pytest.mark.parametrize(
    ("text", "score"), [("3", 3), (" 5 ", 5), ("**4**", 4), ("Score: 2", 2), ("4/5", 4), ("", None)]
)
def test_parse_score(text, score):
    assert parse_score(text) == score


def verdict(**more):
    return Verdict(
        **{
            **dict(
                task_id="t",
                response_id="r",
                criterion_id="c",
                status="met",
                p=0.8,
                judge="fake",
                key="p|a|x",
                cost=0.01,
            ),
            **more,
        }
    )


def test_ledger_and_export_replay_by_ids(tmp_path):
    from kit.judge import judge

    book = Ledger(tmp_path / "l.sqlite")
    book.put([verdict()])
    book.export(tmp_path / "l.jsonl")
    task = dataclasses.replace(TASK, criteria=(C,))
    for who in ("fake", None):
        for replay in (
            ReplayJudge.from_ledger(tmp_path / "l.sqlite", judge=who),
            ReplayJudge.from_jsonl(tmp_path / "l.jsonl", judge=who),
        ):
            out = judge(task, [ANSWER], judge=replay, progress=False)
            assert (out[0].status, out[0].p, out[0].cost, out[0].cached) == ("met", 0.8, 0.0, True)
    with pytest.raises(MissingError, match="recorded nothing under key"):
        ReplayJudge.from_ledger(book).verdict(TASK, dataclasses.replace(ANSWER, id="other"), C)


def test_an_export_carries_its_number_and_is_replayed_packed_too(tmp_path):
    """An export said nothing of its form; its .gz form was read as text and ended in a traceback."""
    book = Ledger(tmp_path / "l.sqlite")
    book.put([verdict()])
    for name in ("l.jsonl", "l.jsonl.gz"):
        book.export(tmp_path / name)
        replayed = ReplayJudge.from_jsonl(tmp_path / name).verdict(TASK, ANSWER, C)
        assert replayed.status == "met" and "schema" not in replayed.meta
    row = json.loads((tmp_path / "l.jsonl").read_text())
    assert row["schema"] == SCHEMAS["record"]
    newer = tmp_path / "newer.jsonl"
    newer.write_text(json.dumps({**row, "schema": 9}) + "\n")
    with pytest.raises(DataError, match="form 9 of record"):
        ReplayJudge.from_jsonl(newer)


def test_ambiguous_recordings_are_refused(tmp_path):
    with pytest.raises(DataError, match="several judges"):
        ReplayJudge.from_verdicts([verdict(), verdict(judge="other")])
    with pytest.raises(DataError, match="two different"):
        ReplayJudge.from_verdicts([verdict(), verdict(status="unmet", p=0.1)])
    with pytest.raises(MissingError, match="nobody"):
        ReplayJudge.from_verdicts([verdict()], judge="nobody")
    bad = tmp_path / "x.jsonl"
    bad.write_text('{"kind": "verdict"}\n')
    with pytest.raises(DataError, match="line 1"):
        ReplayJudge.from_jsonl(bad)
