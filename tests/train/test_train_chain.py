"""The chain from one file and its table: rows and pairs, correctness without the confidence, the config that ships. Offline."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from kit.data.tables import read_rows
from kit.errors import KitError
from kit.records import Grade, Response, Task
from kit.system import paths
from kit.train import chain, evaluation
from kit.train.config import GRPOSettings

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
    return chain.correct(task, Response(task_id=task.id, id="r", text=text))


def test_the_shipped_config_reads_and_holds_out_whole_groups():
    job = chain.read(CONFIG, steps=2, eval_samples=3)
    assert (
        [s.stage for s in job.settings] == ["sft", "dpo", "grpo"]
        and all(s.steps == 2 for s in job.settings)
        and job.settings[2].eval_samples == 3
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
    start, good, sure = chain.qualities(
        [_evaluation("start", 5, None), _evaluation("sft", 15, 75), _evaluation("dpo", 5, 95)],
        [TASK],
    )
    assert (
        start.accuracy.value == 0.25
        and math.isnan(start.ece.value)
        and start.stated.value == 0
        and good.stated.value == 1
    )
    assert good.ece_plain == pytest.approx(0.0, abs=1e-9) and sure.ece_plain == pytest.approx(0.7)
    assert good.gain_accuracy.value == pytest.approx(0.5) and good.gain.value == 0
    row = good.row()
    assert (
        row["accuracy"] == 0.75
        and row["answers"] == 20
        and {"ece", "ece_low", "ece_high", "ece_plain", "reward_low"} <= row.keys()
    )
    text = chain.ChainReport(
        out=Path("x"), table=(start, good), metrics={"trivial": {"empty": 0.1, "parrot": None}}
    ).text()
    assert "unknown" in text and "0.750" in text and "empty, reward 0.100" in text


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
    assert main(["train", str(path)]) == 0 and "ECE of stated conf." in capsys.readouterr().out


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
