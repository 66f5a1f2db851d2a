"""Rows as the systems write them train; rows and judges that give no reward stop a run with the reason. Offline."""

from __future__ import annotations

import dataclasses
import json
import math

import pytest

from kit.__main__ import main
from kit.data import load_tasks
from kit.data.formats.biorlhf import truth_of
from kit.errors import DataError
from kit.records import Criterion, Response, Task, unknown
from kit.rewards import Composer
from kit.rewards.exploit import standing
from kit.train import grpo, inputs, job, rollouts
from kit.train.config import GRPOSettings, build
from kit.train.presets import preset
from kit.train.stages import teaching


def bio(truth, asked, *, kind="direction", tissue="liver", prompt="Is it up or down?"):
    return {
        "prompt": prompt,
        "ground_truth": json.dumps(truth),
        "question_type": kind,
        "applicable_verifiers": json.dumps(asked),
        "source": "genelab",
        "tissue": tissue,
        "difficulty": "easy",
    }


DIRECTED = {"pathway": "HALLMARK_ADIPOGENESIS", "direction": "DOWN", "expected_confidence": "high"}
COMPARED = {
    "pathway": "HALLMARK_HYPOXIA",
    "tissue_directions": {"kidney": "UP", "liver": "DOWN"},
    "is_consistent": False,
}
FACTS = {
    "conservation_level": "moderately conserved",
    "key_facts": ["Mean pairwise NES correlation across missions is 0.312"],
    "expected_confidence": "medium",
}
OPEN = {"pathway": "HALLMARK_MYOGENESIS", "correct_behavior": "context_dependent"}


@pytest.mark.parametrize(
    ("truth", "asked", "read", "good", "bad"),
    [
        (
            DIRECTED,
            ["V1", "V4"],
            ["direction", "uncertainty"],
            "Adipogenesis is downregulated. Confidence: 90%",
            "Adipogenesis is upregulated. Confidence: 90%",
        ),
        (
            COMPARED,
            ["V1", "V3", "V4"],
            ["direction", "consistency", "uncertainty"],
            "Hypoxia goes up in kidney and down in liver, so it is tissue-specific. Confidence: 90%",
            "Hypoxia goes down in kidney and up in liver. Confidence: 90%",
        ),
        (
            FACTS,
            ["V2", "V4"],
            ["factual", "uncertainty"],
            "The mean correlation is 0.312: the responses are moderately conserved. Confidence: 80%",
            "The mean correlation is 0.9: they are highly conserved. Confidence: 80%",
        ),
        (FACTS, ["V1", "V4"], ["factual", "uncertainty"], None, None),  # numbered as in the README
        (DIRECTED, ["V1", "V2", "V4"], ["direction", "uncertainty"], None, None),
        (OPEN, ["V1", "V4"], ["uncertainty"], None, None),
    ],
)
def test_biorlhf_rows_are_read_by_what_they_hold(tmp_path, truth, asked, read, good, bad):
    """`applicable_verifiers: ["V1", "V4"]` was not mapped: no reward, lint 0 errors, exit code 0."""
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(bio(truth, asked)))
    found = load_tasks(path)
    (task,) = found.sound().tasks
    assert task.meta["verifiers"] == read and task.group == "liver"
    assert {f.code for f in found.findings} == {"verifier-mapped"}
    if good:
        composer = Composer.from_config("verifiers")
        pay = [
            composer.score(task, Response(task_id=task.id, id="r", text=x), ()).score
            for x in (good, bad)
        ]
        assert pay[0] > 0.85 and pay[1] < 0.3


TISSUE = "Which tissue showed the strongest response, liver or thymus?"
BESIDE = [
    {"answerable": True},
    {"warranted": "high"},
    {"contradictions": ["the liver responded most"]},
    {"comparison": {"quantity": "response", "more": "thymus", "less": "liver"}},
    {"claims": [{"subject": "hypoxia", "direction": "up", "aliases": []}]},
]


