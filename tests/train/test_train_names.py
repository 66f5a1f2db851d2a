"""Configs and commands in the words of the three systems; splits; what the policy is shown. Offline."""

from __future__ import annotations

import json

import pytest

import kit
from kit.__main__ import main
from kit.errors import DataError, KitError
from kit.records import Criterion, Task
from kit.train import answers, grpo, job
from kit.train.config import GRPOSettings, SFTSettings, build, from_mapping
from kit.train.models import tiny_tokenizer
from kit.train.names import translate
from kit.train.presets import preset

CODE = {"name": "contains", "any": list("aeiou")}
SHORT = Criterion(id="c", text="x", check=CODE)


def rows(tmp_path, n=10):
    path = tmp_path / "rows.json"
    path.write_text(
        json.dumps(
            [
                {
                    "task_id": f"r{i}",
                    "prompt": f"say {i}",
                    "rubric - 1. criterion": "Has a vowel.",
                    "rubric - 1. check": CODE,
                    "group": "ab"[i % 2],
                }
                for i in range(n)
            ]
        )
    )
    return path


RECIPE = dict(
    model_name="tiny-random",
    group_size=4,
    groups_per_batch=2,
    learning_rate=4e-5,
    max_tokens=8,
    kl_penalty_coef=0.1,
    num_substeps=2,
    judge_model="gpt-5-mini",
    judge_temperature=0.0,
    judge_max_retries=3,
    train_ratio=0.7,
    data_seed=7,
    eval_every=0,
    save_every=20,
    lora_rank=32,
    temperature=1.0,
)


def test_the_recipes_own_names(tmp_path, monkeypatch):
    """9 of 12 were refused, one at a time; judge_model was told to be "model"."""
    monkeypatch.setenv("KIT_JUDGE_KEY", "none")
    got = job.build({**RECIPE, "data_path": str(rows(tmp_path)), "log_path": "x"})
    s = got.settings
    assert (s.model, s.prompts_per_step, s.lr, s.max_answer_tokens) == ("tiny-random", 2, 4e-5, 8)
    assert (s.beta, s.kl, s.substeps, s.lora_rank) == (0.1, "k1", 2, 32)
    assert got.judge.model == "gpt-5-mini" and got.out.name == "x"
    assert len(got.tasks) == 7 and len(got.heldout) == 3


def test_open_instructs_and_trls_names(tmp_path, monkeypatch):
    monkeypatch.setattr("kit.train.inputs._installed", lambda package: True)  # 4 bits, on a CPU
    data = {"tasks": str(rows(tmp_path)), "model": "tiny-random"}
    s = job.build(
        {
            **data,
            "num_unique_prompts_rollout": 32,
            "num_samples_per_prompt_rollout": 8,
            "kl_estimator": "kl3",
            "beta": 0.001,
            "response_length": 1024,
            "max_prompt_token_length": 6144,
            "pack_length": 8192,
            "lr_scheduler_type": "constant",
        }
    ).settings
    assert (s.prompts_per_step, s.group_size, s.kl) == (32, 8, "k3")
    assert (s.max_answer_tokens, s.max_prompt_tokens) == (1024, 6144)
    got = job.build(
        {
            **data,
            "num_generations": 16,
            "num_iterations": 2,
            "scale_rewards": "group",
            "use_4bit": True,
            "lora_r": 32,
            "max_completion_length": 9,
            "verifier_weights": {"V1": 0.35, "V2": 0.3},
        }
    )
    s = got.settings
    assert (s.group_size, s.iterations, s.advantage, s.quantize) == (16, 2, "std", "nf4")
    assert [c["verifier"] for c in got.reward["components"]] == ["direction", "factual"]


@pytest.mark.parametrize(
    "value, kl", [("kl1", "k1"), ("k2", "k2"), ("KL3", "k3"), (0, "k1"), (1, "k2"), (2, "k3")]
)
def test_open_instructs_numbers_of_kl_begin_with_0(tmp_path, value, kl):
    """Its default, 2, is the third estimator; it was read as k2, another loss."""
    data = {"tasks": str(rows(tmp_path)), "model": "tiny-random", "beta": 0.1}
    assert job.build({**data, "kl_estimator": value}).settings.kl == kl
    with pytest.raises(KitError, match="k4"):
        job.build({**data, "kl_estimator": 3})


def test_all_unknown_names_are_told_at_once(tmp_path):
    wrong = {"group_sise": 4, "learning_rat": 1, "jugde": "code", "steps": 2}
    with pytest.raises(KitError) as e:
        job.build({**wrong, "tasks": str(rows(tmp_path))})
    for name in ("group_sise", "learning_rat", "jugde", "group_size", "judge"):
        assert f"'{name}'" in str(e.value)


