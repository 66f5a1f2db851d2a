"""What an outsider's training met: leaks, quoted flags, values that are none. Offline."""

from __future__ import annotations

import dataclasses
import json
import random
from pathlib import Path
from types import SimpleNamespace
from typing import get_args

import pytest

import kit
from kit import stats
from kit.data.formats import biorlhf
from kit.errors import DataError, JudgeDownError, KitError, MissingError
from kit.records import Criterion, Grade, Response, Task, Verdict, unknown
from kit.settings.read import parse
from kit.stats.estimate import Estimate
from kit.stats.paired import fragile
from kit.train import chain, config, evaluation, grpo, inputs, job, rollouts, stages
from kit.train.config import GRPOSettings, Schedule, SFTSettings, build
from kit.train.models import load
from kit.train.presets import preset

CRITERIA = [{"id": "c", "text": "Short.", "check": {"name": "words", "max": 3}}]


def write(path, rows):
    text = "\n".join(json.dumps({"criteria": CRITERIA, **r}) for r in rows)
    path.write_text(text)
    return str(path)


def built(**values):
    return job.build({"model": "tiny-random", "preset": "test", **values})


@pytest.fixture
def file(tmp_path):
    return write(tmp_path / "a.jsonl", [{"id": f"q{i}", "prompt": f"P{i}"} for i in range(6)])


def test_a_heldout_file_and_a_split_are_not_both_taken(file, tmp_path):
    """The split was ignored without a word, and its groups were trained on."""
    other = write(tmp_path / "b.jsonl", [{"id": "x", "prompt": "Another"}])
    ways = {"train_ratio": 0.5, "holdout_by": "tissue", "holdout": ["eye"], "data_seed": 7}
    for words in ({k: v} for k, v in ways.items()):
        with pytest.raises(KitError, match="both say what is held out"):
            built(tasks=file, heldout=other, **words)
    with pytest.raises(DataError, match="6 held-out tasks are also trained on"):
        built(tasks=file, heldout=file)
    assert len(built(tasks=file, heldout=other).tasks) == 6


MARKS = ("train", None, "heldout", "test", "validation", "Test ", "val", "held-out")


def test_rows_marked_test_or_validation_are_trained_on_through_no_door(tmp_path, monkeypatch):
    """kit.train and halves() knew "heldout" alone: validation rows were sampled and learned from.
    halves() later kept a twin of a held-out prompt to train on."""
    rows = [{"id": str(m), "prompt": f"Say {m}", **({"split": m} if m else {})} for m in MARKS]
    rows.append({"id": "twin", "prompt": "say  Test"})
    path = write(tmp_path / "a.jsonl", rows)
    tasks, seen = kit.load(path), []
    monkeypatch.setattr(grpo, "train", lambda s, t, *, heldout, **k: seen.append((t, heldout)))
    kit.train(tasks, "test")
    kit.train(tasks, "test", heldout=[Task(id="x", prompt="Other")])
    job_ = built(tasks=path)
    for train in (seen[0][0], job_.tasks):
        assert [t.id for t in train] == ["train", "None"]
    assert [t.id for t in seen[1][0]] == ["train", "None", "twin"]
    learned, held = tasks.halves()
    assert [*seen[0][1], tasks.by_id["twin"]] == [*job_.heldout, tasks.by_id["twin"]] == held
    assert [t.id for t in learned] == ["train", "None"]


def test_sft_rows_marked_test_are_not_taught(caplog):
    """The split of a row of `rows:` was read by nobody."""
    rows = [{"prompt": "p", "response": m, "split": m} for m in ("train", "test", "Dev")]
    assert len(stages.learned(SFTSettings(), rows)) == 1
    assert "2 rows are not trained on" in caplog.text
    with pytest.raises(DataError, match="no training rows"):
        stages.learned(SFTSettings(), rows[1:])


def test_a_prompt_stands_on_one_side_only(tmp_path):
    """Twenty rows of five prompts: all five were trained on and held out."""
    rows = [{"id": f"q{i}", "prompt": f"Same  prompt {i % 5}"} for i in range(20)]
    got = built(tasks=write(tmp_path / "a.jsonl", rows), train_ratio=0.6)
    assert len(got.tasks) == 12 and len(got.heldout) == 8
    assert not {t.prompt for t in got.tasks} & {t.prompt for t in got.heldout}
    again = write(tmp_path / "b.jsonl", [{"id": "other", "prompt": "same prompt 1"}])
    left = built(tasks=str(tmp_path / "a.jsonl"), heldout=again).tasks
    assert len(left) == 16 and "Same  prompt 1" not in {t.prompt for t in left}


@pytest.mark.parametrize("words", [{}, {"train_ratio": 0.5}])
def test_marked_rows_are_never_trained_on(tmp_path, words):
    """Test and validation rows were trained on; with train_ratio heldout rows too."""
    marks = ["train", "test", "Heldout", "validation"]
    rows = [{"id": f"q{i}", "prompt": f"P{i}", "split": marks[i % 4]} for i in range(16)]
    got = built(tasks=write(tmp_path / "a.jsonl", rows), **words)
    assert {t.split for t in got.tasks} == {"train"}
    assert len(got.heldout) == 12 + (2 if words else 0)


