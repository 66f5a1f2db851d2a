"""Judges by name and mapping, judges made of judges, groups, prices."""

from __future__ import annotations

import datetime
import json

import pytest
from fake_server import FakeServer, obj
from judged_words import TASK, answers, are_true, endpoint

import kit
from kit.judging import prices as models

NAMES = [
    ("code", "code", 1),
    ("endpoint:gpt-4o", "gpt-4o", 64),
    ("endpoint", "gpt-6-luna", 64),
    ({"endpoint": "m", "base_url": "http://127.0.0.1:1/v1"}, "m", 2),
    ({"endpoint": "m", "base_url": "http://localhost:1/v1"}, "m", 2),
    ({"endpoint": "m", "base_url": "http://10.0.0.1:1/v1"}, "m", 64),
    ({"endpoint": "m", "concurrency": 5, "name": "n"}, "n", 5),
    ({"panel": ["endpoint:a", "endpoint:b"]}, "panel(a, b)", 64),
    ({"votes": "endpoint:a", "n": 3}, "a x3", 64),
    ({"votes": {"endpoint": "a", "concurrency": 2}}, "a x5", 2),
    ({"escalate": ["endpoint:a", "endpoint:b"]}, "escalate(a, b)", 64),
    ({"group": "endpoint:a"}, "group(a)", 64),
    ({"cutoff": "endpoint:a", "at": 0.4}, "a at 0.4", 64),
    ({"replay": "small", "how": "word"}, "replay:small", 1),
]


@pytest.mark.parametrize(("value", "name", "concurrency"), NAMES)
def test_names_and_mappings(value, name, concurrency):
    judge = kit.judge_of(value)
    assert (judge.name, judge.concurrency) == (name, concurrency)
    assert kit.judge_of(judge) is judge


WRONG = [
    ("endpiont:gpt", "endpoint"),
    ({"small": ""}, "too many"),
    ("", "no judge"),
    (None, "no judge"),
    (7, "no judge"),
    ({}, "names one kind"),
    ({"endpoint": "a", "panel": []}, "names one kind"),
    ({"model": "a"}, "names one kind"),
    ({"endpoint": "a", "temprature": 0}, "temperature"),
    ({"endpoint": "a", "temperature": "hot"}, "temperature"),
    ({"endpoint": "a", "how": "both"}, "how"),
    ({"endpoint": "a", "how": 0}, "how"),
    ({"endpoint": "a", "timeout": -1}, "timeout"),
    ({"endpoint": "a", "concurrency": 0}, "concurrency"),
    ({"endpoint": "a", "price": 3}, "price"),
    ("server", "path"),
    ({"panel": ["code"]}, "two judges"),
    ({"panel": "code"}, "two judges"),
    ({"panel": ["code", "code"], "rule": "loudest"}, "rule"),
    ({"panel": ["code", "code"], "rules": "mean"}, "rule"),
    ({"panel": ["code", "endpiont"]}, "endpiont"),
    ({"escalate": ["code", "code", "code"]}, "two judges"),
    ({"escalate": ["code", "code"], "low": 0.9}, "low"),
    ({"votes": "code"}, "votes"),
    ({"votes": "endpoint:a", "n": 1}, "votes"),
    ({"group": "code"}, "group"),
    ({"cutoff": "endpoint:a", "at": 1}, "between 0 and 1"),
    ({"cutoff": "endpiont"}, "endpiont"),
]


@pytest.mark.parametrize(("value", "words"), WRONG)
def test_a_wrong_name_or_option_says_what_is_valid(value, words):
    with pytest.raises(kit.DataError) as error:
        kit.judge_of(value)
    assert words in str(error.value) and error.value.where


def replies(table):
    """A reply that depends on the judge's system message: {system: verdict of every criterion}."""
    return lambda a: obj(a, dict.fromkeys(a.truth, table[a.system]))


def members(server, *systems, **options):
    return [endpoint(server, system=s, name=s, **options) for s in systems]


