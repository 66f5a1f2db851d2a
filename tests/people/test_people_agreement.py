"""A judge beside people: agreement, the worst disagreements, and corrected rates."""

import random

import pytest
from msgspec.structs import replace

import kit
from kit.data import TaskSet
from kit.errors import DataError
from kit.people import agreement_report, rate, view
from kit.records import Criterion, Grade, Response, Task, Verdict, unknown

CRITERIA = (
    Criterion(id="good", text="Names the river."),
    Criterion(id="bad", text="Is rude.", weight=-2),
    Criterion(id="code", text="Is JSON.", check={"name": "json"}),
)


def verdict(task, response, criterion, status, judge="j", **more):
    ids = {"task_id": task, "response_id": response, "criterion_id": criterion}
    if status == "unknown":
        return unknown(*ids.values(), "abstain", judge=judge)
    return Verdict(**ids, status=status, judge=judge, **more)


def sides(met):
    return "met" if met else "unmet"


def material(n=60, *, noise=0.1, answer="r", labelled=1.0, seed=0):
    """(tasks, labels, verdicts): n tasks with one answer each; the judge errs in a share of rows."""
    rng = random.Random(seed)
    tasks = [Task(id=f"t{i}", prompt=f"Question {i}?", criteria=CRITERIA) for i in range(n)]
    answers = [Response(task_id=t.id, id=answer, text="x") for t in tasks]
    labels, verdicts = [], []
    for t in tasks:
        is_labelled = rng.random() < labelled
        for c in ("good", "bad"):
            truth = rng.random() < (0.6 if c == "good" else 0.2)
            wrong = rng.random() < noise
            if is_labelled:
                labels.append(verdict(t.id, answer, c, sides(truth), "human:ann"))
            verdicts.append(
                verdict(t.id, answer, c, sides(truth != wrong), p=float(truth != wrong))
            )
        verdicts.append(verdict(t.id, answer, "code", "met", "code"))
    return TaskSet(tasks=tasks, responses=answers), labels, verdicts


def test_a_perfect_judge_agrees_in_full():
    report = agreement_report(*material(noise=0))
    assert report.overall.kappa.value == report.estimate.value == 1
    assert (len(report.worst), report.unknown) == (0, 0)
    assert report.criteria["n"].tolist() == [60, 60]  # verdicts by code are left out


def test_credit_is_turned_where_the_weight_is_negative():
    tasks, _, _ = material(1)
    labels = [verdict("t0", "r", "good", "met", "human"), verdict("t0", "r", "bad", "met", "human")]
    verdicts = [verdict("t0", "r", "good", "unmet"), verdict("t0", "r", "bad", "unmet")]
    rows = agreement_report(tasks, labels, verdicts).criteria.set_index("criterion")
    assert rows.loc["good", ["too_kind", "too_strict"]].tolist() == [0, 1]
    assert rows.loc["bad", ["too_kind", "too_strict"]].tolist() == [1, 0]


def test_unknown_rows_are_counted_and_never_wrong():
    tasks, labels, verdicts = material(20, noise=0)
    verdicts[0] = unknown(*verdicts[0].ids, "parse", judge="j")
    labels[1] = verdict(*labels[1].ids, "unknown", "human:ann")
    report = agreement_report(tasks, labels, verdicts)
    assert report.overall.raw.value == pytest.approx(1)
    assert (report.unknown, report.criteria["n"].sum()) == (1, 38)


