"""The install on Colab: what it asks for, what it leaves alone, and (slow) that it resolves and that old plotly and ipywidgets do."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from kit import colab
from kit.system import packages

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent / "colab"
RUNTIME = dict(
    line.strip().split("==")
    for line in (HERE / "runtime_2026_08.txt").read_text().splitlines()
    if "==" in line and line[0] != "#"
)
RUNTIME = {colab.plain(n): v for n, v in RUNTIME.items()}


def wanted(gpu: bool = True) -> list[str]:
    return colab.missing([*colab.ADD, *(colab.UNSLOTH_NEEDS if gpu else ())], RUNTIME)


def test_only_what_is_missing_is_asked_for() -> None:
    names = {colab._requirement(r).name for r in wanted()}
    assert {"trl", "bitsandbytes", "papermill", "openai"} <= names
    assert not names & {
        "torch",
        "transformers",
        "plotly",
        "ipywidgets",
        "numpy",
        "pandas",
        "scipy",
        "peft",
        "accelerate",
    }
    assert "datasets" in names, "datasets 4.0 is excluded by unsloth"
    assert colab.missing(["x>=1"], {"x": "2.0"}) == [] and colab.missing(["x[y]>=1"], {}) == [
        "x[y]>=1"
    ]


def test_everything_else_stays_and_torch_keeps_its_build() -> None:
    text = colab.constraints(RUNTIME, free=wanted())
    for line in (
        "torch==2.11.0+cu128",
        "plotly==5.24.1",
        "ipywidgets==7.7.1",
        f"numpy=={RUNTIME['numpy']}",
        "transformers==5.15.0",
    ):
        assert line + "\n" in text
    assert "datasets" not in text and "openai" not in text
    assert (
        colab.constraints({"python-apt": "2.4.0+ubuntu1", "gyp": "0.1-x.y", "a": "1"})
        == "a==1\npython-apt==2.4.0+ubuntu1\n"
    )
    assert colab.constraints(RUNTIME, only=["torch", "numpy"], local=False).count("\n") == 2


def test_a_restart_only_when_something_loaded_moved() -> None:
    assert colab.moved(RUNTIME, {**RUNTIME, "trl": "1.14.2", "datasets": "4.8.5"}) == []
    assert colab.moved(RUNTIME, {**RUNTIME, "numpy": "2.4.6"}) == ["numpy"]


def test_install_does_the_steps_and_a_second_one_does_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    have, calls = dict(RUNTIME), []

    def pip(*what: str, under: str = "") -> None:
        calls.append((what, under))
        for w in what:
            if w[0] != "-" and os.sep not in w:
                r = colab._requirement(w)
                have[colab.plain(r.name)] = {
                    "trl": "1.14.2",
                    "unsloth": "2026.10.9",
                    "unsloth_zoo": "2026.10.9",
                    "datasets": "4.8.5",
                }.get(r.name, "99")

    monkeypatch.setattr(colab, "_pip", pip)
    monkeypatch.setattr(colab, "installed", lambda: dict(have))
    monkeypatch.setattr(
        colab,
        "UNSLOTH_NEEDS",
        tuple(a for a in colab.UNSLOTH_NEEDS if not a.startswith("bitsandbytes")),
    )
    assert colab.install(gpu=True) == []
    assert len(calls) == 2 and "torch==2.11.0+cu128" in calls[0][1]
    assert calls[1][0][0] == "--no-deps" and "unsloth==2026.10.9" in calls[1][0]
    calls.clear()
    assert colab.install(gpu=True) == [] and calls == []


def test_where_the_runtime_cannot_stay_the_loaded_packages_still_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tried = []

    def pip(*what: str, under: str = "") -> None:
        tried.append(under)
        if "scikit-learn==" in under:
            raise colab.InstallError("ERROR: Cannot install trl")

    monkeypatch.setattr(colab, "_pip", pip)
    colab._add(["trl==1.14.2"], RUNTIME)
    assert (
        len(tried) == 2
        and "torch==2.11.0+cu128" in tried[1]
        and "plotly==5.24.1" in tried[1]
        and "scikit-learn" not in tried[1]
    )
    assert "Cannot install trl" in capsys.readouterr().out


def test_a_failed_install_stops_run_all_and_says_why(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The old cell printed what pip said, looked at no exit code, and Run All went on."""

    def fails() -> list[str]:
        raise colab.InstallError("ERROR: no network")

    monkeypatch.setattr(colab, "install", fails)
    with pytest.raises(colab.InstallError, match="no network"):
        colab.setup()
    assert colab.main([]) == 1 and "no network" in capsys.readouterr().out
    monkeypatch.setattr(colab, "install", lambda: ["numpy"])
    with pytest.raises(colab.InstallError, match=r"numpy changed .* Restart session"):
        colab.setup()
    monkeypatch.setattr(colab, "install", list)
    colab.setup()
    assert "no restart" in capsys.readouterr().out