M, U, X = "met", "unmet", "cannot_tell"
PANELS = [
    # votes, rule, status, failure, disagreement
    ((M, M, U), "majority", "met", None, 1 / 3),
    ((M, U, U), "majority", "unmet", None, 1 / 3),
    ((M, M, M), "mean", "met", None, 0.0),
    ((M, M, X), "majority", "met", None, 0.0),
    ((M, U, X), "majority", "unknown", "contradiction", 0.5),
    ((M, X, X), "majority", "unknown", "abstain", 0.0),
    ((X, X, X), "majority", "unknown", "abstain", None),
]


@pytest.mark.parametrize(("votes", "rule", "status", "failure", "disagreement"), PANELS)
def test_a_panel_votes(votes, rule, status, failure, disagreement, ledger):
    with FakeServer(replies(dict(zip("abc", votes, strict=True)))) as server:
        judge = {"panel": members(server, "a", "b", "c"), "rule": rule}
        run = {"judge": judge, "ledger": ledger, "progress": False}
        v = kit.judge(TASK, answers(1), **run)[0]
        assert (v.status, v.failure) == (status, failure)
        assert v.meta["disagreement"] == disagreement
        assert [row["judge"] for row in v.meta["votes"]] == ["a", "b", "c"]
        assert v.tokens_in == 3 * 33
        n = len(server.calls)
        assert kit.judge(TASK, answers(1), **run)[0].status == status and len(server.calls) == n
        # A member alone is known to the ledger already.
        kit.judge(TASK, answers(1), **{**run, "judge": judge["panel"][1]})
        assert len(server.calls) == n


def test_mean_goes_by_probabilities():
    def reply(a):
        sure = {"a": ("met", 60), "b": ("unmet", 99), "c": ("met", 55)}[a.system]
        return obj(a, dict.fromkeys(a.truth, sure[0]), confidence=sure[1])

    with FakeServer(reply) as server:
        panel = members(server, "a", "b", "c", confidence=True)
        by_rule = {
            rule: kit.judge(TASK, answers(1), judge={"panel": panel, "rule": rule}, progress=False)[
                0
            ]
            for rule in ("majority", "mean")
        }
    assert by_rule["majority"].status == "met" and by_rule["mean"].status == "unmet"
    assert by_rule["mean"].p == pytest.approx((0.60 + 0.01 + 0.55) / 3)


def test_a_member_that_is_down_is_a_vote_less_and_is_asked_later(ledger):
    with FakeServer() as server, FakeServer() as gone:
        panel = [*members(server, "a", "b"), endpoint(gone, name="c", concurrency=1)]
        gone.__exit__()
        run = {"judge": {"panel": panel}, "ledger": ledger, "progress": False}
        assert are_true(kit.judge(TASK, answers(3), **run))
        with kit.Ledger(ledger) as book:
            assert {v.judge for v in book.verdicts()} == {"a", "b"}
        gone.__enter__()
        panel[2] = endpoint(gone, name="c")
        again = kit.judge(TASK, answers(3), **run)
        assert are_true(again) and again.spent.calls == 3 == len(gone.calls)
        server.__exit__()
        gone.__exit__()
        with pytest.raises(kit.JudgeDownError):
            kit.judge(TASK, answers(40), judge=run["judge"], progress=False)
        server.__enter__(), gone.__enter__()


def test_votes_are_samples_with_keys_of_their_own(ledger):
    def reply(a):
        return obj(a, dict.fromkeys(a.truth, "met" if a.nth <= 3 else "unmet"))

    with FakeServer(reply) as server:
        judge = {"votes": endpoint(server, concurrency=1), "n": 5}
        run = {"judge": judge, "ledger": ledger, "progress": False}
        v = kit.judge(TASK, answers(1), **run)[0]
        assert (v.status, v.p) == ("met", 0.6) and len(server.calls) == 5
        assert {a.body["temperature"] for a in server.calls} == {1.0}
        kit.judge(TASK, answers(1), **run)
        assert len(server.calls) == 5


