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
        ({"lr": "1e-5"}, "write 1.0e-5"),
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
            read.read(Small, tmp_path / name)
    with pytest.raises(MissingError):
        read.read(Small, tmp_path / "none.yaml")


def test_changes_replace_values_of_the_file(tmp_path):
    (tmp_path / "a.yaml").write_text("steps: 4\nlr: 1.0e-4\n")
    assert read.read(Small, tmp_path / "a.yaml", steps=9) == Small(steps=9, lr=1e-4)
