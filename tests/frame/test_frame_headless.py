"""Headless runs with real papermill on tiny notebooks: folders, failure, reuse, resume, reports, sweeps."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from kit import page as html
from kit import runs
from kit.errors import BudgetError, DataError, KitError, MissingError
from kit.runs import headless, report, sweep

WORK = """from kit import runs
import kit.plots.theme as theme
run = runs.start("99_try", profile=profile, seed=seed, amount=amount)
run.record("accuracy", {"value": 0.5 + amount / 100, "low": 0.4, "high": 0.7, "n": 20})
run.figure("line", theme.figure(title="t"))
"""
HOSTILE = "<script>window.hacked = 1</script><img src=x onerror=alert(1)>"


def book(path: Path, body: str = "") -> Path:
    nb = nbformat.v4.new_notebook()
    cell = nbformat.v4.new_code_cell('profile = ""\nseed = 0\namount = 1\nfail = False\n')
    cell.metadata["tags"] = ["parameters"]
    nb.cells = [
        nbformat.v4.new_markdown_cell("# Try"),
        cell,
        nbformat.v4.new_code_cell(WORK),
        nbformat.v4.new_code_cell("run.figures and theme.figure(title='shown')"),
        nbformat.v4.new_code_cell(body or "assert not fail, 'as asked'"),
        nbformat.v4.new_code_cell("run.finish()"),
    ]
    nb.metadata["kernelspec"] = {
        "name": "python3",
        "display_name": "Python 3",
        "language": "python",
    }
    nbformat.write(nb, path)
    return path


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    base = tmp_path_factory.mktemp("frame")
    path = book(
        base / "99_try.ipynb",
        f"from IPython.display import display\ndisplay({{'text/plain': '{HOSTILE}'}}, raw=True); print({HOSTILE!r})",
    )
    said: list[str] = []
    folder, run = headless.run_notebook(
        path, profile="test", seed=3, given={"amount": "2"}, out=base / "runs", say=said.append
    )
    assert run.status == "done", said
    assert any("cell 1/5" in s for s in said) and any("'2' (text) -> 2 (int)" in s for s in said)
    return base, folder


def test_a_run_leaves_everything(done: tuple[Path, Path]) -> None:
    _, folder = done
    names = {p.name for p in folder.iterdir()}
    assert {
        "99_try.ipynb",
        "99_try.html",
        "metrics.json",
        "config.json",
        "figures.json",
        "tables.json",
        "run.log",
    } <= names
    run = runs.load(folder)
    assert (
        run.metrics["accuracy"]["value"] == 0.52
        and run.seed == 3
        and run.params["amount"] == 2
        and run.versions["python"]
    )


def test_pages_need_no_network_and_run_no_hostile_text(done: tuple[Path, Path]) -> None:
    base, folder = done
    page = (folder / "99_try.html").read_text()
    assert "Plotly.newPlot" in page and HOSTILE not in page
    assert not [s for s in page.split("<script")[1:] if s.split(">")[0].count("src=")]
    whole = report.build(base / "runs", title=HOSTILE)
    assert HOSTILE not in whole and "0.52" in whole and "[0.4, 0.7]" in whole
    assert whole.count("data-plot=") >= 1 and "<script src" not in whole and len(whole) < 10e6


def test_a_finished_run_is_reused_and_other_parameters_are_not(done: tuple[Path, Path]) -> None:
    base, folder = done
    again, _ = headless.run_notebook(
        base / "99_try.ipynb",
        profile="test",
        seed=3,
        given={"amount": 2},
        out=base / "runs",
        reuse=True,
    )
    assert again == folder
    _, _, other = headless.plan(base / "99_try.ipynb", profile="test", seed=4, given={"amount": 2})
    assert not folder.name.endswith(other)


def test_a_typo_is_refused_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(KitError, match="did you mean 'amount'"):
        headless.run_notebook(
            book(tmp_path / "99_try.ipynb"), given={"amuont": 1}, out=tmp_path / "runs"
        )
    assert not (tmp_path / "runs").exists() or not list((tmp_path / "runs").iterdir())


def test_a_failing_cell_leaves_what_it_had_and_resumes(tmp_path: Path) -> None:
    """With half a character in its text, the error was recorded as "CellExecutionError: "."""
    marker = tmp_path / "fixed"
    said = r"print('half \ud83d'); assert os.path.exists"
    path = book(tmp_path / "99_try.ipynb", rf"import os; {said}({str(marker)!r}), 'not yet \ud83d'")
    lines: list[str] = []
    runs_ = tmp_path / "runs one"  # the line to paste named it without quotes
    folder, run = headless.run_notebook(path, profile="test", out=runs_, say=lines.append)
    assert shlex.split(lines[-1].rpartition("to continue: ")[2])[-2:] == ["--resume", str(folder)]
    assert (
        run.status == "failed"
        and "AssertionError: not yet ?" in run.meta["error"]
        and "half ?" in (folder / "99_try.html").read_text()
        and (folder / "99_try.html").exists()
    )
    assert run.metrics == {}
    marker.touch()
    same, run = headless.resume(folder)
    assert same == folder and run.status == "done" and run.metrics["accuracy"]["n"] == 20


def test_a_dying_kernel_is_a_failed_run(tmp_path: Path) -> None:
    folder, run = headless.run_notebook(
        book(tmp_path / "99_try.ipynb", "import os; os._exit(3)"),
        profile="test",
        out=tmp_path / "runs",
    )
    assert run.status == "failed" and (folder / "99_try.ipynb").exists()
    assert "failed" in report.build(tmp_path / "runs")


def test_sweep_runs_skips_and_reports(tmp_path: Path) -> None:
    path = book(tmp_path / "99_try.ipynb")
    _, first = headless.run_notebook(
        path, profile="test", seed=0, given={"amount": 1}, out=tmp_path / "s"
    )
    both = sweep.sweep(
        path,
        sweep.grid({"amount": [1, 2], "seed": [0]}),
        profile="test",
        out=tmp_path / "s",
        jobs=2,
    )
    assert both.counts == {"done": 2} and [c.reused for c in both.cells] == [True, False], both
    # The table said .06 s of a cell of 17 s that had been finished before.
    assert both.cells[0].seconds == first.seconds
    assert "Runs side by side" in report.build(tmp_path / "s")


def test_sweep_stops_at_a_cap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next cell had already been taken by a free worker when the cap was noticed: two ran where one was allowed."""
    monkeypatch.setattr(
        sweep.Worker, "do", lambda self, job: {"status": "done", "cost": 1.0, "folder": ""}
    )
    cells = sweep.grid({"amount": [7, 8, 9]})
    path = book(tmp_path / "99_try.ipynb")
    timed = sweep.sweep(path, cells, out=tmp_path / "s", max_seconds=0)
    assert timed.counts == {"done": 1, "waiting": 2} and "time cap" in timed.stopped
    priced = sweep.sweep(path, cells, out=tmp_path / "s", max_cost=2.0)
    assert priced.counts == {"done": 2, "waiting": 1} and "cost cap" in priced.stopped
    assert isinstance(priced.error, BudgetError)
    assert sweep.sweep(path, cells, out=tmp_path / "s", max_cost=3.0).error is None