def test_two_names_for_one_setting_must_agree(tmp_path):
    with pytest.raises(KitError, match="both set 'lr'"):
        job.build({"lr": 1e-3, "learning_rate": 1e-4, "tasks": str(rows(tmp_path))})


def test_a_name_that_a_stage_has_itself_keeps_its_meaning():
    assert from_mapping({"stage": "sft", "max_tokens": 64}).max_tokens == 64
    assert isinstance(job.build({"stage": "sft", "max_tokens": 64}).settings, SFTSettings)


@pytest.mark.parametrize(
    ("how", "held"),
    [
        ({"train_ratio": 0.9}, 1),
        ({"holdout_by": "group", "holdout": ["b"]}, 5),
        ({"holdout_by": "group", "train_ratio": 0.5}, 5),
        ({}, 0),
    ],
)
def test_splits_are_made_here(tmp_path, how, held):
    got = job.build({**how, "tasks": str(rows(tmp_path)), "eval_every": 0})
    assert len(got.heldout) == held and len(got.tasks) == 10 - held
    if "holdout_by" in how:
        assert not {t.group for t in got.heldout} & {t.group for t in got.tasks}
    again = job.build({**how, "tasks": str(rows(tmp_path)), "eval_every": 0})
    assert [t.id for t in again.heldout] == [t.id for t in got.heldout]


def test_wrong_splits_say_what_is_wrong(tmp_path):
    path = str(rows(tmp_path))
    for how, said in (
        ({"train_ratio": 90}, "train_ratio is 90"),
        ({"holdout_by": "tissue"}, "no 'tissue' to hold out by"),
        ({"holdout": ["z"]}, "no group 'z'"),
    ):
        with pytest.raises((KitError, DataError), match=said):
            job.build({**how, "tasks": path})


def test_evaluating_nothing_is_an_error(tmp_path):
    c = (Criterion(id="c", text="x", check=CODE),)
    tasks = [Task(id=f"t{i}", prompt="p", criteria=c) for i in range(4)]
    with pytest.raises(KitError, match="no task is held out"):
        grpo.train(build(GRPOSettings, {**preset("test"), "eval_every": 1}), tasks, out=tmp_path)


def test_one_line_trains_and_a_bare_exponent_is_a_number(tmp_path, capsys):
    path, out = rows(tmp_path), tmp_path / "run"
    config = tmp_path / "c.yaml"
    config.write_text("preset: test\nlearning_rate: 4e-5\ntrain_ratio: 0.7\neval_every: 1\n")
    code = main(
        ["train", str(config), "--set", f"data={path}", "--set", f"out={out}", "--set", "lr=2e-4"]
    )
    assert code == 0, capsys.readouterr().err
    assert json.loads((out / "settings.json").read_text())["settings"]["lr"] == 2e-4
    assert "held-out prompts" in capsys.readouterr().out


def test_the_names_are_shown(capsys):
    assert main(["train", "--names"]) == 0
    said = capsys.readouterr().out
    assert "num_unique_prompts_rollout" in said and "prompts_per_step" in said


@pytest.mark.parametrize("name", ["rlvr", "refiner", "biorlhf"])
def test_the_configs_that_ship_are_read(name):
    got = job.read(job.Path(__file__).parents[2] / f"kit/train/configs/{name}.yaml", judge="code")
    assert got.tasks and got.heldout and got.settings.eval_every
    assert not {t.id for t in got.tasks} & {t.id for t in got.heldout}


SOURCES = {"S1": "the bike goes 85 km when empty", "S2": "charging takes four hours " * 30}
CITED = Task(id="t", prompt="How far?", sources=SOURCES)


def test_the_policy_sees_its_sources():
    """The judge saw `task.sources`, the policy did not: no answer could cite what it was never shown."""
    text = answers.messages(CITED)[-1]["content"]
    assert text.startswith("How far?") and "<snippet id=S1>the bike goes 85 km when empty" in text
    tokenizer = tiny_tokenizer()
    whole = len(answers.prompt_ids(tokenizer, CITED))
    for limit in (whole, whole - 1, 300):
        ids = answers.prompt_ids(tokenizer, CITED, limit)
        assert len(ids) <= limit
        said = tokenizer.decode(ids)
        assert "How far?" in said and "<snippet id=S1>" in said and "<snippet id=S2>" in said
        assert answers.is_cut(CITED, tokenizer, limit) == (limit < whole) == ("..." in said)
    inside = Task(id="t", prompt=f"Read: {answers.tool_output(SOURCES)}", sources=SOURCES)
    assert answers.messages(inside)[-1]["content"] == inside.prompt
    nameless = Task(id="t", prompt=f"Read: {' '.join(SOURCES.values())}", sources=SOURCES)
    assert "<snippet id=S1>" in answers.messages(nameless)[-1]["content"]


ROW = {"id": "r", "positive_rubrics": [{"title": "a", "description": "Says how far."}]}
TOLD = "Wrap each claim as <snippet id=ID1,ID2>claim</snippet>."


