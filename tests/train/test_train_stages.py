"""SFT, DPO, the chain, export, jobs from files, the audit; on the tiny model, offline."""

from __future__ import annotations

import json

import pytest

from kit.errors import DataError, KitError, MissingError
from kit.records import AFTER, Criterion, Grade, Response, Task
from kit.rewards.composer import Composer
from kit.train import audit, export, grpo, inputs, job, line, stages
from kit.train.config import DPOSettings, GRPOSettings, SFTSettings, build
from kit.train.presets import preset

ROWS = [{"prompt": f"say {i}", "response": "aaaa eee"} for i in range(6)]
PAIRS = [{"prompt": f"say {i}", "chosen": "aaaa", "rejected": "zzzz"} for i in range(4)]
CODE = Criterion(
    id="c1", text="Contains an a.", check={"name": "contains", "any": list("aeiou12345")}
)


def tasks(n, prefix="t"):
    return [Task(id=f"{prefix}{i}", prompt=f"say {i}", criteria=(CODE,)) for i in range(n)]


def test_sft_learns_its_rows(tmp_path):
    s = build(SFTSettings, {**preset("test", "sft"), "steps": 25, "lr": 5e-3, "save_every": 0})
    r = stages.train(s, ROWS, out=tmp_path)
    steps = r.steps()
    assert [x["step"] for x in steps] == list(range(1, 26)) and steps[-1]["loss"] < steps[0][
        "loss"
    ] - 0.15
    assert json.loads((tmp_path / "metrics.json").read_text())["stage"] == "sft"
    with pytest.raises(KitError, match="already holds"):
        stages.train(s, ROWS, out=tmp_path)


def test_dpo_prefers_the_chosen(tmp_path):
    r = stages.train(
        build(DPOSettings, {**preset("test", "dpo"), "steps": 8, "lr": 2e-2, "save_every": 0}),
        PAIRS,
        out=tmp_path,
    )
    assert r.steps()[-1]["margin"] > r.steps()[0]["margin"]


def test_pairs_left_for_an_epochs_last_step_weigh_alike(tmp_path):
    """Of 3 pairs in micro-batches of 2 and 1 the lone one counted twice: grad_norm .0249 for .0313."""
    pairs = [
        {"prompt": f"Q{i}", "chosen": "yes. " * (i + 1), "rejected": "no. " * (7 - i)}
        for i in range(7)
    ]
    values = {**preset("test", "dpo"), "steps": 2, "batch": 4, "lr": 1e-2, "save_every": 0}
    values |= {"dtype": "float32", "beta": 1.0}
    got = {}
    for micro in (0, 2):
        s = build(DPOSettings, {**values, "micro_rows": micro})
        got[micro] = stages.train(s, pairs, out=tmp_path / str(micro)).steps()
    for whole, parts in zip(got[0], got[2], strict=True):
        for name in ("loss", "grad_norm", "margin"):
            assert parts[name] == pytest.approx(whole[name], rel=1e-4, abs=1e-5), name


@pytest.mark.parametrize("stage", ["sft", "dpo"])
def test_packed_rows_train_as_padded_ones(tmp_path, monkeypatch, stage):
    """Rows with a shared system text are packed into one; loss and gradient stay the trainer's own."""
    from kit.train import engine, packing

    asked = [{"system": "Be brief.", "prompt": f"say {'x' * i}"} for i in range(4)]
    more = {"sft": {"response": "aaaa"}, "dpo": {"chosen": "aaaa", "rejected": "zz"}}[stage]
    rows = [r | more for r in asked]
    cls = {"sft": SFTSettings, "dpo": DPOSettings}[stage]
    values = {**preset("test", stage), "steps": 3, "lr": 2e-2, "save_every": 0, "batch": 4}
    s = build(cls, {**values, "dtype": "float32"})
    packed, real = [], packing.pack_rows
    monkeypatch.setattr(packing, "pack_rows", lambda *a: packed.append(real(*a)) or packed[-1])
    fast = stages.train(s, rows, out=tmp_path / "packed").steps()
    assert any(packed)
    monkeypatch.setattr(engine, "fast_ok", lambda model: "a test")
    plain = stages.train(s, rows, out=tmp_path / "padded").steps()
    names = ("loss", "grad_norm", "margin", "entropy")
    for a, b in zip(fast, plain, strict=True):
        known = [k for k in names if b[k] is not None]
        assert len(known) > 2
        assert [a[k] for k in known] == pytest.approx([b[k] for k in known], rel=1e-3, abs=1e-4)


