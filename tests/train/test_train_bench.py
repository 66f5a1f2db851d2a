"""`kit bench gpu`: real steps on the CPU with the tests' preset; which cells a table gets."""

from __future__ import annotations

import json

import pytest

from kit import __main__ as program
from kit.errors import MissingError
from kit.system import device
from kit.train import bench

ROW = "| `t4` | Qwen3-1.7B, 4-bit, fp16 (Colab T4) | not yet measured | not yet measured |\n"
KIT = {"exit": 0, "steps": 4, "step_s": 8.06, "tokens_per_s": 512.4, "memory": "11.2"}


def test_without_a_gpu_nothing_is_measured_and_the_exit_code_says_so(monkeypatch, capsys):
    monkeypatch.setattr(device, "choose", lambda dtype="auto": device.on_cpu(1))
    monkeypatch.setenv("KIT_PROFILE", "cpu")
    assert program.main(["bench", "gpu"]) == MissingError("", where="").exit_code
    assert "no CUDA GPU" in capsys.readouterr().err


def test_the_plan_names_every_process(capsys):
    args = ["bench", "gpu", "--dry-run", "--preset", "gpu", "--json"]
    assert program.main(args) == 0
    plan = json.loads(capsys.readouterr().out)
    assert list(plan) == list(bench.PARTS) and plan["notebook"][3:5] == ["run", "3"]
    assert len(plan) * bench.LIMIT < 600


def test_a_table_gets_what_was_measured_and_nothing_else(tmp_path):
    """The tables said "not yet measured" for want of a command."""
    path = tmp_path / "03.ipynb"
    other = ROW.replace("t4", "gpu")
    path.write_text(json.dumps({"cells": [{"source": ["é\n", ROW, other]}]}, ensure_ascii=False))
    found = {"kit": KIT, "bare": {**KIT, "step_s": 7.9}, "notebook": {"exit": 0}}
    assert bench.write(tmp_path, found, "t4", 'Tesla "T4"') == ["03.ipynb"]
    first, row, last = json.loads(path.read_text())["cells"][0]["source"]
    assert (first, last) == ("é\n", other) and row.count("|") == 5
    assert "20 minutes of training (150 steps of 8.1 s; bare trainer 7.9 s; 512 tokens/s" in row
    assert row.endswith("| 11.2 GB |\n") and '"T4"' in row
    for part, code in (("notebook", 1), ("notebook", None), ("kit", 1)):
        assert bench.write(tmp_path, {**found, part: {"exit": code}}, "t4", "x") == []
    assert bench.write(tmp_path, found, "test", "x") == []


@pytest.mark.parametrize("part", ["kit", "bare"])
def test_real_steps_are_measured_on_the_cpu(tmp_path, part):
    bench.measure(part, "test", "3", str(tmp_path))
    found = bench.read(tmp_path)
    assert found["steps"] == 2 and 0 < found["step_s"] < 60
    assert 0 < found["tokens_per_s"] * found["step_s"] <= 3 * 8 * 8 and float(found["memory"]) > 0
