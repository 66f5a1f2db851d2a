"""Doors of the training config: evolve, per_component, and what is looked at before a model loads. Offline."""

from __future__ import annotations

import asyncio
import json

import pytest

from kit.errors import KitError, MissingError
from kit.judge.ledger import Ledger
from kit.records import Criterion, Response, Task, Verdict, fingerprint, unknown
from kit.rewards.composer import Composer
from kit.train import evolving, grpo, inputs, job, reward, rollouts
from kit.train.config import GRPOSettings, build
from kit.train.presets import preset

VOWEL = Criterion(id="v", text="Has an a.", check={"name": "contains", "any": ["a"]})
EVEN = Criterion(id="e", text="Is even.")
TWO = {
    "components": [
        {"kind": "rubric", "name": "rubric", "weight": 3},
        {"kind": "verifier", "verifier": "factual", "weight": 1},
    ]
}

MOUSE = {"facts": [{"text": "a mouse"}]}


def tasks(n=2, **more):
    return [Task(id=f"t{i}", prompt=f"say {i}", criteria=(VOWEL, EVEN), **more) for i in range(n)]


def settings(**changes):
    return build(GRPOSettings, {**preset("test"), **changes})


class FakeJudge:
    """Meets a criterion when the answer's letters and its own sum to an even number."""

    name = "fake"

    def key(self, task, response, criterion):
        return fingerprint(["fake", response.text, criterion.text])

    async def verdicts(self, task, response, criteria):
        ids = dict(task_id=task.id, response_id=response.id, judge=self.name)
        met = [sum(map(ord, response.text + c.text)) % 2 == 0 for c in criteria]
        return [
            Verdict(**ids, criterion_id=c.id, status="met" if m else "unmet")
            for c, m in zip(criteria, met, strict=True)
        ]


class FakeModel:
    """Proposes one new criterion per request, in the kit's form."""

    name, model, bill = "fake-model", "m", 0

    def __init__(self):
        self.caller, self.asked = self, 0
        self.wire = None

    async def chat(self, prompt, room):
        from types import SimpleNamespace

        from kit.judge.records import Call

        self.asked += 1
        text = json.dumps({"criteria": [{"text": f"Trait {self.asked % 7}.", "weight": 1}]})
        data = {"choices": [{"message": {"content": text}}]}
        call = Call(id=f"call {self.asked}", judge="j", model="m", endpoint="e", cost=0.5)
        return SimpleNamespace(data=data, call=call, reason=None)


@pytest.fixture
def model(monkeypatch):
    monkeypatch.setattr(inputs, "keyed", lambda judges: None)
    found = FakeModel()
    monkeypatch.setattr(grpo, "judge_of", lambda value, where: found)
    return found


def test_evolving_rubrics_are_reached_from_a_training(tmp_path, model):
    """They were built and tested, and no config reached them."""
    held = [Task(id="h", prompt="say h", criteria=(VOWEL, EVEN))]
    r = grpo.train(
        settings(steps=3),
        tasks(),
        judge=FakeJudge(),
        heldout=held,
        out=tmp_path / "a",
        evolve={"model": "endpoint:m", "keep": 2},
    )
    judged = {v["id"] for row in r.rollouts() for v in row["verdicts"]}
    assert {"v", "e"} < judged and any(i.startswith("evolved:") for i in judged)
    assert model.asked == 3 * 2 and r.metrics["judge_cost"] == pytest.approx(0.5 * 6)
    costs = {c["judge"]: c["calls"] for c in Ledger(tmp_path / "a" / "ledger.sqlite").costs()}
    assert costs == {"evolve": 6}  # they stood in the run's bill alone
    for e in (r.before, r.after):  # held-out answers are judged as ever
        assert {v.criterion_id for g in e.grades for v in g.verdicts} == {"v", "e"}
    rows = rollouts.read(tmp_path / "a" / evolving.LOG)
    assert len(rows) == 3 * 2 and all(len(x["buffers"]["active"]) <= 2 for x in rows)
    what = {c["what"] for x in rows for c in x["changes"]}
    assert "added" in what and all(c["why"] for x in rows for c in x["changes"])


