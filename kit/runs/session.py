"""What a notebook holds while it runs: its parameters, its profile, its folder, and what it keeps there."""

import numbers
import os
import shlex
import socket
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import msgspec
import pandas as pd
from filelock import FileLock, Timeout

from ..errors import DataError, MissingError
from ..records import Run, fingerprint
from ..stats import Estimate
from ..system import device, machine, paths, profiles
from . import folders, parameters


class Session:
    """A run in its folder. `keep` stores a result for the report; `finish` ends the run.

    folder : where the run writes. profile : its name and why. params : all parameters by name.
    """

    def __init__(
        self,
        folder: Path,
        record: Run,
        lock: FileLock,
    ):
        self.folder, self.params = folder, record.params
        self.profile = profiles.Profile(record.profile, record.meta["why"])
        self._record, self._lock = record, lock
        self._begin = time.monotonic()
        self._results: dict[str, folders.Kept] = {}
        self._silent = folders.is_done(folder)
        self._save("running")

    def path(self, *parts: str) -> Path:
        """A path inside the run's folder. Parent folders are made."""
        path = self.folder.joinpath(*parts)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def keep(self, name: str, thing: object, caption: str = "") -> Any:
        """Keep a result for the report, and return it so that it can end a cell.

        thing : a number, an estimate, a figure, a table (DataFrame, list of dicts), a sentence, results by
            name, or an object with `.estimate`, `.table()` or `.plot()`.
        caption : one sentence. A question makes the result an answer on the report's first screen, together
            with all results that have the same question: "Did it help?".
        """
        match thing:
            case Mapping():
                for key, one in thing.items():
                    self.keep(f"{name}: {key}", one, caption)
            case str():
                self._results[name] = folders.Kept(
                    kind="sentence", text=thing, caption=caption
                )
            case None | numbers.Real():
                # JSON has no infinity and no NaN: both become None, unknown.
                self._record.metrics[name] = {
                    "value": thing,
                    "sentence": "",
                    "caption": caption,
                }
            case _ if not self._keep_result(name, thing, caption):
                raise DataError(
                    f"a {type(thing).__name__} cannot be kept",
                    where=f"run.keep({name!r}, ...)",
                    fix="keep a number, an estimate, a figure, a table or a sentence",
                )
        # After each result, because a kernel may die before the last cell.
        self._save("running")
        return thing

    def _keep_result(self, name: str, thing: Any, caption: str) -> bool:
        """Store every part that a result offers: estimate, table, figure. False where it has none."""
        # Not by type: results of all rooms, and of users, offer these parts under the same names.
        estimate, table = getattr(thing, "estimate", thing), _frame(thing)
        if isinstance(estimate, Estimate):
            self._record.metrics[name] = {
                **vars(estimate),
                "sentence": estimate.sentence,
                "caption": caption,
            }
        if table is not None:
            self._store(
                name,
                "table",
                table.to_json(orient="split", default_handler=str, index=False),
                caption,
            )
        # A DataFrame has a plot of its own, which needs matplotlib.
        if (
            hasattr(thing, "plot")
            and thing is not table
            and not isinstance(thing, Estimate)
        ):
            thing = thing.plot()
        is_figure = hasattr(thing, "to_plotly_json")
        if is_figure:
            self._store(name, "figure", thing.to_json(), caption)
        return is_figure or table is not None or isinstance(estimate, Estimate)

    def _store(
        self, name: str, kind: Literal["table", "figure"], text: str, caption: str
    ) -> None:
        # A result's name may hold a slash, or be too long for a file.
        file = f"kept/{kind}-{fingerprint(name)[:8]}.json"
        paths.write(self.folder / file, text)
        self._results[f"{name} ({kind})"] = folders.Kept(
            kind=kind, name=name, file=file, caption=caption
        )

    def finish(self) -> None:
        """End the run: its record is complete, and its folder is free for others."""
        self._save("done")
        self._lock.release(force=True)  # the cell may have run twice
        command = shlex.join(["python", "-m", "kit", "report", str(self.folder)])
        print(f"saved in {self.folder}\nreport: {command}")

    def _save(self, status: str) -> None:
        """Write the record; that of a finished run stays readable until this one ends."""
        if self._silent and status == "running":
            return
        run = msgspec.structs.replace(
            self._record,
            status=status,
            seconds=round(time.monotonic() - self._begin, 2),
            meta={
                **self._record.meta,
                "results": [*self._results.values()],
                "memory": device.peak_memory(),
            },
        )
        folders.save(self.folder, run)

    def __repr__(self) -> str:
        packages = "python {python}, kit {kit}, torch {torch}, transformers {transformers}, trl {trl}"
        return (
            f"run {self.folder.name}: profile {self.profile.name} ({self.profile.why})\n"
            f"{device.choose()}\n{packages.format_map(self._record.versions)}"
        )