@pytest.mark.parametrize("ours", BESIDE, ids=lambda x: next(iter(x)))
@pytest.mark.parametrize("theirs", [{"key_facts": ["thymus"]}, {"expected_answer": "thymus"}])
def test_a_key_of_the_kit_beside_the_facts_of_biorlhf_leaves_them_read(ours, theirs):
    """One such key turned the mapping off: the facts were gone, the wrong answer earned more."""
    made = load_tasks([bio({**theirs, **ours}, ["V2", "V4"], prompt=TISSUE)])
    (task,) = made.tasks
    assert {f.code for f in made.findings} == {"verifier-mapped"}
    texts = ("The thymus. Confidence: 95%", "The liver. Confidence: 95%")
    right, wrong = (pay_of(task, t) for t in texts)
    assert right > 0.9 > 0 > wrong


def test_a_direction_beside_answerable_is_read():
    (task,) = load_tasks([bio({**DIRECTED, "answerable": True}, ["V1", "V4"])]).tasks
    assert pay_of(task, "Adipogenesis is downregulated. Confidence: 95%") > 0.9


@pytest.mark.parametrize("sure", [{}, {"expected_confidence": "low"}, {"expected_confidence": 0.1}])
def test_a_question_without_an_answer_pays_most_for_a_low_confidence(sure):
    """A high one was warranted: "cannot be known. Confidence: 95%" earned .96, with 5% .60."""
    truth, asked = {"answerable": False, **sure}, "What will the bone density be in 2060?"
    (task,) = load_tasks([bio(truth, ["V4"], prompt=asked)]).tasks
    said = "The bone density in 2060 cannot be known. Confidence: {}%"
    low, half, high = (pay_of(task, said.format(c)) for c in (5, 50, 95))
    assert low > 0.9 > half > high


def test_two_words_for_one_thing_that_disagree_are_named():
    truth = {
        **{"facts": [{"text": "liver"}], "key_facts": ["eye"]},
        **{"warranted": "low", "expected_confidence": "high"},
    }
    made = load_tasks([bio(truth, ["V2", "V4"])])
    said = " ".join(f.message for f in made.findings if f.code == "field-type")
    assert "facts and key_facts" in said and "warranted and expected_confidence" in said
    assert made.tasks[0].truth["facts"] == [{"text": "liver"}]


def pay_of(task, text):
    given = Response(task_id=task.id, id="r", text=text)
    return Composer.from_config("verifiers").score(task, given, ()).score


