"""The files that are shipped, and real files of others, load with the counts that are documented."""

import json
import time
from pathlib import Path

import pytest

from kit import load, save
from kit.system import paths

REAL = Path(__file__).parents[3] / "shared/data"
needs_real = pytest.mark.skipif(not REAL.is_dir(), reason="the folder ../shared/data is absent")

SHIPPED = {  # file -> form, tasks, criteria, criteria by code, held out, answers, labels
    "rubrics.json": ("rlvr", 140, 785, 481, 44, 46, 274),
    "answers.jsonl": ("answers", 0, 0, 0, 0, 376, 2196),
    "citations.jsonl": ("refiner", 44, 211, 0, 0, 0, 0),
    "citation_answers.jsonl": ("answers", 0, 0, 0, 0, 112, 528),
    "facts.jsonl": ("verifier", 70, 0, 0, 14, 0, 0),
    "fact_answers.jsonl": ("answers", 0, 0, 0, 0, 177, 0),
    "judge_labels.jsonl": ("table", 72, 144, 0, 0, 144, 288),
    "instructions.jsonl": ("rubric", 324, 3011, 3011, 84, 0, 0),
    "ladder.jsonl": ("rubric", 560, 560, 560, 140, 0, 0),
    "sealed_labels.jsonl": ("table", 60, 144, 0, 60, 120, 288),
    "support_labels.jsonl": ("table", 12, 48, 0, 0, 24, 96),
    "support.jsonl": ("rubric", 110, 440, 0, 30, 0, 0),
    "support_answers.jsonl": ("answers", 0, 0, 0, 0, 80, 0),
    "support_run_answers.jsonl": ("answers", 0, 0, 0, 0, 390, 0),
    "confidence_answers.jsonl": ("answers", 0, 0, 0, 0, 480, 0),
    "short_answers.json": ("rlvr", 80, 400, 400, 40, 0, 0),
}


def counts(s):
    criteria = [c for t in s for c in t.criteria]
    half = s.halves()[1]
    by_code = sum(c.by_code for c in criteria)
    return (s.format, len(s), len(criteria), by_code, len(half), len(s.responses), len(s.verdicts))


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_file_has_its_counts(name, tmp_path):
    s = load(paths.data(name))
    assert counts(s) == SHIPPED[name]
    save(tmp_path / "again.jsonl", s)
    again = load(tmp_path / "again.jsonl")
    assert counts(again)[1:] == counts(s)[1:] and again.tasks == s.tasks


@pytest.mark.parametrize(
    ("tasks", "answers"),
    [
        ("rubrics.json", "answers.jsonl"),
        ("citations.jsonl", "citation_answers.jsonl"),
        ("facts.jsonl", "fact_answers.jsonl"),
        ("support.jsonl", "support_run_answers.jsonl"),
        ("ladder.jsonl", "confidence_answers.jsonl"),
    ],
)
def test_shipped_answers_join_their_tasks(tasks, answers):
    tasks, answers = load(paths.data(tasks)), load(paths.data(answers))
    both = tasks.joined(answers)
    assert len(both.responses) == len(tasks.responses) + len(answers.responses)
    assert len(both.verdicts) == len(tasks.verdicts) + len(answers.verdicts)


def test_the_shipped_rubrics_have_one_empty_criterion():
    (finding,) = load(paths.data("rubrics.json")).findings
    place = (finding.code, finding.task_id, finding.criterion_id)
    assert place == ("empty-criterion", "fault-07", "c2")


def test_the_shipped_rubrics_have_their_weights():
    criteria = [c for t in load(paths.data("rubrics.json")) for c in t.criteria]
    assert sum(c.weight < 0 for c in criteria) == 210 and sum(c.required for c in criteria) == 83


@needs_real
@pytest.mark.parametrize(
    ("name", "form", "tasks", "answers", "codes"),
    [
        ("kmp_sft_final.json", "sft", 363, 363, ["equal-rows"]),
        ("kmp_dpo_preferences.json", "dpo", 61, 122, []),
        ("kmp_test_set.json", "qa", 8, 0, []),
    ],
)
def test_biorlhf_files(name, form, tasks, answers, codes):
    s = load(REAL / "biorlhf" / name)
    assert (s.format, len(s), len(s.responses)) == (form, tasks, answers)
    assert [f.code for f in s.findings] == codes and not any("###" in t.prompt for t in s)
    if form == "sft":
        assert len({(t.prompt, t.meta["layout"]) for t in s}) == 267
    if form == "qa":
        assert all(t.truth["answer"] and t.kind for t in s)


@needs_real
def test_infobench_needs_one_rename():
    path = REAL / "infobench/gpt4_outputs_gpt4_judge.jsonl"
    s = load(path, fields={"decomposed_questions": "rubrics"})
    sizes = sorted(len(t.criteria) for t in s)
    assert (len(s), sum(sizes), sizes[0], sizes[250], sizes[-1]) == (500, 2250, 1, 4, 15)
    assert len(s.responses) == 500 and len({t.prompt for t in s}) == 500


@pytest.mark.slow
def test_a_hundred_thousand_tasks_load_in_the_time_of_some_parses(tmp_path):
    path = tmp_path / "big.jsonl"
    rubric = [{"text": f"Criterion {k} is clear.", "weight": k} for k in range(1, 6)]
    with path.open("w") as f:
        f.writelines(
            json.dumps({"id": n, "prompt": f"Write {n}.", "rubrics": rubric}) + "\n"
            for n in range(100_000)
        )
    start = time.process_time()
    assert len(list(map(json.loads, path.read_text().splitlines()))) == 100_000
    parsed = time.process_time()
    s = load(path)
    assert time.process_time() - parsed < 30 * (parsed - start)
    assert len(s) == 100_000 and sum(len(t.criteria) for t in s) == 500_000
