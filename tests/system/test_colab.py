"""The install cell of Colab: pip is asked once, torch's build stays, a restart is asked for where it is needed."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest
from packaging.requirements import Requirement

from kit import system
from kit.system import paths

LISTED = Path(__file__).with_name("colab_2026_08.tsv")


def normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name.lower())


def listed_versions(column: str) -> dict[str, str]:
    """Colab's packages and their versions: column "cpu" or "gpu"."""
    header, *rows = [
        line.split("\t")
        for line in LISTED.read_text("utf-8").splitlines()
        if not line.startswith("#")
    ]
    place = header.index(column)
    return {row[0]: row[place] for row in rows if row[place]}


@pytest.fixture
def colab(monkeypatch):
    """The module, with a fake pip that records its calls and may change the versions."""
    module = importlib.import_module(f"{system.__name__}.colab")
    state = SimpleNamespace(
        module=module, calls=[], constraints=[], versions={}, after={}, error=""
    )

    def fake_pip(command, **_):
        place = command.index("-c")
        state.calls.append(command[place + 2 :])
        state.constraints.append(Path(command[place + 1]).read_text().split())
        state.versions |= state.after
        return SimpleNamespace(returncode=int(bool(state.error)), stderr=state.error)

    monkeypatch.setattr(module.subprocess, "run", fake_pip)
    monkeypatch.setattr(module, "installed_versions", lambda: dict(state.versions))
    monkeypatch.setattr(module, "loaded_packages", lambda: {"numpy", "pandas"})
    return state


def test_pip_is_asked_once_and_leaves_the_build_of_torch(colab, capsys):
    colab.versions = {"numpy": "2.0.2", "torch": "2.11.0+cu128", "openai": "1.0"}
    colab.module.setup(gpu=False)
    assert colab.calls == [["rubric-rewards-kit[train,tune,colab]"]]
    assert colab.constraints == [["torch==2.11.0+cu128"]]
    assert "No restart" in capsys.readouterr().out


def test_a_package_that_changed_under_the_kernel_asks_for_a_restart(colab):
    colab.versions, colab.after = {"numpy": "1.20", "pandas": "2.2"}, {"numpy": "2.4.6"}
    with pytest.raises(RuntimeError, match=r"Installed. numpy changed under the running kernel"):
        colab.module.setup(gpu=False)


def test_a_failure_says_what_pip_said(colab):
    colab.error = "conflict"
    with pytest.raises(RuntimeError, match="conflict"):
        colab.module.setup(gpu=False)


def test_unsloth_goes_in_without_its_own_dependencies(colab):
    colab.module.setup(gpu=True)
    needs, (option, *pins) = colab.calls
    assert needs == ["rubric-rewards-kit[train,tune,colab,gpu]"] and option == "--no-deps"
    assert {normalized(Requirement(p).name) for p in pins} == {"unsloth", "unsloth-zoo"}


@pytest.mark.parametrize("column", ["cpu", "gpu"])
def test_the_bounds_replace_only_what_the_kit_cannot_work_with(column):
    project = tomllib.loads((paths.ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = ["train", "tune", "colab"] + ["gpu"] * (column == "gpu")
    needs = project["dependencies"] + [
        need for extra in extras for need in project["optional-dependencies"][extra]
    ]
    versions = listed_versions(column)
    replaced = {
        normalized(r.name)
        for r in map(Requirement, needs)
        if normalized(r.name) in versions
        and not r.specifier.contains(versions[normalized(r.name)], prereleases=True)
    }
    assert replaced == {"datasets", "openai", "torchao"}


@pytest.mark.parametrize("column", ["cpu", "gpu"])
def test_the_versions_are_those_of_colab(shared_data, column):
    source = next((shared_data / "colab").glob(f"{column}_*.txt")).read_text("utf-8")
    pairs = re.findall(r"^([\w.-]+)==(\S+)$", source, re.M)
    pairs += re.findall(r"^(\w+) @ \S*/\1-([\d.]+)%2Bcpu-", source, re.M)
    theirs = {normalized(name): version.removesuffix("+cpu") for name, version in pairs}
    ours = {n: v.removesuffix("+cpu") for n, v in listed_versions(column).items()}
    assert ours.items() <= theirs.items()


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
