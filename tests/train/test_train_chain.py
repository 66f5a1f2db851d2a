"""The chain from one file and its table: rows and pairs, correctness without the confidence, the config that ships. Offline."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import math
from pathlib import Path

import pytest

from kit.checks import accepted
from kit.data.tables import read_rows
from kit.errors import DataError, KitError
from kit.records import Criterion, Grade, Response, Task
from kit.system import paths
from kit.system.device import choose
from kit.train import chain, evaluation, kept, line, models, policy, quality, rehearsal, stages
from kit.train.config import GRPOSettings, SFTSettings

FOLDERS = ("2_dpo .05", "3_dpo", "4_grpo")
CONFIG = chain.CONFIGS / "facts_chain.yaml"
TRUTH = {
    "facts": [{"id": "f1", "text": "46 chromosomes", "aliases": [], "number": 46, "tolerance": 0}],
    "answerable": True,
    "warranted": "high",
}
TASK = Task(
    id="t",
    prompt="How many chromosomes?",
    truth=TRUTH,
    meta={"verifiers": ["factual", "uncertainty"]},
)


def _says(text, task=TASK):
    return quality.correct(task, Response(task_id=task.id, id="r", text=text))


def test_the_shipped_config_reads_and_holds_out_whole_groups():
    job = chain.read(CONFIG, steps=2, eval_samples=3)
    assert (
        [s.name for s in job.stages] == ["sft", "dpo", "grpo"]
        and all(s.settings.steps == 2 for s in job.stages)
        and job.stages[2].settings.eval_samples == 3
    )
    assert (
        len(job.rows) > 35
        and len(job.pairs) > 35
        and len(job.heldout) == 14
        and not {t.group for t in job.tasks} & {t.group for t in job.heldout}
    )
    asked = {t.prompt for t in job.heldout}
    assert all(r["prompt"] not in asked for r in (*job.rows, *job.pairs)) and all(
        p.endswith("Confidence: 70%") for p in asked
    )
    assert all(r["response"].count("Confidence: ") == 1 for r in job.rows) and all(
        p["chosen"] != p["rejected"] for p in job.pairs
    )
    with pytest.raises(KitError, match="eval_samples"):
        chain.read(CONFIG, eval_sample=3)
    with pytest.raises(KitError, match="stages"):
        chain.build({"stage": [], "tasks": "facts.jsonl"})
    with pytest.raises(KitError, match="list of mappings"):
        chain.build({"stages": "sft", "tasks": "facts.jsonl"})


def test_the_confidence_cannot_change_what_is_correct():
    for words in (
        "",
        " Confidence: 46%",
        " Confidence: 5%",
        " I am 46% sure.",
        " My confidence is low.",
        " Confidence: 99%",
    ):
        assert (
            _says("They are 46 in all." + words) == 1.0
            and _says("They are 48 in all." + words) == 0.0
        ), words
    assert _says("Confidence: 46%") == 0.0
    open_question = Task(
        id="u",
        prompt="Who knows?",
        truth={"answerable": False},
        meta={"verifiers": ["uncertainty"]},
    )
    assert _says("Nobody. Confidence: 10%", open_question) is None


def test_the_authors_labels_and_the_verifiers_agree_on_the_fact_set():
    job = chain.read(CONFIG)
    tasks = {t.id: t for t in (*job.tasks, *job.heldout)}
    known = [
        (_says(r["response"], tasks[r["task_id"]]), r)
        for _, r in read_rows(paths.data("fact_answers.jsonl"))
        if r["source"] in ("good", "bad")
    ]
    same = [v == float(r["correct"]) for v, r in known if v is not None]
    assert len(same) > 80 and sum(same) >= 0.95 * len(same)


def _evaluation(name, right, confidence):
    rs = [
        Response(
            task_id="t",
            id=f"{name}{i}",
            text=("It is 46." if i < right else "It is 48.")
            + (f" Confidence: {confidence}%" if confidence else ""),
        )
        for i in range(20)
    ]
    return evaluation.Evaluation(
        name=name,
        responses=tuple(rs),
        grades=tuple(
            Grade(task_id="t", response_id=r.id, score=0.5, score_low=0.5, score_high=0.5)
            for r in rs
        ),
    )


def test_the_table_has_accuracy_reward_and_calibration():
    start, good, sure = quality.qualities(
        [_evaluation("start", 5, None), _evaluation("sft", 15, 75), _evaluation("dpo", 5, 95)],
        [TASK],
    )
    assert (
        start.accuracy.value == pytest.approx(0.25)
        and math.isnan(start.ece.value)
        and start.stated.value == 0
        and good.stated.value == 1
    )
    assert good.ece_plain == pytest.approx(0.0, abs=1e-9) and sure.ece_plain == pytest.approx(0.7)
    assert good.gain_accuracy.value == pytest.approx(0.5) and good.gain.value == 0
    row = good.row()
    assert (
        row["accuracy"] == pytest.approx(0.75)
        and row["answers"] == 20
        and {"ece", "ece_low", "ece_high", "ece_plain", "reward_low"} <= row.keys()
    )
    text = chain.ChainReport(
        out=Path("x"), table=(start, good), metrics={"trivial": {"empty": 0.1, "parrot": None}}
    ).text()
    assert "unknown" in text and ".750" in text and "empty, reward 0.100" in text


def test_the_command_line_runs_a_chain_and_goes_on_without_answering_again(
    tmp_path, capsys, monkeypatch
):
    from kit.__main__ import main
    from kit.train import answers

    tasks = [
        {
            "task_id": f"{s}{i}",
            "prompt": f"say {s} {i}",
            "group": s,
            "split": s,
            "question_type": "factual",
            "truth": TRUTH,
            "verifiers": ["factual"],
        }
        for s in ("train", "heldout")
        for i in range(2)
    ]
    rows = [
        {
            "task_id": f"train{i}",
            "response_id": f"{i}{k}",
            "response": f"It is {n}.",
            "source": k,
            "stated_confidence": 0.9,
        }
        for i in range(2)
        for k, n in (("good", 46), ("bad", 48))
    ]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, tasks)))
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    path = tmp_path / "c.json"
    path.write_text(
        json.dumps(
            {
                "tasks": "t.jsonl",
                "answers": "a.jsonl",
                "reward": "verifiers",
                "out": str(tmp_path / "run"),
                "settings": {"preset": "test", "steps": 1, "save_every": 0},
                "stages": [{"stage": "sft"}, {"stage": "grpo", "eval_samples": 2}],
            }
        )
    )
    assert main(["train", str(path), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [r["stage"] for r in data["table"]] == ["start", "sft", "grpo"] and data["rows"] == data[
        "pairs"
    ] == 2
    monkeypatch.setattr(answers, "evaluate", lambda *a, **k: pytest.fail("answers again"))
    assert main(["train", str(path)]) == 0 and "reward minus start" in capsys.readouterr().out
    # the finished folder, asked with another seed, showed the old weights as the new seed's
    assert main(["train", str(path), "--forecast"]) == 2  # it trained the whole chain
    assert "a chain has no forecast" in capsys.readouterr().err
    assert main(["train", str(path), "--set", "seed=1"]) == 2
    assert "another seed of the stage 'sft'" in capsys.readouterr().err
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows[:2])))
    assert main(["train", str(path)]) == 2
    assert "another rows of the stage 'sft'" in capsys.readouterr().err


def test_token_confidence_is_recorded_and_never_paid(monkeypatch):
    """The uncertainty verifier takes response.confidence where none is stated; held-out answers are graded without it, as in training."""
    from kit.rewards.composer import Composer
    from kit.train import answers
    from kit.train.reward import Reward

    r = Response(task_id="t", id="r", text="They are 46.", confidence=0.99)
    reward = Reward(tasks=[TASK], judge=None, composer=Composer.from_config("verifiers"))
    monkeypatch.setattr(answers, "sample_answers", lambda *a, **k: [r])
    e = answers.evaluate(None, [TASK], reward, settings=GRPOSettings(), name="x")
    assert (
        e.responses[0].confidence == 0.99 and e.scores[0] < answers.wait(reward.grade([r]))[0].score
    )


def test_guessing_and_abstaining_earn_nothing():
    """Accuracy paid a policy that says "unknown" to everything its share of such questions."""
    open_ = [True, True, True, False]
    pay = lambda right: sum(quality.net_of_guessing(right, open_)) / 4  # noqa: E731
    assert pay([1.0, 1.0, 1.0, 1.0]) == 1.0
    assert pay([1.0, 1.0, 1.0, 0.0]) == 0.0 and pay([0.0, 0.0, 0.0, 1.0]) == 0.0
    assert pay([0.0] * 4) == -1.0
    assert quality.net_of_guessing([1.0, 0.0], [True, True]) == [None, None]
    assert quality.net_of_guessing([1.0, 0.0], [True, None]) == [None, None]


def test_the_ladder_has_no_answer_in_its_questions():
    from importlib.util import module_from_spec, spec_from_file_location

    from kit.rewards import trivial
    from kit.train import inputs

    path = Path(__file__).parents[2] / "data" / "make_ladder.py"
    spec = spec_from_file_location("make_ladder", path)
    ladder = module_from_spec(spec)
    spec.loader.exec_module(ladder)

    made = ladder.tasks()
    train, held = inputs.split(made, {}, "ladder")
    assert len(train) == 420 and len(held) == 140
    assert {t.prompt for t in train}.isdisjoint(t.prompt for t in held)
    # "No question is in both splits" was said, and 9 + 7 asks what 7 + 9 asks
    again = kept.swapped(train, held)
    assert {t.kind for t in held if t.id in again} == {"sum 1"}
    assert f"{len(again)} of the 20 that are held out" in ladder.__doc__
    for t in made:
        assert _says(accepted(t), t) == 1.0 and _says(f"{accepted(t)}. Confidence: 75%", t) == 1.0
        assert _says(t.prompt, t) == 0.0 and _says(t.prompt.split(": ")[-1], t) == 0.0
        assert all(_says(r.text, t) == 0.0 for r in trivial.policies(t) if t.kind != "unknown")
    assert [_says("unknown", t) for t in made] == [float(t.kind == "unknown") for t in made]
    assert ladder.tasks(1)[0].prompt != made[0].prompt


def test_a_stage_tried_aside_and_pairs_of_the_models_own_answers(tmp_path):
    """Two DPO stages had one folder and one row in the table; pairs had to be written by hand."""
    values = {
        "tasks": "ladder.jsonl",
        "answers": {"exact": 6},
        "pairs": {"samples": 1, "tasks": 6},
        "out": str(tmp_path / "run"),
        "settings": {"preset": "test", "steps": 1, "save_every": 0},
        "stages": [
            {"stage": "sft", "max_tokens": 256},
            {"stage": "dpo", "max_tokens": 256, "name": "dpo .05", "beta": 0.05, "aside": True},
            {"stage": "dpo", "max_tokens": 256},
            {"stage": "grpo", "eval_samples": 1, "eval_temperature": 0, "max_answer_tokens": 4},
        ],
    }
    job = chain.build(values)
    assert [r["response"] for r in job.rows] == [accepted(t) for t in job.tasks[:6]]
    job = dataclasses.replace(job, heldout=job.heldout[:7])
    report = chain.run(job)
    assert [q.stage for q in report.table] == ["start", "sft", "dpo .05", "dpo", "grpo"]
    began = {n: json.loads((job.out / n / "settings.json").read_text()) for n in FOLDERS}
    assert began["2_dpo .05"]["settings"]["model"] == began["3_dpo"]["settings"]["model"]
    assert "3_dpo" in began["4_grpo"]["settings"]["model"]
    found = json.loads(next(job.out.glob("answers_*.json")).read_text())
    assert len(found) == 6 and report.metrics["pairs"] == sum(bool(r["text"]) for r in found)
    twice = {**values, "stages": [{"stage": "dpo"}, {"stage": "dpo"}]}
    with pytest.raises(KitError, match="two stages are called"):
        chain.build(twice)
    with pytest.raises(KitError, match="no exact check"):
        chain.build({**values, "tasks": "facts.jsonl"})


def test_outcomes_are_taught_from_the_models_own_answers(tmp_path):
    """What a stage learns to say about itself must be about its own answers, to questions it was not shown."""
    values = {
        "tasks": "ladder.jsonl",
        "system": "Answer, and say how sure you are.",
        "answers": {"exact": 400, "confidence": [75, 99]},
        "out": str(tmp_path / "run"),
        "settings": {"preset": "test", "steps": 1, "save_every": 0},
        "evaluate": {"max_answer_tokens": 3, "eval_samples": 1},
        "stages": [{"stage": "sft"}, {"stage": "sft", "name": "outcomes", "teach": "outcomes"}],
    }
    job = chain.build(values)
    assert {t.system for t in job.tasks} == {"Answer, and say how sure you are."}
    assert {r["response"].split(". ")[1] for r in job.rows} == {
        "Confidence: 75%",
        "Confidence: 99%",
    }
    task, other = job.tasks[400], job.tasks[401]
    right = Response(task_id=task.id, id="r", text=f"{accepted(task)}. Confidence: 75%")
    wrong = Response(task_id=other.id, id="w", text="zzz")
    cut = dataclasses.replace(wrong, truncated=True)
    rows = stages.outcome_rows(job.tasks, [right, wrong, cut])
    assert [r["response"] for r in rows] == [
        f"{accepted(task)}. Confidence: 99%",
        "zzz. Confidence: 1%",
    ]
    with pytest.raises(KitError, match="teach"):
        chain.build({**values, "stages": [{"stage": "dpo", "teach": "outcomes"}]})
    with pytest.raises(KitError, match="pairs has no effect here"):
        chain.build({**values, "stages": [{"stage": "grpo", "pairs": {"samples": 2}}]})


def test_a_question_whose_prompt_was_shown_to_another_system_or_source_is_new():
    """A shown prompt struck out every task of that prompt: other turns, system or sources ask another thing."""
    first = Task(id="a", prompt="And in 2020?", system="Count frogs.", sources={"s1": "Frogs: 3"})
    turn = {"role": "user", "content": "How many in 2010?"}
    tasks = [
        first,
        dataclasses.replace(first, id="b", system="Count toads."),
        dataclasses.replace(first, id="c", sources={"s1": "Frogs: 7"}),
        dataclasses.replace(first, id="d", history=(turn,)),
    ]
    rows, _ = stages.teaching(
        tasks, [{"task_id": "a", "response": "3", "source": "good", "stated_confidence": 0.9}]
    )
    run = line.Chain(stages=(), out=Path("run"), tasks=tuple(tasks), rows=rows)
    assert [t.id for t in line._Line(run, None, None)._fresh()] == ["b", "c", "d"]


def test_the_token_confidence_is_of_the_answer_alone():
    """The tokens of "Confidence: 75%" diluted it: every answer looked about as sure."""
    import math

    from kit.train import answers, models

    tokenizer = models.tiny_tokenizer()
    ids = tokenizer.encode("85. Confidence: 75%")
    logprobs = [math.log(0.5)] * 3 + [math.log(0.01)] * (len(ids) - 3)
    assert answers._sure(tokenizer, ids, logprobs) == pytest.approx(0.5)
    assert answers._sure(tokenizer, ids[:3], logprobs[:3]) == pytest.approx(0.5)
    rows = policy.rows(_evaluation("x", 1, 75), [TASK], quality.correct)
    assert rows[0]["stated"] == 0.75 and rows[0]["correct"] == 1.0 and math.isnan(rows[0]["token"])


def test_a_kept_time_is_one_that_was_measured():
    """Two trainings of two seeds had taken the same 101.2333 seconds: one was a copy, so none is known."""
    for name in ("ladder_chain", "ladder_confidence"):
        runs = kept.stored(name).values()
        known = [s["seconds"] for r in runs for s in r.values() if s["seconds"] is not None]
        assert len(known) == len(set(known)) and min(known) > 0


def test_kept_runs_are_graded_again(tmp_path):
    """A stored mark would outlive a change of the check that gave it."""
    held = [t for t in kept._ladder() if t.split == "heldout"]
    percent = [90 if i % 2 else 60 for i in range(len(held))]
    sure = [
        [t.id, f"{accepted(t)}. Confidence: {p}%", 0.9] for t, p in zip(held, percent, strict=True)
    ]
    half = [
        [k, text if i % 2 else "zzz. Confidence: 60%", 0.5] for i, (k, text, _) in enumerate(sure)
    ]
    half, sure = (
        half + half,
        sure + sure,
    )  # two samples of each task: the second took the first's place
    stages = {"sft": {"seconds": 3.0, "answers": half}, "grpo": {"seconds": 4.0, "answers": sure}}
    (tmp_path / "runs.json").write_text(json.dumps({"x": {"7": stages}}))
    assert kept.stored("x", tmp_path / "runs.json") == {"7": stages}
    with pytest.raises(DataError, match="no run of"):
        kept.stored("z", tmp_path / "runs.json")
    before, after = quality.qualities(kept.evaluations(stages), held)
    assert before.accuracy.value == pytest.approx(0.5) and after.accuracy.value == pytest.approx(1)
    assert after.step.value == pytest.approx(0.5) and set(after.kinds) == {t.kind for t in held}
    rows = policy.rows(kept.evaluations(stages)[0], held, quality.correct)
    assert {r["correct"] for r in rows} == {0.0, 1.0} and {r["stated"] for r in rows} == {0.6, 0.9}
    assert len(rows) == 2 * len(held) and before.accuracy.n == len(rows)


def test_estimates_are_taught_where_outcomes_are_noise():
    """99% or 1% by chance taught the likelier of the two for a whole rung, and no answer apart from another."""
    made = [t for t in kept._ladder() if t.split == "train" and t.kind in ("sum 1", "sum 3")]
    found = []
    for i, t in enumerate(made):
        sure = 0.9 if i % 3 else 0.5
        right = t.kind == "sum 1" and i % 3 > 0
        text = f"{accepted(t)}. Confidence: 75%" if right else "zzz"
        found.append(Response(task_id=t.id, id=str(i), text=text, confidence=sure))
    levels = {"sum 1": set(), "sum 3": set()}
    for row, t in zip(stages.estimate_rows(made, found), made, strict=True):
        said, percent = row["response"].split(". Confidence: ")
        assert row["prompt"] == t.prompt and said in (accepted(t), "zzz")
        levels[t.kind].add(int(percent[:-1]))
    assert max(levels["sum 3"]) <= 25 < max(levels["sum 1"]) and len(levels["sum 1"]) == 2
    assert levels["sum 1"] | levels["sum 3"] <= set(stages.LEVELS)
    bare = [dataclasses.replace(r, confidence=None) for r in found]
    with pytest.raises(DataError, match="token probability"):
        stages.estimate_rows(made, bare)


def test_what_lies_between_minus_one_and_one_has_an_interval_that_does():
    """The untrained model's "net of guessing" over all seeds read -1.000 [-1.42, -.58]."""
    from kit.train import kept

    rows = kept.qualities("ladder_chain").values()
    assert all(-1 <= q.net.low <= q.net.value <= q.net.high <= 1 for q in rows)