@pytest.mark.parametrize("group", [1, "Eye", "eye "])
def test_numbers_and_spellings_of_groups(tmp_path, group):
    """Groups 0, 1, 2 could not be named; eye, Eye and "eye " were three groups."""
    tissues = [0, 1, 2, "eye", "Eye", "eye "]
    rows = [{"id": f"q{i}", "prompt": f"P{i}", "tissue": t} for i, t in enumerate(tissues)]
    got = built(tasks=write(tmp_path / "a.jsonl", rows), holdout_by="tissue", holdout=[group])
    assert len(got.heldout) == (1 if group == 1 else 3)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"mask_truncated_completions": "false"}, "mask_truncated_completions is 'false'"),
        ({"use_4bit": "no"}, "without quotation marks"),
        ({"use_wandb": "false"}, "without quotation marks"),
        ({"verifier_weights": [0.35, 0.3]}, "it is a mapping"),
        ({"verifier_weights": {}}, "it is a mapping"),
        ({"verifier_weights": {"V1": "x"}}, "not a number"),
        ({"verifier_weights": {"V9": 0.3}}, "no verifier 'V9'"),
        ({"judge_model": ["a"]}, "setting endpoint"),
        ({"judge_model": "a", "judge_max_retries": "three"}, "'three'(.|\\n)*setting tries"),
        ({"judge_model": "a", "judge_temperature": -5}, "temperature is -5"),
        ({"data_seed": "x"}, "setting data_seed"),
        ({"ask": ["a"]}, "ask is"),
    ],
)
def test_values_that_are_none_are_refused_when_the_job_is_built(file, values, said):
    """A quoted "false" turned the option on; the others were taken, or a raw traceback."""
    with pytest.raises(KitError, match=said):
        built(tasks=file, **values)
    assert built(tasks=file, use_4bit=False).settings.quantize == "none"


def test_a_key_that_stands_there_twice():
    """`steps` twice: the last one won without a word."""
    with pytest.raises(Exception, match="'steps' stands there twice"):
        parse("steps: 3\nsteps: 30")
    assert parse("a: &a {x: 1}\nb: {<<: *a, x: 2}")["b"] == {"x": 2}


def test_numbers_that_no_run_can_use_are_refused_before_the_model_loads():
    """beta: .inf wrote an adapter of NaN with exit code 0; -1 and a top_p of 0 were taken."""
    wrong = {"beta": float("inf"), "epsilon": -1.0, "save_every": -1, "top_p": 0.0, "seed": 2**40}
    for name, value in wrong.items():
        with pytest.raises(KitError, match=name):
            build(GRPOSettings, {**preset("test"), name: value})


def test_a_lone_surrogate_is_written_to_the_rollouts_and_read_back(tmp_path):
    """A policy, a judge's reason or an id with half a character ended the run in a traceback."""
    log = rollouts.Log(tmp_path / "rollouts.jsonl")
    log.append([{"step": 1, "text": "\ud800 \u2028 ü"}])
    assert [r["text"] for r in rollouts.read(tmp_path / "rollouts.jsonl")] == ["\ud800 \u2028 ü"]


def test_facts_given_as_texts_are_facts():
    """`{"facts": ["112"]}` loaded cleanly and crashed in the verifier."""
    truth = biorlhf.truth_of({"facts": ["112 mg"]})
    assert truth["facts"][0]["text"] == "112 mg" and truth["facts"][0]["number"] == 112


def test_a_gain_is_shown_by_the_rule_that_claims_it():
    """Training asked for 20 prompts only; `stats.claim` asks that a gain outlive unseen collapses."""
    weak = Estimate(0.1, 0.02, 0.18, 40, 40, se=0.04)
    assert stats.claim(weak).startswith("Too few") and fragile(weak)
    names = ("before", "after", "reward", "words", "truncated", "strict")
    gain = evaluation.Gain(criteria={}, passing=(weak, weak), **dict.fromkeys(names, weak))
    assert not gain.shown and "a few that collapse" in gain.sentence


def test_a_schedule_or_module_that_is_none_is_said_early():
    """constnt and q_prooj were raw errors of transformers and peft, after the model had loaded."""
    from transformers.trainer_utils import SchedulerType

    # "cosine_with_min_lr" wanted a minimum that no setting names: a raw error before the first step
    needy = {"cosine_with_min_lr", "cosine_warmup_with_min_lr", "warmup_stable_decay"}
    blind = {"reduce_lr_on_plateau", "greedy"}  # they look at a metric that GRPO does not give
    assert set(get_args(Schedule)) == {s.value for s in SchedulerType} - needy - blind
    with pytest.raises(KitError, match="did you mean 'constant'"):
        build(GRPOSettings, {"schedule": "constnt"})
    with pytest.raises(KitError, match="did you mean 'q_proj'"):
        load(build(GRPOSettings, {**preset("test"), "lora_targets": ["k_proj", "q_prooj"]}))


@pytest.mark.parametrize("field", ["id", "prompt", "system", "sources"])
def test_half_a_character_is_said_before_the_model_loads(field, tmp_path):
    """pyarrow and the tokenizer failed with tracebacks of their own."""
    value = {"S1": "half \ud83d"} if field == "sources" else "half \ud83d"
    check = (Criterion(id="c", text="Short.", check=CRITERIA[0]["check"]),)
    task = dataclasses.replace(Task(id="t", prompt="P", criteria=check), **{field: value})
    with pytest.raises(DataError, match="half of a character"):
        grpo.train(build(GRPOSettings, preset("test")), [task], out=tmp_path / "r")


def test_rows_with_nothing_to_learn_from(tmp_path, caplog):
    """Training on empty text was a success; cut rows were not said; all cut away was a ValueError."""
    settings = build(SFTSettings, {**preset("test", "sft"), "max_tokens": 40, "steps": 1})
    for bad in ({"text": ""}, {"prompt": "a", "response": " "}, {"text": "half \ud83d"}):
        with pytest.raises(DataError, match="row 2"):
            stages.train(settings, [{"text": "fine"}, bad], out=tmp_path / "a")
    long = {"prompt": "a" * 60, "response": "b"}
    with pytest.raises(DataError, match="max_tokens=40"):
        stages.train(settings, [long], out=tmp_path / "b")
    rows = [long, {"prompt": "a", "response": "b" * 60}, {"prompt": "a", "response": "b"}]
    done = stages.train(settings, rows, out=tmp_path / "c")
    assert done.metrics["rows"] == 2
    assert "1 of 3 rows are left out" in caplog.text and "1 of 3 rows are cut" in caplog.text


