"""The audit: judges with a known fault are found out, and an honest one is not."""

import dataclasses
import json
import re

import pytest
from fake_server import FakeServer
from fakes_of_tuning import labels

import kit
from kit import Criterion, Response, Task
from kit.errors import DataError
from kit.judging import Judge
from kit.tuning import AUDIT_CHANGES


class Told(Judge):
    """A judge that is a function of (task, answer, criterion, place) -> True, False or None."""

    name = "made"

    def __init__(self, met):
        self.met = met

    def readings(self, task, response, criteria):
        out = []
        for i, c in enumerate(criteria):
            met = self.met(task, response.text, c, i)
            status = "unknown" if met is None else "met" if met else "unmet"
            failure = "parse" if met is None else None
            out.append({"status": status, "failure": failure, "reason": "because"})
        return out


def ok(task, text, c, i):
    """Honest: an answer is good where it says so about this question, wherever that stands."""
    number = "".join(filter(str.isdigit, task.prompt))
    good = f"good{number}" in text
    return not good if "NOT the case" in c.text else good


def tasks(n=120):
    made = labels(n, text="{} answer. It is about {}.")
    answers = [
        kit.records.msgspec.structs.replace(r, text=r.text.replace("good", f"good{r.task_id[1:]}"))
        for r in made.responses
    ]
    return made.tasks, answers


def flaky(task, text, c, i):
    return ok(task, text, c, i) != (text.endswith(".\n") and task.id.endswith(("1", "2", "3")))


FAULTS = [
    (ok, "comparing such answers, and as a reward", "may still succeed in"),
    (lambda t, x, c, i: True, "nothing", "empty (no answer at all) 1.00"),
    (lambda t, x, c, i: False, "nothing", "No answer earned credit"),
    (
        lambda t, x, c, i: bool(re.search(r"good\d", x)),
        "surely to their own task",
        "another task's",
    ),
    (
        lambda t, x, c, i: None if "```json" in x else ok(t, x, c, i),
        "the verdicts that it gives",
        "gives up",
    ),
    (flaky, "means over many answers", "retest"),
    (lambda t, x, c, i: "leading experts" in x or ok(t, x, c, i), "not trained", "self-praise"),
    (lambda t, x, c, i: "exactly that" in x or ok(t, x, c, i), "not trained", "rubric echo"),
    (lambda t, x, c, i: "\U000e0041" in x or ok(t, x, c, i), "not trained", "zero-width"),
    (lambda t, x, c, i: f"good{t.id[1:]}" in x, "criteria without a negation", "negation"),
    (lambda t, x, c, i: ok(t, x, c, i) and c.id == "ab"[i], "alike in position", "position"),
    (lambda t, x, c, i: ok(t, x, c, i) and len(x) < 60, "alike in length", "length"),
    (lambda t, x, c, i: ok(t, x, c, i) and "**" not in x, "alike in style", "style"),
    (lambda t, x, c, i: ok(t, x, c, i) and "Check" not in c.text, "alike in wording", "wording"),
]


@pytest.mark.parametrize(("met", "use", "worst"), FAULTS)
def test_a_known_fault_is_named_with_its_use_and_remedy(met, use, worst):
    report = kit.audit(Told(met), *tasks(), progress=False)
    assert use in report.line and worst in report.line, report.line
    assert "\n" not in report.line and ("Remedy: " in report.line) == (met is not ok)


def test_rates_and_the_table():
    report = kit.audit(Told(FAULTS[6][0]), *tasks(), progress=False)
    praise = report.rates["self-praise"]
    assert praise.value == pytest.approx(1) and praise.n == 240 and praise.n_clusters == 120
    assert report.rates["nothing added"].value == 0 and report.rates["padding"].value == 0
    assert report.whole == pytest.approx(0.5)
    table = report.table()
    assert list(table["kind"].value_counts()[["attack", "bias"]]) == [12, 7]
    assert len(report.plot().data[0].x) == len(table)
    assert kit.plot(report) is not None and "self-praise" in report._repr_html_()
    hostile = dataclasses.replace(report, judge="<script>")
    assert "<script>" not in hostile._repr_html_()


def test_credit_of_a_negative_criterion_is_that_it_is_not_there():
    c = Criterion(id="n", text="Insults the reader.", weight=-1.0)
    rows = [Task(id=f"t{i}", prompt=f"Q{i}", criteria=(c,)) for i in range(20)]
    rude = [Response(task_id=t.id, id="r", text="You fool.") for t in rows]
    report = kit.audit(Told(lambda t, x, c, i: "checked" not in x), rows, rude, progress=False)
    assert report.rates["self-praise"].value == pytest.approx(
        1
    )  # the fault is no longer seen: that pays
    assert report.rates["empty answer"].n == 0


def test_some_changes_only_and_what_is_refused():
    report = kit.audit(Told(ok), *tasks(8), changes=["padding", "length"], progress=False)
    assert list(report.rates) == ["padding", "length", "gives up"]
    with pytest.raises(DataError, match="no answers"):
        kit.audit(Told(ok), tasks()[0], [], progress=False)


def test_every_change_of_the_file_changes_something():
    t, answers = tasks(4)
    seen = {}
    kit.audit(
        Told(lambda t, x, c, i: seen.setdefault((x, c.text, i), False)), t, answers, progress=False
    )
    assert len({x for x, _, _ in seen}) >= 15 * len(answers)
    assert all("{" not in x.replace('{"', "") for x, _, _ in seen)
    assert all(c.remedy for c in AUDIT_CHANGES.values() if c.use)


def test_a_group_judge_has_a_row_for_the_place_in_the_group():
    def first(asked):
        """Only the answer that stands first in the group meets anything."""
        met = {c: {"reason": "", "verdict": "met"} for c in asked.criteria}
        unmet = {c: {"reason": "", "verdict": "unmet"} for c in asked.criteria}
        return json.dumps(
            {"call": asked.mark, **{a: met if a == "a1" else unmet for a in asked.answers}}
        )

    made = labels(16, 3, text="{} {}")
    with FakeServer(first) as server:
        judge = {"group": {"endpoint": "fake", "base_url": server.url}}
        few = ["place in the group", "retest"]
        report = kit.audit(judge, made.tasks, made.responses, changes=few, progress=False)
    assert report.rates["place in the group"].value > 0.1
