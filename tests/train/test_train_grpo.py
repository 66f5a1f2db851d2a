"""GRPO end to end on the tiny model: one run's folder, resume, unknown rewards, a judge that goes down. Offline."""

from __future__ import annotations

import dataclasses
import json

import pytest

from kit.errors import DataError, JudgeDownError, KitError
from kit.records import Criterion, Task, Verdict, unknown
from kit.train import grpo, rollouts, trainer
from kit.train.config import GRPOSettings, build
from kit.train.presets import preset

CODE = Criterion(id="c1", text="Contains an a.", check={"name": "contains", "any": ["a", "e"]})
JUDGED = Criterion(id="c2", text="Is pleasant.")


def tasks(n, *, prefix="t", criteria=(CODE, JUDGED)):
    return [Task(id=f"{prefix}{i}", prompt=f"say {i}", criteria=criteria) for i in range(n)]


class FakeJudge:
    """Meets a criterion when the answer's text has an even hash; may be down, or abstain on some answers."""

    name = "fake"

    def __init__(self, *, down_calls=range(0), abstain_every=0):
        self.calls, self.down_calls, self.abstain_every, self.seen = (
            0,
            down_calls,
            abstain_every,
            [],
        )

    def key(self, task, response, criterion):
        from kit.records import fingerprint

        return fingerprint(["fake", task.id, response.text, criterion.text])

    async def verdicts(self, task, response, criteria):
        self.calls += 1
        out = []
        for c in criteria:
            ids = (task.id, response.id, c.id)
            if self.calls - 1 in self.down_calls:
                out.append(unknown(*ids, "transport", judge=self.name))
            elif self.abstain_every and self.calls % self.abstain_every == 0:
                out.append(unknown(*ids, "abstain", judge=self.name))
            else:
                self.seen.append(self.key(task, response, c))
                met = sum(map(ord, response.text)) % 2 == 0
                out.append(
                    Verdict(
                        task_id=task.id,
                        response_id=response.id,
                        criterion_id=c.id,
                        status="met" if met else "unmet",
                        judge=self.name,
                    )
                )
        return out


def settings(**changes):
    return build(GRPOSettings, {**preset("test"), **changes})


def test_a_run_leaves_everything_behind(tmp_path):
    rows = []
    r = grpo.train(
        settings(steps=3),
        tasks(4),
        judge=FakeJudge(),
        composer="rubric",
        out=tmp_path / "run",
        heldout=tasks(3, prefix="h"),
        on_step=rows.append,
    )
    logged = r.rollouts()
    assert len(logged) == 3 * 8 and {x["step"] for x in logged} == {1, 2, 3}
    assert all({v["id"] for v in x["verdicts"]} == {"c1", "c2"} for x in logged)
    for step in (1, 2, 3):  # advantages: centred in each group
        for t in {x["task_id"] for x in logged if x["step"] == step}:
            group = [x for x in logged if x["step"] == step and x["task_id"] == t]
            assert len(group) == 4 and abs(sum(x["advantage"] for x in group)) < 1e-3
            rewards = [x["reward"] for x in group]
            assert all(
                (x["advantage"] > 0) == (x["reward"] > sum(rewards) / 4 + 1e-9)
                or len(set(rewards)) == 1
                for x in group
            )
    assert [x["step"] for x in rows] == [1, 2, 3] == [x["step"] for x in r.steps()]
    assert all(
        x["groups"] == 2 == x["mixed"] + x["good"] + x["bad"] + x["flat"] + x["groups_unknown"]
        for x in rows
    )
    metrics = json.loads((r.out / "metrics.json").read_text())
    assert (
        metrics["heldout"]["gain"]["n_clusters"] == 3
        and metrics["steps"] == 3
        and metrics["fast_path"] == "on"
    )
    assert (
        all(0 < x.confidence <= 1 for x in r.after.responses) and metrics["judge"]["name"] == "fake"
    )
    assert len(r.before.responses) == 6 and "parrot" in r.gain.trivial and r.gain.sentence
    assert (r.adapter / "adapter_config.json").is_file()
    with pytest.raises(KitError, match="already holds a run"):
        grpo.train(settings(steps=3), tasks(4), judge=FakeJudge(), out=tmp_path / "run")


def test_the_same_seed_gives_the_same_run_and_the_gradient_moves_the_adapter(tmp_path):
    from safetensors.torch import load_file

    a, b = (
        grpo.train(settings(steps=2, save_every=0), tasks(4), judge=FakeJudge(), out=tmp_path / n)
        for n in "ab"
    )
    assert [(x["text"], x["reward"], x["advantage"]) for x in a.rollouts()] == [
        (x["text"], x["reward"], x["advantage"]) for x in b.rollouts()
    ]
    weights = load_file(a.adapter / "adapter_model.safetensors")
    assert any(v.abs().sum() > 0 for k, v in weights.items() if "lora_B" in k)


