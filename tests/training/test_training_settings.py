"""Settings: presets, profiles, the systems' own names, options, and what is held out."""

from __future__ import annotations

import json

import pytest
from training_cases import TINY, tasks

import kit.training as training
from kit import Task
from kit.errors import DataError, MissingError
from kit.training import Settings, build, job_of, translate


@pytest.mark.parametrize(
    ("preset", "profile", "wanted"),
    [
        (
            "rlvr",
            "gpu",
            {"prompts_per_step": 32, "lr": 4e-5, "lora_rank": 32, "advantage": "centred"},
        ),
        (
            "rlvr",
            "cpu",
            {"prompts_per_step": 2, "advantage": "centred", "model": "SmolLM2-135M-Instruct"},
        ),
        ("refiner", "cluster", {"beta": 0.001, "lr": 5e-6, "max_prompt_tokens": 6144}),
        ("refiner", "t4", {"beta": 0.001, "quantize": "nf4", "group_size": 8}),
        (
            "biorlhf",
            "gpu",
            {"group_size": 16, "iterations": 2, "lora_alpha": 128.0, "quantize": "nf4"},
        ),
        ("biorlhf", "cpu", {"iterations": 2, "quantize": "none", "max_answer_tokens": 56}),
        ("instructions", "cpu", {"steps": 60, "eval_temperature": 0.0, "temperature": 0.8}),
        (None, "test", {"model": "tiny-random", "steps": 2}),
        (None, "cpu", {"model": "SmolLM2-135M-Instruct"}),
    ],
)
def test_preset_and_profile_set_the_sizes(preset, profile, wanted):
    made = build({"preset": preset} if preset else {}, profile=profile)
    assert {k: getattr(made, k) for k in wanted} == wanted


def test_what_the_caller_writes_wins_over_preset_and_profile():
    made = build({"preset": "rlvr", "steps": 7, "options": {"max_grad_norm": 0.5}}, profile="cpu")
    assert made.steps == 7
    assert made.options == {"lr_scheduler_type": "constant", "max_grad_norm": 0.5}


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ({"model_name": "m"}, {"model": "m"}),
        ({"groups_per_batch": 32}, {"prompts_per_step": 32}),
        ({"learning_rate": 4e-5}, {"lr": 4e-5}),
        ({"max_tokens": 64}, {"max_answer_tokens": 64}),
        ({"kl_penalty_coef": 0.1}, {"beta": 0.1}),
        ({"num_substeps": 2}, {"substeps": 2}),
        ({"data_path": "x.jsonl"}, {"tasks": "x.jsonl"}),
        ({"train_ratio": 0.9, "data_seed": 42}, {"train_ratio": 0.9, "data_seed": 42}),
        (
            {"judge_model": "m", "judge_temperature": 0},
            {"judge": {"endpoint": "m", "temperature": 0}},
        ),
        ({"judge": "endpoint:m", "judge_max_retries": 3}, {"judge": {"endpoint": "m", "tries": 3}}),
        ({"num_unique_prompts_rollout": 32}, {"prompts_per_step": 32}),
        ({"num_samples_per_prompt_rollout": 8}, {"group_size": 8}),
        ({"response_length": 1024}, {"max_answer_tokens": 1024}),
        ({"kl_estimator": "kl3"}, {"options": {"use_bias_correction_kl": False}}),
        ({"verification_reward": 5}, {"reward": {"preset": "refiner", "scale": 5}}),
        (
            {"reward": "refiner_additive", "refiner_reward_instance_rubrics_only": True},
            {"reward": {"preset": "refiner_additive", "instance_rubrics_only": True}},
        ),
        ({"use_4bit": True}, {"quantize": "nf4"}),
        ({"scale_rewards": False}, {"advantage": "centred"}),
        ({"sft_model_path": "a"}, {"adapter": "a"}),
        ({"hold_out_tissues": ["eye"]}, {"holdout": ["eye"], "holdout_by": "tissue"}),
        ({"lr_scheduler_type": "cosine"}, {"options": {"lr_scheduler_type": "cosine"}}),
        ({"use_multi_reward": True}, {"gdpo": True}),
        ({"pack_length": 8192}, {}),
    ],
)
def test_the_systems_own_names_are_read(theirs, ours):
    names = [
        *training.NAMES,
        "tasks",
        "train_ratio",
        "data_seed",
        "judge",
        "reward",
        "holdout",
        "holdout_by",
        "out",
    ]
    assert translate(theirs, names, where="config") == ours