def test_sweep_refuses_a_typo_in_any_cell(tmp_path: Path) -> None:
    with pytest.raises(KitError, match="no parameter 'amout'"):
        sweep.sweep(
            book(tmp_path / "99_try.ipynb"), [{"amount": 1}, {"amout": 2}], out=tmp_path / "s"
        )


def test_sweep_files(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("amount: [1, 2]\nlr: 1e-5\n")
    assert sweep.read_cells(tmp_path / "a.yaml") == [
        {"amount": 1, "lr": 1e-5},  # a number, as in configs
        {"amount": 2, "lr": 1e-5},
    ]
    (tmp_path / "a.json").write_text('[{"amount": 1}]')
    assert sweep.read_cells(tmp_path / "a.json") == [{"amount": 1}]
    (tmp_path / "b.yaml").write_text("a: [1\n")
    with pytest.raises(KitError, match="line 2"):
        sweep.read_cells(tmp_path / "b.yaml")


def test_report_errors(tmp_path: Path) -> None:
    with pytest.raises(MissingError):
        report.build(tmp_path / "absent")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="no run"):
        report.build(tmp_path / "empty")
    bad = tmp_path / "x" / "run1"
    bad.mkdir(parents=True)
    (bad / "metrics.json").write_text('{"id": \n oops')
    page = report.build(tmp_path / "x")  # one unreadable run used to block the report of all others
    assert "broken" in page and "line 2" in page


