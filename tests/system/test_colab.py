"""The install cell of Colab: asks for what is missing, keeps what is there, says when to restart."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from kit import system
from kit.system import paths


@pytest.fixture
def colab(monkeypatch):
    """The module, with a fake pip that records its calls and may change the versions."""
    import importlib

    module = importlib.import_module(f"{system.__name__}.colab")
    state = SimpleNamespace(module=module, calls=[], constraints=[], versions={}, after={}, fails=0)

    def pip(command, **_):
        state.calls.append(command[command.index("-c") + 2 :])
        state.constraints.append(Path(command[command.index("-c") + 1]).read_text().split())
        if state.fails:
            state.fails -= 1
            return SimpleNamespace(returncode=1, stderr="conflict")
        state.versions |= state.after
        return SimpleNamespace(returncode=0, stderr="")

    monkeypatch.setattr(module.subprocess, "run", pip)
    monkeypatch.setattr(module, "versions", lambda: dict(state.versions))
    monkeypatch.setattr(module, "modules_in_use", lambda: {"numpy", "pandas"})
    needs = [
        module._packaging("requirements").Requirement(t)
        for t in ("numpy>=1.26", "trl==1.14.2", "openai[aiohttp]>=3.50")
    ]
    gpu = [
        module._packaging("requirements").Requirement(t) for t in ("unsloth==2026.10.9", "einops")
    ]
    monkeypatch.setattr(
        module, "requirements", lambda *extras: needs + (gpu if "gpu" in extras else [])
    )
    return state


def test_only_what_is_missing_is_installed_beside_what_is_there(colab, capsys):
    colab.versions = {"numpy": "2.0.2", "torch": "2.11.0+cu128", "openai": "1.0"}
    colab.module.setup(gpu=False)
    assert colab.calls == [["trl[]==1.14.2", "openai[aiohttp]>=3.50"]]
    assert colab.constraints == [["numpy==2.0.2", "torch==2.11.0+cu128"]]
    assert "No restart" in capsys.readouterr().out


def test_a_package_that_changed_under_the_kernel_asks_for_a_restart(colab):
    colab.versions, colab.after = {"numpy": "1.20", "pandas": "2.2"}, {"numpy": "2.4.6"}
    with pytest.raises(RuntimeError, match="numpy changed under the running kernel"):
        colab.module.setup(gpu=False)


def test_where_not_all_can_stay_the_loaded_ones_and_torch_do(colab):
    colab.versions = {"numpy": "2.0.2", "torch": "2.11.0", "fastai": "2.7"}
    colab.fails = 1
    colab.module.setup(gpu=False)
    assert colab.constraints == [
        ["numpy==2.0.2", "torch==2.11.0", "fastai==2.7"],
        ["numpy==2.0.2", "torch==2.11.0"],
    ]


def test_a_failure_says_what_pip_said(colab):
    colab.fails = 2
    with pytest.raises(RuntimeError, match="conflict"):
        colab.module.setup(gpu=False)


def test_unsloth_goes_in_without_its_own_dependencies(colab):
    colab.module.setup(gpu=True)
    assert colab.calls[-1] == ["--no-deps", "unsloth[]==2026.10.9"]
    assert not any("unsloth" in word for call in colab.calls[:-1] for word in call)


def test_nothing_missing_calls_no_pip(colab):
    colab.versions = {"numpy": "2.0.2", "trl": "1.14.2", "openai": "3.52.0"}
    colab.module.setup(gpu=False)
    assert colab.calls == []


def test_it_needs_the_standard_library_only():
    names = "{m.split('.')[0] for m in sys.modules} - set(sys.stdlib_module_names)"
    code = f"import sys; import kit.system.colab; print(*{names})"
    out = subprocess.run(
        [sys.executable, "-S", "-c", code],
        cwd=paths.ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert set(out.stdout.split()) <= {"kit", "__main__", "sitecustomize", "usercustomize"}


def test_the_cell_does_nothing_elsewhere_and_is_printed():
    command = [sys.executable, "-m", "kit.system.colab"]
    cell = subprocess.run(
        command, cwd=paths.ROOT, capture_output=True, text=True, check=True
    ).stdout
    before = set(sys.modules)
    exec(compile(cell, "cell", "exec"), {})
    assert "colab.setup()" in cell and not {
        m for m in set(sys.modules) - before if m.startswith("torch")
    }