def test_unknown_names_are_reported_all_at_once_with_the_nearest():
    with pytest.raises(DataError) as e:
        build({"group_sise": 4, "stepz": 3}, profile="test")
    assert "'group_size'" in str(e.value) and "'steps'" in str(e.value)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"lr": "1e-5"}, "lr"),
        ({"group_size": 1}, "no baseline"),
        ({"preset": "rlvrr"}, "'rlvr'"),
        ({"options": {"learning_rat": 1}}, "learning_rate"),
        ({"options": {"learning_rate": 1.0}}, "'lr'"),
        ({"substeps": 3, "group_size": 4, "prompts_per_step": 2}, "substeps"),
        ({"beta": -1.0}, "beta"),
        ({"micro_rows": -4}, "micro_rows"),
        ({"save_every": -1}, "save_every"),
    ],
)
def test_a_wrong_value_is_an_error_that_names_it(values, words):
    with pytest.raises(DataError, match=words):
        build(values, profile="test")


@pytest.mark.parametrize(
    "values", [{"num_epochs": 1}, {"kl_estimator": "k1"}, {"learning_rate": 1e-4, "lr": 1e-5}]
)
def test_a_name_that_cannot_be_used_says_what_to_write(values):
    with pytest.raises(DataError, match="to do"):
        job_of({"preset": "rlvr", **values}, changes={"profile": "test"})


def test_numbers_in_yaml_are_numbers(tmp_path):
    (tmp_path / "c.yaml").write_text("lr: 1e-5\nsteps: 3\ntasks: t.jsonl\n")
    (tmp_path / "t.jsonl").write_text(
        json.dumps({"id": "t", "prompt": "p", "rubrics": ["Is kind."]}) + "\n"
    )
    job = job_of(tmp_path / "c.yaml", changes={"profile": "test"})
    assert job.stages[0].settings.lr == 1e-5
    assert [t.id for t in job.tasks] == ["t"]


def test_a_config_that_is_missing_names_the_shipped_ones():
    with pytest.raises(MissingError, match="ladder_chain"):
        job_of("instruction", changes={})


@pytest.mark.parametrize(
    "name", ["rlvr", "refiner", "biorlhf", "instructions", "ladder_chain", "ladder_confidence"]
)
@pytest.mark.parametrize("profile", ["test", "cpu", "gpu"])
def test_the_shipped_configs_hold_something_out(name, profile):
    job = job_of(name, changes={"profile": profile})
    held = {t.id for t in job.heldout}
    assert job.tasks and held
    assert not held & {t.id for t in job.tasks}
    assert not {t.conversation for t in job.heldout} & {t.conversation for t in job.tasks}


def test_rows_marked_held_out_and_their_twins_are_not_trained_on():
    twins = [Task(id=p, prompt=p) for p in ("Say 5.", "say  5.", "Say\n4.")]
    job = job_of([*tasks(), *twins], TINY, changes={"profile": "test"})
    assert [t.id for t in job.heldout] == ["t4", "t5"]
    assert [t.id for t in job.tasks] == ["t0", "t1", "t2", "t3"]
    shared = job_of(twins, {"train_ratio": 0.7}, changes={"profile": "test"})
    assert sorted(map(len, (shared.tasks, shared.heldout))) == [1, 2]


def test_whole_groups_are_held_out_by_name_and_by_share():
    rows = [
        Task(id=f"t{i}", prompt=f"p{i}", group=("liver", "eye", "skin")[i % 3]) for i in range(9)
    ]
    named = job_of(rows, {"hold_out_tissues": ["Eye"]}, changes={"profile": "test"})
    assert {t.group for t in named.heldout} == {"eye"}
    shared = job_of(rows, {"holdout_by": "tissue", "train_ratio": 0.7}, changes={"profile": "test"})
    assert len({t.group for t in shared.heldout}) == 1 and len(shared.heldout) == 3
    with pytest.raises(DataError, match="no group 'lung'"):
        job_of(rows, {"holdout": "lung"}, changes={"profile": "test"})
    with pytest.raises(DataError, match="also trained on"):
        job_of(rows, heldout=rows[:1], changes={"profile": "test"})


def test_sources_and_the_stated_form_are_asked_for():
    refiner = job_of("refiner", changes={"profile": "test"}).tasks[0]
    asked = training.messages(refiner)[-1]["content"]
    assert all(f"<snippet id={k}>{v}</snippet>" in asked for k, v in refiner.sources.items())
    biorlhf = job_of("biorlhf", changes={"profile": "test"}).tasks[0]
    assert biorlhf.prompt.endswith("Confidence: 0% to 100%")


def test_settings_come_as_a_preset_a_mapping_or_an_object():
    for given in ("instructions", {"steps": 60}, Settings(steps=60)):
        assert job_of(tasks(), given, changes={"profile": "cpu"}).stages[0].settings.steps == 60
