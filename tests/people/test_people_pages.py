"""Rows to label, as a CSV file and back; one page of judgments."""

import json
import re
import shutil
from collections import Counter

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kit
from kit.data import TaskSet
from kit.errors import DataError
from kit.people import label, save_labels, view
from kit.records import Criterion, Grade, Response, Task, Verdict

CRITERIA = (
    Criterion(id="a", text="Names the river."),
    Criterion(id="b", text="How polite?", scale="ordinal", levels=("rude", "plain", "kind")),
    Criterion(id="c", text="Is JSON.", check={"name": "json"}),
)


def answers(n=10, each=2, text="An answer."):
    tasks = [Task(id=f"t{i}", prompt=f"Question {i}?", criteria=CRITERIA) for i in range(n)]
    made = [Response(task_id=t.id, id=f"r{k}", text=text) for t in tasks for k in range(each)]
    return TaskSet(tasks=tasks, responses=made)


def verdict(task, response, criterion="a", **more):
    fields = {"status": "met", "judge": "j", **more}
    return Verdict(task_id=task, response_id=response, criterion_id=criterion, **fields)


# -- labels --------------------------------------------------------------------
def test_rows_are_drawn_at_random_with_their_probability():
    rows = label(answers(), n=10)
    assert len(rows) == 10 and set(rows["inclusion"]) == {10 / 40}
    assert set(rows["criterion_id"]) <= {"a", "b"}  # code decides the third
    assert set(rows["label"]) == {""}
    assert rows.equals(label(answers(), n=10)) and not rows.equals(label(answers(), n=10, seed=1))


def test_whole_prompts_are_drawn_with_all_their_rows():
    rows = label(answers(), n=10, whole=True)
    assert Counter(rows["task_id"].value_counts()) == {4: 5}  # at least five prompts
    assert set(rows["inclusion"]) == {0.5}
    assert len(label(answers(), n=1000, whole=True)) == 40


def test_every_row_is_drawn_equally_often():
    draws = [
        tuple(r)
        for s in range(300)
        for r in label(answers(3, 1), n=2, seed=s).iloc[:, :3].to_numpy()
    ]
    counts = Counter(draws)
    assert len(counts) == 6 and min(counts.values()) > 60


def test_only_rows_that_the_judge_decided_are_drawn():
    verdicts = [verdict("t1", "r0"), verdict("t2", "r0", "c", judge="code")]
    rows = label(answers(), verdicts=verdicts)
    assert rows[["task_id", "response_id", "criterion_id"]].to_numpy().tolist() == [
        ["t1", "r0", "a"]
    ]


@pytest.mark.parametrize("whole", [False, True])
def test_a_second_draw_goes_on_where_the_first_one_ended(whole):
    first = label(answers(), n=16, whole=whole, seed=3)
    labels = [verdict(*row[:3], judge="human", meta={"inclusion": 0.4}) for row in first.to_numpy()]
    second = label(answers(), n=100, labels=labels, whole=whole)
    assert (
        first.merge(second, on=["task_id"] if whole else [*first.columns[:3]]).empty
        and len(first) + len(second) == 40
    )
    assert set(second["inclusion"]) == {0.4}


def test_nothing_to_label_is_an_error():
    labels = [verdict(*row[:3], judge="human") for row in label(answers(), n=99).to_numpy()]
    for tasks in (TaskSet(tasks=[Task(id="t", prompt="p")]), answers()):
        with pytest.raises(DataError, match="nothing to label"):
            label(tasks, labels=labels)


def test_a_filled_table_is_read_back(tmp_path):
    rows = label(answers(), n=40)
    rows["label"] = ["kind" if c == "b" else "met" for c in rows["criterion_id"]]
    rows.loc[0, "label"] = ""
    rows["rater"] = "ann"
    path = save_labels(rows, tmp_path / "labels.csv")
    labels = kit.load(path)
    assert len(labels.verdicts) == 39
    assert {(v.judge, v.value) for v in labels.verdicts} == {("human:ann", 1.0)}
    assert {v.meta["inclusion"] for v in labels.verdicts} == {1.0}
    assert len(answers().joined(labels).verdicts) == 39


def test_a_file_that_exists_is_never_replaced(tmp_path):
    path = save_labels(label(answers()), tmp_path / "labels.csv")
    with pytest.raises(DataError, match="exists"):
        save_labels(label(answers()), path)


FORMULA = st.sampled_from(["=1+1", "+1", "-1", "@x", "=HYPERLINK(1)", "plain", "'quoted"])


@settings(max_examples=25, deadline=None)
@given(name=FORMULA, text=FORMULA)
def test_no_cell_is_a_formula_and_ids_come_back(tmp_path_factory, name, text):
    task = Task(id=name, prompt=text, criteria=(Criterion(id=name, text=text),))
    rows = label(TaskSet(tasks=[task], responses=[Response(task_id=name, id=name, text=text)]))
    rows["label"] = "met"
    path = save_labels(rows, tmp_path_factory.mktemp("labels") / "labels.csv")
    cells = pd.read_csv(path, dtype=str).fillna("").to_numpy().ravel()
    assert not any(cell.startswith(("=", "+", "-", "@")) for cell in cells)
    assert kit.load(path).verdicts[0].ids == (name, name, name)


