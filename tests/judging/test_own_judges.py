"""Judges of one's own: a small class, tried without server and loop, and judged through the kit's own."""

from __future__ import annotations

import pytest
from fake_server import FakeServer
from judged_words import TASK, answers, endpoint

import kit
from kit.judging import Judge, LLMJudge, Question, Reply, unknown

CRITERION = TASK.criteria[0]


class GEval(LLMJudge):
    """A score from 1 to 5 in place of a verdict (Liu et al. 2023)."""

    version = "score 1"

    def messages(self, question):
        text = f"{question.task.prompt}\n\nThe answer: {question.answer.text}\n\nHow far is this true: "
        return [{"role": "user", "content": f"{text}{question.criterion.text}? Reply with 1 to 5."}]

    def schema(self, question):
        return None

    def parse(self, reply, question):
        if reply.text not in ("1", "2", "3", "4", "5"):
            return [unknown(f"not a score: {reply.text[:60]!r}")]
        return [{"status": "level", "value": (int(reply.text) - 1) / 4}]


class Pairwise(Judge):
    """Which of two answers fits a criterion better; the other one is unmet."""

    groups = True

    def __init__(self, model):
        self.model, self.name, self.identity = model, "pairwise", ["pairwise 1", model.identity]

    def plan(self, question):
        first, second = (r.text for r in question.answers.values())
        text = f"A: {first}\nB: {second}\n{question.criterion.text}. Reply with A or B."
        reply = yield self.model.request([{"role": "user", "content": text}])
        if reply.text not in ("A", "B"):
            return [unknown(reply.reason or f"not A or B: {reply.text[:60]!r}")] * 2
        return [{"status": "met" if reply.text == side else "unmet"} for side in "AB"]


def finish(plan, reply):
    """The only request and the readings of a plan: no server, no loop."""
    request = next(plan)
    with pytest.raises(StopIteration) as end:
        plan.send(reply)
    return request, end.value.value


SCORES = [("1", 0.0), ("4", 0.75), ("5", 1.0), ("6", None), ("four", None), ("", None)]


@pytest.mark.parametrize(("text", "value"), SCORES)
def test_a_scoring_judge_is_tried_without_a_server(text, value):
    judge = GEval("m", base_url="http://127.0.0.1:1/v1", how="one")
    question = Question.of(TASK, answers(1), [CRITERION])
    request, [reading] = finish(judge.plan(question), Reply(text=text))
    assert "says w0" in request.messages[0]["content"]
    assert "response_format" not in request.fields
    assert reading.get("value") == value and ("failure" in reading) == (value is None)


def test_a_lost_reply_is_unknown_before_it_is_read():
    judge = GEval("m", base_url="http://127.0.0.1:1/v1", how="one")
    question = Question.of(TASK, answers(1), [CRITERION])
    reply = Reply(failure="refusal", reason="filtered")
    _, readings = finish(judge.plan(question), reply)
    assert readings == [{"status": "unknown", "failure": "refusal", "reason": "filtered"}]


@pytest.mark.parametrize(("text", "statuses"), [("A", ["met", "unmet"]), ("B", ["unmet", "met"])])
def test_a_pairwise_judge_is_tried_without_a_server(text, statuses):
    judge = Pairwise(LLMJudge("m", base_url="http://127.0.0.1:1/v1"))
    question = Question.of(TASK, answers(2), [CRITERION])
    request, readings = finish(judge.plan(question), Reply(text=text))
    assert request.messages[0]["content"].startswith("A: w0 number 0\nB: w1 number 1")
    assert [r["status"] for r in readings] == statuses


def test_they_have_ledger_budget_and_costs_like_the_kits_own(ledger):
    task = kit.Task(id="t", prompt="p", criteria=(CRITERION,))

    def reply(asked):
        return "A" if asked.prompt.endswith("A or B.") else "4"

    with FakeServer(reply) as server:
        options = {k: v for k, v in endpoint(server).items() if k != "endpoint"}
        scores = GEval("fake", how="one", price=(1.0, 1.0), **options)
        pairs = Pairwise(LLMJudge("fake", **options))
        run = {"ledger": ledger, "progress": False}
        assert kit.estimate(task, answers(2), judge=scores, ledger=ledger).calls == 2
        verdicts = kit.judge(task, answers(2), judge=scores, **run)
        assert [v.value for v in verdicts] == [0.75, 0.75] and verdicts.spent.cost > 0
        verdicts = kit.judge(task, answers(2), judge=pairs, **run)
        assert [v.status for v in verdicts] == ["met", "unmet"] and len(server.calls) == 3
        for judge in (scores, pairs):
            assert kit.judge(task, answers(2), judge=judge, **run).spent.calls == 0
        plain = LLMJudge("fake", how="one", price=(1.0, 1.0), **options)
        keys = [judge.keys(Question.of(task, answers(1), [CRITERION])) for judge in (scores, plain)]
        assert keys[0] != keys[1]
        with pytest.raises(kit.BudgetError):
            budget = kit.Budget(calls=0)
            kit.judge(task, answers(2), judge=scores, ledger=False, budget=budget, progress=False)


def test_several_criteria_for_a_judge_of_one_say_what_to_set():
    with FakeServer() as server:
        options = {k: v for k, v in endpoint(server).items() if k != "endpoint"}
        with pytest.raises(kit.DataError, match="how"):
            kit.judge(TASK, answers(1), judge=GEval("fake", **options), ledger=False)


@pytest.mark.parametrize("readings", [None, [], [{"status": "met"}] * 9])
def test_a_plan_returns_a_reading_for_each_verdict(readings):
    class Short(Judge):
        name = "short"

        def plan(self, question):
            return readings
            yield

    with pytest.raises(kit.DataError, match=r"plan\(\) returned . readings? for \d verdicts"):
        kit.judge(TASK, answers(1), judge=Short(), progress=False)
