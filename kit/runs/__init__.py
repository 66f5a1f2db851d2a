"""Runs: where a notebook writes, what it records, and how runs are found again.

A notebook says `run = runs.start("03_train_grpo", profile=profile, seed=seed)`, then
`run.record(...)`, `run.figure(...)`, and last `run.finish()`. Under `kit run` the folder comes from
KIT_RUN_DIR; in Jupyter and in plain papermill it is a new one below `runs/`. metrics.json is what
reports, tests and comparisons read.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import math
import os
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from .. import __version__
from ..data.schemas import readable, stamped
from ..errors import DataError, KitError, MissingError
from ..page import LAB_DARK
from ..records import Run, fingerprint, run_from_json, to_json
from ..settings import params as declared
from ..settings import profiles
from ..system import paths, processes, progress
from ..system.packages import NAME
from ..tables import pairs_html, plain, show

FILES = ("metrics.json", "config.json")  # where a run is read from, the first before the second
JUDGMENTS = "judgments.json"  # in a run's folder: answers, verdicts, reasons
PACKAGES = (
    "torch",
    "transformers",
    "trl",
    "peft",
    "accelerate",
    "bitsandbytes",
    "unsloth",
    "openai",
    "plotly",
    "ipywidgets",
    "papermill",
    "numpy",
    "scipy",
    "scikit-learn",
    "jupyterlab",
)


def versions() -> dict[str, str]:
    """Versions of the packages that shape a result; importing none of them."""
    import platform
    from importlib import metadata

    out = {"python": platform.python_version(), NAME: __version__}
    for name in PACKAGES:
        try:
            out[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            out[name] = "not installed"
    return out


def peak_memory() -> float | None:
    """Most memory that this process held so far, GiB; None where the system does not say."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**30, 2)


def commit() -> str | None:
    """The git commit of the kit's checkout, with "+changes" when the tree differs; None outside
    one.
    """
    git = ["git", "-C", str(paths.ROOT)]
    options = {"capture_output": True, "text": True, "timeout": 10, "check": True}
    try:
        head = subprocess.run([*git, "rev-parse", "--short=12", "HEAD"], **options).stdout.strip()
        changed = subprocess.run([*git, "status", "--porcelain", "-uno"], **options).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None
    return f"{head}+changes" if changed else head


def code_fingerprint() -> str:
    """One fingerprint of the kit's code and shipped data: a finished run is reused only while
    both are the same.
    """
    files = (
        sorted(paths.PACKAGE.rglob("*.py"))
        + sorted(paths.PACKAGE.rglob("*.json"))
        + sorted(p for p in paths.data().iterdir() if p.is_file())
    )
    h = hashlib.sha256()
    for f in files:
        h.update(f.name.encode() + f.read_bytes())
    return h.hexdigest()[:16]


def write_json(path: Path, value: Any) -> None:
    """Write JSON whole or not at all."""
    paths.write_text(path, json.dumps(plain(value), indent=1, ensure_ascii=False, allow_nan=False))