def test_a_json_config_with_a_key_twice(tmp_path):
    """The first value was dropped without a word; YAML was checked already."""
    (tmp_path / "c.json").write_text('{"steps": 1,\n"steps": 2}')
    with pytest.raises(KitError, match="'steps' stands there twice"):
        job.read(tmp_path / "c.json")


@pytest.mark.parametrize("encoding", ["utf-16", "latin-1"])
def test_a_config_that_is_not_utf8_is_an_error_with_its_line(tmp_path, encoding):
    """A raw UnicodeDecodeError, from Notepad's UTF-16."""
    (tmp_path / "c.yaml").write_bytes("steps: 1\n# é\n".encode(encoding))
    with pytest.raises(KitError, match="not UTF-8\n.*line [12]"):
        job.read(tmp_path / "c.yaml")


@pytest.mark.parametrize(
    "package, more",
    [(p, {}) for p in ("trl", "peft", "transformers", "accelerate", "datasets")]
    + [("bitsandbytes", {"quantize": "nf4"}), ("unsloth", {"engine": "unsloth"})],
)
def test_a_package_that_is_missing_is_named_before_a_folder_is_made(
    file, tmp_path, monkeypatch, package, more
):
    """It was named after the held-out evaluation was answered and paid for."""
    monkeypatch.setattr(inputs, "_installed", lambda name: name != package)
    with pytest.raises(MissingError, match=f"package '{package}' is not installed"):
        built(tasks=file, out=str(tmp_path / "run"), **more)
    stage = {"stage": "grpo", "model": "tiny-random", "preset": "test", **more}
    made = chain.build({"tasks": file, "stages": [stage], "out": str(tmp_path / "chain")})
    with pytest.raises(MissingError, match=f"package '{package}' is not installed"):
        chain.run(made)
    assert not (tmp_path / "run").exists() and not (tmp_path / "chain").exists()


@pytest.mark.parametrize(
    "words",
    [
        {"settings": [1]},
        {"settings": "cpu"},
        {"kinds": 3},
        {"answers": {"exact": "abc"}},
        {"evaluate": 3},
        {"stages": [{"stage": ["sft", "dpo"]}]},
        {"stages": [{"stage": "sft", "preset": ["cpu"]}]},
        {"stages": [{"stage": "sft", "teach": ["a"]}]},
        {"stages": [{"stage": "sft", "aside": "no"}]},
    ],
)
def test_a_value_of_a_wrong_type_in_a_chain_is_an_error_for_people(file, words):
    """Raw TypeErrors; `aside: "no"` was read as true."""
    with pytest.raises(KitError):
        chain.build({"tasks": file, "stages": [{"stage": "sft"}], **words})


def test_a_group_that_is_marked_already(tmp_path):
    """All rows of the eye were marked heldout; naming it was answered "there is no group"."""
    rows = [
        {"id": f"q{i}", "prompt": f"P{i}", "tissue": t, "split": "heldout" if t == "eye" else None}
        for i, t in enumerate(["eye", "eye", "liver", "heart"])
    ]
    path = write(tmp_path / "a.jsonl", rows)
    for named, n in ((["eye"], 2), (["eye", "liver"], 3)):
        assert len(built(tasks=path, holdout_by="tissue", holdout=named).heldout) == n
    with pytest.raises(KitError, match="brain"):
        built(tasks=path, holdout_by="tissue", holdout=["eye", "brain"])


def test_a_group_that_is_held_out_for_a_shared_prompt_is_named(tmp_path, caplog):
    """Six liver rows were held out beside "eye" without a word: one of them asks what an eye does."""
    rows = [("P0", "eye"), ("P0", "liver"), ("P1", "liver"), ("P2", "heart"), ("P3", "heart")]
    path = write(
        tmp_path / "a.jsonl",
        [{"id": f"q{i}", "prompt": p, "tissue": t} for i, (p, t) in enumerate(rows)],
    )
    assert len(built(tasks=path, holdout_by="tissue", holdout=["eye"]).heldout) >= 2
    assert "held out too" in caplog.text and "liver" in caplog.text and "heart" not in caplog.text


def test_the_words_of_the_refiners_card(file, tmp_path):
    """Its flags were unknown without a hint; [FILE, "1.0"] was no file; epochs were no word."""
    flags = {
        "verification_reward": 5.0,
        "refiner_reward_apply_paper_citation_reward": True,
        "refiner_reward_paper_citation_weight": 0.3,
        "refiner_reward_gate_judge_score_with_format_bonus": False,
    }
    got = built(dataset_mixer_list=[file, "1.0"], **flags)
    composer = kit.Composer.from_config(got.reward)
    assert [c.weight for c in composer.components] == [0.7, 0.3] and composer.scale == 5
    assert composer.format.mode == "bonus"
    (tmp_path / "c.yaml").write_text(f"tasks: {file}\nreward: refiner_additive\nmodel: tiny-random")
    paid = kit.Composer.from_config(job.read(tmp_path / "c.yaml", verification_reward=2).reward)
    assert paid.scale == 2 and paid.combine == "sum" and paid.format.mode == "gate"
    for values, said in (
        ({"num_epochs": 3}, "say `steps`"),
        ({"verification_reward": "ten"}, "not a number"),
        ({"verification_reward": 2, "reward": "rubric"}, "keep one"),
        ({"dataset_mixer_list": [file, 0.5]}, "join several"),
    ):
        with pytest.raises(KitError, match=said):
            built(**{"tasks": file, **values} if "dataset_mixer_list" not in values else values)


