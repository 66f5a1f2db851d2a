"""Parameters of a notebook: which of them are paths, their ranges and names."""

import json

import pytest

from kit.errors import DataError, MissingError
from kit.runs import parameters

CELL = """n_answers = 8  # answers, in [1, 16]
rubrics = ""
my_rubrics = "long"
tasks_file = ""
answers = [""]
share = 0.25  # held out, in (0, 1)
rate = 0.0  # at least 0.5; 0: that of the profile
metric = "gain"  # the result; one of: gain, loss
judge = "code"  # who decides
text = "é"  # with = and "quotes"
"""


@pytest.fixture
def notebook(tmp_path):
    cell = {"cell_type": "code", "metadata": {"tags": ["parameters"]}, "source": CELL}
    path = tmp_path / "small.ipynb"
    path.write_text(json.dumps({"cells": [cell]}), "utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("n_answers", 16, 16),  # the name ends like a path's, the value is a number
        ("n_answers", "16", 16),
        ("my_rubrics", "short", "short"),
        ("answers", ["b"], ["b"]),
        ("tasks_file", "hf://owner/name", "hf://owner/name"),
        ("tasks_file", "", ""),
        ("share", 0.999, 0.999),
        ("rate", 0, 0.0),  # the default may always be written
        ("rate", 0.5, 0.5),
        ("metric", "loss", "loss"),
        ("judge", "replay:small", "replay:small"),
    ],
)
def test_a_value_that_fits(notebook, name, value, expected):
    assert parameters.check(notebook, {name: value})[name] == expected


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("n_answers", 17, "<= 16"),
        ("n_answers", 0, ">= 1"),
        ("n_answers", True, "n_answers = True"),
        ("share", 3, "< 1"),
        ("share", 0, "> 0"),
        ("share", "inf", "not a finite number"),
        ("rate", 0.1, ">= 0.5"),
        ("metric", "nothing", "valid names: gain, loss"),
        ("judge", "nobody", "there is no judge"),
    ],
)
def test_ranges_and_names_are_checked_before_a_kernel_starts(notebook, name, value, message):
    with pytest.raises(DataError, match=message):
        parameters.check(notebook, {name: value})


@pytest.mark.parametrize("name", ["rubrics", "tasks_file"])
def test_a_path_becomes_absolute_or_is_missing(notebook, name):
    assert parameters.check(notebook, {name: str(notebook)})[name] == str(notebook)
    with pytest.raises(MissingError, match="no such file"):
        parameters.check(notebook, {name: "nowhere.jsonl"})


def test_the_comment_is_the_meaning(notebook):
    meanings = {name: p.meaning for name, p in parameters.read(notebook).items()}
    assert meanings["share"] == "held out, in (0, 1)" and meanings["text"] == 'with = and "quotes"'