@pytest.mark.parametrize(
    "changes",
    [
        dict(micro_rows=4),
        dict(substeps=2),
        dict(iterations=2),
        dict(beta=0.1, kl="k3"),
        dict(beta=0.1, kl="k2"),
        dict(beta=0.1, kl="k1"),
        dict(advantage="centred", loss="dr_grpo"),
        dict(truncated="mask"),
        dict(importance="sequence", zero_variance="keep"),
        dict(fast=False),
        dict(top_p=0.9, top_k=20),
    ],
)
def test_every_option_trains(tmp_path, changes):
    r = grpo.train(settings(save_every=0, **changes), tasks(4), judge=FakeJudge(), out=tmp_path)
    assert (
        len(r.rollouts()) == 2 * 8 or changes.get("substeps", 1) * changes.get("iterations", 1) > 1
    )
    if "beta" in changes:
        assert all(s["kl"] is not None for s in r.steps())


def test_a_masked_answer_has_its_length_and_measures_nothing(tmp_path):
    """Cut answers of ten tokens, masked, were logged with 0; entropy, clip and KL as 0.0."""
    s = settings(save_every=0, truncated="mask", beta=0.1, max_answer_tokens=1)
    r = grpo.train(s, tasks(4), judge=FakeJudge(), out=tmp_path)
    cut = [x for x in r.steps() if x["truncated"] == 1.0]
    assert cut and all(x["tokens"] == 1.0 for x in cut)
    assert {x[k] for x in cut for k in ("entropy", "clip", "kl")} == {None}
    assert all(x["grad_norm"] == 0.0 for x in cut)


def test_micro_batches_do_not_change_the_update(tmp_path):
    from safetensors.torch import load_file

    found = []
    for name, changes in (
        ("whole", {}),
        ("parts", {"micro_rows": 4}),
        ("kept", {"zero_variance": "keep"}),
    ):
        r = grpo.train(
            settings(steps=1, save_every=0, **changes),
            tasks(4),
            judge=FakeJudge(),
            out=tmp_path / name,
        )
        found.append(load_file(r.adapter / "adapter_model.safetensors"))
    for other in found[1:]:
        for k, v in found[0].items():
            assert (v - other[k]).abs().max() < 2e-5, k


def test_unknown_rewards_have_no_advantage(tmp_path, monkeypatch):
    """With a KL term an answer that nobody graded still pulled at the policy, and it always made the step smaller."""
    batches = []
    split = trainer._split
    monkeypatch.setattr(trainer, "_split", lambda b, n: batches.append(b) or split(b, n))
    r = grpo.train(
        settings(save_every=0, beta=0.1),
        tasks(4),
        judge=FakeJudge(abstain_every=3),
        composer={"components": [{"kind": "rubric"}], "max_width": 0.1},
        out=tmp_path,
    )
    unpaid = [x for x in r.rollouts() if x["reward"] is None]
    assert unpaid and all(x["advantage"] is None for x in unpaid)
    assert sum(s["unknown_rewards"] for s in r.steps()) == len(unpaid)
    masks = [row for b in batches for row in b["completion_mask"].tolist()]
    for x, mask in zip(r.rollouts(), masks, strict=True):
        assert sum(mask) == (0 if x["reward"] is None else x["tokens"])
    sizes = [int(b["num_items_in_batch"]) for b in batches]
    assert sizes == [int(b["completion_mask"].sum()) for b in batches]


def test_a_judge_that_comes_back_is_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr("kit.train.reward.Reward.pause_s", 0.01)
    judge = FakeJudge(down_calls=range(8, 30))
    r = grpo.train(settings(steps=3, patience_s=20.0), tasks(4), judge=judge, out=tmp_path)
    assert len(r.steps()) == 3 and all(x["reward"] is not None for x in r.rollouts())


def test_a_judge_that_stays_down_stops_the_run_and_it_resumes(tmp_path, monkeypatch):
    monkeypatch.setattr("kit.train.reward.Reward.pause_s", 0.01)
    s = settings(steps=4, patience_s=0.1, save_every=0)
    first = FakeJudge(down_calls=range(16, 10_000))
    with pytest.raises(JudgeDownError, match="resume"):
        grpo.train(s, tasks(4), judge=first, out=tmp_path)
    assert grpo.last_checkpoint(tmp_path).name == "checkpoint-2"
    again = FakeJudge()
    r = grpo.train(s, tasks(4), judge=again, out=tmp_path, resume=True)
    whole = grpo.train(s, tasks(4), judge=FakeJudge(), out=tmp_path / "whole")
    assert [x["step"] for x in r.steps()] == [1, 2, 3, 4]
    assert [(x["task_id"], x["text"]) for x in r.rollouts()] == [
        (x["task_id"], x["text"]) for x in whole.rollouts()
    ]
    assert not set(first.seen) & set(again.seen)  # no verdict is paid twice