@pytest.mark.parametrize(
    "last, words",
    [
        ({"stage": "dpo", "options": {"loss_type": "nonsense"}}, "Unknown loss type"),
        ({"stage": "dpo", "options": {"bata": 1}}, "bata"),
        ({"stage": "dpo", "report_to": "comet_ml"}, "not installed"),
        ({"stage": "sft", "name": "last", "adapter": "/nowhere"}, "is no folder"),
        ({"stage": "grpo", "options": {"multi_objective_aggregation": "x"}}, "multi_objective"),
        ({"stage": "grpo", "audit_every": 2}, "second judge"),
        ({"stage": "grpo", "max_prompt_tokens": 2}, "max_prompt_tokens"),
        ({"stage": "grpo", "use_vllm": True}, "'vllm' is not installed"),
    ],
)
def test_a_wrong_setting_of_a_later_stage_is_found_before_the_first_trains(tmp_path, last, words):
    """trl said "Unknown loss type" in the first step of the second stage: the first was trained, hours for nothing."""
    first = {"stage": "sft", "max_tokens": 256}
    values = {
        "tasks": "ladder.jsonl",
        "answers": {"exact": 6},
        "pairs": {"samples": 1, "tasks": 6},
        "out": str(tmp_path / "run"),
        "settings": {"preset": "test", "steps": 1, "save_every": 0},
        "evaluate": {"max_answer_tokens": 3},
        "stages": [first, last],
    }
    if importlib.util.find_spec("vllm") and "vllm" in words:
        pytest.skip("vllm is installed here")
    with pytest.raises(KitError, match=f"(?s){words}.*stage '{last.get('name', last['stage'])}'"):
        chain.run(chain.build(values))
    assert not (tmp_path / "run").exists(), "something was trained or answered"