@pytest.mark.parametrize(
    "options, ours",
    [
        ({"max_steps": 3}, "steps"),  # trained 3 steps where `steps: 1` stood
        ({"learning_rate": 0.5}, "lr"),
        ({"beta": 5.0}, "beta"),
        ({"num_generations": 2}, "group_size"),  # no step was logged, and it was a success
        ({"scale_rewards": False}, "advantage"),
    ],
)
def test_an_option_that_a_setting_says_already_is_refused(options, ours):
    with pytest.raises(KitError, match=f"setting '{ours}'"):
        build(GRPOSettings, {**preset("test"), "options": options})


def test_an_option_that_this_stage_has_no_setting_for_is_the_trainers_own():
    both = {"loss_type": ["sigmoid", "sft"], "loss_weights": [1.0, 0.5]}
    assert build(config.DPOSettings, {"options": both}).options == both


def test_what_the_kit_tells_the_trainer_itself_cannot_be_overruled():
    from trl import GRPOConfig

    with pytest.raises(KitError, match="remove_unused_columns, which the kit sets itself"):
        config.merged({"remove_unused_columns": False}, {"remove_unused_columns": True}, GRPOConfig)
    assert config.merged({"seed": 1}, {"adam_beta2": 0.9}, GRPOConfig) == {
        "seed": 1,
        "adam_beta2": 0.9,
    }


@pytest.mark.parametrize(
    "values, word",
    [
        ({"lora_dropout": 1.0}, "nothing is learned"),  # ended as a success with a zero adapter
        ({"lora_alpha": 0}, "changes nothing"),
        ({"epsilon": 0}, "nothing is learned"),
        ({"lr": 1e9}, "at most 1"),
        ({"lora_targets": []}, "list of module names"),  # peft's own error, after the model loaded
        ({"lora_targets": "q_proj"}, "list of module names"),
        ({"keep": 0}, "1 or more"),
        ({"audit_share": 2}, "share"),
        ({"audit_share": 0.5}, "audit_share has no effect here"),
        ({"audit_stop": True}, "audit_stop has no effect here"),
        ({"warmup": 100, "steps": 2}, "never be reached"),
        ({"model": ""}, "no model is named"),
        ({"max_prompt_tokens": 0}, "1 or more"),
    ],
)
def test_settings_that_train_nothing_are_refused_before_anything_loads(values, word):
    with pytest.raises(KitError, match=word):
        build(GRPOSettings, {**preset("test"), **values})


def test_a_run_that_cannot_have_its_folder_or_reward_says_so_before_the_model_loads(tmp_path):
    (tmp_path / "taken").write_text("x")
    rows = tmp_path / "t.jsonl"
    rows.write_text('{"prompt": "p", "criteria": ["says a"]}\n')
    base = {"tasks": str(rows), "judge": "none", **preset("test")}
    for out in ("taken", "taken/below"):
        with pytest.raises(KitError, match="is a file"):
            job.build({**base, "out": str(tmp_path / out)})
    with pytest.raises(KitError, match="5 is no reward"):
        job.build({**base, "reward": 5, "out": str(tmp_path / "new")})
    with pytest.raises(MissingError, match="no folder"):
        inputs.check(build(GRPOSettings, {**preset("test"), "adapter": str(tmp_path / "nope")}))


def test_two_tasks_of_one_id_are_refused():
    task = Task(id="t", prompt="p", criteria=())
    with pytest.raises(DataError, match="belong to two tasks"):
        inputs.once([task, task])


def test_a_reporter_may_be_a_text_and_a_slip_is_led_to_the_right_name():
    """`report_to: wandb` was "expected array, got str"; `learningrate` was led to train_ratio."""
    assert config.from_mapping({"preset": "test", "report_to": "none"}).report_to == ("none",)
    two = config.from_mapping({"preset": "test", "report_to": "wandb, trackio"})
    assert two.report_to == ("wandb", "trackio")
    with pytest.raises(KitError, match="learning_rate"):
        job.build({"tasks": "short_answers.json", "learningrate": 3})


def test_what_a_row_asks_in_vain_is_found(tmp_path):
    """A direction that nobody can read beside facts gave no finding; V9 was "read as v9"."""
    from kit.data import load_tasks

    truth = {"pathway": "HALLMARK_DNA_REPAIR", "direction": "SIDEWAYS", "key_facts": ["liver"]}
    row = {"prompt": "Which?", "ground_truth": truth, "question_type": "x"}
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(row | {"applicable_verifiers": ["V1", "V2", "V9"]}))
    found = load_tasks(path).findings
    assert any("SIDEWAYS" in f.message and f.severity == "warning" for f in found)
    assert any("no verifier 'V9'" in f.message for f in found)
    assert not any("this is the v9" in f.message for f in found)


def test_calls_of_a_judge_of_ones_own_are_counted():
    """A judge object without a bill: judge_calls was 0 beside its cost."""
    from kit.records import Criterion, Response, Task, Verdict
    from kit.rewards.composer import Composer
    from kit.train.answers import wait
    from kit.train.reward import Reward

    class Own:
        name = "own"

        async def verdicts(self, task, response, criteria):
            ids = dict(task_id=task.id, response_id=response.id)
            return [Verdict(**ids, criterion_id=c.id, status="met", cost=0.5) for c in criteria]

    task = Task(id="t", prompt="p", criteria=(Criterion(id="c", text="x"),))
    reward = Reward(tasks=[task], judge=Own(), composer=Composer.from_config("rubric"))
    wait(reward.grade([Response(task_id="t", id=i, text="x") for i in "ab"]))
    assert reward.bill.calls == 2 and reward.bill.cost == 1.0


