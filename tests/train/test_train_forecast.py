"""Before hours are spent: what can be learned at all; and the control arm, whose rewards teach nothing."""

from __future__ import annotations

import asyncio
import json

import pytest

from kit.errors import KitError
from kit.records import Criterion, Grade, Response, Task, Verdict, fingerprint
from kit.train import evaluation, forecast, grpo, job, reward
from kit.train.config import GRPOSettings, build
from kit.train.presets import preset


def settings(**changes):
    return build(GRPOSettings, {**preset("test"), **changes})


def tasks(check, count=9):
    rubric = (Criterion(id="c", text="It does.", check=check),)
    return [Task(id=f"t{i}", prompt=f"say {i}", criteria=rubric, kind="say") for i in range(count)]


NEVER = {"name": "contains", "any": ["no model says this"]}
SOMETIMES = {"name": "regex", "pattern": "[aeiou]"}


def test_a_run_that_cannot_learn_stops_before_its_first_step(tmp_path, capsys):
    """Two constraints at once had a base rate of .00: thirty steps ran, every group flat, exit code 0."""
    with pytest.raises(KitError, match="nothing can be learned") as told:
        grpo.train(settings(forecast=True), tasks(NEVER), out=tmp_path / "run")
    assert "easier prompts" in str(told.value)
    assert not (tmp_path / "run" / "rollouts.jsonl").exists()
    assert "9 prompts x" in capsys.readouterr().err  # it went to a log that nobody had asked for
    kept = json.loads((tmp_path / "run" / "forecast.json").read_text())
    assert kept["mixed"]["value"] == 0 and kept["kinds"] == {"say": [0, 9]}


def test_the_forecast_counts_its_own_groups(tmp_path):
    s, some = settings(group_size=8, steps=40), tasks(SOMETIMES)
    found = forecast.of(some, s)
    health = found.health
    assert health.total() == 8 and found.size == 8
    assert found.mixed.value == health["mixed"] / 8
    assert found.any_of.value == (health["mixed"] + health["good"]) / 8
    assert found.once.value == found.reward.value  # one criterion: a strict pass is the reward
    assert found.kinds == {"say": (health["mixed"], 8)}
    assert found.seconds > 0 and "8 prompts x 8 answers" in str(found)


@pytest.mark.parametrize("passes", [{}, {"iterations": 2, "substeps": 2}])
def test_the_forecast_counts_what_the_run_judges(tmp_path, passes):
    """With two passes over a batch it was three times the steps' cost; evaluations and trivial
    policies, most of what a short run pays, were not in it.
    """
    some = tasks(SOMETIMES)
    train, held = some[:6], some[6:]
    s = settings(steps=5, eval_every=2, eval_samples=2, **passes)
    said = forecast.of(train, s, heldout=held).answers
    out = grpo.train(s, train, heldout=held, out=tmp_path / "run").out
    evals = [evaluation.read(path) for path in out.glob("eval_*.json")]
    assert len(evals) == 5
    lines = (out / "rollouts.jsonl").read_text("utf-8").count("\n")
    assert said == lines + sum(len(e.grades) for e in evals)


class PricedFakeJudge:
    """Meets a criterion when the answer has an even number of letters; a cent an answer."""

    name = "priced"

    def __init__(self):
        self.asked = 0

    def key(self, task, response, criterion):
        return fingerprint(["priced", task.id, response.text, criterion.text])

    async def verdicts(self, task, response, criteria):
        self.asked += 1
        place = dict(task_id=task.id, response_id=response.id, judge=self.name, cost=0.01)
        status = "unmet" if len(response.text) % 2 else "met"
        keys = [self.key(task, response, c) for c in criteria]
        return [
            Verdict(**place, criterion_id=c.id, status=status, key=key)
            for c, key in zip(criteria, keys, strict=True)
        ]


def judged(count=9):
    rubric = (Criterion(id="c", text="It does."),)
    return [Task(id=f"t{i}", prompt=f"say {i}", criteria=rubric) for i in range(count)]


def test_a_forecast_from_a_ledger_says_what_its_verdicts_cost(tmp_path):
    """The second forecast over one ledger said that the run costs nothing."""
    judge, s = PricedFakeJudge(), settings(steps=4)
    first, again = (
        forecast.of(judged(), s, judge=judge, ledger=tmp_path / "l.sqlite") for _ in range(2)
    )
    assert judge.asked <= 64
    assert first.cost == pytest.approx(again.cost) and first.cost > 0
    assert "judge: about $" in str(again)
    assert first.timed and "judging is not timed" in str(again)  # it said "about 0 s"