@pytest.mark.parametrize("chat", [False, True])
def test_sources_that_stand_in_the_prompt_are_read(tmp_path, chat):
    """Such rows had no sources: the citations were never graded, without a word."""
    text = f"How far? {TOLD}\n{answers.tool_output(SOURCES)}"
    turns = [{"role": "user", "content": text}, {"role": "assistant", "content": "Let me see."}]
    asked = [*turns, {"role": "user", "content": "Now answer."}]
    row = {**ROW, **({"messages": asked} if chat else {"prompt": text})}
    (tmp_path / "a.jsonl").write_text(json.dumps(row))
    (task,) = kit.load(tmp_path / "a.jsonl").tasks
    assert task.sources == {k: v.strip() for k, v in SOURCES.items()}
    assert "\n".join(t["content"] for t in answers.messages(task)).count("<tool_output>") == 1
    (tmp_path / "b.jsonl").write_text(json.dumps({**ROW, "prompt": f"How far? {TOLD}"}))
    assert kit.load(tmp_path / "b.jsonl").tasks[0].sources == {}


def test_the_data_set_of_a_reward_shows_the_sources():
    """trl's policy never saw what it had to cite, and one prompt with two sources was no task."""
    tasks = [
        Task(id=i, prompt="How far?", sources={"S1": f"It goes {i} km."}, criteria=(SHORT,))
        for i in ("50", "85")
    ]
    f = kit.reward_function(tasks, config="rubric")
    rows = f.dataset()
    assert rows["prompt"] == [answers.messages(t) for t in tasks]
    f(prompts=rows["prompt"], completions=["one", "two"])
    assert [g.task_id for g in f.grades] == ["50", "85"]
    f(prompts=f.dataset(chat=False)["prompt"], completions=["one", "two"])
    assert [g.task_id for g in f.grades] == ["50", "85"]
    with pytest.raises(KitError, match="belongs to two tasks"):
        f(prompts=["How far?"], completions=["one"])
    with pytest.raises(KitError, match="row 2"):
        f(prompts=rows["prompt"], completions=["one", None])


def test_a_cut_is_said_and_the_prompt_alone_is_never_cut(tmp_path, caplog):
    c = (Criterion(id="c", text="x", check=CODE),)
    tasks = [Task(id=f"t{i}", prompt="How far?", sources=SOURCES, criteria=c) for i in range(2)]
    s = build(
        GRPOSettings, {**preset("test"), "max_prompt_tokens": 300, "steps": 1, "save_every": 0}
    )
    grpo.train(s, tasks, out=tmp_path / "a")
    assert any("tool output of 2 of 2 prompts is cut" in m for m in caplog.messages)
    tight = build(GRPOSettings, {**preset("test"), "max_prompt_tokens": 20})
    with pytest.raises(DataError, match="max_prompt_tokens=20"):
        grpo.train(tight, tasks, out=tmp_path / "b")


def test_all_names_that_are_refused_are_said_at_once():
    """`num_epochs` hid `total_episodes` and `foo`; gradient_accumulation_steps was taken for
    gradient_checkpointing."""
    values = {"num_epochs": 3, "total_episodes": 9, "gradient_accumulation_steps": 2, "foo": 1}
    with pytest.raises(KitError) as e:
        translate({**values, "learning_rate": 1e-5}, ["lr", "steps"])
    assert all(name in str(e.value) for name in values) and "micro_rows" in str(e.value)


def test_the_share_of_citations_is_no_more_than_all():
    """1.5 gave the rubric the weight -.5: the better it was met, the less was paid."""
    with pytest.raises(KitError, match="a share of the reward, not 1.5"):
        translate({"refiner_reward_paper_citation_weight": 1.5}, known=())
    with pytest.raises(KitError, match="factual"):
        translate({"verifier_weights": {"pathway": 0.3}}, known=())


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"stage": "sft", "loss_type": "nll"}, "no 'loss_type' .*options: {loss_type"),
        ({"stage": "dpo", "prompts_per_step": 2}, "'prompts_per_step'(?!.*groups_per_batch)"),
        ({"stage": "dpo", "max_lenght": 2}, "did you mean 'max_length'"),
    ],
)
def test_a_hint_names_what_the_stage_has(row, says):
    """ "There is no 'loss', did you mean 'loss_type'?", which was what had been written."""
    with pytest.raises(KitError, match=f"(?s){says}"):
        job.build({"rows": "none.jsonl", **row})


def test_trl_s_max_length_is_the_limit_of_a_supervised_row(tmp_path):
    (tmp_path / "rows.jsonl").write_text('{"prompt": "p", "response": "r"}')
    given = {"stage": "sft", "rows": str(tmp_path / "rows.jsonl"), "max_length": 99}
    assert job.build(given).settings.max_tokens == 99
