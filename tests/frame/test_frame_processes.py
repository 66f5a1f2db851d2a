"""Bad input refused at once; runs that are stopped, killed, doubled or copied elsewhere. Real processes, real papermill, tiny notebooks."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from kit import runs
from kit.errors import KitError
from kit.runs import headless, sweep
from kit.settings import params
from kit.system import processes

ROOT = Path(__file__).resolve().parents[2]


def kit(*words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kit", *words],
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        **options,
    )


@pytest.fixture
def book(tmp_path: Path) -> Any:
    """`book` of test_frame_headless: writes a tiny notebook with parameters profile, seed, amount, fail."""
    import importlib.util

    spec = importlib.util.spec_from_file_location(
        "frame_book", Path(__file__).with_name("test_frame_headless.py")
    )
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return lambda body="": module.book(tmp_path / "99_try.ipynb", body)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run", "3", "--set", "learning_rat=1e-5"), "did you mean 'learning_rate'"),
        (("run", "3", "--set", "steps=abc"), "steps = 'abc' is not an int"),
        (
            ("run", "3", "--set", "learning_rate=nan"),
            "learning_rate = 'nan' is not a float",
        ),  # ran 15 s and failed in the eighth cell
        (("run", "3", "--profile", "tset"), "no profile 'tset'"),
        (
            ("run", "3", "--profile", "test", "--set", "profile=cpu"),
            "profile is given twice",
        ),  # the second was dropped without a word
        (("run", "3", "--seed", "1", "--set", "seed=2"), "seed is given twice"),
        (("sweep", "3", "--grid", "learning_rat=1,2"), "did you mean 'learning_rate'"),
        (
            ("sweep", "3", "--profile", "tset", "--grid", "seed=0,1"),
            "no profile 'tset'",
        ),  # each cell was started and failed
        (("sweep", "3", "--grid", "seed=0,a"), "cell 2 of 2"),
        (("sweep", "3", "--grid", "seed=0", "--jobs", "0"), "0 jobs"),
    ],
)
def test_bad_input_is_refused_before_anything_starts(
    tmp_path: Path, words: tuple[str, ...], said: str, loading: float
) -> None:
    begin = processor_seconds()  # not the clock: a busy machine delays any start
    done = kit(*words, "--out", str(tmp_path / "r"), cwd=tmp_path)
    assert done.returncode == 2 and said in done.stderr, (done.returncode, done.stderr)
    assert processor_seconds() - begin < 2 * loading and not (tmp_path / "r").exists()


@pytest.fixture(scope="module")
def loading() -> float:
    """What loading the commands alone takes on this machine, beside the load that it has now."""
    begin = processor_seconds()
    parts = "import kit.runs.headless, kit.runs.sweep, kit.runs.report"
    subprocess.run([sys.executable, "-c", parts], cwd=ROOT, check=True)
    return processor_seconds() - begin


def processor_seconds() -> float:
    """What the children of this process have used so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.mark.parametrize("command", ["run", "sweep", "report"])
def test_exit_codes_are_in_the_help(command: str) -> None:
    assert "4 a cap was reached" in kit(command, "--help").stdout


def test_numbers_that_json_cannot_keep_are_refused() -> None:
    p = params.parse("x = 1.0\nn = 1\n")
    for name, value in (("x", "inf"), ("x", float("nan")), ("n", float("inf"))):
        with pytest.raises(KitError):
            params.coerce(p[name], value)


def test_a_cell_that_is_there_twice_runs_once_and_values_have_their_types(book: Any) -> None:
    """A seed of 1.0 (a CSV's, say) was passed on as text and its cell failed; equal cells ran at the same time into one folder."""
    said: list[str] = []
    cells = sweep.check(
        book(),
        [{"seed": 1.0, "amount": "2"}, {"seed": 1, "amount": 2}, {"seed": 2}],
        "test",
        said.append,
    )
    assert cells == [{"seed": 1, "amount": 2}, {"seed": 2}] and any("runs once" in s for s in said)


