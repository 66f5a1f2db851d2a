"""`kit.explain` shows the arithmetic that `kit.grade` pays by."""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kit import Criterion, DataError, Ledger, Response, Task, Verdict, explain, grade, load
from kit.system import paths

FORMS = ("mean", "flip", "net", "signed", "open_instruct")
STATUSES = ("met", "unmet", "unknown")


def verdict(status, criterion):
    failure = "abstain" if status == "unknown" else None
    ids = {"task_id": "t", "response_id": "r", "criterion_id": criterion}
    return Verdict(**ids, status=status, failure=failure)


@st.composite
def graded(draw):
    weights = draw(st.lists(st.sampled_from([-2.0, -1.0, 0.5, 1.0, 3.0]), min_size=1, max_size=5))
    required = [draw(st.booleans()) for _ in weights]
    criteria = tuple(
        Criterion(id=f"c{n}", text=f"criterion {n}", weight=w, required=r)
        for n, (w, r) in enumerate(zip(weights, required, strict=True))
    )
    verdicts = [verdict(draw(st.sampled_from(STATUSES)), c.id) for c in criteria]
    reward = {
        "components": [{"kind": "rubric", "how": draw(st.sampled_from(FORMS))}],
        "scale": draw(st.sampled_from([1.0, 2.0])),
        "cap": draw(st.sampled_from([None, 0.5])),
        "format": {"mode": draw(st.sampled_from(["off", "gate", "bonus"])), "pattern": "yes"},
    }
    text = draw(st.sampled_from(["yes", "no"]))
    return Task(id="t", prompt="p", criteria=criteria), text, verdicts, reward


def numbers(line):
    return [float(x) for x in re.findall(r"-?\d*\.?\d+", line.rsplit(":", 1)[1])]


@settings(max_examples=200, deadline=None)
@given(graded())
def test_the_last_lines_are_what_grade_paid(case):
    task, text, verdicts, reward = case
    response = Response(task_id="t", id="r", text=text)
    (g,) = grade([task], verdicts, reward=reward, responses=[response])
    explanation = explain([task], response, reward=reward, verdicts=verdicts)
    assert explanation.grade == g
    lines = explanation.sections["Reward"]
    ends = numbers(lines[-2])
    assert ends == pytest.approx([g.score_low, g.score_high][: len(ends)], abs=6e-4)
    if g.score is None:
        assert lines[-1] == "not paid: too much is unknown"
    else:
        assert numbers(lines[-1]) == pytest.approx([g.score], abs=6e-4)


@settings(max_examples=100, deadline=None)
@given(graded())
def test_the_terms_of_a_rubric_add_up_to_its_score(case):
    task, text, verdicts, reward = case
    reward = {**reward, "format": {"mode": "off"}}
    # A required criterion that fails caps the sum; the lines before show the sum itself.
    task = Task(
        id="t",
        prompt="p",
        criteria=tuple(Criterion(id=c.id, text=c.text, weight=c.weight) for c in task.criteria),
    )
    response = Response(task_id="t", id="r", text=text)
    lines = explain([task], response, reward=reward, verdicts=verdicts).sections["Reward"]
    terms = [float(re.search(r"adds (-?[\d.]+)", line)[1]) for line in lines if " adds " in line]
    (divisor,) = [
        float(line.rsplit(" ", 1)[1]) for line in lines if "divided by" in line and "(" in line
    ]
    score = next(line for line in lines if re.match(r"rubric \(\w+\): -?[\d.]+", line))
    assert sum(terms) / divisor == pytest.approx(numbers(score)[0], abs=2e-3)


def test_an_answer_of_a_data_set_is_named_by_its_ids():
    tasks = load(paths.data("rubrics.json"))
    answer = tasks.responses[0]
    shown = explain(tasks, f"{answer.task_id}/{answer.id}", judge="code")
    assert answer.text in str(shown) and shown.grade.answer_ids == answer.ids
    with pytest.raises(DataError, match="there is no answer 'x/y'"):
        explain(tasks, "x/y")


def test_a_stored_verdict_shows_what_was_asked_and_what_was_replied():
    task = Task(id="t", prompt="Why?", criteria=(Criterion(id="c", text="names a cause"),))
    ids = {"task_id": "t", "response_id": "r", "criterion_id": "c"}
    v = Verdict(**ids, status="met", p=0.9, reason="It says why.", key="-".join(5 * ["a" * 16]))
    chat = [{"role": "user", "content": "Does it name a cause?"}]
    row = {
        "call": "1",
        "judge": "m",
        "request": json.dumps(chat),
        "reply": "yes, it does",
        "settings": "{}",
    }
    ledger = Ledger(None)
    ledger.put([v], row)
    shown = explain(
        [task], Response(task_id="t", id="r", text="Because."), verdicts=[v], ledger=ledger
    )
    for text in ("Does it name a cause?", "yes, it does", "It says why.", "P(met) .90", "Because."):
        assert text in str(shown)


def test_hostile_text_is_escaped_in_a_notebook():
    task = Task(id="t", prompt="<script>1</script>", criteria=(Criterion(id="c", text="<b>"),))
    response = Response(task_id="t", id="r", text="<img src=x>")
    page = explain([task], response, verdicts=[verdict("met", "c")])._repr_html_()
    assert "<script" not in page and "<img" not in page and "<b>" not in page
