"""Parameters of a notebook: which of them are paths."""

import json

import pytest

from kit.errors import MissingError
from kit.system import parameters

CELL = 'n_answers = 8\nrubrics = ""\nmy_rubrics = "long"\ntasks_file = ""\nanswers = [""]\n'


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
    ],
)
def test_what_is_no_path_stays(notebook, name, value, expected):
    assert parameters.check(notebook, {name: value})[name] == expected


@pytest.mark.parametrize("name", ["rubrics", "tasks_file"])
def test_a_path_becomes_absolute_or_is_missing(notebook, name):
    assert parameters.check(notebook, {name: str(notebook)})[name] == str(notebook)
    with pytest.raises(MissingError, match="no such file"):
        parameters.check(notebook, {name: "nowhere.jsonl"})