@pytest.mark.slow
def test_two_sweeps_into_one_folder_run_each_cell_once(tmp_path: Path, book: Any) -> None:
    """Both took the same unfinished folder: two kernels wrote into it at the same time."""
    path = book(f"with open({str(tmp_path / 'log')!r}, 'a') as f: f.write(f'{{amount}} ')")
    line = [
        sys.executable,
        "-m",
        "kit",
        "sweep",
        str(path),
        "--profile",
        "test",
        "--grid",
        "amount=1,2",
        "--out",
        str(tmp_path / "s"),
        "--json",
    ]
    two = [
        subprocess.Popen(
            line,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    results = [json.loads(p.communicate(timeout=200)[0]) for p in two]
    assert all(r["counts"] == {"done": 2} for r in results)
    assert sorted((tmp_path / "log").read_text().split()) == ["1", "2"]
    assert len(list((tmp_path / "s").glob("*-99_try-*"))) == 2


def test_two_runs_in_one_second_have_two_folders(tmp_path: Path) -> None:
    """The folder's name is a second and a hash: the same run started twice at once shared it."""
    assert len({runs.new_folder(tmp_path, "99_try-abc") for _ in range(3)}) == 3


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_stopped_run_is_readable_and_goes_on(tmp_path: Path, book: Any, name: str) -> None:
    """SIGTERM, as a batch system sends it, left the status "running", no page, and the kernel's sockets."""
    go = tmp_path / "go"
    path = book(
        f"import os, time\nopen({str(tmp_path / 'here')!r}, 'w').close()\nwhile not os.path.exists({str(go)!r}): time.sleep(0.1)"
    )
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "kit",
            "run",
            str(path),
            "--profile",
            "test",
            "--out",
            str(tmp_path / "r"),
        ],
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    end = time.monotonic() + 150
    while not (tmp_path / "here").exists() and time.monotonic() < end:
        time.sleep(0.1)
    process.send_signal(getattr(signal, name))
    _, err = process.communicate(timeout=120)
    (folder,) = (tmp_path / "r").glob("*-99_try-*")
    assert (
        process.returncode == 130
        and "--resume" in err
        and "Traceback" not in err
        and "IPKernel" not in err
    ), err
    assert runs.status(folder) == "stopped" and "stopped by" in runs.load(folder).meta["error"]
    assert (folder / "99_try.html").exists() and not list(folder.glob("kernel-ipc-*"))
    go.touch()
    done = kit("run", "--resume", str(folder))
    assert done.returncode == 0 and runs.load(folder).status == "done", done.stderr


def test_a_run_ends_with_its_sweep(tmp_path: Path, book: Any) -> None:
    """kill -9 of a sweep left `kit run` and its kernel at work; they end by themselves, within seconds."""
    path = book(
        f"import os, time\nopen({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\ntime.sleep(200)"
    )
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "kit",
            "sweep",
            str(path),
            "--profile",
            "test",
            "--grid",
            "seed=0",
            "--out",
            str(tmp_path / "s"),
        ],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    end = time.monotonic() + 150
    while (
        not ((tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
        and time.monotonic() < end
    ):
        time.sleep(0.1)
    kernel = int((tmp_path / "pid").read_text())
    process.kill()
    process.wait()
    while Path(f"/proc/{kernel}").exists() and time.monotonic() < end:
        time.sleep(0.1)
    assert not Path(f"/proc/{kernel}").exists()


def test_what_started_a_run_is_not_inherited(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that starts a run of its own would hand on the sweep's number, and that run would stop itself."""
    monkeypatch.setenv(processes.PARENT, str(os.getppid()))
    processes.end_with_parent()
    assert processes.PARENT not in os.environ


def test_an_address_is_refused_before_the_run(tmp_path: Path, book: Any) -> None:
    """A sweep made a local folder named "file:"."""
    begin = time.monotonic()
    for out in ("s3://bucket/runs", f"file://{tmp_path}/there"):
        with pytest.raises(KitError, match="to a folder, not to an address"):
            headless.run_notebook(book(), profile="test", out=out)
    assert time.monotonic() - begin < 5 and not list((tmp_path / "runs").glob("*-99_try-*"))


@pytest.mark.slow
def test_one_cell_that_fails_leaves_the_others(tmp_path: Path, book: Any) -> None:
    done = kit(
        "sweep",
        str(book()),
        "--profile",
        "test",
        "--grid",
        "fail=true,false",
        "--jobs",
        "2",
        "--out",
        str(tmp_path / "s"),
    )
    assert done.returncode == 1 and "1 failed" in done.stdout and "1 done" in done.stdout
    assert "FAILED fail=True" in done.stderr and "as asked" in done.stderr
    page = (tmp_path / "s" / "report.html").read_text()
    assert "as asked" in page and "fail=True" in page


def test_a_task_that_ended_with_its_kernel_prints_no_traceback(caplog):
    """Beside "stopped; what was done is saved" stood nbclient's "Task exception was never retrieved"."""
    import logging

    from nbclient.exceptions import DeadKernelError

    from kit.runs import headless

    for error, told in ((DeadKernelError("Kernel died"), False), (ValueError("x"), True)):
        record = logging.makeLogRecord({"exc_info": (type(error), error, None)})
        assert headless._told(record) is told