class Session:
    """What a notebook holds while it runs; shows its configuration when displayed."""

    def __init__(
        self,
        notebook: str,
        *,
        out: Path,
        profile: profiles.Profile,
        seed: int,
        params: Mapping[str, Any],
    ):
        self.notebook, self.out, self.profile, self.seed, self.params = (
            notebook,
            out,
            profile,
            seed,
            dict(params),
        )
        self.metrics: dict[str, Any] = {}
        self.figures: list[dict[str, Any]] = []
        self.tables: list[dict[str, Any]] = []
        self.sentences: list[str] = []
        self.cost = 0.0
        self._started, self._clock = datetime.now(UTC), time.monotonic()

    def path(self, *parts: str) -> Path:
        """A path inside the run's folder; parent folders are made."""
        p = self.out.joinpath(*parts)
        p.parent.mkdir(parents=True, exist_ok=True)
        return p

    def record(self, name: str, value: Any, *, note: str = "") -> Any:
        """Keep one metric (a number, an estimate with interval, or a small dict) and return it.

        A name with "{}" takes results by name: `record("kappa {}", {"a": ..., "b": ...})`. An
        infinite number is unknown, as JSON has none; a warning says so.
        """
        if "{}" in name and isinstance(value, Mapping):
            for key, one in value.items():
                self.record(name.format(key), one, note=note)
            return value
        kept = plain(value)
        if isinstance(value, float) and math.isinf(value):
            warnings.warn(f"metric {name!r} is {value}: kept as unknown", stacklevel=2)
        if note:
            kept = {**(kept if isinstance(kept, dict) else {"value": kept}), "note": note}
        self.metrics[name] = kept
        return value

    def figure(
        self, name: str, fig: Any, *, caption: str = "", front: bool = False, **options: Any
    ) -> Any:
        """Keep a figure for the report and return it, so that it can end a cell.

        fig : a plotly figure, or a result that `kit.plot(result, **options)` draws; None is
        nothing.
        front : show it on the first screen of the report.
        """
        if fig is None:
            return None
        if not hasattr(fig, "update_layout"):
            from ..plots import plot

            fig = plot(fig, **options)
        drawn = json.loads(fig.to_json())
        self.figures = [
            *(f for f in self.figures if f["name"] != name),
            {"name": name, "caption": caption, "front": front, "figure": drawn},
        ]
        return fig

    def table(self, name: str, rows: Any, *columns: str, caption: str = "") -> Any:
        """Keep a table for the report and show it; rows and columns as `kit.show` takes them."""
        shown = show(rows, *columns, caption=caption)
        self.tables = [
            *(t for t in self.tables if t["name"] != name),
            {"name": name, "caption": caption, "rows": plain(_texts(shown))},
        ]
        return shown

    def judgments(self, tasks: Any, *, labels: Any = None, **sets: Any) -> int:
        """Keep answers with verdicts and reasons for the report: how many answers.

        sets : by name, each with `.grades` and `.responses`: judgments(tasks, before=...,
        after=...).
        """
        from ..people import view

        parts = [
            view.judgments(
                one.grades,
                tasks=tasks,
                answers=one.responses,
                labels=labels,
                set=name,
            )
            for name, one in sets.items()
        ]
        data = plain(stamped("judgments", view.joined(*parts)))
        paths.write_text(
            self.out / JUDGMENTS, json.dumps(data, ensure_ascii=False, allow_nan=False)
        )
        return len(data["answers"])

    def found(self, sentence: str) -> str:
        """Keep a sentence for the first screen of the report ("what was found") and return it."""
        self.sentences.append(str(sentence))
        return sentence

    def finish(self, *, cost: float | None = None) -> Run:
        """Write metrics.json, figures.json and tables.json and return the run's record."""
        self.cost = self.cost if cost is None else cost
        run = Run(
            id=self.out.name,
            notebook=self.notebook,
            profile=self.profile.name,
            seed=self.seed,
            params=self.params,
            metrics=self.metrics,
            versions=versions(),
            status="done",
            started=self._started.isoformat(timespec="seconds"),
            seconds=round(time.monotonic() - self._clock, 3),
            commit=commit(),
            cost=self.cost,
            meta={"peak_memory_gib": peak_memory(), "found": self.sentences},
        )
        write_json(self.out / "figures.json", self.figures)
        write_json(self.out / "tables.json", self.tables)
        write_json(self.out / "metrics.json", stamped("run", to_json(run)))
        if not os.environ.get("KIT_RUN_DIR"):  # else the runner says when it is done
            write_json(self.out / "config.json", {**stamped("run", to_json(run)), "metrics": {}})
        return run

    def _repr_html_(self) -> str:
        rows = {
            "run": self.out.name,
            "profile": f"{self.profile.name} ({self.profile.why})",
            "seed": self.seed,
            **self.params,
            "versions": ", ".join(
                f"{k} {v}"
                for k, v in versions().items()
                if k in ("python", "torch", "trl", "transformers", NAME)
            ),
        }
        return pairs_html(rows) + LAB_DARK

    def __repr__(self) -> str:
        return (
            f"run {self.out.name}: profile {self.profile.name} ({self.profile.why}), seed "
            f"{self.seed}"
        )