def test_a_stage_with_options_is_rehearsed_once_in_a_chain(tmp_path, monkeypatch):
    """It was before the first stage, and again at its own turn, on the merged model."""
    tried = []
    monkeypatch.setattr(rehearsal, "choose", lambda name: tried.append(name) or choose(name))
    monkeypatch.setattr(rehearsal, "_TAKEN", set(), raising=False)
    tokenizer = models.tiny_tokenizer()
    tokenizer.save_pretrained(tmp_path)
    models.tiny_model(len(tokenizer)).save_pretrained(tmp_path)
    own = SFTSettings(model="tiny-random", options={"neftune_noise_alpha": 5.0})
    later = dataclasses.replace(own, model=str(tmp_path))
    other = dataclasses.replace(own, options={"neftune_noise_alpha": 1.0})
    for settings in (own, later, other):
        stages.ready(settings)
    assert len(tried) == 2


def test_a_preset_that_looks_every_n_steps_runs_in_a_chain(tmp_path):
    """Every preset but the small ones has eval_every; its GRPO stage ended with "no task is held out", after SFT and DPO."""
    values = {
        "tasks": "ladder.jsonl",
        "answers": {"exact": 6},
        "out": str(tmp_path / "run"),
        "settings": {"preset": "test", "steps": 2, "save_every": 0},
        "stages": [{"stage": "grpo", "eval_every": 1, "eval_samples": 1, "max_answer_tokens": 2}],
    }
    job = chain.build(values)
    job = dataclasses.replace(job, tasks=job.tasks[:4], heldout=job.heldout[:2])
    chain.run(job)
    assert (tmp_path / "run" / "1_grpo" / "evals.jsonl").read_text().count("\n") >= 1


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"pairs": {"samples": -2}}, "key pairs, setting samples"),
        ({"pairs": {"tasks": 0}}, "key pairs, setting tasks"),
        ({"answers": {"exact": -1}}, "key answers, setting exact"),
        ({"answers": {"exact": 1, "confidence": [75, 150]}}, "key answers, setting confidence"),
        ({"answers": {"exakt": 1}}, "key answers"),
        ({"stages": [{"stage": "sft", "name": "../x"}]}, "stage 1, setting name"),
        ({"stages": [{"stage": "sft"}, {"stage": "sft", "steps": -1}]}, "stage 2, setting steps"),
        ({"stages": [{"stage": "dpo", "beta": 0}]}, "stage 1, setting beta"),
        ({"stages": [{"stage": "dpo", "pairs": {"samples": 0}}]}, "stage 1, key pairs, setting s"),
        ({"evaluate": {"max_answer_tokens": 0}}, "key evaluate, setting max_answer_tokens"),
        ({"reward": "verifires"}, "key reward"),
        ({"reward": {"preset": "rubric", "scale": -1}}, "key reward"),
    ],
)
def test_a_value_that_cannot_be_meant_is_refused_when_the_chain_is_read(tmp_path, changes, place):
    """`samples: -2` and an unknown reward stopped a chain after its first stages, `exact: -1` took
    all tasks but one, and `name: ../x` left its folder outside of the chain's."""
    values = {"tasks": "facts.jsonl", "stages": [{"stage": "sft"}], "out": str(tmp_path / "o")}
    path = tmp_path / "c.json"
    path.write_text(json.dumps(values | changes))
    with pytest.raises(KitError) as e:
        chain.read(path)
    assert e.value.where.startswith(f"{path}, {place}") and e.value.fix