def test_a_judge_that_was_down_is_no_call_of_the_bill():
    """Each stop by a dead judge added the refused sign of life: 114 told of 113 paid."""
    from kit.train.reward import Bill

    bill, ids = Bill(), dict(task_id="t", response_id="r", criterion_id="c", judge="j")
    nothing = SimpleNamespace(calls=0, cost=0.0)
    bill.add([Verdict(**ids, status="unknown", failure="transport")], 1.0, [nothing])
    assert bill.calls == 0
    bill.add([Verdict(**ids, status="met")], 1.0, [nothing])
    assert bill.calls == 1


@pytest.mark.parametrize("stage", ["sft", "dpo"])
@pytest.mark.parametrize("key", ["heldout", "tasks", "judge", "ask", "train_ratio"])
def test_a_key_that_a_stage_of_rows_does_not_use_is_refused(tmp_path, stage, key):
    """`heldout` beside SFT's rows had no effect: the held-out prompts were trained on, with rc 0."""
    rows = tmp_path / "rows.jsonl"
    said = {"response": "4"} if stage == "sft" else {"chosen": "4", "rejected": "5"}
    rows.write_text(json.dumps({"prompt": "2+2?", **said}))
    value = {"judge": "code", "ask": "Say 4.", "train_ratio": 0.5}.get(key, "short_answers.json")
    base = {"stage": stage, "rows": str(rows), "out": str(tmp_path / "out")}
    with pytest.raises(KitError, match=f"{key} would have no effect in a stage '{stage}'"):
        job.build({**base, key: value})
    assert job.build(base).rows


def test_rows_without_effect_in_grpo_are_refused(tmp_path):
    base = {"tasks": "short_answers.json", "out": str(tmp_path)}
    with pytest.raises(KitError, match="rows would have no effect"):
        job.build({**base, "rows": "x.jsonl"})
    second = job.build({**base, "preset": "test", "audit": "code"})
    with pytest.raises(KitError, match="audit has no effect here: audit_every is 0"):
        job.run(second)


@pytest.mark.parametrize("words", [{"stage": ["sft", "dpo"]}, {"preset": ["cpu"]}, {"stage": {}}])
def test_a_list_where_a_name_is_due_is_an_error_for_people(words):
    """A raw TypeError: unhashable type."""
    with pytest.raises(KitError, match="there is no"):
        job.build({"tasks": "short_answers.json", **words})


def test_rows_of_a_file_are_learned_as_kit_load_reads_them(tmp_path, caplog):
    """A completion marked false was learned as right, earlier turns and `input` were dropped, and
    a test row in verl's form was trained on, all with rc 0."""
    turns = [{"role": "user", "content": "Is July hot?"}, {"role": "assistant", "content": "Yes."}]
    rows = [
        {"id": "a", "prompt": "The grass is", "completion": "pink.", "label": False},
        {"id": "a", "prompt": "And in winter?", "completion": "Cold.", "history": turns},
        {"prompt": "Translate to French:", "input": "good morning", "completion": "bonjour"},
        {"prompt": "Held out", "completion": "R", "extra_info": {"split": "test"}},
    ]
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    made = job.build(
        {"stage": "sft", "preset": "test", "rows": str(path), "out": str(tmp_path / "o")}
    )
    winter, french = stages.learned(made.settings, made.rows)
    assert winter["prompt"] == [*turns, {"role": "user", "content": "And in winter?"}]
    assert french["prompt"][-1]["content"].endswith("good morning")
    assert "1 answers are marked as undesired" in caplog.text and "1 rows are not" in caplog.text


def test_a_text_without_a_layout_and_pairs_of_one_prompt_are_rows(tmp_path):
    def built_rows(stage, rows):
        path = tmp_path / f"{stage}.jsonl"
        path.write_text("\n".join(map(json.dumps, rows)))
        made = job.build({"stage": stage, "rows": str(path), "out": str(tmp_path / "o")})
        return stages.learned(made.settings, made.rows)

    assert built_rows("sft", [{"text": "plain words"}]) == [{"text": "plain words"}]
    pair = {"id": "p", "prompt": "2+2?", "chosen": "4"}
    made = built_rows("dpo", [{**pair, "rejected": "5"}, {**pair, "rejected": "3"}])
    assert [r["rejected"][0]["content"] for r in made] == ["5", "3"]


def rows_of(tmp_path, stage, rows):
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    made = job.build({"stage": stage, "rows": str(path), "out": str(tmp_path / "o")})
    return stages.learned(made.settings, made.rows)


def test_a_text_that_is_held_out_holds_out_itself_alone(tmp_path, caplog):
    """Texts without a layout have no prompt: one marked as test threw out every other one."""
    texts = [f"<s>[INST] Question {i}? [/INST] Answer {i}. </s>" for i in (0, 1, 2, 0)]
    rows = [{"text": x, "split": "train" if i else "test"} for i, x in enumerate(texts)]
    kept = rows_of(tmp_path, "sft", rows)
    assert [row["text"] for row in kept] == texts[1:3] and "2 rows are not" in caplog.text


@pytest.mark.parametrize("stage", ["sft", "dpo"])
def test_a_field_that_a_row_asks_with_and_nothing_reads_is_said(tmp_path, caplog, stage):
    """dolly's `context` was dropped in silence: the model learned to answer from nothing."""
    answers = {"sft": {"response": "2000"}, "dpo": {"chosen": "2000", "rejected": "1"}}[stage]
    rows_of(tmp_path, stage, [{"prompt": "Since when?", "context": "Since 2000.", **answers}])
    assert "nothing reads the field 'context'" in caplog.text


