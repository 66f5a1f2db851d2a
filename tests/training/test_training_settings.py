"""Settings: presets, profiles, the systems' own names, options, and what is held out."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from training_cases import TINY, Judge, tasks

import kit
import kit.training as training
from kit import Task
from kit.errors import DataError, KitError, MissingError
from kit.training import Settings, build, nest, places, read_job


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


@pytest.mark.parametrize(("capability", "refused"), [((7, 5), True), ((8, 0), False)])
def test_vllm_is_refused_on_a_gpu_that_it_has_no_attention_for(monkeypatch, capability, refused):
    import shutil

    import torch

    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: capability)
    values = {"engine": "transformers", "options": {"use_vllm": True}}
    if not refused:
        assert build(values, profile="t4").options["use_vllm"]
        return
    with pytest.raises(DataError, match="a T4 has 7.5") as error:
        build(values, profile="t4")
    assert error.value.fix == "use_vllm: false (--set use_vllm=false)"


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
    assert nest(places(theirs, names, where="config"), where="config") == ours


def test_unknown_names_are_reported_all_at_once_with_the_nearest():
    with pytest.raises(DataError) as e:
        build({"group_sise": 4, "stepz": 3}, profile="test")
    assert "'group_size'" in str(e.value) and "'steps'" in str(e.value)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"lr": "1e-5"}, "lr"),
        ({"group_size": 1}, "no baseline"),
        ({"stage": "stf"}, "(?s)stage 'stf'.*sft, dpo, grpo.*did you mean 'sft'"),
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
        read_job({"preset": "rlvr", **values}, changes={"profile": "test"})


def test_numbers_in_yaml_are_numbers(tmp_path):
    (tmp_path / "c.yaml").write_text("lr: 1e-5\nsteps: 3\ntasks: t.jsonl\n")
    (tmp_path / "t.jsonl").write_text(
        json.dumps({"id": "t", "prompt": "p", "rubrics": ["Is kind."]}) + "\n"
    )
    job = read_job(tmp_path / "c.yaml", changes={"profile": "test"})
    assert job.stages[0].settings.lr == 1e-5
    assert [t.id for t in job.tasks] == ["t"]


def test_a_config_that_is_missing_names_the_shipped_ones():
    with pytest.raises(MissingError, match="ladder_chain"):
        read_job("instruction", changes={})


@pytest.mark.parametrize(
    "name", ["rlvr", "refiner", "biorlhf", "instructions", "ladder_chain", "ladder_confidence"]
)
@pytest.mark.parametrize("profile", ["test", "cpu", "gpu"])
def test_the_shipped_configs_hold_something_out(name, profile):
    job = read_job(name, changes={"profile": profile})
    held = {t.id for t in job.heldout}
    assert job.tasks and held
    assert not held & {t.id for t in job.tasks}
    assert not {t.conversation for t in job.heldout} & {t.conversation for t in job.tasks}


def test_rows_marked_held_out_and_their_twins_are_not_trained_on():
    twins = [Task(id=p, prompt=p) for p in ("Say 5.", "say  5.", "Say\n4.")]
    job = read_job([*tasks(), *twins], TINY, changes={"profile": "test"})
    assert [t.id for t in job.heldout] == ["t4", "t5"]
    assert [t.id for t in job.tasks] == ["t0", "t1", "t2", "t3"]
    shared = read_job(twins, {"train_ratio": 0.7}, changes={"profile": "test"})
    assert sorted(map(len, (shared.tasks, shared.heldout))) == [1, 2]


def test_whole_groups_are_held_out_by_name_and_by_share():
    rows = [
        Task(id=f"t{i}", prompt=f"p{i}", group=("liver", "eye", "skin")[i % 3]) for i in range(9)
    ]
    named = read_job(rows, {"hold_out_tissues": ["Eye"]}, changes={"profile": "test"})
    assert {t.group for t in named.heldout} == {"eye"}
    shared = read_job(
        rows, {"holdout_by": "tissue", "train_ratio": 0.7}, changes={"profile": "test"}
    )
    assert len({t.group for t in shared.heldout}) == 1 and len(shared.heldout) == 3
    with pytest.raises(DataError, match="no group 'lung'"):
        read_job(rows, {"holdout": "lung"}, changes={"profile": "test"})
    with pytest.raises(DataError, match="also trained on"):
        read_job(rows, heldout=rows[:1], changes={"profile": "test"})


def test_sources_and_the_stated_form_are_asked_for():
    refiner = read_job("refiner", changes={"profile": "test"}).tasks[0]
    asked = training.messages(refiner)[-1]["content"]
    assert all(f"<snippet id={k}>{v}</snippet>" in asked for k, v in refiner.sources.items())
    biorlhf = read_job("biorlhf", changes={"profile": "test"}).tasks[0]
    assert biorlhf.prompt.endswith("Confidence: 0% to 100%")


def test_settings_come_as_a_preset_a_mapping_or_an_object():
    for some in ("instructions", {"steps": 60}, Settings(steps=60)):
        assert read_job(tasks(), some, changes={"profile": "cpu"}).stages[0].settings.steps == 60


# a value for each name of the three systems, where the kind of its target does not say one
SAMPLES = {
    "model_name": "tiny-random", "model_name_or_path": "tiny-random", "sft_model_path": "folder",
    "judge_model": "M", "judge_base_url": "http://other/v1", "output_dir": "there", "log_path": "there",
    "hold_out_tissues": ["eye"], "lr_scheduler_type": "constant", "loss_type": "grpo", "learning_rate": 3e-4,
    "importance_sampling_level": "sequence", "hub_model_id": "me/x", "per_device_train_batch_size": 4,
    "num_substeps": 2, "top_p": 0.5, "loss_weights": [1.0], "use_multi_reward": True,
    "deepspeed": "zero3.json",
}  # fmt: skip


def one_of(name):
    """(place, value as it is written, value as the kit reads it) of a name of the table."""
    entry = training.renames()["renames"][name]
    entry = entry if isinstance(entry, dict) else {"to": entry}
    if "values" in entry:
        theirs, ours = next(iter(entry["values"].items()))
        return entry["to"], theirs, ours
    value = SAMPLES.get(name, 2)
    return entry["to"], value, value


def reached(job, place):
    """The value of a place in a job."""
    head, *path = place.split(".")
    stage = job.stages[0].settings
    places = {"judge": job.keys, "reward": job.keys, "out": job}
    value = getattr(places.get(head, stage), head)
    for part in path:
        value = value[part]
    return value


OTHER = Judge()
OTHER_KINDS = ("code", OTHER)
RENAMED = [n for n, e in training.renames()["renames"].items() if "tasks" not in one_of(n)[0]]


@pytest.mark.parametrize("layer", ["changes", "settings", "config"])
@given(
    name=st.sampled_from(RENAMED),
    others=st.lists(st.sampled_from(RENAMED), max_size=4),
    judge=st.sampled_from([None, "endpoint:M", {"endpoint": "M"}, "code", OTHER]),
    reward=st.sampled_from([None, "refiner", {"preset": "refiner", "name": "r"}]),
)
def test_every_setting_of_the_systems_reaches_the_run_or_is_an_error(
    layer, name, others, judge, reward
):
    every = {"group_size": 4, "prompts_per_step": 2}
    wanted = {}
    for n in (name, *others):
        place, theirs, ours = one_of(n)
        if place not in wanted:
            every.pop(place, None)
            every[n], wanted[place] = theirs, ours
    place = one_of(name)[0]
    rows = [Task(id=f"{i}", prompt=f"p{i}", group=("eye", "skin")[i % 2]) for i in range(4)]
    rows_of = {"source": rows, "settings": every if layer == "settings" else None}
    if layer == "config":
        rows_of = {"source": {"tasks": "facts.jsonl", **every}}
    changes = {"profile": "test", **(every if layer == "changes" else {})}
    # loss_weights is an option of DPO alone
    alone = judge is reward is None and {*wanted} <= {place} - {"options.loss_weights"}
    # an error is not a silence; a name alone has no cause for one, but that a tracker is not installed
    with contextlib.suppress(MissingError if alone else KitError):
        job = read_job(**rows_of, changes=changes, judge=judge, reward=reward)
        for place, value in wanted.items():
            if place == "out":
                assert job.out.name == value
            elif place == "holdout":
                assert {t.group for t in job.heldout} == {"eye"}
            # a judge of another kind replaces the config's, and a warning says so
            elif not (place.startswith("judge.") and layer != "changes" and judge in OTHER_KINDS):
                assert reached(job, place) == value, place


def test_a_setting_beside_a_judge_or_a_reward_is_joined_or_refused(caplog):
    url = "http://mine/v1"
    changes = {"profile": "test", "judge_base_url": url}
    job = read_job(tasks(), TINY, changes=changes, judge="endpoint:M")
    assert job.keys.judge == {"endpoint": "M", "base_url": url}
    # the config's server stays where the caller names another model of it
    config = {"judge_model": "A", "judge_base_url": url, **TINY}
    job = read_job(tasks(), config, changes={"profile": "test"}, judge="endpoint:B")
    assert job.keys.judge == {"endpoint": "B", "base_url": url}
    assert read_job(tasks(), config, changes={"profile": "test"}, judge="code").keys.judge == "code"
    assert f"another judge replaces judge.base_url: {url}" in caplog.text
    for judge in ("code", "local", {"panel": ["code"]}, Judge()):
        with pytest.raises(DataError, match="has no base_url"):
            read_job(tasks(), TINY, changes=changes, judge=judge)
    changes = {"profile": "test", "verification_reward": 5}
    assert read_job(tasks(), TINY, changes=changes, reward="rubric").keys.reward["scale"] == 5
    with pytest.raises(DataError, match="has no scale"):
        read_job(tasks(), TINY, changes=changes, reward=kit.rewards.Composer.from_config("rubric"))
    with pytest.raises(DataError, match=r"another name set it.*\n.*reward\.scale"):
        read_job(tasks(), TINY, changes=changes, reward={"preset": "refiner", "scale": 3})
    with pytest.raises(DataError, match="both set 'options.warmup_steps'"):
        changes = {"warmup_steps": 3, "options": {"warmup_steps": 4}}
        read_job(tasks(), TINY, changes={"profile": "test", **changes})
    with pytest.raises(DataError, match="tasks come twice"):
        read_job(tasks(), TINY, changes={"profile": "test", "data_path": "facts.jsonl"})
    # what the caller writes wins over a config's values for the profile
    config = {"tasks": "facts.jsonl", "profiles": {"test": {"steps": 5}}}
    assert read_job(config, {"steps": 3}, changes={"profile": "test"}).stages[0].settings.steps == 3