def test_a_row_that_no_verifier_can_judge_is_named(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text(
        "\n".join(json.dumps(r) for r in (bio(DIRECTED, ["V1"]), bio({"x": 1}, ["V2"])))
    )
    (bad,) = [f for f in load_tasks(path).findings if f.code == "no-verifier"]
    assert "asks for V2" in bad.message and bad.row == 2
    path.write_text(json.dumps(bio(DIRECTED, ["V7"])))
    with pytest.raises(DataError, match="no verifier 'V7'"):
        load_tasks(path).sound()


def settings(**changes):
    return build(GRPOSettings, {**preset("test"), "save_every": 0, **changes})


def judged(n):
    c = (Criterion(id="c", text="Is pleasant."),)
    return [Task(id=f"t{i}", prompt=f"say {i}", criteria=c) for i in range(n)]


class FakeSilent:
    """Abstains on everything; after `wakes` calls it says met or unmet by turns."""

    name = "fake"

    def __init__(self, wakes=10_000):
        self.calls, self.wakes = 0, wakes

    async def verdicts(self, task, response, criteria):
        from kit.records import Verdict

        self.calls += 1
        ids = [(task.id, response.id, c.id) for c in criteria]
        if self.calls <= self.wakes:
            return [unknown(*i, "abstain", judge=self.name) for i in ids]
        status = "met" if self.calls % 2 else "unmet"
        keys = ("task_id", "response_id", "criterion_id")
        return [
            Verdict(**dict(zip(keys, i, strict=True)), status=status, judge="fake") for i in ids
        ]


def test_a_run_without_one_known_reward_stops_with_the_reason(tmp_path, caplog):
    with pytest.raises(DataError, match="no answer got a known reward in 3 batches") as e:
        grpo.train(settings(steps=9), judged(4), judge=FakeSilent(), out=tmp_path)
    assert "abstain: 24 verdicts" not in str(e.value) and "abstain: 8 verdicts" in str(e.value)
    said = [m for m in caplog.messages if "every reward is unknown" in m]
    assert len(said) == 3 and said[0].startswith("step 1:")
    assert not (tmp_path / "adapter").exists()


def test_a_judge_that_wakes_up_late_ends_no_run(tmp_path, caplog):
    r = grpo.train(settings(steps=4), judged(4), judge=FakeSilent(wakes=16), out=tmp_path)
    assert [s["reward"] is None for s in r.steps()] == [True, True, False, False]
    assert sum("every reward is unknown" in m for m in caplog.messages) == 2


def test_a_reward_that_fits_no_row_is_refused_before_the_model_loads(tmp_path, monkeypatch):
    monkeypatch.setattr(grpo, "load", lambda s: pytest.fail("the model was loaded"))
    with pytest.raises(DataError, match="in 4 of 4 tasks"):
        grpo.train(settings(), judged(4), composer="verifiers", judge=FakeSilent(), out=tmp_path)


@pytest.mark.parametrize(
    "reward",
    [
        {"components": [{"kind": "rubric", "how": "signed"}]},
        {"components": [{"kind": "rubric"}], "gates": [{"component": "rubric", "below": 5}]},
    ],
)
def test_a_reward_that_pays_all_alike_is_refused(tmp_path, monkeypatch, reward):
    """The first step ended with "bounds are (0.0, 0.0)", after the evaluation was paid."""
    monkeypatch.setattr(grpo, "load", lambda s: pytest.fail("the model was loaded"))
    fault = (Criterion(id="c", text="x", weight=-1.0),)
    rows = [dataclasses.replace(t, criteria=fault) for t in judged(4)]
    with pytest.raises(DataError, match="nothing can be earned or lost"):
        grpo.train(settings(), rows, composer=reward, judge=FakeSilent(), out=tmp_path)


def test_a_prompt_whose_answers_earn_all_the_same_is_flat():
    assert rollouts.health([[0.0, 0.0]], ranges=[(0.0, 0.0)])["flat"] == 1
    assert rollouts.span([(0.0, 0.0)], [0.0]) == (-math.inf, math.inf)


def test_the_command_ends_with_an_error_code(tmp_path, capsys):
    (tmp_path / "rows.jsonl").write_text(json.dumps(bio({"x": 1}, ["V2"])))
    config = tmp_path / "c.yaml"
    config.write_text(
        f"preset: test\ntasks: rows.jsonl\nreward: verifiers\nout: {tmp_path / 'run'}\n"
    )
    assert main(["train", str(config)]) != 0
    assert "in 1 of 1 tasks" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("truth", "read"),
    [
        ({"pathway": "HYPOXIA", "direction": "Increase"}, ["direction", "uncertainty"]),
        ({"pathway": "HYPOXIA", "direction": "INDUCED"}, ["direction", "uncertainty"]),
        ({"pathway": "HYPOXIA", "expected_direction": "UP"}, ["direction", "uncertainty"]),
        ({"expected_answer": ["liver", "lung"]}, ["factual", "uncertainty"]),
        ({"pathway": "HYPOXIA", "direction": "SIDEWAYS"}, []),
        ({"pathway": "HYPOXIA", "direction": 1}, []),
    ],
)
def test_a_verifier_whose_truth_cannot_be_read_is_found(tmp_path, truth, read):
    """V1 vanished without a word; V4 alone paid -.90 for the right answer and 0 for silence."""
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(bio(truth, ["V1", "V4"])))
    found = load_tasks(path)
    assert found.tasks[0].meta["verifiers"] == read
    assert ("no-verifier" in {f.code for f in found.findings}) == (not read)