def test_the_ten_worst_disagreements_are_the_surest():
    tasks, labels, verdicts = material(60, noise=0.5)
    wrong = {v.ids for v in labels} - {
        v.ids
        for v, w in zip(labels, [v for v in verdicts if v.judge == "j"], strict=True)
        if v.value != w.value
    }
    sure = [
        kit.Verdict(**{**dict(zip(("task_id", "response_id", "criterion_id"), v.ids, strict=True))},
                    status=v.status, judge=v.judge, reason="<b>because</b>",
                    p=(0.99 if v.status == "met" else 0.01) if n < 20 else 0.6 if v.status == "met" else 0.4)
        for n, v in enumerate(v for v in verdicts if v.judge == "j")
    ]  # fmt: skip
    report = agreement_report(tasks, labels, sure)
    assert len(report.worst) == 10
    assert set(report.worst["p"].head(5)) <= {0.99, 0.01}
    assert (
        not {tuple(r) for r in report.worst[["task", "response", "criterion"]].to_numpy()} & wrong
    )
    assert "&lt;b&gt;because" in report._repr_html_() and "<b>because" not in report._repr_html_()


def test_a_report_prints_and_draws_itself():
    report = agreement_report(*material())
    row, text = report.disagreements.iloc[0], str(report)
    assert f"{row['task']} / r / {row['criterion']}: {row['text']}" in text
    assert f"says {row['status']} ({row['value']:g}), people {row['human']:g} (1 is met" in text
    assert f"{len(report.disagreements)} disagreements" in text and "kappa" in text
    assert (
        row["prompt"].startswith("Question") and "prompt: Question" in text and "answer: x" in text
    )
    assert list(report.table().columns[:3]) == ["criterion", "text", "n"]
    assert len(report.plot().data[0].x) == 2
    assert str(report).startswith("The judge agrees with people beyond chance: kappa ")
    assert "The judge agrees with people" in report.plot().layout.title.text
    coin = (
        agreement_report(*material(noise=0.5)).plot().layout.title.text.replace("</b><br><b>", " ")
    )
    assert "Agreement beyond chance is not shown: kappa" in coin and not report.people


def test_two_people_are_what_a_judge_can_reach():
    tasks, labels, verdicts = material(40, noise=0.3)
    ben = [verdict(*v.ids, v.status, "human:ben") for v in labels[:20]]
    report = agreement_report(tasks, [*labels, *ben], verdicts)
    assert list(report.people) == ["human:ann and human:ben"]
    assert report.people["human:ann and human:ben"].n == 20
    assert "human:ann and human:ben: 1.000" in str(report)
    assert "kappa of human:ann and human:ben" in report._repr_html_()


def test_labels_that_count_for_nothing_are_counted_and_said():
    tasks, labels, verdicts = material(noise=0)
    kept = agreement_report(tasks, labels, verdicts).criteria["n"].sum()
    strange = [replace(v, task_id=f"not {v.task_id}") for v in labels[:3]]
    split = [verdict(*v.ids, sides(v.value == 0), "human:ben") for v in labels[3:5]]
    report = agreement_report(tasks, [*strange, *labels[3:], *split], verdicts)
    assert (report.undecided, report.unmatched) == (2, 3)
    assert report.criteria["n"].sum() == kept - 5
    assert "2 on which people are split or undecided, 3 without a verdict" in str(report)


def test_grades_are_taken_for_their_verdicts():
    tasks, labels, verdicts = material(10)
    grades = [
        Grade(task_id=t.id, response_id="r", score=None, score_low=0, score_high=1,
              verdicts=tuple(v for v in verdicts if v.task_id == t.id))
        for t in tasks
    ]  # fmt: skip
    one, other = agreement_report(tasks, labels, grades), agreement_report(tasks, labels, verdicts)
    assert repr(vars(one.overall.kappa)) == repr(vars(other.overall.kappa))


# -- rates ---------------------------------------------------------------------
def truth_of(labels):
    """The pass rate that people give: met, and unmet where the weight is negative."""
    return sum((v.value == 1) != (v.criterion_id == "bad") for v in labels) / len(labels)