def _texts(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows for the report: estimates and other results in words."""
    kinds = (str, int, float, bool, type(None), list, tuple)
    return [{k: v if isinstance(v, kinds) else str(v) for k, v in r.items()} for r in rows]


def start(notebook: str, *, profile: str | None = None, seed: int = 0, **params: Any) -> Session:
    """Begin a notebook's run: resolves the profile, makes the folder, sets the plot renderer when
    headless.

    params : all the others of the parameters cell. They tell runs apart: where reports compare
        them, and where an unfinished run's folder is gone on with.
    """
    progress.quiet()
    given = os.environ.get("KIT_RUN_DIR")
    chosen = profiles.resolve(profile or None)
    book = paths.notebooks(f"{notebook}.ipynb")
    known = declared.parameters(book) if book.is_file() and not given else {}
    for name in known.keys() & params.keys():  # plain papermill checks nothing
        value = declared.coerce(known[name], params[name])[0]
        if isinstance(params[name], str) and not isinstance(value, str):
            raise KitError(
                f"{name} = {params[name]!r} is text",
                where=f"parameter {name}",
                fix=f"write {value!r} (YAML reads 1e-5 as text, and 1.0e-5 as a number)",
            )
    if given:
        _headless()
        out = Path(given)
        out.mkdir(parents=True, exist_ok=True)
    else:
        out = _own_folder(notebook, chosen.name, seed, params)
    return Session(
        notebook,
        out=out,
        profile=chosen,
        seed=seed,
        params=params,
    )


def new_folder(base: Path, name: str) -> Path:
    """A folder that is nobody else's: runs started in the same second get the following ones."""
    now = datetime.now(UTC)
    while True:
        folder = base / f"{now:%Y%m%dT%H%M%S}-{name}"
        try:
            folder.mkdir()
            return folder
        except FileExistsError:
            now += timedelta(seconds=1)


def _own_folder(notebook: str, profile: str, seed: int, params: Mapping[str, Any]) -> Path:
    """A new folder for a notebook that Jupyter or plain papermill runs.

    Or the one that an earlier kernel left unfinished with the same parameters: its ledger and its
    checkpoints are used. A finished run, and one that still runs, are never written to.
    """
    base = paths.runs()
    key = f"interactive-{notebook}-{run_hash(notebook, '', profile, seed, params)}"
    left = [p for p in sorted(base.glob(f"*-{key}")) if _abandoned(_config(p).get("meta") or {}, p)]
    folder = left[-1] if left else new_folder(base, key)
    run = Run(
        id=folder.name,
        notebook=notebook,
        profile=profile,
        seed=seed,
        params=dict(params),
        status="running",
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        meta={"pid": os.getpid(), "host": socket.gethostname(), "files": digests(params)},
    )
    write_json(folder / "config.json", stamped("run", to_json(run)))
    return folder


def _abandoned(meta: Mapping[str, Any], folder: Path) -> bool:
    """True for an unfinished run whose process is gone, or is this one (the cell was run again)."""
    mine = meta.get("host") == socket.gethostname() and meta.get("pid") == os.getpid()
    return not (folder / "metrics.json").exists() and (mine or _gone(meta))


def _gone(meta: Mapping[str, Any]) -> bool:
    """True where the process that began a run, on this machine, is no more."""
    pid = int(meta.get("pid") or 0)
    return meta.get("host") == socket.gethostname() and not processes.alive(pid)


def _headless() -> None:
    """Figures stay JSON in the notebook (kit.page embeds plotly.js once); plotly is not loaded.

    Half a character in an output or an error becomes "?": Jupyter would send neither.
    """
    os.environ["PLOTLY_RENDERER"] = renderer = "plotly_mimetype"
    if loaded := sys.modules.get("plotly.io"):
        loaded.renderers.default = renderer
    if "ipykernel" in sys.modules:
        from ipykernel.kernelapp import IPKernelApp

        session = IPKernelApp.instance().session
        session.pack = _sendable(session.pack)


def _sendable(pack: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
    def packed(message: Any) -> bytes:
        try:
            return pack(message)
        except UnicodeEncodeError:
            from jupyter_client.jsonutil import json_default

            text = json.dumps(message, default=json_default, ensure_ascii=False)
            return text.encode("utf-8", "replace")

    return packed


def run_hash(notebook: str, source: str, profile: str, seed: int, params: Mapping[str, Any]) -> str:
    """Eight hex digits that are equal for runs that would do the same thing."""
    values = plain({k: [v, _held(v)] for k, v in params.items()})
    return fingerprint([notebook, fingerprint(source), profile, seed, values])[:8]


def digests(params: Mapping[str, Any]) -> dict[str, str]:
    """Eight hex digits of each file that a parameter names: changed under its name, it is
    another.
    """
    found = {name: _held(value)[:8] for name, value in params.items()}
    return {name: digest for name, digest in found.items() if digest}


def _held(value: Any) -> str:
    """What is in the file that a parameter names ("" where it names none): mended, it is
    another.
    """
    if not isinstance(value, str) or not os.path.isfile(value):  # so, too, where no file can be
        return ""
    found = os.stat(value)
    return _digest(os.path.abspath(value), found.st_size, found.st_mtime_ns)


@functools.lru_cache(maxsize=1000)
def _digest(path: str, size: int, changed: int) -> str:
    """Of a file's bytes; read once for all cells of a sweep while size and time stay."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def load(folder: Path) -> Run:
    """A run from its folder: metrics.json when it finished, else what config.json says of it."""
    for name in FILES:
        path = Path(folder) / name
        if path.exists():
            try:
                row = json.loads(path.read_text(encoding="utf-8"))
                run = run_from_json(readable("run", row, where=str(path)), where=str(path))
                msgspec.convert(vars(run), Run)  # its fields are of their types
            except (OSError, ValueError, AttributeError, msgspec.ValidationError) as e:
                raise DataError(
                    f"this is no run: {e}",
                    where=str(path),
                    fix="run it again, or remove it: python -m kit runs remove",
                ) from None
            config = _config(Path(folder))
            meta = config.get("meta") or {}
            status = config.get("status") or run.status
            if status == "running" and _gone(meta):
                status = run.status if name == "metrics.json" else "stopped"
            return dataclasses.replace(
                run,
                params={
                    **(meta.get("defaults") or {}),
                    **(config.get("params") or {}),
                    **run.params,
                },
                id=Path(folder).name,
                status=status,
                seconds=config.get("seconds") or run.seconds,
                meta={**meta, **run.meta},
            )  # the whole run, kernel start included
    raise MissingError(
        "no run is in this folder", where=str(folder), fix="a run has metrics.json or config.json"
    )


def _config(folder: Path) -> dict[str, Any]:
    return _held_in(folder / "config.json") or {}


def _held_in(path: Path) -> Any:
    """What a file of a run holds; {} where there is none, None where it cannot be read."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):
        return None


def given(folder: Path) -> dict[str, Any]:
    """The parameters that the runner gave a run; the others have their defaults."""
    return dict(_config(folder).get("params") or {})


def status(folder: Path) -> str | None:
    """ "running", "done", "failed" or "stopped" as the runner last wrote it; None for an
    interactive run.
    """
    return _config(folder).get("status")


def find(folder: Path) -> list[tuple[Path, Run]]:
    """All runs below a folder (itself, its children, their children), oldest first; one that
    cannot be read is there with status "broken".
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise MissingError(
            "there is no such folder of runs",
            where=str(folder),
            fix="run a notebook first: python -m kit run NOTEBOOK",
        )
    found = {
        p.parent
        for pattern in ("*.json", "*/*.json", "*/*/*.json")
        for p in folder.glob(pattern)
        if p.name in FILES
    }
    near = sorted(found, key=lambda p: (-len(p.parts), not p.is_symlink()))
    once = {p.resolve(): p for p in near}  # the folder itself, where links lead to it, too
    return [
        (f, load_or_broken(f)) for f in sorted(once.values(), key=lambda p: p.name) if _is_run(f)
    ]


def load_or_broken(folder: Path) -> Run:
    """A run from its folder; one that cannot be read has the status "broken"."""
    try:
        return load(folder)
    except DataError as e:  # one unreadable run must not hide the others
        return Run(
            id=folder.name,
            notebook="unreadable",
            profile="",
            seed=0,
            status="broken",
            meta={"error": str(e)},
        )


def _is_run(folder: Path) -> bool:
    """False for what other tools call metrics.json or config.json (a training inside a run, a
    model): no notebook is named there.
    """
    rows = (_held_in(folder / name) for name in FILES)  # None: broken, load() says where
    return any(r is None or (isinstance(r, dict) and "notebook" in r) for r in rows)


def newest(notebook: str, folder: str | Path | None = None) -> Path | None:
    """The folder of the newest finished run of a notebook (also an interactive one), or None.

    A control, whose rewards were dealt out at random, only where there is no other.
    """
    try:
        found = [
            (p, r)
            for p, r in find(Path(folder) if folder else paths.runs())
            if r.notebook == notebook and r.status == "done"
        ]
    except MissingError:
        return None
    order = {p: (not r.params.get("control"), r.started or "") for p, r in found}
    return max(order, key=order.__getitem__, default=None)