ESCALATIONS = [(99, 1, "a"), (50, 2, "b"), (79, 2, "b"), (81, 1, "a"), (None, 2, "b")]


@pytest.mark.parametrize(("confidence", "calls", "judge"), ESCALATIONS)
def test_doubts_are_escalated(confidence, calls, judge, ledger):
    def reply(a):
        if a.system == "b":
            return obj(a, confidence=100)
        sure = {} if confidence is None else {"confidence": confidence}
        return obj(a, a.truth if confidence != 50 else a.lies, **sure)

    with FakeServer(reply) as server:
        both = members(server, "a", "b", confidence=True)
        run = {"judge": {"escalate": both}, "ledger": ledger, "progress": False}
        verdicts = kit.judge(TASK, answers(1), **run)
        assert are_true(verdicts) and len(server.calls) == calls
        assert {v.judge for v in verdicts} == {judge}
        assert verdicts[0].meta["first"]["judge"] == "a"
        assert verdicts[0].meta["escalated"] == (judge == "b")
        assert kit.judge(TASK, answers(1), **run).spent.calls == 0


CUTOFFS = [(0.3, "met"), (0.4, "met"), (0.41, "unmet"), (0.5, "unmet")]


def test_a_cutoff_decides_anew_without_a_new_call(ledger):
    def reply(a):
        # Sixty percent for unmet: P(met) is .4.
        return obj(a, a.lies, confidence=60)

    task = kit.Task(id="t", prompt="Name words.", criteria=TASK.criteria[:1])
    with FakeServer(reply) as server:
        member = endpoint(server, confidence=True)
        run = {"ledger": ledger, "progress": False}
        for at, status in CUTOFFS:
            verdict = kit.judge(task, answers(1), judge={"cutoff": member, "at": at}, **run)[0]
            assert (verdict.status, round(verdict.p, 2)) == (status, 0.4)
            assert verdict.judge == "fake"
        assert len(server.calls) == 1


def test_a_cutoff_without_a_probability_is_unknown(ledger):
    with FakeServer() as server:
        judge = {"cutoff": endpoint(server), "at": 0.4}
        verdicts = kit.judge(TASK, answers(2), judge=judge, ledger=ledger, progress=False)
        assert {v.failure for v in verdicts} == {"missing"}


# -- groups -----------------------------------------------------------------------------------------
def two_tasks():
    other = kit.Task(id="u", prompt="Name others.", criteria=TASK.criteria)
    return [TASK, other], [*answers(5), *answers(4, other)]


def test_a_group_is_one_call_and_all_of_it_is_in_the_key(ledger):
    tasks, responses = two_tasks()
    with FakeServer() as server:
        run = {"judge": {"group": endpoint(server)}, "ledger": ledger, "progress": False}
        assert kit.estimate(tasks, responses, judge=run["judge"]).calls == 2
        verdicts = kit.judge(tasks, responses, **run)
        assert are_true(verdicts) and len(server.calls) == 2 and len(verdicts) == 27
        first = max(server.calls, key=lambda a: len(a.answers))
        assert list(first.answers) == ["a1", "a2", "a3", "a4", "a5"]
        assert sorted(first.answers.values()) == sorted(r.text for r in responses[:5])
        assert list(first.answers.values()) != [r.text for r in responses[:5]]
        schema = first.body["response_format"]["json_schema"]["schema"]
        assert list(schema["properties"]) == ["call", "a1", "a2", "a3", "a4", "a5"]
        assert kit.judge(tasks, responses, **run).spent.calls == 0
        # Another group, or another order, is another question.
        assert kit.judge(tasks, responses[:4] + responses[5:], **run).spent.calls == 1
        seeded = {**run, "judge": {"group": endpoint(server), "seed": 1}}
        assert kit.judge(tasks, responses, **seeded).spent.calls == 2
    with kit.Ledger(ledger) as book:
        assert len(list(book.verdicts())) == 27 + 12 + 27


