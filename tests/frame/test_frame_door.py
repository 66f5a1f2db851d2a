"""The front door: its names, the two rooms that are verbs, tables between records and statistics,
one plot.
"""

from __future__ import annotations

import ast
import inspect
import math
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import kit
from kit import front, plots
from kit.data.taskset import TaskSet
from kit.errors import KitError
from kit.records import Criterion, Task, Verdict
from kit.system import paths

DOOR = Path(kit.__file__)


def clean(code: str) -> str:
    """What a fresh Python prints."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ
    )
    return done.stdout.strip()


def test_every_name_leads_somewhere_and_editors_see_the_same_names():
    for door in front.DOORS:
        assert getattr(kit, door.name) is not None, door
    seen = {
        alias.asname or alias.name
        for node in ast.walk(ast.parse(DOOR.read_text()))
        if isinstance(node, ast.If)
        for inner in node.body
        if isinstance(inner, ast.ImportFrom)
        for alias in inner.names
    }
    assert seen == {door.name for door in front.DOORS}
    assert {door.name for door in front.DOORS} <= set(dir(kit))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="kit.guide"):
        kit.jugde  # noqa: B018


@pytest.mark.parametrize("order", ["import kit, kit.judge.run", "import kit.judge; import kit"])
def test_a_room_is_a_verb_whatever_was_imported_first(order):
    code = f"{order}; import inspect; print(list(inspect.signature(kit.judge).parameters)[:3])"
    assert clean(code) == "['tasks', 'responses', 'judge']"


def test_editors_see_the_function_behind_a_room():
    assert inspect.getsource(kit.judge).startswith("def judge(")
    assert inspect.getsource(kit.train).startswith("def train(")
    assert kit.judge.Ledger is kit.Ledger
    assert pickle.loads(pickle.dumps(kit.judge)) is kit.judge


def test_nothing_heavy_is_imported():
    heavy = ("numpy", "pandas", "torch", "plotly", "scipy", "yaml", "msgspec")
    code = f"import kit, sys; kit.guide(); print([m for m in {heavy} if m in sys.modules])"
    assert clean(code) == "[]"


def test_the_guide_names_every_door_in_text_and_html():
    text, page = repr(kit.guide()), kit.guide()._repr_html_()
    for door in front.DOORS:
        assert f"kit.{door.name} " in text and f"kit.{door.name}<" in page
    assert {d.step for d in kit.guide("judge")} == {"judge"}


@pytest.fixture(scope="module")
def labelled():
    return kit.load(paths.data("rubrics.json")).joined(kit.load(paths.data("answers.jsonl")))


def test_two_line_cells(labelled):
    verdicts = kit.judge(labelled, progress=False)
    grades = kit.grade(labelled, verdicts)
    assert len(grades) == len(labelled.responses)
    frame = verdicts.table(human=labelled)
    assert len(frame) == len(verdicts) == len(kit.table(verdicts))
    known = frame[frame["correct"].notna()]
    assert set(known["correct"]) <= {0.0, 1.0}
    assert kit.mean(known, "correct", cluster="task").n == len(known)
    found = kit.agree(frame, "value", "human", cluster="task", threshold=0.5)
    assert kit.plot(found).data and kit.plot({"code": found}).data


def test_half_a_character_ends_no_table():
    """An emoji cut in two is valid JSON: every table ended in a UnicodeEncodeError of pyarrow."""
    c = Criterion(id="c", text="x \udc00")
    t = Task(id="t", prompt="say \ud83d", criteria=(c,))
    one = Verdict(task_id="t", response_id="r", criterion_id="c", status="met", reason="\ud83d")
    frame = kit.table([one], tasks=[t])
    assert frame[["prompt", "text", "reason"]].values.tolist() == [["say ?", "x ?", "?"]]


def test_unknown_stays_unknown_in_the_table(labelled):
    frame = kit.judge(labelled, progress=False).table(human=labelled)
    lost = frame[frame["status"] == "unknown"]
    assert len(lost) and lost["value"].isna().all() and lost["correct"].isna().all()
    grades = kit.grade(labelled, kit.judge(labelled, progress=False)).table()
    assert grades["score"].isna().any() and (grades["low"] <= grades["high"]).all()


def test_tables_of_grades_know_who_wrote_the_answer(labelled):
    grades = kit.grade(labelled, labelled.verdicts)
    frame = grades.table(tasks=labelled)
    assert {"good", "attack"} <= set(frame["source"])
    assert "raw repr" not in repr(grades) and "grades" in repr(grades)


def test_a_table_shows_hostile_text_as_text():
    from kit.tables import Shown, rows_html

    page = rows_html(["<i>"], [["<script>"], [None]], caption="<b>")
    assert "<script>" not in page and "<i>" not in page and "<b>" not in page
    assert "&lt;b" in Shown([{"a": "<b"}])._repr_html_()


def test_answers_are_asked_for_where_there_are_none():
    tasks = kit.load([{"prompt": "Say hi.", "rubrics": ["It greets."]}])
    for call in (lambda: kit.judge(tasks.tasks), lambda: kit.grade(tasks.tasks, [])):
        with pytest.raises(KitError, match="answers"):
            call()


def test_judges_by_name():
    assert kit.judge_of(None).name == "code"
    made = kit.judge_of({"endpoint": "m", "base_url": "http://127.0.0.1:9/v1", "tries": 1})
    assert "m" in made.name
    for wrong, said in (
        ("endpiont:m", "did you mean 'endpoint'"),
        ({"endpoint": "m", "base_ur": "x"}, "did you mean 'base_url'"),
        ({"replay": "gpt-4o", "how": "one"}, "threshold"),
        (3, "names no judge"),
    ):
        with pytest.raises(KitError, match=said):
            kit.judge_of(wrong)


def test_every_picture_is_there_and_what_has_none_is_told():
    for table in (plots.ONE, plots.NAMED, plots.SEVERAL):
        for target in table.values():
            assert callable(plots._function(target)), target
    with pytest.raises(KitError, match="no picture of int"):
        kit.plot(3)


def test_plot_finds_the_room_of_a_result():
    rng = np.random.default_rng(0)
    p = rng.random(80)
    y = rng.random(80) < p
    curve = kit.reliability(p, y, n_boot=20)
    assert kit.plot(curve).data and kit.plot({"a": curve, "b": curve}).data
    assert kit.plot({"a": kit.mean([0, 1, 1])}).data
    assert kit.plot([{"step": 1, "reward": 0.2}, {"step": 2, "reward": 0.4}]).data


def test_a_split_of_the_front_door_holds_whole_groups(labelled):
    made = kit.split(labelled, share=0.3)
    groups = {t.group for t in made.of(labelled, "train")}
    assert not groups & {t.group for t in made.of(labelled, "heldout")}


def test_trivial_policies_are_paid_by_the_reward():
    tasks = kit.load(paths.data("short_answers.json"))
    coded = [t for t in tasks.tasks if all(c.by_code for c in t.criteria)] or tasks.tasks[:4]
    paid = kit.trivial(coded[:4])
    assert set(paid.columns) == {"policy", "task", "score"} and "empty" in set(paid["policy"])


def test_a_table_of_nothing_has_its_columns_and_says_unknown():
    """Notebook 1 died on a file without answers: no column `score`, and `judge` was a number."""
    tasks = TaskSet(tasks=[Task(id="t", prompt="p", criteria=(Criterion(id="c", text="c"),))])
    labels = kit.table([], human=tasks).query("judge.str.startswith('human')")
    assert not len(labels) and math.isnan(kit.mean(labels, "correct", cluster="task").value)
    grades = kit.grade(tasks, []).table(tasks=tasks)
    assert grades.pivot_table(index="task", columns="source", values="score").empty


def test_a_long_table_is_cut_in_text_too():
    """The page showed 8 of 7,270 rows, the text beside it all of them: 734 kB in the notebook."""
    said = repr(kit.show([{"row": i} for i in range(5000)], most=2))
    assert said.splitlines() == ["row: 0", "row: 1", "2 of 5000 rows"]