def test_a_chains_own_pairs_are_graded_by_their_text():
    """The token probability counted as a stated confidence: 24 pairs where all answers earn 0."""
    from types import SimpleNamespace

    from kit.records import Response, Task
    from kit.rewards.composer import Composer
    from kit.train.line import _Line
    from kit.train.reward import Reward
    from kit.train.stages import OwnPairs

    truth = {"facts": [{"text": "thymus"}], "warranted": "high"}
    task = Task(id="t", prompt="Which organ?", truth=truth)
    reward = Reward(tasks=[task], judge=None, composer=Composer.from_config("verifiers"))
    said = [
        Response(task_id="t", id=f"{i}", text=x, confidence=p)
        for i, (x, p) in enumerate([("It is raining.", 0.9), ("It is late.", 0.2)])
    ]
    chain = SimpleNamespace(tasks=[task])
    line = SimpleNamespace(chain=chain, reward=reward, _own=lambda *a: a[-1](said))
    assert _Line._pairs(line, OwnPairs(), "model") == []


def test_another_systems_names_are_read_in_a_chain():
    """`--set learning_rate=1e-3` was read beside a chain, and its own `settings:` refused it."""
    values = {
        "tasks": "facts.jsonl",
        "settings": {"model_name": "m", "lora_r": 4},
        "stages": [{"stage": "sft", "learning_rate": 1e-3, "max_length": 120}, {"stage": "grpo"}],
        "evaluate": {"max_completion_length": 7},
    }
    job = chain.build(values)
    sft, last = (s.settings for s in job.stages)
    assert (sft.model, sft.lora_rank, sft.lr, sft.max_tokens) == ("m", 4, 1e-3, 120)
    assert (last.model, last.lora_rank, job.sampler.max_answer_tokens) == ("m", 4, 7)
    with pytest.raises(KitError, match="lernrate"):
        chain.build({**values, "settings": {"lernrate": 1}})