def start(notebook: str, params: Mapping[str, Any]) -> Session:
    """Begin a run of a notebook, or go on with the one that was killed: `run = kit.start("03_train_grpo", locals())`.

    params : the notebook's variables; those that its cell `parameters` declares are the run's parameters.
    The folder is the one that papermill and `kit run` use for the same parameters.
    """
    # `kit run` checked the parameters and made the record.
    if place := os.environ.get("KIT_RUN_DIR"):
        folder = Path(place)
        # `kit run` has the lock; this one is never taken.
        lock, record = FileLock(lock_of(folder)), folders.load(folder)
    # In Jupyter or plain papermill.
    else:
        plan = _plan_of(notebook, params)
        folder, lock = _free_folder(plan.name)
        record = new_record(folder, notebook, plan)
    session = Session(folder, record, lock)
    print(session)
    return session


def _plan_of(notebook: str, params: Mapping[str, Any]) -> folders.Plan:
    """The plan of a notebook by its variables."""
    try:
        book = folders.find_notebook(f"{notebook}.ipynb")
    except MissingError:
        # It lies elsewhere: its plain variables are its parameters.
        values = {
            k: v
            for k, v in params.items()
            if isinstance(v, bool | int | float | str | list | None)
            and not k.startswith("_")
            and k not in ("In", "exit", "quit")
        }
        profile = profiles.resolve(params.get("profile") or None)
        key = fingerprint([folders.code_fingerprint(), profile.name, values])
        return folders.Plan(Path(), values, profile, f"{notebook}-{key[:8]}")
    values = {k: params[k] for k in parameters.read(book) if k in params}
    plan = folders.plan(book, values)
    for name, value in values.items():
        # YAML 1.1, which papermill reads, takes 1e-5 for a text.
        if isinstance(value, str) and not isinstance(plan.values[name], str):
            raise DataError(
                f"{name} is the text {value!r}",
                where="parameters",
                fix=f"write {plan.values[name]!r}, for a number like 1e-5 also 1.0e-5",
            )
    return plan


def _free_folder(name: str, number: int = 1) -> tuple[Path, FileLock]:
    """The folder of a run and its lock; where another process writes the run, one beside it."""
    folder = paths.runs() / (name if number == 1 else f"{name}-{number}")
    # A singleton, because the cell may be run again.
    lock = FileLock(lock_of(folder), is_singleton=True)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return _free_folder(name, number + 1)
    return folder, lock


def _frame(thing: Any) -> Any:
    """The DataFrame in a table, a styled table, a list of dicts, or a result with `.table()`; else None."""
    if isinstance(thing, list):
        return pd.DataFrame(thing)
    table = getattr(thing, "data", thing)  # a styled table holds its DataFrame
    if callable(getattr(thing, "table", None)):
        table = thing.table()
    return table if isinstance(table, pd.DataFrame) else None


def lock_of(folder: Path) -> Path:
    """The lock of a run's folder."""
    # Not in the folder itself, which `again` clears while the lock is held.
    path = folder.parent / ".locks" / folder.name
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def new_record(folder: Path, notebook: str, plan: folders.Plan) -> Run:
    """The record of a run that begins now."""
    return Run(
        id=folder.name,
        notebook=notebook,
        profile=plan.profile.name,
        seed=int(plan.values.get("seed") or 0),
        params=dict(plan.values),
        versions=machine.versions(),
        status="running",
        started=datetime.now(UTC).isoformat(timespec="milliseconds"),
        commit=folders.commit(),
        meta={
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "why": plan.profile.why,
        },
    )
