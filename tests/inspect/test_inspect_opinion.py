"""The lint that asks a judge: one look at each criterion, opinions that are no errors, unknown that
stays unknown."""

from __future__ import annotations

import json

from kit.__main__ import main
from kit.records import Criterion, Task, Verdict, unknown
from kit.rubrics import lint
from kit.rubrics.opinion import QUESTIONS


class FakeReader:
    """A stand-in for a judge: says no where the text holds a question's word, and counts."""

    name = "reader"

    def __init__(self, no=None, silent=()):
        self.no, self.silent, self.seen = no or {}, silent, []

    async def verdicts(self, task, response, criteria):
        self.seen.append((task.prompt, response.text, [c.id for c in criteria]))
        out = []
        for c in criteria:
            ids = {"task_id": task.id, "response_id": response.id, "criterion_id": c.id}
            if c.id in self.silent:
                out.append(unknown(**ids, failure="parse", judge=self.name))
                continue
            bad = self.no.get(c.id, "\0") in response.text
            out.append(Verdict(**ids, status="unmet" if bad else "met", judge=self.name))
        return out


def tasks(*criteria, prompt="Name a river."):
    return [Task(id="t", prompt=prompt, criteria=criteria)]


def found(report):
    return {(f.code, f.criterion_id) for f in report.findings if f.code.startswith("judge-")}


def test_each_criterion_is_asked_once_and_what_code_decides_is_not():
    same = [Criterion(id=i, text="Names the Danube.", parent=i + "p") for i in "ab"]
    checked = Criterion(id="c", text="Short.", check={"name": "words", "max": 5})
    reader = FakeReader()
    report = lint(tasks(*same, checked), judge=reader)
    assert [(text, ids) for _, text, ids in reader.seen] == [("Names the Danube.", [*QUESTIONS])]
    assert "Name a river." in reader.seen[0][0] and not found(report)


def test_a_judge_s_no_is_an_opinion_of_every_criterion_with_that_text_and_never_an_error():
    texts = ("Is nice.", "Names the Danube.", "Is nice.")
    criteria = [Criterion(id=f"c{i}", text=t) for i, t in enumerate(texts)]
    plain, report = (
        lint(tasks(*criteria)),
        lint(tasks(*criteria), judge=FakeReader({"vague": "nice"})),
    )
    assert found(report) == {("judge-vague", "c0"), ("judge-vague", "c2")}
    assert {f.severity for f in report.findings if f.code == "judge-vague"} == {"info"}
    assert report.flawed == plain.flawed and report.severities.get("error") is None
    assert "a judge's opinion" in str(report) and "reader says no" in str(report)


def test_the_question_on_the_sign_is_turned_for_a_criterion_that_costs():
    criteria = [
        Criterion(id="good", text="Names the Danube.", weight=-1),
        Criterion(id="bad", text="Makes a river up.", weight=-1),
        Criterion(id="paid", text="Makes a lake up.", weight=1),
        Criterion(id="recorded", text="Makes a sea up.", weight=0),
    ]
    report = lint(tasks(*criteria), judge=FakeReader({"sign": "up"}))
    assert found(report) == {("judge-sign", "good"), ("judge-sign", "paid")}


def test_what_the_judge_cannot_say_is_counted_and_no_finding():
    report = lint(
        tasks(Criterion(id="c", text="Is nice.")), judge=FakeReader(silent=("vague", "note"))
    )
    assert found(report) == {("judge-unknown", None)}
    assert "2 of 6 questions" in report.of("judge-unknown")[0].message


def test_it_is_asked_again_from_the_ledger_only(tmp_path):
    class Keyed(FakeReader):
        def key(self, task, response, criterion):
            return f"{hash((task.prompt, response.text, criterion.text)):x}"

    reader, rows = Keyed({"vague": "nice"}), tasks(Criterion(id="c", text="Is nice."))
    first = lint(rows, judge=reader, ledger=tmp_path / "l.sqlite")
    again = lint(rows, judge=reader, ledger=tmp_path / "l.sqlite")
    assert len(reader.seen) == 1 and found(first) == found(again) == {("judge-vague", "c")}


def test_the_command_asks_the_judge_that_is_named(tmp_path, capsys):
    path = tmp_path / "a.json"
    path.write_text(json.dumps([{"prompt": "p", "rubrics": ["Names it."]}]))
    assert main(["inspect", str(path), "--lint", "--judge", "code"]) == 0
    assert "6 of 6 questions" in capsys.readouterr().out