def test_script_json_cannot_leave_its_script() -> None:
    assert "</script" not in html.script_json({"a": "</script><script>alert(1)</script>"})
    assert json.loads(html.script_json("\u2028</x>")) == "\u2028</x>"


def cli(*args: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kit", *args],
        capture_output=True,
        text=True,
        env={**os.environ, **env},
        timeout=120,
    )


def test_command_line_errors_have_codes_and_no_traceback(tmp_path: Path) -> None:
    cases = [
        (("run", "no_such_book"), 3),
        (("run", "no.ipynb", "--set", "x"), 2),
        (("run",), 2),
        (("report", str(tmp_path / "absent")), 3),
        (("sweep", "x"), 2),
        (("nonsense",), 2),
    ]
    for args, code in cases:
        done = cli(*args)
        assert done.returncode == code, (args, done)
        assert "Traceback" not in done.stderr and done.stderr.strip()


def test_help_of_every_command() -> None:
    top = cli("--help")
    assert top.returncode == 0
    for name in (
        "check",
        "demo",
        "fetch",
        "inspect",
        "judge",
        "agree",
        "calibrate",
        "train",
        "run",
        "sweep",
        "report",
    ):
        assert name in top.stdout


def test_no_space_left_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import kit.__main__ as main
    from kit.cli import report as command

    def full(args: object) -> int:
        raise OSError(28, "No space left on device", "report.html")

    monkeypatch.setattr(command, "run", full)
    assert main.main(["report"]) == 2
    assert "free some space" in capsys.readouterr().err


def test_import_is_light() -> None:
    code = "import time; t = time.process_time(); import kit, sys; d = time.process_time() - t; print(d, [m for m in ('torch', 'pandas', 'plotly', 'scipy', 'openai') if m in sys.modules])"
    best = min(
        (
            subprocess.run(
                [sys.executable, "-c", code], capture_output=True, text=True, check=True
            ).stdout
            for _ in range(3)
        ),
        key=lambda s: float(s.split()[0]),
    )
    assert float(best.split()[0]) < 0.3 and best.strip().endswith("[]")


def test_help_waits_for_no_arrays() -> None:
    """`kit judge --help` took half a second: every command imported the runs, and they numpy."""
    code = "import sys; from kit.__main__ import parser; parser('judge'); print('numpy' in sys.modules)"
    got = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert got.stdout.strip() == "False"


def test_a_line_that_moved_stands_once(tmp_path: Path) -> None:
    """Forty steps of a training were eighty red lines in the executed page."""
    import nbformat

    from kit import page

    v4 = nbformat.v4
    moved = [v4.new_output("stream", name="stderr", text=f"\rGRPO {i}/9") for i in range(10)]
    said = v4.new_output("stream", name="stdout", text="done\r\n")
    outputs = [*moved, v4.new_output("stream", name="stderr", text="\n"), said]
    cell = v4.new_code_cell("train()", outputs=outputs)
    nbformat.write(v4.new_notebook(cells=[cell]), tmp_path / "a.ipynb")
    page.settle(tmp_path / "a.ipynb")
    kept = nbformat.read(tmp_path / "a.ipynb", as_version=4).cells[0].outputs
    assert [(o.name, o.text) for o in kept] == [("stderr", "GRPO 9/9\n"), ("stdout", "done\r\n")]
