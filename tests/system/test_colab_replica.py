"""A replica of Colab's runtime: its listed packages, the real install cell, then the six notebooks.

The environment is built once (about four minutes). Colab's pip, kernel and packages have the listed versions.
KIT_COLAB_PYTHON: the Python to use, best Colab's own 3.13; else the one that runs the tests, with its build of torch.
KIT_COLAB_RUNTIME: a folder that keeps the built environment for the next run.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from test_colab import listed_versions

from kit.system import paths

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
PYTHON = os.environ.get("KIT_COLAB_PYTHON", sys.executable)
CELL = (paths.ROOT / "kit" / "system" / "colab_cell.txt").read_text("utf-8")
BOOKS = sorted((paths.ROOT / "notebooks").glob("[0-9]*.ipynb"))
# Colab itself brings these, or they change with the build of torch or are for Python 3.13 alone.
NOT_COMPARED = {*"torch torchvision torchaudio triton setuptools wheel audioop-lts".split()}


def output(*command: str | Path, **variables: str) -> str:
    """What a command prints; its last lines of errors where it fails."""
    result = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, env={**os.environ, **variables}
    )
    assert result.returncode == 0, result.stderr[-3000:]
    return result.stdout


def packages_of(environment: Path) -> dict[str, str]:
    code = "from kit.system.colab import installed_versions; print(*map('='.join, installed_versions().items()))"
    words = output(environment / "bin/python", "-c", code, PYTHONPATH=str(paths.ROOT)).split()
    return dict(word.split("=") for word in words)


def build_runtime(folder: Path) -> None:
    """An environment with the listed versions. Another Python than the tests' takes the listed torch."""
    versions = listed_versions("cpu")
    theirs = output(PYTHON, "-c", "import sys; print(*sys.version_info[:2])").split()
    torch = versions["torch"].partition("+")[0]
    if theirs == [str(n) for n in sys.version_info[:2]]:
        torch = metadata.version("torch").partition("+")[0]
    output(PYTHON, "-m", "venv", folder)
    pip = [folder / "bin/python", "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    output(*pip, "pip==24.1.2", *(f"{n}=={versions[n]}" for n in ("setuptools", "wheel")))
    pins = [f"{n}=={v}" for n, v in versions.items() if n not in NOT_COMPARED]
    output(*pip, "--no-deps", *pins)
    constraints = folder / "constraints.txt"
    constraints.write_text("\n".join(pins))
    output(*pip, "-c", constraints, f"torch=={torch}")
    (folder / "complete").touch()


@pytest.fixture(scope="module")
def runtime(tmp_path_factory) -> Path:
    """The pristine environment."""
    folder = Path(
        os.environ.get("KIT_COLAB_RUNTIME") or tmp_path_factory.mktemp("colab") / "runtime"
    )
    if not (folder / "complete").exists():
        build_runtime(folder)
    return folder


class Colab:
    """A copy of the runtime, in which notebooks run one after another, each on a fresh kernel."""

    def __init__(self, runtime: Path, folder: Path):
        self.environment, self.folder = folder / "runtime", folder
        # Links are enough: pip replaces files and writes into none.
        shutil.copytree(runtime, self.environment, symlinks=True, copy_function=os.link)
        kernel = folder / "jupyter" / "kernels" / "colab"
        kernel.mkdir(parents=True)
        python = str(self.environment / "bin/python")
        argv = [python, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        spec = {"argv": argv, "display_name": "Colab", "language": "python"}
        (kernel / "kernel.json").write_text(json.dumps(spec))

    def execute(self, book, **variables: str) -> str:
        """Run a notebook; returns the text that it printed."""
        from nbclient import NotebookClient

        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("JUPYTER_PATH", str(self.folder / "jupyter"))
            patch.setenv("PATH", f"{self.environment / 'bin'}{os.pathsep}{os.environ['PATH']}")
            for name, value in variables.items():
                patch.setenv(name, value)
            where = {"metadata": {"path": str(self.folder)}}
            NotebookClient(book, timeout=600, kernel_name="colab", resources=where).execute()
        outputs = [o for cell in book.cells for o in cell.get("outputs", ())]
        return "".join(o.text for o in outputs if o.output_type == "stream")

    def install(self, before: str = "") -> str:
        """The real install cell, on a kernel that ran another cell before."""
        from nbformat import v4

        book = v4.new_notebook(cells=[v4.new_code_cell(before), v4.new_code_cell(CELL)])
        return self.execute(book, COLAB_RELEASE_TAG="replica", KIT_REPO=str(paths.ROOT))


@pytest.fixture(scope="module")
def colab(runtime, tmp_path_factory) -> Colab:
    """The runtime after the install cell."""
    made = Colab(runtime, tmp_path_factory.mktemp("installed"))
    assert "Ready. No restart is needed." in made.install()
    return made


def test_pip_resolves_at_the_first_try_and_replaces_only_what_it_must(runtime, colab):
    before, after = packages_of(runtime), packages_of(colab.environment)
    changed = {name for name in before if after.get(name) != before[name]}
    assert {"datasets", "openai", "pyarrow", "torchao"} <= changed
    stay = {"torch", "numpy", "pandas", "scipy", "transformers", "peft", "ipykernel", "ipywidgets"}
    assert not changed & stay and len(changed) <= 12, changed


@pytest.mark.parametrize("path", BOOKS, ids=lambda path: path.stem)
def test_each_notebook_runs(colab, path, tmp_path):
    import nbformat

    colab.execute(nbformat.read(path, 4), KIT_PROFILE="test", KIT_RUNS=str(tmp_path))
    (record,) = tmp_path.glob(f"{path.stem}-*/run.json")
    assert json.loads(record.read_text("utf-8"))["status"] == "done"


def test_a_loaded_package_that_must_change_asks_for_a_restart_once(runtime, tmp_path):
    from nbclient.exceptions import CellExecutionError

    replica = Colab(runtime, tmp_path)
    with pytest.raises(CellExecutionError, match="pyarrow changed under the running kernel"):
        replica.install(before="import pandas")
    assert "Ready. No restart is needed." in replica.install(before="import pandas")


def test_what_a_gpu_needs_resolves_too(colab):
    code = "from kit.system import colab; colab.setup(gpu=True)"
    assert "Ready" in output(colab.environment / "bin/python", "-c", code)
    assert {"unsloth", "unsloth-zoo", "bitsandbytes"} <= packages_of(colab.environment).keys()