def test_a_forecast_alone_pays_into_the_ledger_of_its_run(tmp_path):
    """`--forecast` and the run after it paid for the same answers, each for itself."""
    judge = PricedFakeJudge()
    wanted = job.Job(
        settings=settings(steps=2, forecast=True),
        tasks=tuple(judged()),
        heldout=(),
        rows=(),
        judge=judge,
        audit=None,
        reward="rubric",
        evolve=None,
        out=tmp_path / "run",
        ledger=None,
    )
    job.foresee(wanted)
    asked = judge.asked
    job.run(wanted)
    steps = wanted.settings.steps * wanted.settings.prompts_per_step * wanted.settings.group_size
    assert judge.asked - asked <= steps


def test_a_prompt_whose_verdicts_are_all_unknown_is_no_prompt_without_a_pass():
    """pass@8 was .500 of 8 prompts beside a pass@1 of 1.000, with "missing: 0"."""
    some = tasks(SOMETIMES, 4)
    ids = [(t.id, k) for t in some for k in range(2)]
    said = {"t0": ("met", "unknown"), "t1": ("unknown", "unmet"), "t2": ("unmet", "unmet")}
    graded = []
    for i, k in ids:
        place, status = dict(task_id=i, response_id=f"r{k}"), said.get(i, ("met", "met"))[k]
        verdict = Verdict(
            **place,
            criterion_id="c",
            status=status,
            failure="parse" if status == "unknown" else None,
        )
        graded.append(
            Grade(**place, score=None, score_low=0.0, score_high=1.0, verdicts=(verdict,))
        )
    answers = [Response(task_id=i, id=f"r{k}", text="a") for i, k in ids]
    found = forecast._found(
        evaluation.Evaluation(name="now", responses=tuple(answers), grades=tuple(graded)), some
    )
    assert (found["any_of"].value, found["any_of"].n, found["any_of"].missing) == (2 / 3, 3, 1)


def test_the_control_deals_each_groups_rewards_out_again():
    async def pay(**batch):
        return [0.1, 0.2, 0.3, 0.4, None, 0.6, 0.7, 0.8]

    ids = [[i] for i in range(8)]
    batch = {"task_id": ["a"] * 4 + ["b"] * 4, "completion_ids": ids}
    first, again = (asyncio.run(reward.shuffled(pay, 0)(**batch)) for _ in range(2))
    assert first == again != asyncio.run(pay())
    assert sorted(first[:4]) == [0.1, 0.2, 0.3, 0.4]
    assert set(first[4:]) == {None, 0.6, 0.7, 0.8}
    # what is unknown was dealt out too: an answer without a reward was trained on
    assert first[4] is again[4] is None
    assert all(asyncio.run(reward.shuffled(pay, k)(**batch))[4] is None for k in range(9))
    assert first != asyncio.run(reward.shuffled(pay, 1)(**batch))


def test_the_control_logs_the_true_rewards(tmp_path):
    s = settings(shuffle_rewards=True, steps=2, group_size=8)
    done = grpo.train(s, tasks(SOMETIMES), out=tmp_path / "run")
    for row in done.rollouts():
        assert row["reward"] == float(any(v in row["text"] for v in "aeiou"))


def test_a_strict_pass_meets_everything_and_unknown_is_no_failure():
    rubric = (
        Criterion(id="gate", text="Gate.", weight=0.0, required=True),
        Criterion(id="good", text="Good."),
        Criterion(id="bad", text="Bad.", weight=-1.0),
    )
    task = Task(id="t", prompt="p", criteria=rubric)

    def graded(**said):
        verdicts = tuple(
            Verdict(task_id="t", response_id="r", criterion_id=i, status=s, failure=f)
            for i, (s, f) in said.items()
        )
        return Grade(
            task_id="t",
            response_id="r",
            score=1.0,
            score_low=1.0,
            score_high=1.0,
            verdicts=verdicts,
        )

    met, unmet, unknown = ("met", None), ("unmet", None), ("unknown", "parse")
    grades = (
        graded(gate=met, good=met, bad=unmet),
        graded(gate=met, good=met, bad=met),
        graded(gate=unmet, good=met, bad=unmet),
        graded(gate=met, good=unknown, bad=unmet),
        graded(gate=unmet, good=unknown, bad=unmet),
    )
    answers = tuple(Response(task_id="t", id="r", text="x") for _ in grades)
    seen = evaluation.Evaluation(name="e", responses=answers, grades=grades)
    assert seen.strict([task]) == [1.0, 0.0, 0.0, None, 0.0]