def run_cell(python: str, **env: str) -> subprocess.CompletedProcess[str]:
    kept = {k: v for k, v in os.environ.items() if k not in ("COLAB_RELEASE_TAG", "PYTHONPATH")}
    return subprocess.run(
        [python, "-c", colab.install_cell()],
        capture_output=True,
        text=True,
        check=False,
        env={**kept, **env},
    )


def test_the_install_cell_does_nothing_elsewhere() -> None:
    code = colab.install_cell() + "\nassert not {'torch', 'kit', 'numpy'} & set(sys.modules)"
    env = {k: v for k, v in os.environ.items() if k != "COLAB_RELEASE_TAG"}
    subprocess.run([sys.executable, "-c", code], check=True, env=env)


def test_an_address_that_is_not_there_stops_the_cell(tmp_path: Path) -> None:
    done = run_cell(sys.executable, COLAB_RELEASE_TAG="x", KIT_REPO=f"file://{tmp_path}/none.git")
    assert done.returncode and "nothing below will run" in done.stderr


def test_one_command_rewrites_the_address_in_all_notebooks(tmp_path: Path) -> None:
    for name in ("notebooks", "kit/system"):
        shutil.copytree(ROOT / name, tmp_path / name)
    before = {p.name: p.read_text() for p in (tmp_path / "notebooks").glob("0*.ipynb")}
    changed = colab.readdress("https://github.com/someone/copy.git", tmp_path)
    assert len(changed) == len(before) + 1
    for path in changed:
        text = path.read_text()
        assert "https://github.com/someone/copy" in text and colab.ADDRESS not in text
        if path.suffix == ".ipynb":
            assert "/github/someone/copy/blob/main/notebooks/" in text
            mine = json.loads(text)["cells"]
            assert mine[2:] == json.loads(before[path.name])["cells"][2:]
            assert "".join(mine[1]["source"]) == colab.install_cell(
                "https://github.com/someone/copy"
            )
    assert colab.readdress("https://github.com/someone/copy", tmp_path) == []
    with pytest.raises(ValueError, match="no address"):
        colab.readdress("someone/copy", tmp_path)


def test_the_kit_is_never_installed_by_a_name_that_another_may_own() -> None:
    """`rubric-kit` is a stranger's package on the index; three error messages told to install it."""
    texts = subprocess.run(
        ["git", "grep", "-nE", r"pip install '?\"?rubric", "--", ".", ":!tests"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.splitlines()
    assert all("@ git+" in line for line in texts), texts
    assert packages.NAME != "rubric-kit" and "rubric-kit[" not in packages.extra("sweep")


def test_what_the_kit_needs_is_added_or_in_the_runtime() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    ours = {colab.plain(colab._requirement(r).name) for r in project["dependencies"]}
    added = {colab.plain(colab._requirement(r).name) for r in colab.ADD}
    assert ours - added - set(RUNTIME) <= {"jupyterlab"}


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("gpu", [False, True], ids=["without a GPU", "T4"])
def test_the_install_resolves_beside_the_stored_runtime(tmp_path: Path, gpu: bool) -> None:
    """pip finds versions for everything that is missing, for Python 3.13, with the runtime's own packages fixed (torch among them)."""
    (tmp_path / "c.txt").write_text(colab.constraints(RUNTIME, free=wanted(gpu), local=False))
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--dry-run",
            "--ignore-installed",
            "--only-binary=:all:",
            "--python-version",
            "3.13",
            "--implementation",
            "cp",
            "--target",
            str(tmp_path / "t"),
            "--report",
            str(tmp_path / "r.json"),
            "-q",
            "-c",
            str(tmp_path / "c.txt"),
            *wanted(gpu),
        ],
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
        cwd=tmp_path,
    )
    if done.returncode and any(
        s in done.stderr
        for s in ("Connection", "Name or service", "No matching distribution found for pip")
    ):
        pytest.skip("the package index cannot be reached")
    assert done.returncode == 0, done.stderr[-3000:]
    chosen = {
        colab.plain(i["metadata"]["name"]): i["metadata"]["version"]
        for i in json.loads((tmp_path / "r.json").read_text())["install"]
    }
    changed = {
        n: (RUNTIME[n], v)
        for n, v in chosen.items()
        if n in RUNTIME and RUNTIME[n].split("+")[0] != v.split("+")[0]
    }
    assert set(changed) <= {"datasets", "openai"}, (
        f"more than what is excluded or too old moved: {changed}"
    )
    assert chosen["torch"].split("+")[0] == "2.11.0" and chosen["trl"] == "1.14.2"