@pytest.mark.parametrize(
    "rows, cls, hint",
    [
        ([{"a": 1}], SFTSettings, "prompt and response"),
        ([], SFTSettings, "no training rows"),
        ([{"prompt": "p", "chosen": "x"}], DPOSettings, "rejected"),
        ([{"prompt": "p", "chosen": "x", "rejected": "x"}], DPOSettings, "same text"),
    ],
)
def test_bad_rows(tmp_path, rows, cls, hint):
    with pytest.raises(DataError, match=hint):
        stages.train(build(cls, preset("test", cls.stage)), rows, out=tmp_path)


def test_supervised_stage_resumes(tmp_path):
    s = build(SFTSettings, {**preset("test", "sft"), "steps": 4, "save_every": 2})

    class Stop(Exception):
        pass

    def stop(row):
        if row["step"] == 3:
            raise Stop

    with pytest.raises(Stop):
        stages.train(s, ROWS, out=tmp_path, on_step=stop)
    r = stages.train(s, ROWS, out=tmp_path, resume=True)
    assert [x["step"] for x in r.steps()] == [1, 2, 3, 4]


def test_the_chain_runs_all_three(tmp_path):
    made = (
        build(SFTSettings, preset("test", "sft")),
        build(DPOSettings, preset("test", "dpo")),
        build(GRPOSettings, preset("test")),
    )
    whole = line.Chain(
        stages=tuple(line.Stage(name=s.stage, settings=s) for s in made),
        out=tmp_path,
        rows=ROWS,
        pairs=PAIRS,
        tasks=tasks(4),
        heldout=tasks(3, "h"),
    )
    r = line.run(whole)
    assert [e.name for e in r.evaluations] == ["start", "sft", "dpo", "grpo"]
    last = tmp_path / "3_grpo" / "merged" / "config.json"
    written = last.stat().st_mtime_ns
    again = line.run(whole)
    assert last.stat().st_mtime_ns == written, "a finished stage is not run again"
    assert [e.scores for e in again.evaluations] == [e.scores for e in r.evaluations]


def test_pairs_from_grades_leave_unknown_out():
    rs = [Response(task_id="t0", id=str(i), text=f"x{i}") for i in range(3)]
    gs = [
        Grade(task_id="t0", response_id=str(i), score=s, score_low=0, score_high=1)
        for i, s in enumerate((0.2, None, 0.9))
    ]
    assert stages.pairs_from(tasks(2), list(zip(rs, gs, strict=True))) == [
        {"prompt": "say 0", "chosen": "x2", "rejected": "x0"}
    ]


def test_a_stage_learns_from_the_chat_that_its_task_is_asked_with():
    """SFT and DPO rows of a chain lacked the system text, the earlier turns or the sources that GRPO
    and the held-out evaluations show: "What is my number plus one?" -> "4"."""
    from kit.train import answers

    turns = ({"role": "user", "content": "It is 3."}, {"role": "assistant", "content": "Noted."})
    exact = Criterion(id="c", text="4", check={"name": "exact", "answers": ["4"]})
    task = Task(
        id="t",
        prompt="My number plus one?",
        system="Be brief.",
        history=turns,
        sources={"S1": "Add 1."},
        criteria=(exact,),
        meta={AFTER: [{"role": "tool", "content": "3 + 1"}]},
    )
    said = [
        {"task_id": "t", "source": kind, "response": x, "stated_confidence": 0.9}
        for kind, x in (("good", "4"), ("bad", "5"))
    ]
    rows, pairs = stages.teaching([task], said)
    own = [Response(task_id="t", id=x, text=x) for x in ("4", "5")]
    given = [
        Grade(task_id="t", response_id=r.id, score=float(r.text == "4"), score_low=0, score_high=1)
        for r in own
    ]
    rows += stages.exact_rows([task]) + stages.outcome_rows([task], own)
    pairs += stages.pairs_from([task], list(zip(own, given, strict=True)))
    sft, dpo = build(SFTSettings, {}), build(DPOSettings, {})
    found = [*stages.learned(sft, rows), *stages.learned(dpo, pairs)]
    assert len(found) == 6 and "Add 1." in str(found[0])
    assert all(row["prompt"] == answers.messages(task) for row in found)