def test_evolving_rubrics_go_on_where_they_stood(tmp_path, model):
    kept = {}
    for name in ("whole", "cut"):
        model.asked, options = 0, dict(judge=FakeJudge(), out=tmp_path / name, evolve=True)
        options["evolve"] = {"model": "endpoint:m", "keep": 3}
        if name == "cut":

            def stop(row):
                if row["step"] == 3:
                    raise KeyboardInterrupt

            with pytest.raises(KeyboardInterrupt):
                grpo.train(settings(steps=4), tasks(), on_step=stop, **options)
            options["resume"] = True
        r = grpo.train(settings(steps=4), tasks(), **options)
        assert model.asked == 4 * 2  # a resumed run asked and paid for step 3 once more
        last = rollouts.read(tmp_path / name / evolving.LOG)
        kept[name] = ([(x["text"], x["reward"]) for x in r.rollouts()], last[-2:])
    assert kept["whole"] == kept["cut"]


def test_an_audit_looks_at_the_criteria_that_a_training_has_by_then(tmp_path, model):
    """The same judge twice: .036 in training, .429 in its audit, which knew no evolved criterion;
    one that was dropped was a rise of the training alone, and an alarm."""
    grpo.train(
        settings(steps=4, audit_every=1, audit_share=1.0),
        tasks(),
        judge=FakeJudge(),
        audit=FakeJudge(),
        out=tmp_path,
        evolve={"model": "endpoint:m", "static": [{"text": "pads", "weight": -3}]},
    )
    rows = rollouts.read(tmp_path / "audits.jsonl")
    assert [r["audit"] for r in rows] == [pytest.approx(r["training"]) for r in rows]
    assert not any(r["alarm"] for r in rows) and len(rows) == 4


def test_evolve_that_would_change_nothing_is_refused(tmp_path, model):
    verifiers = [Task(id="t", prompt="p", truth={"facts": [{"text": "a"}]})]
    with pytest.raises(KitError, match="reads no rubric"):
        options = dict(judge=FakeJudge(), composer="verifiers", out=tmp_path / "a")
        grpo.train(settings(), verifiers, evolve={"model": "endpoint:m"}, **options)
    with pytest.raises(KitError, match="need a model that proposes"):
        grpo.train(settings(), tasks(), judge=FakeJudge(), out=tmp_path / "b", evolve=True)
    with pytest.raises(KitError, match="did you mean 'keep'"):
        evolving.settings_of({"kep": 3})
    with pytest.raises(KitError, match="evolve is 3"):
        evolving.settings_of(3)
    with pytest.raises(KitError, match="static 1"):  # a raw ValueError of float()
        evolving.settings_of({"static": [{"text": "x", "weight": "big"}]}).rubrics()


def test_each_component_is_a_reward_of_its_own(tmp_path):
    """`use_multi_reward` was known by name and refused."""
    every = tasks(truth=MOUSE)
    s = settings(per_component=True, save_every=0, advantage="centred")
    assert job.build({"use_multi_reward": True, "stage": "grpo", "tasks": rows(tmp_path)}).settings
    r = grpo.train(s, every, judge=FakeJudge(), composer=TWO, out=tmp_path / "a")
    composer = Composer.from_config(TWO)
    assert reward.weights(composer, per_component=True) == [0.75, 0.25]
    for row in r.rollouts():
        group = [
            x for x in r.rollouts() if (x["step"], x["task_id"]) == (row["step"], row["task_id"])
        ]
        mean = sum(x["reward"] for x in group) / len(group)
        assert row["advantage"] == pytest.approx(row["reward"] - mean, abs=1e-3)


def rows(tmp_path):
    path = tmp_path / "rows.json"
    checks = {"rubric - 1. criterion": "Has an a.", "rubric - 1. check": VOWEL.check}
    path.write_text(json.dumps([{"task_id": "r", "prompt": "say", **checks}]))
    return str(path)


def test_a_component_that_does_not_apply_is_none_and_one_that_is_unknown_is_never_0():
    composer, answer = Composer.from_config({**TWO, "max_width": 0.3}), "It was a mouse."
    parts = reward.parts_of(composer)
    r = Response(task_id="t", id="r", text=answer)
    plain, sure = (Task(id="t", prompt="p", criteria=(EVEN,), truth=x) for x in ({}, MOUSE))
    ids = ("t", "r", "e")
    known = Verdict(task_id="t", response_id="r", criterion_id="e", status="met")
    one = reward.values(parts, plain, r, composer.score(plain, r, [known]))
    assert one == [1.0, None]
    lost = reward.values(parts, sure, r, composer.score(sure, r, [unknown(*ids, "parse")]))
    assert lost == [None, None]
    wide = Composer.from_config(
        {**TWO, "max_width": 0.8}
    )  # the sum is narrow enough, its part is not
    grade = wide.score(sure, r, [unknown(*ids, "parse")])
    assert grade.score is not None
    assert reward.values(reward.parts_of(wide), sure, r, grade) == [None, None]