GROUP_REPLIES = {
    "one more id": (lambda rows: {**rows, "a9": rows["a1"]}, {"parse"}, {"parse"}),
    "a criterion too many": (lambda rows: {**rows, "a1": {**rows["a1"], "c9": rows["a1"]["c1"]}}, {"parse"}, {"parse"}),
    "an answer absent": (lambda rows: {k: v for k, v in rows.items() if k != "a1"}, {"missing"}, {None}),
    "a criterion absent": (lambda rows: {**rows, "a1": {}}, {"missing"}, {None}),
    "a ranking": (lambda rows: {"ranking": list(rows)}, {"parse"}, {"parse"}),
    "a list": (lambda rows: list(rows.values()), {"parse"}, {"parse"}),
}  # fmt: skip


@pytest.mark.parametrize("case", GROUP_REPLIES)
def test_group_replies_are_read_strictly(case, ledger):
    change, of_first, of_others = GROUP_REPLIES[case]

    def reply(a):
        rows = {
            name: {c: {"reason": "x", "verdict": v} for c, v in a.judge(text).items()}
            for name, text in a.answers.items()
        }
        made = change(rows)
        return json.dumps({"call": a.mark, **made} if isinstance(made, dict) else made)

    with FakeServer(reply) as server:
        judge = {"group": endpoint(server)}
        verdicts = kit.judge(TASK, answers(3), judge=judge, ledger=ledger, progress=False)
        asked = server.calls[0]
        assert len(server.calls) == 2  # once more, then unknown
    first = next(r.id for r in answers(3) if r.text == asked.answers["a1"])
    assert {v.failure for v in verdicts if v.response_id == first} == of_first
    assert {v.failure for v in verdicts if v.response_id != first} == of_others
    assert are_true([v for v in verdicts if v.is_known])


def test_groups_tell_what_they_cost_and_stop_at_a_budget(ledger):
    tasks, responses = two_tasks()
    with FakeServer() as server:
        judge = {"group": endpoint(server, concurrency=1, price=[1, 1])}
        run = {"judge": judge, "ledger": False, "progress": False}
        verdicts = kit.judge(tasks, responses, **run)
        assert verdicts.spent.cost == pytest.approx(2 * 120 / 1e6)
        assert sum(v.cost for v in verdicts) == pytest.approx(verdicts.spent.cost)
        with pytest.raises(kit.BudgetError) as stop:
            kit.judge(tasks, responses, budget=kit.Budget(calls=1), **run)
        assert sum(v.is_known for v in stop.value.verdicts) == 15


# -- prices, prompts --------------------------------------------------------------------------------
def test_prices_and_shutdowns():
    assert (
        models.model_entry("gpt-4o-mini")["price"] == [0.15, 0.6]
        and models.model_entry("my-model") == {}
    )
    assert models.model_entry("gpt-4o-2024-08-06") == models.model_entry("gpt-4o")
    day = datetime.date(2026, 11, 24)
    dying = {name for name in models.catalog()["models"] if models.shutdown_warning(name, day)}
    assert {"gpt-5", "gpt-5-mini", "gpt-4o", "gpt-4.1"} <= dying
    assert "was shut down" in models.shutdown_warning("o4-mini", day)
    assert models.shutdown_warning(models.catalog()["default"], day) is None
    for name, row in models.catalog()["models"].items():
        assert not row.get("shutdown") or datetime.date.fromisoformat(row["shutdown"]), name


def test_an_estimate_knows_prices():
    estimate = kit.estimate(TASK, answers(10), judge="endpoint:gpt-4o-mini")
    assert estimate.calls == 10 and 0 < estimate.cost < 0.01 and "10 calls" in str(estimate)
    other = {"endpoint": "own", "base_url": "https://judge.invalid/v1"}
    assert kit.estimate(TASK, answers(10), judge=other).cost is None
    panel = {"panel": ["endpoint:gpt-4o-mini", "endpoint:gpt-4o"]}
    assert kit.estimate(TASK, answers(10), judge=panel).calls == 20
    assert kit.estimate(TASK, answers(10), judge="code").calls == 0
