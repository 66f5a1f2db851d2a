"""Lint: planted faults by their rule, silence on sound rubrics, and a judge that is asked."""

import csv
import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kit
from kit.errors import DataError
from kit.judging import Judge
from kit.records import Criterion, Task
from kit.rubrics import lint
from kit.training import build

PLANTED = Path(__file__).with_name("planted.tsv")


def task(*criteria, prompt="Describe the moon.", **fields):
    """A task whose criteria are texts, (text, weight) or (text, weight, check)."""
    rows = [(c,) if isinstance(c, str) else c for c in criteria]
    made = tuple(
        Criterion(id=f"c{n}", **dict(zip(("text", "weight", "check"), row, strict=False)))
        for n, row in enumerate(rows)
    )
    return Task(id=fields.pop("id", "t"), prompt=prompt, criteria=made, **fields)


def planted():
    """(rule, place of the fault, task) of each row of the table."""
    with PLANTED.open(encoding="utf-8") as file:
        rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))[1:]
    return [(rule, f"c{n}", task(*json.loads(c), prompt=p)) for rule, n, p, c in rows]


def codes(*tasks):
    return {f.code for f in lint(tasks).findings}


def test_rules_name_the_planted_faults_and_nothing_else():
    rows = [row for row in planted() if not row[0].startswith("judge-")]
    missed, alarms = [], []
    for rule, fault, one in rows:
        findings = lint([one]).findings
        if not any(f.code == rule and f.criterion_id == fault for f in findings):
            missed.append((rule, one.criteria))
        alarms += [f for f in findings if f.criterion_id != fault]
    assert len(rows) >= 25
    assert len(missed) <= 0.25 * len(rows), missed
    assert alarms == []


def test_rules_are_silent_on_faults_that_only_a_judge_can_name():
    rows = [one for rule, _, one in planted() if rule.startswith("judge-")]
    alarms = [f for one in rows for f in lint([one]).findings if f.code != "one-signed"]
    # An order to the grader may look like a note, too.
    assert len(alarms) <= 3
    assert len(rows) >= 100


@pytest.mark.parametrize(
    ("rule", "criteria"),
    [
        ("empty-criterion", ["...", "Names a crater."]),
        ("impossible-check", [("x", 1, {"name": "words", "min": 9, "max": 3})]),
        ("impossible-check", [("x", 1, {"name": "no such check"})]),
        ("annotator-note", ["Response B misses this, A is fine."]),
        ("annotator-note", ["Gemini overlooked the date"]),
        ("annotator-note", ["Implied by the user's request"]),
        ("annotator-note", ["I added this because models forget it"]),
        ("unfinished", ["Explains {{event}}."]),
        ("unfinished", ["Names the month [insert month]."]),
        ("unfinished", ["Says that the tides are caused by the Sun and the"]),
        ("extreme-weight", [("A.", 1), ("B.", 2), ("C.", 1), ("D.", 90)]),
        ("duplicate-criterion", ["Names a crater.", "names a  crater."]),
        ("duplicate-criterion", [("x", 1, {"name": "json"}), ("y", 1, {"name": "json"})]),
        ("near-duplicate", ["It mentions the sea.", "The sea is mentioned in it."]),
        ("contradiction", [("Names a crater.", 1), ("Names a crater.", -1)]),
        ("zero-weights", [("A.", 0), ("B.", 0)]),
        ("one-signed", [("Is rude.", -1), ("Is long.", -2)]),
        ("no-criteria", []),
    ],
)
def test_each_rule_names_its_fault(rule, criteria):
    assert rule in codes(task(*criteria))


@pytest.mark.parametrize(
    "criteria",
    [
        ["Has at most 50 words.", "Has at most 80 words."],
        ["Mentions the sea.", "Does not mention the sea."],
        ['Uses the phrase "I think" once.', 'Says "this rubric" in the title.'],
        ["In its response a user reads the price.", "Marked as urgent in the subject."],
        ["Names blood type A.", "Picks answer B.", "Explains that both answers are valid."],
        [("Three.", 1, {"name": "lines", "max": 3}), ("Has three.", 1, {"name": "lines"})],
        [("Names one.", 1), ("Names two.", 5), ("Names three.", 12)],
        ["Compares Claude Monet with Édouard Manet.", "回答に日付がある。"],
    ],
)
def test_sound_criteria_have_no_finding(criteria):
    assert lint([task(*criteria)]).findings == ()
    # A placeholder that the prompt has, too, is the subject.
    assert codes(task("Fills {{name}} in.", prompt="Fill {{name}} in.")) == set()


def required(*rows):
    made = [
        Criterion(id=f"c{n}", text=text, weight=weight, check=check, required=True)
        for n, (text, weight, check) in enumerate(rows)
    ]
    return Task(id="t", prompt="p", criteria=tuple(made))


