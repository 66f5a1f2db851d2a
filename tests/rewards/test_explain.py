"""`kit.explain` shows the arithmetic that `kit.grade` pays by."""

import json
import re
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from rich.console import Console

sys.path.insert(0, str(Path(__file__).parents[1] / "judging"))
from fake_server import FakeServer

from kit import Criterion, Response, Task, explain, grade, judge, save
from kit.cli import main
from kit.data import TaskSet
from kit.judging import LLMJudge, unknown

FORMS = ("mean", "flip", "net", "signed", "open_instruct")
STATUSES = ("met", "unmet", "unknown")


class Script(LLMJudge):
    """A judge of the tests: the verdict on a criterion stands in its text. No server is asked."""

    def plan(self, question):
        yield from ()
        status = question.criterion.text
        return [unknown("cannot tell") if status == "unknown" else {"status": status}]


SCRIPT = Script("script", how="one")


@st.composite
def judged(draw):
    criteria = []
    for n in range(draw(st.integers(1, 5))):
        weight = draw(st.sampled_from([-2.0, -1.0, 0.5, 1.0, 3.0]))
        parent = draw(st.sampled_from([None, *(c.id for c in criteria)]))
        status, required = draw(st.sampled_from(STATUSES)), draw(st.booleans())
        criteria.append(
            Criterion(id=f"c{n}", text=status, weight=weight, required=required, parent=parent)
        )
    reward = {
        "components": [
            {"kind": "rubric", "how": draw(st.sampled_from(FORMS)), "weight": 2},
            {"kind": "rubric", "name": "other", "weight": draw(st.sampled_from([-1.0, 0.5]))},
        ],
        "combine": draw(st.sampled_from(["mean", "sum"])),
        "gates": draw(st.sampled_from([(), [{"component": "other", "below": 0.5}]])),
        "scale": draw(st.sampled_from([1.0, 2.0])),
        "cap": draw(st.sampled_from([None, 0.5])),
        "format": {"mode": draw(st.sampled_from(["off", "gate", "bonus"])), "pattern": "yes"},
    }
    answer = Response(task_id="t", id="r", text=draw(st.sampled_from(["yes", "no"])))
    return Task(id="t", prompt="p", criteria=tuple(criteria)), answer, reward


def numbers(line):
    return [float(x) for x in re.findall(r"-?\d*\.?\d+", line.rsplit(":", 1)[1])]


@settings(max_examples=200, deadline=None)
@given(judged())
def test_the_last_lines_are_what_grade_paid(case):
    task, answer, reward = case
    verdicts = judge([task], [answer], judge=SCRIPT, ledger=False, progress=False)
    (paid,) = grade([task], verdicts, reward=reward, responses=[answer])
    result = explain(task, answer, judge=SCRIPT, reward=reward, ledger=False)
    assert (result.grade.score, result.grade.score_low) == (paid.score, paid.score_low)
    assert result.grade.parts == paid.parts
    *_, total, last = result.sections["Reward"]
    ends = numbers(total)
    assert [ends[0], ends[-1]] == pytest.approx([paid.score_low, paid.score_high], abs=6e-4)
    if paid.score is None:
        assert last == "not paid: too much is unknown"
    else:
        assert numbers(last) == pytest.approx([paid.score], abs=6e-4)


@settings(max_examples=100, deadline=None)
@given(judged(), st.sampled_from(FORMS))
def test_the_terms_of_a_rubric_add_up_to_its_score(case, how):
    task, answer, _ = case
    reward = {"components": [{"kind": "rubric", "how": how, "gate_to": None}]}
    lines = explain(task, answer, judge=SCRIPT, reward=reward, ledger=False).sections["Reward"]
    terms = [numbers(line.replace("adds", ":")) for line in lines if " adds " in line]
    (divisor,) = [
        float(x.split("divided by ")[1].split(";")[0]) for x in lines if "divided by" in x
    ]
    (score,) = [numbers(line) for line in lines if line.startswith("rubric: ")]
    for end in (0, -1):
        assert sum(t[end] for t in terms) / divisor == pytest.approx(score[end], abs=3e-3)


TASK = Task(id="t", prompt="Why <b>so</b>?", criteria=(Criterion(id="c", text="names a cause"),))
ANSWER = Response(task_id="t", id="r", text="The cause is [red]rain[/red].")


def test_the_calls_of_a_stored_verdict_are_shown_and_not_paid_again(tmp_path):
    ledger = tmp_path / "ledger.sqlite"
    with FakeServer() as server:
        asking = {"judge": {"endpoint": "m", "base_url": server.url}, "ledger": ledger}
        result = str(explain(TASK, ANSWER, **asking))
        assert str(explain(TASK, ANSWER, **asking)) == result and len(server.calls) == 1
        assert server.calls[0].prompt in result.replace("\n  ", "\n")
        for text in ("[system] ", "[reply] {", "c: met, value 1.000", "looked", "paid: 1.000"):
            assert text in result
        # each vote of a panel was a call of its own
        panel = {"panel": [asking["judge"], {**asking["judge"], "endpoint": "n"}]}
        sections = explain(TASK, ANSWER, judge=panel, ledger=ledger).sections
        assert [title for title in sections if title.startswith("Call")] == [
            "Call 1 of m",
            "Call 2 of n",
        ]
        assert len(server.calls) == 2


def test_a_terminal_has_colours_a_pipe_none_and_a_notebook_folds():
    task = replace(TASK, criteria=(Criterion(id="c", text="met"),))
    result = explain(task, ANSWER, judge=SCRIPT, ledger=False)
    for system in ("standard", None):
        console = Console(color_system=system, force_terminal=bool(system), soft_wrap=True)
        with console.capture() as output:
            console.print(result)
        assert ("\x1b[32m" in output.get()) == bool(system)
    # markup in an answer is text
    assert output.get().rstrip() == str(result).rstrip() and "[red]rain[/red]" in str(result)
    page = result._repr_html_()
    assert "<b>" not in page and page.count("<details open>") == 3


def test_the_command_explains_the_answer_of_an_id(tmp_path, capsys):
    check = {"name": "words", "max": 3}
    tasks = [replace(TASK, criteria=(Criterion(id="c", text="short", check=check),))]
    both = TaskSet(tasks=tasks, responses=[ANSWER, Response(task_id="t", id="s", text="Rain.")])
    save(tmp_path / "both.jsonl", both)
    words = ["explain", str(tmp_path / "both.jsonl"), "--ledger", str(tmp_path / "l.sqlite")]
    assert main([*words, "--id", "t/s"]) == 0
    output = capsys.readouterr().out
    assert "Rain." in output and output.endswith("paid: 1.000\n") and "\x1b" not in output
    # the first answer; JSON has its grade
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["grade"]["score"] == 0
    assert main([*words, "--id", "t/x"]) == 2
    assert "t/x" in capsys.readouterr().err