def test_an_adapter_to_go_on_from_is_in_the_start_and_is_added_once(tmp_path):
    """ "start" was measured without it, and each later stage laid it on the merged model again:
    "grpo broke unk: -.850" after a step that changed nothing."""

    def chained(name, **more):
        values = {
            "tasks": "ladder.jsonl",
            "answers": {"exact": 6},
            "out": str(tmp_path / name),
            "evaluate": {"preset": "test", "max_answer_tokens": 8},
            "settings": {"preset": "test", "save_every": 0},
            **more,
        }
        values["settings"] = {"preset": "test", "save_every": 0, **more.get("settings", {})}
        job = chain.build(values)
        job = dataclasses.replace(job, tasks=job.tasks[:4], heldout=job.heldout[:4])
        return [[r.text for r in e.responses] for e in line.run(job).evaluations]

    before, taught = chained(
        "a", stages=[{"stage": "sft", "max_tokens": 400, "steps": 30, "lr": 0.05}]
    )
    assert before != taught
    still = {"adapter": str(tmp_path / "a" / "1_sft" / "adapter"), "steps": 1, "lr": 1e-12}
    twice = [{"stage": "sft", "name": n, "max_tokens": 400} for n in ("one", "two")]
    assert chained("b", settings=still, stages=twice) == [taught] * 3
    with (tmp_path / "a" / "1_sft" / "adapter" / "adapter_model.safetensors").open("r+b") as f:
        f.seek(-1, 2)
        f.write(b"x")  # a new export to the same place: the old table was printed
    with pytest.raises(KitError, match="another set of weights"):
        chained("b", settings=still, stages=twice)
    with pytest.raises(KitError, match="the one before it left"):
        chained("c", stages=[twice[0], {**twice[1], "adapter": still["adapter"]}])


def exact_check(**check):
    rubric = (Criterion(id="c", text="It is 11.", check={"name": "exact", **check}),)
    return Task(id="q", prompt="10 + 1 = ?", criteria=rubric)


def test_the_accepted_answer_is_the_one_that_the_check_accepts():
    """answers: "11" taught "1", its first character; with `not` what is forbidden was taught."""
    assert accepted(exact_check(answers="11")) == "11"
    assert accepted(exact_check(answers=["11", "eleven"])) == "11"
    assert accepted(exact_check(answers=["11"], **{"not": True})) is None
    for wrong in ({}, {"value": "11"}, {"answers": []}, {"answers": 12}):
        with pytest.raises(DataError, match="task 'q', criterion 'c'"):
            accepted(exact_check(**wrong))