# -- the page ------------------------------------------------------------------
HOSTILE = "</script><img src=x onerror=alert(1)><!-- {{ data }}"


def content(path):
    """The data of a page."""
    text = path.read_text(encoding="utf-8")
    return json.loads(re.search(r'id="data">(.*?)</script>', text, re.S)[1])


def test_the_page_holds_answers_verdicts_and_labels(tmp_path):
    tasks = answers(2, 1)
    verdicts = [verdict("t0", "r0", reason="It does.", p=0.9), verdict("t1", "r0", status="unmet")]
    labels = [verdict("t0", "r0", status="unmet", judge="human:ann")]
    data = content(view(verdicts, tasks=tasks, labels=labels, out=tmp_path / "page.html"))
    assert [t["prompt"] for t in data["tasks"].values()] == ["Question 0?", "Question 1?"]
    first = data["answers"][0]
    assert (first["text"], first["score"], data["graded"]) == ("An answer.", None, False)
    row = first["verdicts"][0]
    assert (row["status"], row["human"], row["reason"], row["p"]) == ("met", 0.0, "It does.", 0.9)
    assert data["answers"][1]["verdicts"][0]["human"] is None


def test_grades_have_scores(tmp_path):
    grade = Grade(task_id="t0", response_id="r0", score=0.5, score_low=0.5, score_high=0.5,
                  verdicts=(verdict("t0", "r0"),))  # fmt: skip
    data = content(view([grade], tasks=answers(1, 1), out=tmp_path / "page.html"))
    assert (data["answers"][0]["score"], data["graded"]) == (0.5, True)
    # a verifier decides without a verdict: the answer is shown with the parts of its reward
    grade = Grade(task_id="t0", response_id="r0", score=0.5, score_low=0.5, score_high=0.5,
                  parts={"factual": 0.5, "direction": None})  # fmt: skip
    data = content(view([grade], tasks=answers(1, 1), out=tmp_path / "page.html"))
    assert data["answers"][0]["parts"] == {"factual": 0.5, "direction": None}
    assert (data["answers"][0]["text"], data["answers"][0]["verdicts"]) == ("An answer.", [])


def test_hostile_text_stays_text(tmp_path):
    task = Task(id=HOSTILE, prompt=HOSTILE, criteria=(Criterion(id="a", text=HOSTILE),))
    tasks = TaskSet(tasks=[task], responses=[Response(task_id=HOSTILE, id="r", text=HOSTILE)])
    rows = [verdict(HOSTILE, "r", reason=HOSTILE)]
    path = view(rows, tasks=tasks, out=tmp_path / "page.html", title=HOSTILE)
    text = path.read_text(encoding="utf-8")
    assert "<img" not in text and text.count("</script>") == 2
    assert content(path)["answers"][0]["text"] == HOSTILE
    assert "default-src 'none'" in text and "http://" not in text and "https://" not in text


def test_a_page_of_a_thousand_answers_is_small(tmp_path):
    tasks = answers(200, 5, text="A sentence of an answer that says something. " * 12)
    rows = [
        verdict(r.task_id, r.id, c, reason="The second sentence says it.", p=0.75)
        for r in tasks.responses
        for c in ("a", "b")
    ]
    path = view(rows, tasks=tasks, out=tmp_path / "page.html")
    assert path.stat().st_size < 2_000_000


@pytest.mark.parametrize(
    ("rows", "fault"), [([], "no verdict"), ([verdict("elsewhere", "r0")], "no task 'elsewhere'")]
)
def test_verdicts_without_tasks_are_an_error(tmp_path, rows, fault):
    with pytest.raises(DataError, match=fault):
        view(rows, tasks=answers(), out=tmp_path / "page.html")


def test_the_page_filters_in_a_browser(tmp_path):
    playwright = pytest.importorskip("playwright.sync_api")
    path = next((p for n in ("chromium", "google-chrome") if (p := shutil.which(n))), None)
    if path is None:
        pytest.skip("no Chromium is installed")
    rows = [
        verdict("t0", "r0", reason=HOSTILE),
        verdict("t1", "r0", status="unmet", reason="Quartz."),
    ]
    labels = [verdict("t1", "r0", judge="human")]
    file = view(rows, tasks=answers(), labels=labels, out=tmp_path / "page.html")
    with playwright.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 390, "height": 800}, color_scheme="dark")
        errors = []
        page.on("pageerror", lambda e: errors.append(str(e)))
        page.goto(file.as_uri())
        assert page.inner_text("#count") == "2 of 2 answers, 2 verdicts"
        page.select_option("#status", "apart")
        assert page.inner_text("#count") == "1 of 2 answers, 1 verdict"
        assert "the judge disagrees" in page.inner_text("article")
        page.select_option("#status", "")
        page.fill("#words", "quartz")
        assert page.locator("article").count() == 1
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert page.locator("img").count() == 0 and errors == []
        browser.close()