def test_resume_refuses_other_settings(tmp_path):
    grpo.train(settings(), tasks(4), judge=FakeJudge(), out=tmp_path)
    with pytest.raises(KitError, match="another lr"):
        grpo.train(settings(lr=0.5), tasks(4), judge=FakeJudge(), out=tmp_path, resume=True)


def test_no_judge_is_fine_for_code_alone_and_an_error_otherwise(tmp_path):
    assert (
        grpo.train(settings(), tasks(4, criteria=(CODE,)), out=tmp_path / "a").metrics["verdicts"]
        == 16
    )
    with pytest.raises(KitError, match="need a judge"):
        grpo.train(settings(), tasks(4), out=tmp_path / "b")


def test_long_prompts_are_refused(tmp_path):
    with pytest.raises(DataError, match="max_prompt_tokens"):
        grpo.train(settings(max_prompt_tokens=5), tasks(4, criteria=(CODE,)), out=tmp_path)


def test_torn_log_is_readable_while_training(tmp_path):
    seen = []
    grpo.train(
        settings(steps=2),
        tasks(4),
        judge=FakeJudge(),
        out=tmp_path,
        on_step=lambda row: seen.append(len(rollouts.read(tmp_path))),
    )
    assert seen == [8, 16]


@pytest.fixture
def reweighted(tmp_path):
    """The same short run with plain and with moved weights: (folder, result) of each."""
    sure = Criterion(id="s", text="Any.", weight=3.0, check={"name": "words", "max": 99})
    rubric, out = (JUDGED, sure), []
    for share in (0.0, 1.0):
        made = grpo.train(
            settings(reweight=share, steps=1, advantage="centred"),
            tasks(2, criteria=rubric),
            judge=FakeJudge(),
            heldout=tasks(2, prefix="h", criteria=rubric),
            out=tmp_path / f"{share}",
        )
        out.append(made)
    return out


def test_moved_weights_train_and_leave_the_evaluation_alone(reweighted):
    """Training by what tells answers apart must not be what the gain is measured in."""
    plain, moved = reweighted
    assert [g.score for g in moved.before.grades] == [g.score for g in plain.before.grades]
    assert moved.gain.trivial == plain.gain.trivial
    a, b = plain.rollouts(), moved.rollouts()
    assert [(r["text"], r["reward"], r["parts"]) for r in a] == [
        (r["text"], r["reward"], r["parts"]) for r in b
    ]
    told, paid = ([r["advantage"] for r in rows] for rows in (a, b))
    assert any(told) and paid == pytest.approx([4 * x for x in told], abs=1e-5)
    for r, g in zip(moved.after.responses, moved.after.grades, strict=True):
        met = {v.criterion_id: v.value for v in g.verdicts}
        assert g.score == pytest.approx((met["c2"] + 3 * met["s"]) / 4), r.text


class Alike(FakeJudge):
    """Gives all answers of the first groups the same verdicts; then as FakeJudge does."""

    def __init__(self, alike):
        super().__init__()
        self.alike = alike

    async def verdicts(self, task, response, criteria):
        said = await super().verdicts(task, response, criteria)
        if task.id in self.alike and self.calls <= 8:
            return [dataclasses.replace(v, status="unmet") for v in said]
        return said


@pytest.mark.parametrize("beta", [0.0, 0.3])
def test_groups_without_a_gradient_are_sampled_anew(tmp_path, beta):
    """A group whose answers all earned the same was dropped: its part of the step taught nothing."""
    runs = {}
    for times in (0, 3):
        runs[times] = grpo.train(
            settings(steps=1, beta=beta, resample=times, max_answer_tokens=12),
            tasks(2, criteria=(JUDGED,)),
            judge=Alike({"t0"}),
            out=tmp_path / str(times),
        )
    (plain,), (anew,) = runs[0].steps(), runs[3].steps()
    assert plain["mixed"] < anew["mixed"] == 2 and anew["answers"] == plain["answers"] == 8
    first, then = runs[0].rollouts(), runs[3].rollouts()
    kept = {r["response_id"] for r in first if r["task_id"] == "t1"}
    assert kept == {r["response_id"] for r in then if r["task_id"] == "t1"}
    for t in ("t0", "t1"):
        group = [r for r in then if r["task_id"] == t]
        assert len(group) == 4 and abs(sum(r["advantage"] for r in group)) < 1e-3
        assert any(r["advantage"] for r in group)
    aside = rollouts.read(runs[3].out / "discarded.jsonl")
    assert {r["task_id"] for r in aside} == {"t0"} and len(aside) % 4 == 0
    assert {r["text"] for r in aside[:4]} == {r["text"] for r in first if r["task_id"] == "t0"}


def test_what_cannot_be_exchanged_by_group_is_refused(tmp_path):
    with pytest.raises(KitError, match="advantage: batch"):
        grpo.train(settings(resample=1, advantage="batch"), tasks(2), out=tmp_path / "r")