def test_a_fact_in_an_object_is_its_text():
    """{"fact": "liver"} became the fact "{'fact': 'liver'}"."""
    assert truth_of({"key_facts": [{"fact": "liver"}]})["facts"][0]["text"] == "liver"


@pytest.mark.parametrize("said", ["Down ", "down-regulated", "↓", "DOWN", "n.s."])
def test_a_direction_is_read_however_it_is_spelled(said):
    truth = truth_of({"pathway": ["HALLMARK_HYPOXIA", "GLYCOLYSIS"], "direction": said})
    wanted = "none" if said == "n.s." else "down"
    found = [(c["subject"], c["direction"]) for c in truth["claims"]]
    assert found == [("hypoxia", wanted), ("glycolysis", wanted)], 'it was one subject, "[\'hyp..."'


def test_a_hedged_constant_stands_in_the_trivial_table():
    """On rows that ask directions alone it earned .39, and the table's best was .29."""
    row = {"pathway": "HYPOXIA", "expected_confidence": "high"}
    truths = [truth_of({**row, "direction": d}) for d in ("UP", "DOWN") * 4]
    rows = [Task(id=f"t{i}", prompt="Which way?", truth=t) for i, t in enumerate(truths)]
    found = {r["policy"]: r["earns"] for r in standing(Composer.from_config("verifiers"), rows)}
    assert found["hedged_up"] > 0.35 > found["constant_up"]


def test_more_held_out_than_asked_for_is_said(caplog):
    rows = [Task(id=f"t{i}", prompt=f"p{i}", group="ab"[i > 8], kind="k") for i in range(12)]
    for seed in range(9):
        inputs.split(rows, {"holdout_by": "group", "train_ratio": 0.8, "data_seed": seed}, "c")
    assert any("9 of 12 tasks, more than the 20% asked for" in m for m in caplog.messages)
    with pytest.raises(DataError, match="one side of the split is empty"):
        inputs.split(rows, {"holdout_by": "question_type"}, "c")  # a field of every BioRLHF row


def test_every_good_answer_is_taught_and_what_is_left_out_is_said(caplog):
    """Of several good answers of a task the last alone was kept, and nothing said what was not."""
    task = Task(id="t", prompt="?")
    rows = [
        {"task_id": "t", "source": s, "response": r, "stated_confidence": c}
        for s, r, c in [
            ("good", "a", 0.9),
            ("good", "b", 0.8),
            ("good", "c", None),
            ("bad", "d", 1),
        ]
    ]
    found, pairs = teaching([task], rows)
    assert [r["response"] for r in found] == ["a Confidence: 90%", "b Confidence: 80%"]
    assert [p["chosen"] for p in pairs] == ["a Confidence: 90%"]
    assert "1 answers have no source, good or bad, or no stated_confidence" in caplog.text
    for left_out in (rows[2], rows[0] | {"source": "me"}):
        with pytest.raises(DataError, match="1 answers have no source"):
            teaching([task], [left_out])


@pytest.mark.parametrize("stated", [80, -0.2, float("nan")])
def test_a_stated_confidence_in_percent_is_not_taught(stated):
    """80 was taught as "Confidence: 8000%", and nan as "nan%"."""
    row = {"task_id": "t", "source": "good", "response": "a", "stated_confidence": stated}
    with pytest.raises(DataError, match="80 percent are 0.8"):
        teaching([Task(id="t", prompt="?")], [row])


def test_a_reward_file_lies_beside_its_config(tmp_path):
    """`reward: rw.yaml` was looked for in the working folder, `tasks: t.jsonl` beside the config."""
    (tmp_path / "t.jsonl").write_text(json.dumps(bio(DIRECTED, ["V1"])) + "\n", "utf-8")
    (tmp_path / "rw.yaml").write_text("preset: verifiers", "utf-8")
    (tmp_path / "c.yaml").write_text("{tasks: t.jsonl, reward: rw.yaml, model: x}", "utf-8")
    assert job.read(tmp_path / "c.yaml").reward == str(tmp_path / "rw.yaml")