@pytest.fixture(scope="module")
def old_python() -> str:
    """An environment with plotly 5.24 and ipywidgets 7.7; everything else is this one's."""
    venv = ROOT / "build" / "old-venv"
    python = venv / "bin" / "python"
    ok = "import plotly, ipywidgets; assert plotly.__version__ == '5.24.1' and ipywidgets.__version__ == '7.7.5'"
    if (
        not python.exists()
        or subprocess.run([str(python), "-c", ok], capture_output=True, check=False).returncode
    ):
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(venv)], check=True)
        site = subprocess.run(
            [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
            capture_output=True,
            text=True,
            check=True,
        )
        (Path(site.stdout.strip()) / "kit-parent.pth").write_text(
            f"{sysconfig.get_path('purelib')}\n{ROOT}\n"
        )
        done = subprocess.run(
            [
                str(python),
                "-m",
                "pip",
                "install",
                "-q",
                "--no-deps",
                "plotly==5.24.1",
                "ipywidgets==7.7.5",
                "ipython_genutils==0.2.0",
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            pytest.skip(f"the package index cannot be reached: {done.stderr[-200:]}")
    return str(python)


def views(python: str) -> dict:
    done = subprocess.run(
        [python, str(HERE / "every_view.py")],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
        cwd=ROOT,
    )
    assert done.stdout.strip(), done.stderr[-3000:]
    found = json.loads(done.stdout.strip().splitlines()[-1])
    assert not found["left"], f"no longer built by any test: {found['left']}"
    assert found["tests"] == 0 and done.returncode == 0, done.stdout[-4000:]
    assert found["figures"] >= 35 and found["controls"] >= 5
    return found


@pytest.mark.slow
def test_every_figure_and_control_with_colabs_plotly_and_ipywidgets(old_python: str) -> None:
    found = views(old_python)
    assert (found["plotly"], found["ipywidgets"]) == ("5.24.1", "7.7.5")


@pytest.mark.slow
def test_every_figure_and_control_with_the_pinned_plotly_and_ipywidgets() -> None:
    found = views(sys.executable)
    assert found["plotly"].startswith("7.") and found["ipywidgets"].startswith("8.")


# What a Colab runtime has and the notebooks look at. torch is metadata only: 01 and 04 need none.
COLAB_LIKE = ("plotly==5.24.1", "ipywidgets==7.7.5", "pandas==2.2.3", "numpy==2.2.6", "ipykernel<7")


def fake_torch(python: str) -> None:
    """Only the metadata of the runtime's torch, so that nothing replaces it."""
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    folder = Path(site.stdout.strip()) / "torch-2.11.0+cu128.dist-info"
    folder.mkdir()
    text = "Metadata-Version: 2.1\nName: torch\nVersion: 2.11.0+cu128\n"
    (folder / "METADATA").write_text(text)
    (folder / "INSTALLER").write_text("test\n")


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("version", ["3.12", "3.13"])
def test_colab_from_the_install_cell_to_the_end_of_two_notebooks(
    tmp_path: Path, version: str, interpreter: Callable[[str], str]
) -> None:
    """The old cell ran kit/colab.py as a script: kit/inspect hid the standard library's."""
    venv = tmp_path / "venv"
    subprocess.run([interpreter(version), "-m", "venv", str(venv)], check=True)
    python = str(venv / "bin" / "python")
    pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *COLAB_LIKE]
    done = subprocess.run(pip, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"the package index cannot be reached: {done.stderr[-300:]}")
    fake_torch(python)
    bare = tmp_path / "address.git"
    subprocess.run(["git", "clone", "-q", "--bare", str(ROOT), str(bare)], check=True)
    env = {"COLAB_RELEASE_TAG": "release-colab", "KIT_REPO": f"file://localhost{bare}"}
    done = run_cell(python, **env)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    assert "Ready after" in done.stdout
    code = (
        "from importlib.metadata import version as v; print(v('plotly'), v('numpy'), v('torch'));"
        f"v('trl'); v('papermill'); v('{packages.NAME}'); import kit; print(kit.__file__)"
    )
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    said = subprocess.run(
        [python, "-c", code], capture_output=True, text=True, check=False, env=kept, cwd=tmp_path
    )
    assert said.stdout.startswith("5.24.1 2.2.6 2.11.0+cu128"), said.stderr
    assert str(venv) in said.stdout, "the notebooks must use what the cell installed"
    for book in ("01", "04"):
        done = subprocess.run(
            [python, "-m", "kit", "run", book, "--profile", "test", "--out", str(tmp_path / "r")],
            capture_output=True,
            text=True,
            check=False,
            env={**kept, **env},
            cwd=tmp_path,
        )
        if done.returncode == 3 or "could not be had" in done.stderr:
            pytest.skip(f"a download is not there: {done.stderr[-300:]}")
        assert done.returncode == 0, done.stderr[-3000:]