def test_own_pairs_prefer_what_the_reward_pays_more(tmp_path, monkeypatch):
    """The bare text of the exact check was chosen, ungraded: 8 of 10 pairs had the lower reward as
    chosen, and one the same text on both sides."""
    checks = {"name": "exact", "answers": ["13"]}, {"name": "words", "min": 4}
    rubric = [Criterion(id=c["name"], text="x", check=c, weight=w) for w, c in enumerate(checks, 1)]
    some = [Task(id=i, prompt=i, criteria=tuple(rubric)) for i in ("long", "bare", "wrong")]
    chain = line.Chain(stages=(), out=tmp_path, tasks=tuple(some))
    reward = line.Reward(tasks=some, judge=None, composer=Composer.from_config("rubric"))
    texts = {"long": ["It is 13, I think.", "14"], "bare": ["13", "13"], "wrong": ["14", "15"]}
    sampled = [
        Response(task_id=i, id=f"{i}{n}", text=x)
        for i, xs in texts.items()
        for n, x in enumerate(xs)
    ]
    work = line._Line(chain, reward, None)
    monkeypatch.setattr(work, "_own", lambda source, tasks, samples, make: make(sampled))
    assert work._pairs(stages.OwnPairs(), "x") == [
        {"prompt": "long", "chosen": "It is 13, I think.", "rejected": "14"},
        {"prompt": "wrong", "chosen": "13", "rejected": "14"},
    ]


def test_merged_model_answers_like_the_adapter_and_has_a_card(tmp_path):
    from kit.system.device import import_torch
    from kit.train.models import load

    torch = import_torch()
    r = grpo.train(
        build(GRPOSettings, {**preset("test"), "lr": 1e-2}),
        tasks(4),
        out=tmp_path / "r",
        heldout=tasks(3, "h"),
    )
    merged = export.merge("tiny-random", r.adapter, tmp_path / "m")
    ids = torch.tensor([[5, 6, 7, 8]])
    a = load(build(GRPOSettings, {**preset("test"), "model": str(merged)})).model
    b = load(build(GRPOSettings, {**preset("test"), "adapter": str(r.adapter)})).model
    with torch.no_grad():
        x, y, z = (
            m.eval()(input_ids=ids).logits
            for m in (a, b, load(build(GRPOSettings, preset("test"))).model)
        )
    assert torch.allclose(x, y, atol=1e-5) and not torch.allclose(x, z, atol=1e-5)
    text = export.card(r.out)
    assert r.gain.sentence in text and "| seed | 0 |" in text and "a control" not in text
    kept = json.loads((r.out / "settings.json").read_text())
    (r.out / "settings.json").write_text(
        json.dumps({"settings": {**kept["settings"], "shuffle_rewards": True}})
    )
    assert "This is a control" in export.card(r.out)  # it was told as a training
    with pytest.raises(MissingError):
        export.card(tmp_path)


def test_rows_of_two_forms_are_refused_in_words(tmp_path):
    """They ended in an AttributeError of trl's collator."""
    rows = [{"text": "hello"}, {"prompt": "a", "response": "b"}]
    with pytest.raises(DataError, match="others text"):
        stages.train(build(SFTSettings, preset("test", "sft")), rows, out=tmp_path / "s")


def test_two_trainings_never_share_a_folder(tmp_path):
    """Both ended with exit code 0: 60 rows of 30 steps, answers twice, checkpoints mixed."""
    with inputs.alone(tmp_path / "r"), pytest.raises(KitError, match="trains there now"):
        grpo.train(build(GRPOSettings, preset("test")), tasks(2), out=tmp_path / "r")
    assert not (tmp_path / "r").exists()  # the second one's settings were written over the first's
    pairs = [{"prompt": "a", "chosen": "b", "rejected": "c"}]
    for cls in (SFTSettings, DPOSettings):  # of these only GRPO asked
        with inputs.alone(tmp_path / "r"), pytest.raises(KitError, match="trains there now"):
            rows = [{**pairs[0], "response": "b"}]
            stages.train(build(cls, preset("test", cls.stage)), rows, out=tmp_path / "r")
    with inputs.alone(tmp_path / "r"), pytest.raises(KitError, match="trains there now"):
        line.run(line.Chain(stages=(), out=tmp_path / "r"))