def test_labels_take_the_errors_of_the_judge_out():
    tasks, every, verdicts = material(400, noise=0, seed=3)
    _, labels, _ = material(400, noise=0, labelled=0.3, seed=3)
    # A judge that never sees rudeness is too kind.
    kind = [verdict(*v.ids, "unmet") if v.criterion_id == "bad" else v for v in verdicts]
    out = rate(
        tasks, [v for v in every if v.task_id in {x.task_id for x in labels}], kind, design="random"
    )
    truth = truth_of(every)
    assert list(out) == ["pass rate", "judge alone", "labels alone"]
    assert out["judge alone"].value > truth + 0.05
    assert abs(out["pass rate"].value - truth) < 0.05
    assert out["pass rate"].low < truth < out["pass rate"].high


def test_labels_from_elsewhere_need_another_design():
    tasks, labels, verdicts = material(200, noise=0.1)
    out = rate(tasks, labels[:200], verdicts, design="shifted")
    assert abs(out["pass rate"].value - truth_of(labels[200:])) < 0.1
    assert out["judge alone"].n == 200


def test_two_policies_are_compared_by_prompt(caplog):
    tasks, labels, verdicts = material(80, noise=0.1)
    _, more_labels, others = material(80, noise=0.1, answer="old", seed=9)
    out = rate(tasks, labels + more_labels, verdicts, design="random", other=others)
    wanted = truth_of(labels) - truth_of(more_labels)
    assert abs(out["difference"].value - wanted) < 1e-9
    assert "other: pass rate" in out and not caplog.text
    assert out["difference"].low < wanted < out["difference"].high
    # Of so few labels, the other rate is that of labels alone.
    few = rate(tasks, labels + more_labels[:16], verdicts, design="random", other=others)
    rates = few["pass rate"].value - few["other: pass rate"].value
    assert few["difference"].value == pytest.approx(rates)


@pytest.mark.parametrize(
    ("how", "fault"),
    [
        ({"design": "stratified"}, "design"),
        ({"design": "shifted", "other": "old"}, "at random"),
        ({"design": "random", "other": "same"}, "both sets"),
    ],
)
def test_what_cannot_be_rated_is_an_error(how, fault):
    tasks, labels, verdicts = material(30)
    _, more, others = material(30, answer="old")
    if "other" in how:
        how = {**how, "other": others if how["other"] == "old" else verdicts}
    with pytest.raises(DataError, match=fault):
        rate(tasks, labels + more, verdicts, **how)


def test_labels_of_unequal_probability_are_an_error():
    tasks, labels, verdicts = material(30)
    uneven = [
        Verdict(task_id=v.task_id, response_id=v.response_id, criterion_id=v.criterion_id,
                status=v.status, judge="human", meta={"inclusion": 0.1 if n % 2 else 0.5})
        for n, v in enumerate(labels)
    ]  # fmt: skip
    with pytest.raises(DataError, match="unequal probability"):
        rate(tasks, uneven, verdicts, design="random")


def test_criteria_with_few_labels_are_counted_and_not_listed():
    tasks, labels, verdicts = material(4)
    report = agreement_report(tasks, labels, verdicts)
    assert report.table().empty and "2 criteria with fewer than 5 labels" in str(report)


def test_labels_that_do_not_match_are_named_beside_a_verdict():
    tasks, labels, verdicts = material(4)
    other = [verdict(v.task_id, "another", v.criterion_id, "met", "human") for v in labels]
    with pytest.raises(DataError, match=r"t0 / another / good.*t0 / r / good"):
        agreement_report(tasks, other, verdicts)


def test_labels_without_a_verdict_are_counted_and_the_first_is_named(caplog, tmp_path):
    tasks, labels, verdicts = material(20)
    labels[2] = replace(labels[2], response_id="another")
    labels[5] = replace(labels[5], criterion_id="elsewhere")
    rate(tasks, labels, verdicts, design="random")
    view(verdicts, tasks=tasks, labels=labels, out=tmp_path / "page.html")
    assert caplog.text.count("left out: 2 of 40, first that of t1 / another / good") == 2
    # Without the answers there is nothing to print of them.
    assert "answer: " not in str(agreement_report(tasks.tasks, labels, verdicts))