@pytest.mark.parametrize("empty", [None, ""])
def test_an_empty_label_is_no_good_one(tmp_path, empty):
    """An answer with a null label beside true and false ones was taught as a good one."""
    row = {"prompt": "P", "completion": "C"}
    given = [{**row, "id": str(i), "label": x} for i, x in enumerate((True, empty, False))]
    with pytest.raises(DataError, match="does not say whether the answer is wanted"):
        rows_of(tmp_path, "sft", given)


def test_pairs_of_chats_beside_a_prompt_keep_system_text_and_earlier_turns(tmp_path):
    """Both were gone as soon as the row had a prompt of its own, without a finding."""
    start = [
        {"role": "system", "content": "SYS"},
        {"role": "user", "content": "U0"},
        {"role": "assistant", "content": "A0"},
        {"role": "user", "content": "P1"},
    ]
    pair = {k: [*start, {"role": "assistant", "content": k}] for k in ("chosen", "rejected")}
    (row,) = rows_of(tmp_path, "dpo", [{"prompt": "P1", **pair}])
    assert row["prompt"] == start and row["chosen"][0]["content"] == "chosen"


def test_a_label_of_kto_that_is_not_read_is_an_error(tmp_path):
    """'undesirable' answers were learned as demonstrations."""
    row = {"prompt": "P", "completion": "C", "label": "undesirable"}
    with pytest.raises(DataError, match="'undesirable' does not say"):
        rows_of(tmp_path, "sft", [row])


def test_a_prompt_that_one_row_holds_out_is_not_trained_on_from_another(tmp_path):
    rows = [{"prompt": p, "response": "R"} for p in ("P1", "p1 ", "P2")]
    rows[0]["split"] = "test"
    (row,) = rows_of(tmp_path, "sft", rows)
    assert row["prompt"][0]["content"] == "P2"


def test_a_text_column_beside_an_answer_is_not_what_is_learned(tmp_path):
    """Alpaca's rows hold both; the text, prompt included, was trained on."""
    row = {"instruction": "I", "input": "", "output": "O", "text": "### Instruction: I ... O"}
    (made,) = rows_of(tmp_path, "sft", [row])
    assert made["completion"] == [{"role": "assistant", "content": "O"}]


def test_what_is_given_beside_a_config_replaces_its_values(tmp_path, monkeypatch, file):
    """judge, reward, out, ledger and settings of kit.train were ignored: another judge was paid."""
    path = tmp_path / "c.yaml"
    path.write_text(f"{{tasks: {file}, model: tiny-random, preset: test, train_ratio: 0.5}}")
    seen = []
    monkeypatch.setattr(job, "run", lambda wanted, **how: seen.append((wanted, how)))
    judge = kit.judge_of("code")
    own = {"name": "mine", "components": [{"kind": "rubric", "how": "mean"}]}
    kit.train(path, {"steps": 3}, judge=judge, reward=own, out=tmp_path / "o", ledger="l.sqlite")
    (wanted, how) = seen.pop()
    assert wanted.judge is judge and wanted.reward == own and wanted.settings.steps == 3
    assert wanted.out == tmp_path / "o" and str(wanted.ledger) == "l.sqlite"
    assert how["resume"] is None  # when the folder holds a run
    with pytest.raises(KitError, match="heldout"):
        kit.train(path, heldout=[Task(id="x", prompt="Other")])
    with pytest.raises(KitError, match="its own model"):
        kit.train(path, loaded=object())


def test_a_file_of_the_command_line_lies_where_the_command_runs(tmp_path, monkeypatch):
    """`--set data=rubrics.json` trained on the file of that name that the kit ships."""
    write(tmp_path / "rubrics.json", [{"id": "mine", "prompt": "P"}, {"id": "own", "prompt": "Q"}])
    monkeypatch.chdir(tmp_path)
    config_of = chain.CONFIGS / "rlvr.yaml"
    found = job.read(config_of, data="rubrics.json", model="tiny-random", judge="code")
    assert {t.id for t in (*found.tasks, *found.heldout)} == {"mine", "own"}
    with pytest.raises(MissingError, match=r"from here|absent"):
        job.read(config_of, data="absent.json", model="tiny-random", judge="code")


CALL = {"name": "get_temp", "arguments": {"city": "Oslo"}}
CALLED = [
    {"role": "user", "content": "How warm is it in Oslo?"},
    {"role": "assistant", "content": None, "tool_calls": [{"function": CALL}]},
    {"role": "tool", "content": "7 C"},
]


@pytest.mark.parametrize("form", ["messages", "prompt", "whole", "apart"])
def test_a_tool_call_before_the_answer_is_read_and_not_learned(tmp_path, form):
    """'Seven degrees.' was learned as the answer to the bare question: call and output were left
    out, and a model learns to make such numbers up."""
    good, bad = ({"role": "assistant", "content": x} for x in ("Seven degrees.", "Nine."))
    start, ends = {"prompt": CALLED[:1]}, CALLED[1:]
    stage, row = {
        "messages": ("sft", {"messages": [*CALLED, good]}),
        "prompt": ("sft", {**start, "completion": [*ends, good]}),
        "whole": ("dpo", {"chosen": [*CALLED, good], "rejected": [*CALLED, bad]}),
        "apart": ("dpo", {**start, "chosen": [*ends, good], "rejected": [*ends, bad]}),
    }[form]
    (row,) = rows_of(tmp_path, stage, [row])
    question, call, output = row["prompt"]
    assert (question, output) == (CALLED[0], CALLED[2])
    assert call["role"] == "assistant" and json.dumps(CALL) in call["content"]
    assert row["completion" if stage == "sft" else "chosen"] == [good]