@pytest.mark.parametrize(
    ("rows", "impossible"),
    [
        ([("Names it.", 1, None), ("Names it.", -1, None)], True),
        ([("a", 1, {"name": "words", "min": 90}), ("b", 1, {"name": "words", "max": 50})], True),
        ([("a", 1, {"name": "words", "min": 20}), ("b", 1, {"name": "words", "max": 50})], False),
        ([("a", 1, {"name": "words", "min": 90}), ("b", 1, {"name": "lines", "max": 50})], False),
        # A negative criterion is passed when it is unmet: more than 50 words are forbidden twice.
        ([("a", 1, {"name": "words", "max": 50}), ("b", -1, {"name": "words", "min": 51})], False),
    ],
)
def test_a_gate_that_no_answer_can_pass(rows, impossible):
    assert ("impossible-gate" in codes(required(*rows))) == impossible


def test_leaks_between_train_and_held_out():
    one = task("Names a crater.", id="a")
    same = task("Names a sea.", id="b", prompt=" describe  the MOON.")
    other = task("Names a sea.", id="c", split="test")
    assert codes(one, same) == {"duplicate-prompt"}
    leak = [f for f in lint([one, other]).findings if f.code == "split-leak"]
    assert leak[0].severity == "error" and "a, c" in leak[0].message


def test_a_prompt_is_too_long_for_a_profile():
    long = task("Names a crater.", prompt="word " * 1000)
    assert {f.code for f in lint([long], profile="t4").findings} == {"long-prompt"}
    assert lint([long], profile="gpu").findings == ()
    with pytest.raises(DataError, match="unknown names: huge"):
        lint([long], profile="huge")


@pytest.mark.parametrize("profile", ["test", "cpu", "t4", "gpu", "cluster"])
def test_the_limit_of_a_prompt_is_that_of_a_training(profile):
    limit = build({}, profile=profile).max_prompt_tokens
    prompts = [Task(id=str(n), prompt="a" * 4 * (limit + n)) for n in (0, 1)]
    counts = [lint([t], profile=profile).counts["long-prompt"] for t in prompts]
    assert counts == [0, 1]


def test_the_report_counts_and_escapes():
    report = lint([task("...", "Note: <script>alert(1)</script>", "Names a crater.")])
    assert [f.severity for f in report.findings] == ["error", "warning"]
    assert (report.criteria, report.faulty) == (3, 2)
    assert report.severities == {"error": 1, "warning": 1}
    assert list(report.table()["findings"]) == [1, 1]
    assert "<script>" not in report._repr_html_()
    assert str(report).endswith("1 error, 1 warning; 2 of 3 criteria faulty")
    assert lint([task("Names a crater.")]).table().empty


def test_findings_of_the_file_are_kept():
    rows = kit.load([{"id": "t", "prompt": "p", "rubrics": ["Names it."], "strange": 1}])
    assert "unread-field" in {f.code for f in lint(rows).findings}


@given(st.lists(st.tuples(st.text(max_size=30), st.sampled_from([-1.0, 0.0, 2.0])), max_size=5))
def test_any_text_is_linted(rows):
    report = lint([task(*rows)])
    assert report.criteria == len(rows) >= report.faulty


class Reviewer(Judge):
    """A judge that says met to one question, and unknown to another."""

    name, concurrency = "reviewer", 4

    def __init__(self, fault, lost=None):
        self.fault, self.lost, self.prompts = fault, lost, []

    def readings(self, task, response, criteria):
        self.prompts.append((task.prompt, response.text, len(criteria)))
        rows = {self.fault: {"status": "met"}, self.lost: {"status": "unknown", "failure": "parse"}}
        return [{"reason": "so", **rows.get(c.id, {"status": "unmet"})} for c in criteria]


def test_a_judge_answers_eight_questions_on_each_criterion():
    judge = Reviewer("sign", lost="leak")
    rows = task("Names a crater.", ("Is rude.", -1), ("x", 1, {"name": "json"}))
    report = lint([rows], judge=judge)
    assert [(f.code, f.criterion_id) for f in report.findings] == [
        ("judge-sign", "c0"),
        ("judge-sign", "c1"),
        ("judge-unknown", None),
    ]
    assert "2 of 16" in report.findings[-1].message
    assert report.faulty == 0  # an opinion is no fault
    first, second = sorted(judge.prompts, key=lambda p: p[1])
    assert (first[1], first[2]) == ("Is rude.", 8)
    assert "LOSES" in first[0] and "GAINS" in second[0]
    assert "Describe the moon." in first[0] and "- Names a crater." in first[0]


def test_a_judge_is_not_asked_where_code_decides():
    judge = Reviewer("sign")
    lint([task(("x", 1, {"name": "json"}))], judge=judge)
    assert judge.prompts == []


@pytest.mark.slow
def test_a_hundred_thousand_rows_in_ten_seconds():
    rows = [
        task(
            *(f"Names the river {n} and city {k} in one line" for k in range(5)),
            prompt=f"p{n}",
            id=str(n),
        )
        for n in range(100_000)
    ]
    start = time.process_time()  # of this process: others may keep the machine busy
    assert lint(rows).faulty == 0
    assert time.process_time() - start < 10
