"""One reader of settings: a wrong name, a wrong type and a broken file each say where, and what was meant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pytest

from kit.errors import KitError, MissingError
from kit.settings import read


@dataclass(frozen=True, kw_only=True)
class Small:
    steps: int = 1
    lr: float = 0.1
    how: Literal["std", "batch"] = "std"
    layers: str | tuple[str, ...] = "all"
    name: str | None = None


def test_values_come_as_their_types():
    made = read.make(Small, {"steps": 3.0, "lr": 1, "layers": ["a", "b"], "name": None})
    assert made == Small(steps=3, lr=1.0, layers=("a", "b"))
    assert isinstance(made.lr, float)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"stepz": 3}, "did you mean 'steps'"),
        ({"lr": "1e-5"}, "'1e-5' is not a number"),
        ({"steps": True}, "setting steps"),
        ({"steps": 2.5}, "setting steps"),
        ({"how": "stdd"}, "setting how"),
        ({"layers": [1]}, "setting layers"),
    ],
)
def test_wrong_values_say_what_and_where(values, said):
    with pytest.raises(KitError) as e:
        read.make(Small, values, where="my.yaml")
    assert said in str(e.value) and "my.yaml" in str(e.value)


def test_a_broken_file_names_its_line(tmp_path):
    (tmp_path / "a.yaml").write_text("steps: 1\nlr: [1, 2\n")
    (tmp_path / "b.json").write_text('{"steps": 1,\n')
    (tmp_path / "c.yaml").write_text("- 1\n")
    for name, said in (("a.yaml", "line 3"), ("b.json", "line 2"), ("c.yaml", "not a mapping")):
        with pytest.raises(KitError, match=said):
            read.load(tmp_path / name)
    with pytest.raises(MissingError):
        read.load(tmp_path / "none.yaml")


def test_a_date_is_a_name_and_a_number_is_what_it_looks_like():
    """`out: 2026-01-01` ended in a TypeError, `1:30` was 90 steps, `010` the seed 8, and `0o10` a text."""
    from kit.settings.read import parse
    from kit.train import chain, job

    read = parse("[2026-01-01, 1:30, 010, 0o10, 0x1F, 1_000, 4e-5, 1.5, .5, -3, +2.0, 1_, 1.2.3]")
    assert read == ["2026-01-01", "1:30", 10, 8, 31, 1000, 4e-5, 1.5, 0.5, -3, 2.0, "1_", "1.2.3"]
    assert parse("[.inf, -.inf]") == [float("inf"), -float("inf")]
    for name in ("out", "ledger", "tasks", "holdout_by"):
        with pytest.raises(KitError, match=f"{name} is True, and no text(?s:.*)quotes"):
            job.build({"tasks": "short_answers.json", name: True})
    with pytest.raises(KitError, match="out is 5, and no text"):
        chain.build({"stages": [{"stage": "sft"}], "out": 5})