def test_pairs_after_two_tool_calls_are_refused(tmp_path):
    """Calls have no text: two chats that differ in them alone counted as one."""
    other = [CALLED[0], {**CALLED[1], "tool_calls": [{"id": "2"}]}, CALLED[2]]
    ends = [{"role": "assistant", "content": x} for x in ("Seven.", "Nine.")]
    with pytest.raises(DataError, match="answers of several turns"):
        rows_of(tmp_path, "dpo", [{"chosen": [*CALLED, ends[0]], "rejected": [*other, ends[1]]}])


def test_the_loss_looks_at_no_turn_before_the_answer(tmp_path):
    """What trl masks, with the tokenizer's own template: call and output are context."""
    settings = build(SFTSettings, {"model": "tiny-random", "max_tokens": 400})
    row = {"prompt": "Warm?", "turns_after_prompt": CALLED[2:], "response": "Seven."}
    (made,) = stages.learned(settings, [row])
    loaded = load(settings)
    log = rollouts.Log(tmp_path / rollouts.STEPS)
    trainer = stages._trainer(settings, loaded, [made], tmp_path, log, None)
    (seen,) = trainer.train_dataset
    tokens = list(zip(seen["input_ids"], seen["labels"], strict=True))
    read = loaded.tokenizer.decode([i for i, label in tokens if label < 0])
    learned = loaded.tokenizer.decode([label for _, label in tokens if label >= 0])
    assert "7 C" in read and "Seven." in learned and "7 C" not in learned


def test_rows_without_a_prompt_are_not_all_held_out(tmp_path):
    """One test row of bare text held out every other text: none of them asks anything."""
    texts = [{"text": "plain words", "split": "test"}, {"text": "other words"}]
    assert rows_of(tmp_path, "sft", texts) == [{"text": "other words"}]


def test_a_policy_that_is_unread_where_it_is_unsure_has_gained_nothing():
    """ "rose by +0.300 [+0.260, +0.339]": it knew as much as before, 250 of 480 were not read."""

    def said(rewards):
        ids = [(f"t{i // 4}", f"r{i}") for i in range(len(rewards))]
        texts = [Response(task_id=t, id=r, text="x") for t, r in ids]
        ends = [(0.0, 1.0) if x is None else (x, x) for x in rewards]
        graded = [
            Grade(task_id=t, response_id=r, score=x, score_low=low, score_high=high)
            for (t, r), x, (low, high) in zip(ids, rewards, ends, strict=True)
        ]
        return evaluation.Evaluation(name="e", responses=tuple(texts), grades=tuple(graded))

    unsure = [1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0] * 15
    trivial = {"constant": said([0.5, 0.5, 0.5, 0.0, 0.5, 0.5, 0.5, 0.0] * 15)}
    gain = evaluation.compare(said(unsure), said([x or None for x in unsure]))
    assert not gain.shown
    assert "Of 62.5% of the answers the reward is unknown, before of 0.0%" in gain.sentence
    assert gain.sentence.startswith("No gain was shown") and gain.reward.low < 0
    over = evaluation.compare(said(unsure), said([x or None for x in unsure]), trivial=trivial)
    assert "is not shown to beat the best trivial one" in over.sentence
    learned = [1.0, None, 1.0, 1.0, 1.0, 1.0, 1.0, None] * 15  # what is unknown could not turn this
    assert evaluation.compare(said(unsure), said(learned)).shown
    old, new = [0.0, None, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0], [1.0, None, 1.0, 1.0, 0.0, 1.0, 1.0, 1.0]
    same = evaluation.compare(said(old * 15), said(new * 15))
    assert same.shown and "Of 12.5% of the answers" in same.sentence
    # as many unread before and after, then only where it is unsure: +0.085 [+0.043, +0.127]
    draw = random.Random(0)
    knows = [draw.choice((1.0, 0.0)) for _ in range(240)]
    anywhere = [draw.choice((x, x, x, None)) for x in knows]
    where_unsure = [x or draw.choice((x, None)) for x in knows]
    moved = evaluation.compare(said(anywhere), said(where_unsure))
    assert moved.reward.value > 0.1 and not moved.shown and moved.reward.low < 0


def test_calls_of_a_batch_that_was_killed_are_in_the_bill(tmp_path):
    """Stopped after 6 of a batch's 8 calls and resumed: 62 calls were paid, 56 told. Counted by what
    was asked about, calls of another run on the same ledger were its own: 80 told for 20."""
    from kit.judge.ledger import Ledger
    from kit.judge.records import Call
    from kit.train.reward import Bill

    path = tmp_path / "ledger.sqlite"
    ours, theirs = Ledger(path), Ledger(path)
    Bill.of(tmp_path / "theirs.json", resume=False).begin(theirs)

    def paid(book, *ids):
        for i in ids:
            row = dict(criterion_id="c", status="met", judge="j", key=f"key of {i}")
            call = Call(id=i, judge="j", model="m", endpoint="e", cost=0.5)
            book.put([Verdict(task_id="t", response_id=i, **row)], call=call)
        return [SimpleNamespace(calls=len(ids), cost=0.5 * len(ids))]

    paid(theirs, "before")
    bill = Bill.of(tmp_path / "bill.json", resume=False)
    bill.begin(ours)
    bill.add([], 1.0, paid(ours, "a", "b"), ours)
    bill.begin(ours)
    paid(ours, "c", "d", "e")  # killed here
    paid(theirs, "f", "g")  # of the same batch
    for _ in range(2):  # it goes on from its last checkpoint, and is stopped once more
        again = Bill.of(tmp_path / "bill.json", resume=True)
        book = Ledger(path)
        again.begin(book)
        assert (bill.calls, bill.cost, again.calls, again.cost) == (2, 1.0, 5, 2.5)
    again.add([], 1.0, paid(book, "h"), book)
    again.begin(book)
    assert (again.calls, again.cost) == (6, 3.0)


