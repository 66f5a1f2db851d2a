"""Notebook parameters: what papermill lets through in silence is refused or settled here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kit import runs
from kit.errors import KitError, MissingError
from kit.settings import params
from kit.system import paths

CELL = "learning_rate = 1.0e-4  # per step\nsteps = 10\nname = 'x'\nflag = True\nlimit: Optional[int] = None  # rows = all\nsizes = [1, 2]"


def notebook(path: Path, cell: str = CELL, tags: tuple[str, ...] = ("parameters",)) -> Path:
    path.write_text(
        json.dumps(
            {
                "cells": [
                    {
                        "cell_type": "code",
                        "metadata": {"tags": list(tags)},
                        "source": cell,
                        "outputs": [],
                        "execution_count": None,
                    }
                ],
                "metadata": {},
                "nbformat": 4,
                "nbformat_minor": 5,
            }
        )
    )
    return path


def test_declared_types(tmp_path: Path) -> None:
    known = params.parameters(notebook(tmp_path / "n.ipynb"))
    assert {n: p.type for n, p in known.items()} == {
        "learning_rate": "float",
        "steps": "int",
        "name": "str",
        "flag": "bool",
        "limit": "int",
        "sizes": "list",
    }
    assert known["limit"].optional and known["learning_rate"].comment == "per step"


@pytest.mark.parametrize(
    "note",
    ["int | None", "None | int", "Optional[int]", "list[str] | None", "typing.Optional[str]"],
)
def test_a_default_of_none_with_its_type(note: str) -> None:
    """Only `Optional[int]` was known, which ends in a NameError where nothing imports it."""
    kept = params.parse(f"x: {note} = None")["x"]
    assert kept.optional and kept.type in ("int", "list", "str")
    with pytest.raises(KitError, match=r"int \| None"):
        params.parse("x = None")


def test_unknown_name_is_refused_with_the_nearest(tmp_path: Path) -> None:
    """papermill only warned about `learning_rat=` and trained at the default."""
    with pytest.raises(KitError, match="did you mean 'learning_rate'"):
        params.check(notebook(tmp_path / "n.ipynb"), {"learning_rat": "1e-5"})


def test_yaml_text_number_becomes_a_number(tmp_path: Path) -> None:
    """YAML reads 1e-5 as text; the notebook then compared text with numbers."""
    values, notes = params.check(
        notebook(tmp_path / "n.ipynb"), {"learning_rate": "1e-5", "steps": "3", "limit": "none"}
    )
    assert values == {"learning_rate": 1e-5, "steps": 3, "limit": None}
    assert any("'1e-5' (text) -> 1e-05 (float)" in n for n in notes)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("steps", "3.5"),
        ("steps", True),
        ("steps", "ten"),
        ("flag", "maybe"),
        ("flag", 2),
        ("name", 3),
        ("sizes", "{}"),
        ("steps", None),
        ("learning_rate", "1e"),
        ("steps", "nan"),
        ("steps", "inf"),
    ],
)
def test_another_type_is_refused(tmp_path: Path, name: str, value: object) -> None:
    with pytest.raises(KitError) as e:
        params.check(notebook(tmp_path / "n.ipynb"), {name: value})
    assert name in str(e.value) and "default" in str(e.value)


@pytest.mark.parametrize("cell", ["x = f(1)", "x = None", "x, y = 1, 2", "x += 1"])
def test_cells_that_hold_more_than_literals(tmp_path: Path, cell: str) -> None:
    with pytest.raises(KitError, match="line 1"):
        params.parameters(notebook(tmp_path / "n.ipynb", cell))


def test_broken_files(tmp_path: Path) -> None:
    (tmp_path / "b.ipynb").write_text('{"cells": [\n oops')
    with pytest.raises(KitError, match="line 2"):
        params.parameters(tmp_path / "b.ipynb")
    with pytest.raises(MissingError):
        params.parameters(tmp_path / "absent.ipynb")
    with pytest.raises(KitError, match="found 0"):
        params.parameters(notebook(tmp_path / "n.ipynb", tags=()))


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    st.one_of(
        st.integers(-(10**9), 10**9),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(max_size=8),
        st.booleans(),
        st.none(),
        st.lists(st.integers(), max_size=3),
    )
)
def test_coercion_gives_the_type_or_an_error(value: object) -> None:
    for p in params.parse(CELL).values():
        try:
            new, note = params.coerce(p, value)
        except KitError:
            continue
        assert (new is None and p.optional) or type(new).__name__ == p.type
        assert bool(note) == (type(new) is not type(value) or new != value)


@pytest.mark.parametrize(
    ("book", "name", "bad", "good"),
    [
        ("01_inspect_rubrics", "heldout_share", 1.5, 0.5),
        ("02_tune_judge", "limit", -5, 60),
        ("02_tune_judge", "label_half_width", 0.0, 0.1),
        ("03_train_grpo", "advantage", "foo", "batch"),
        ("03_train_grpo", "group_size", 1, 4),
        ("04_plot_calibration", "threshold", 1.0, 5.0),
        ("04_plot_calibration", "bins", -3, 0),
    ],
)
def test_values_that_cannot_work_are_found_before_the_first_cell(
    tmp_path, monkeypatch, book, name, bad, good
):
    """heldout_share = 1.5 in the last cell of 26; limit = -5 took all rows but five; a threshold
    that leaves one class came up in cell 14, after the sealed test was read."""
    path = paths.notebooks(f"{book}.ipynb")
    assert params.check(path, {name: good})[0] == {name: good}
    for begin in (lambda: params.check(path, {name: bad}), lambda: runs.start(book, **{name: bad})):
        monkeypatch.setenv("KIT_RUNS", str(tmp_path))
        with pytest.raises(KitError, match=f"{name} = .* cannot be"):
            begin()


def test_a_number_that_plain_papermill_passes_as_text_is_refused_at_once(tmp_path, monkeypatch):
    """learning_rate: 1e-5 in YAML is text: it passed the start and ended notebook 3 in cell 15."""
    monkeypatch.setenv("KIT_RUNS", str(tmp_path))
    with pytest.raises(KitError, match="is text"):
        runs.start("03_train_grpo", learning_rate="1e-5")