class TestAudit:
    def test_alarm_when_only_the_training_reward_rises(self):
        rows = [{"training": 0.2 + 0.1 * i, "audit": 0.5} for i in range(6)]
        assert "rose" in audit.judge_rows(rows)
        assert audit.judge_rows([{**r, "audit": r["training"]} for r in rows]) is None
        assert audit.judge_rows(rows[:3]) is None
        assert (
            audit.judge_rows([{"training": 0.5, "audit": 0.9 - 0.1 * i} for i in range(6)]) is None
        )

    def test_it_runs_while_training_and_can_stop(self, tmp_path, monkeypatch):
        monkeypatch.setattr(audit, "judge_rows", lambda rows: "wrong" if len(rows) == 2 else None)

        class FakeJudge:
            name = "second"

            async def verdicts(self, task, response, criteria):
                raise AssertionError("the criteria are checked by code")

        s = build(
            GRPOSettings,
            {
                **preset("test"),
                "steps": 5,
                "audit_every": 1,
                "audit_share": 0.5,
                "audit_stop": True,
            },
        )
        r = grpo.train(s, tasks(4), out=tmp_path, audit=FakeJudge())
        assert len(r.steps()) == 2 and r.metrics["audit_alarm"] == "wrong"
        rows = [json.loads(x) for x in (tmp_path / "audits.jsonl").read_text().splitlines()]
        assert [x["answers"] for x in rows] == [4, 4] and all(
            x["audit"] == x["training"] for x in rows
        )
        with pytest.raises(KitError, match="second judge"):
            grpo.train(s, tasks(4), out=tmp_path / "b")


class TestJob:
    def _write(self, folder, **more):
        rows = [
            {
                "task_id": f"{s}{i}",
                "prompt": f"say {i} {s}",
                "split": s,
                "rubric - 1. criterion": "Has an a.",
                "rubric - 1. check": {"name": "contains", "any": ["a"]},
            }
            for s in ("train", "heldout")
            for i in range(3)
        ]
        (folder / "tasks.json").write_text(json.dumps(rows))
        path = folder / "c.json"
        path.write_text(
            json.dumps(
                {"preset": "test", "tasks": "tasks.json", "out": str(folder / "run"), **more}
            )
        )
        return path

    def test_command_line(self, tmp_path, capsys):
        from kit.__main__ import main

        assert main(["train", str(self._write(tmp_path)), "--json", "--set", "steps=1"]) == 0
        data = json.loads(capsys.readouterr().out)
        assert data["steps"] == 1 and data["heldout"]["gain"]["n_clusters"] == 3
        assert main(["train", str(self._write(tmp_path)), "--set", "steps=1", "--resume"]) == 0
        assert "held-out prompts" in capsys.readouterr().out

    @pytest.mark.parametrize(
        "more, hint",
        [
            ({"judge": "endpiont:m"}, "endpoint"),
            ({"tasks": "none.json"}, "not there"),
            ({"group_sizes": 2}, "group_size"),
            ({"stage": "grppo"}, "grpo"),
        ],
    )
    def test_errors(self, tmp_path, more, hint):
        with pytest.raises(KitError, match=hint):
            job.read(self._write(tmp_path, **more))

    def test_eval_every(self, tmp_path):
        job.run(job.read(self._write(tmp_path), steps=3, eval_every=1))
        rows = [json.loads(x) for x in (tmp_path / "run" / "evals.jsonl").read_text().splitlines()]
        assert [x["step"] for x in rows] == [1, 2]


def test_the_projects_own_prompts_are_disjoint():
    from kit.data import load_tasks
    from kit.system import paths

    rows = load_tasks(paths.data("short_answers.json")).tasks
    train, held = ([t for t in rows if t.split == s] for s in ("train", "heldout"))
    assert len(train) == len(held) == 40 and not {t.group for t in train} & {t.group for t in held}
    assert all(len([c for c in t.criteria if c.by_code]) == 5 == len(t.criteria) for t in rows)


def test_an_option_is_not_blamed_for_the_rehearsals_own_row(tmp_path):
    """With max_tokens 32 the made-up chat row was cut to nothing, and a right option was refused."""
    rows = [{"text": f"### Q: {i} ### A: {i}"} for i in range(8)]
    options = {"neftune_noise_alpha": 5.0}
    s = build(
        SFTSettings,
        {
            **preset("test", "sft"),
            "steps": 1,
            "save_every": 0,
            "max_tokens": 32,
            "options": options,
        },
    )
    assert stages.train(s, rows, out=tmp_path / "run").metrics["steps"] == 1


@pytest.mark.parametrize("name", ["batch", "max_tokens"])
def test_a_batch_of_nothing_is_named(name):
    """`batch: 0` was a raw ZeroDivisionError."""
    with pytest.raises(KitError, match=f"{name} is 0"):
        build(SFTSettings, {**preset("test", "sft"), name: 0})