def test_the_weighted_parts_sum_to_the_reward():
    shaped = {"format": {"mode": "bonus", "answer_block": True, "bonus": 0.1}, "scale": 10.0}
    composer = Composer.from_config({**TWO, **shaped})
    task = Task(id="t", prompt="p", criteria=(EVEN,), truth=MOUSE)
    r = Response(task_id="t", id="r", text="<answer>It was a mouse.</answer>")
    v = Verdict(task_id="t", response_id="r", criterion_id="e", status="met")
    parts = reward.parts_of(composer)
    assert [p.name for p in parts] == ["rubric", "factual", "format"]
    total = sum(p.weight * p.call(task, r, [v]) for p in parts)
    assert total == pytest.approx(composer.score(task, r, [v]).score)


def test_a_batch_is_graded_once_for_all_functions():
    seen = []

    async def grade(**batch):
        seen.append(batch)
        await asyncio.sleep(0)
        task = Task(id="t", prompt="p", criteria=(EVEN,))
        r = Response(task_id="t", id="r", text="x")
        v = Verdict(task_id="t", response_id="r", criterion_id="e", status="met")
        return [(task, r, Composer.from_config(TWO).score(task, r, [v]))]

    async def both(pay, ids):
        return await asyncio.gather(*(f(completion_ids=ids, completions=["x"]) for f in pay))

    pay = reward.functions(Composer.from_config(TWO), grade, per_component=True)
    assert [f.__name__ for f in pay] == ["rubric", "factual"]
    for batch in ([[1]], [[1]]):
        assert asyncio.run(both(pay, batch)) == [[1.0], [None]]
    assert len(seen) == 2


def test_a_cap_on_the_sum_has_no_place_in_its_parts(tmp_path):
    with pytest.raises(KitError, match="has a cap"):
        capped = {**TWO, "cap": 0.5}
        s = settings(per_component=True)
        grpo.train(s, tasks(), judge=FakeJudge(), composer=capped, out=tmp_path)


def test_a_reporter_that_is_not_there_is_said_before_the_model_loads(tmp_path, monkeypatch):
    monkeypatch.setattr("kit.train.grpo.load", lambda s: pytest.fail("the model was loaded"))
    monkeypatch.setattr("kit.train.stages.load", lambda s: pytest.fail("the model was loaded"))
    monkeypatch.setattr(inputs, "_installed", lambda package: package not in inputs.REPORTERS)
    monkeypatch.setattr(job, "judge_of", lambda value, where: pytest.fail("the judge was loaded"))
    for name in ("wandb", "trackio"):
        with pytest.raises(MissingError, match=f"pip install {name}"):
            grpo.train(settings(report_to=[name]), tasks(), judge=FakeJudge(), out=tmp_path)
        with pytest.raises(MissingError, match=f"pip install {name}"):
            job.build({"tasks": rows(tmp_path), "report_to": [name], "judge": "local"})
    with pytest.raises(KitError, match="did you mean 'wandb'"):
        inputs.check(settings(report_to=["wanbd"]))
    inputs.check(settings(report_to=["none"]))


def test_a_missing_key_is_named_before_the_model_loads(tmp_path, monkeypatch):
    """The first step said "refused", minutes after the model was loaded."""
    monkeypatch.setattr("kit.train.grpo.load", lambda s: pytest.fail("the model was loaded"))
    for name in ("KIT_JUDGE_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL", "MY_KEY"):
        monkeypatch.delenv(name, raising=False)
    mine = {"endpoint": "m", "base_url": "https://llm.example.org/v1", "key_env": "MY_KEY"}
    for judge, name in (
        ("endpoint:gpt-5-mini", "KIT_JUDGE_KEY"),
        (mine, "MY_KEY"),
        ({"panel": ["code", mine]}, "MY_KEY"),
        ({"escalate": ["code", mine]}, "MY_KEY"),
    ):
        found = job.build({"tasks": rows(tmp_path), **preset("test"), "judge": judge})
        with pytest.raises(MissingError, match="there is no key") as e:
            job.run(found)
        assert name in str(e.value) and not (found.out / "settings.json").exists()
    for judge in (
        {"endpoint": "m", "base_url": "http://127.0.0.1:1/v1"},
        {**mine, "headers": {"x-api-key": "k" * 9}},
    ):
        inputs.check(settings(), [job.judge_of(judge, "here")])  # these need none
    monkeypatch.setenv("MY_KEY", "k" * 20)
    inputs.check(settings(), [job.judge_of(mine, "here")])