def test_a_start_without_a_judge_is_no_run_to_go_on_with(tmp_path, monkeypatch):
    """The remedy of the first message, "give another judge", was refused as another run's."""
    polite = (Criterion(id="c", text="Is polite."),)
    task, held = (Task(id=t, prompt=f"ask {t}", criteria=polite) for t in ("one", "two"))
    more = dict(settings="test", steps=1, out=tmp_path / "run", heldout=[held], patience_s=0.01)
    monkeypatch.setattr("kit.train.reward.Reward.pause_s", 0.001)

    class Dead:
        name = "dead"

        async def verdicts(self, task, response, criteria):
            raise JudgeDownError("down")

    with pytest.raises(JudgeDownError):
        kit.train([task], judge=Dead(), **more)
    assert (tmp_path / "run" / "settings.json").exists() and not inputs.begun(tmp_path / "run")
    (tmp_path / "run" / "eval_before.json").touch()
    assert inputs.begun(tmp_path / "run")


def test_a_folder_that_cannot_be_written_is_named(tmp_path, monkeypatch):
    """A raw PermissionError about ".locks"."""

    def refuse(self, *args, **kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", refuse)
    task = Task(
        id="t",
        prompt="q",
        criteria=(Criterion(id="c", text="x", check={"name": "exact", "answers": ["x"]}),),
    )
    with pytest.raises(KitError, match="cannot be written: Permission denied") as e:
        kit.train([task], "test", out=tmp_path / "run")
    assert str(tmp_path / "run") in str(e.value)


def test_heldout_tasks_beside_a_config_are_refused_by_what_they_are(tmp_path):
    """ "put it in quotes: YAML reads bare numbers" for a list of tasks in Python."""
    with pytest.raises(KitError, match="held-out tasks from a file"):
        kit.train("g.yaml", heldout=[Task(id="t", prompt="q")])


def graded(rows, name):
    """An evaluation of rewards, (task, reward) each."""
    texts = [Response(task_id=t, id=f"{name}{i}", text="x") for i, (t, _) in enumerate(rows)]
    grades = [
        Grade(
            task_id=r.task_id,
            response_id=r.id,
            score=x,
            score_low=x,
            score_high=x,
            meta={"range": (0.0, 1.0)},
        )
        for r, (_, x) in zip(texts, rows, strict=True)
    ]
    return evaluation.Evaluation(name=name, responses=tuple(texts), grades=tuple(grades))


def test_an_after_that_leaves_out_answers_is_refused():
    """The same policy, of 480 answers only the 353 good ones kept: "rose by +0.265"."""
    before = [(f"t{i % 20}", float(i % 3 == 0)) for i in range(80)]
    kept = [(t, x) for i, (t, x) in enumerate(before) if x or i % 2]
    for after in (kept, before[:76], [(t, x) for t, x in before if t != "t0"]):
        with pytest.raises(KitError, match="not as many to each prompt"):
            evaluation.compare(graded(before, "b"), graded(after, "a"))
    assert evaluation.compare(graded(before, "b"), graded(before[:40], "a")).reward.n_clusters == 20


def test_a_gain_of_partial_rewards_keeps_within_their_range():
    """+0.838 [+0.127, +1.548] for rewards in [0, 1]."""
    before = [(f"t{i}", x) for i, x in enumerate([0, 0, 0, 0, 0, 0.3, 0.1, 0])]
    after = [(f"t{i}", x) for i, x in enumerate([1, 1, 1, 1, 1, 1, 0.2, 0.9])]
    gain = evaluation.compare(graded(before, "b"), graded(after, "a")).reward
    assert gain.value == pytest.approx(0.8375) and gain.low >= -1 and gain.high <= 1


def test_a_row_of_the_table_is_widened_where_a_part_of_it_is_unknown():
    """Rows that pool verdicts: the judge failed on half of the unmet ones, +0.171 [+0.151, +0.192]
    "of 480 other texts", for no difference."""
    many = [
        Criterion(id=f"c{i}-{j}", text=f"Says {j} of {i}.") for i in range(40) for j in range(4)
    ]
    tasks = [Task(id=f"t{i}", prompt=str(i), criteria=tuple(many[4 * i :][:4])) for i in range(40)]

    def judged(name, failing):
        draw, grades, texts = random.Random(3), [], []
        for t in tasks:
            said = [draw.random() < 0.5 for _ in t.criteria]
            lost = [failing and not x and j % 2 == 0 for j, x in enumerate(said)]
            made = []
            for c, x, gone in zip(t.criteria, said, lost, strict=True):
                ids = dict(task_id=t.id, response_id=name + t.id, criterion_id=c.id, judge="j")
                status = {"status": "met" if x else "unmet"}
                made.append(unknown(**ids, failure="parse") if gone else Verdict(**ids, **status))
            texts.append(Response(task_id=t.id, id=name + t.id, text="x"))
            grades.append(kit.Composer.from_config("rubric").score(t, texts[-1], made))
        return evaluation.Evaluation(name=name, responses=tuple(texts), grades=tuple(grades))

    gain = evaluation.compare(judged("b", False), judged("a", True), tasks=tasks)
    (row,) = gain.criteria.values()
    assert row.value > 0.1 and not row.low > 0
