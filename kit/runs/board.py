"""The state of a sweep while it runs: one tidy table, parameters beside metrics, and the time
left.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from .. import runs
from ..data.schemas import FIELD, readable, stamped
from ..errors import KitError
from ..system import paths, processes, progress

OWN = "own"  # the kind of the columns that every row has
RUNS_OWN = ("seed", "profile")  # a run's, given or not: no metric's column has these names


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One cell of the grid: its parameters and, once done, its folder, status and cost.

    status : waiting, running, done, failed or stopped; reason : why it was stopped, failed, or run
    again.
    """

    params: Mapping[str, Any]
    folder: str = ""
    status: str = "waiting"
    seconds: float = 0.0
    cost: float = 0.0
    reused: bool = False
    tail: str = ""
    reason: str = ""


@dataclass
class Board:
    """The cells of a sweep, in the order of the grid; written after every change.

    sweep.json holds the cells; table.csv and table.json one row a cell: its parameters, status,
    seconds, cost, and each metric with its interval (`gain`, `gain low`, `gain high`). Cells of
    other sweeps into the folder, earlier ones or running now, stay after this one's.
    """

    folder: Path
    cells: list[Cell]
    began: float = field(default_factory=time.monotonic)
    say: Callable[[str], None] = lambda text: None
    others: list[Cell] = field(default_factory=list)
    metrics: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """DataError where a newer kit wrote the folder's sweep: it is not written over."""
        self._read()

    @property
    def path(self) -> Path:
        """The file of the cells."""
        return self.folder / "sweep.json"

    def _read(self) -> None:
        """Take over the others' cells. A damaged file is named and put aside; its runs are used."""
        if not self.path.exists():
            return
        mine = {_same(c) for c in self.cells}
        try:
            rows = json.loads(self.path.read_text(encoding="utf-8"))
            cells = [Cell(**readable("sweep", c, where=str(self.path))) for c in rows]
            self.others = [c for c in cells if _same(c) not in mine]
        except (ValueError, TypeError, AttributeError) as e:
            aside = self.path.replace(self.path.with_name("sweep.json.damaged"))
            self.say(f"  {self.path} is damaged ({e}): kept as {aside}; finished cells are skipped")

    def change(self, index: int, **fields: Any) -> Cell:
        """Change a cell and write the table."""
        self.cells[index] = cell = replace(self.cells[index], **fields)
        self.write()
        return cell

    def write(self) -> None:
        """Write sweep.json, table.json and table.csv whole."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with processes.alone(self.folder, "table", self.say):
            self._read()
            mine = {c.folder for c in self.cells if c.folder}
            cells = [*self.cells, *(c for c in self.others if c.folder not in mine)]
            rows = table((c, self._metrics(c)) for c in cells)
            runs.write_json(self.path, [stamped("sweep", vars(c)) for c in cells])
            runs.write_json(self.folder / "table.json", rows)
            paths.write_text(self.folder / "table.csv", as_csv(rows))

    def _metrics(self, cell: Cell) -> Mapping[str, Any]:
        """What a finished cell recorded; nothing of an unfinished one, and of one removed since."""
        if cell.status != "done":
            return {}
        if cell.folder not in self.metrics:
            try:
                self.metrics[cell.folder] = runs.load(Path(cell.folder)).metrics
            except KitError:
                self.metrics[cell.folder] = {}
        return self.metrics[cell.folder]

    def ended(self) -> list[Cell]:
        """Cells that ran to an end, whatever it was."""
        return [c for c in self.cells if c.status in ("done", "failed")]

    def progress(self) -> str:
        """How far the sweep is, what is left, and what it cost.

        The time left is that of the cells that ran in this sweep (reused ones took none).
        """
        ended = self.ended()
        ran = [c for c in ended if not c.reused]
        cost = sum(c.cost for c in ran)
        total = len(self.cells)
        took = time.monotonic() - self.began
        left = took / len(ran) * (total - len(ended)) if ran else None
        progress.line("sweep", "cell", len(ended), total, took, left=left, cost=cost)
        parts = (
            f"{len(ended)} of {total} done",
            f"about {left:.0f} s left" if left else "",
            f"${cost:.4f}" if cost else "",
        )
        return ", ".join(filter(None, parts))


def _same(cell: Cell) -> str:
    """Equal for cells of the same parameters."""
    return json.dumps(runs.plain(cell.params), sort_keys=True)


def table(found: Iterable[tuple[Cell, Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Cells with their metrics as rows: parameters, how it went, metrics; one meaning a column.

    A parameter named as a column that every row has is "parameter NAME"; a metric named as a
    parameter, or as another metric's value or limit, is "metric NAME", in all rows. A metric of
    several values has a column for each; lists stay in metrics.json.
    """
    rows = [dict(_entries(*one)) for one in found]
    names = _columns({key for row in rows for key in row})
    return [{names[key]: value for key, value in row.items()} for row in rows]


def _entries(cell: Cell, metrics: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """A cell as (kind, name, ...) -> value."""
    yield from ((("parameter", k), v) for k, v in cell.params.items())
    went = {
        "status": cell.status,
        "seconds": round(cell.seconds, 2),
        "cost": cell.cost,
        "reason": cell.reason,
        "folder": Path(cell.folder).name,
    }
    yield from (((OWN, k), v) for k, v in stamped("sweep", went).items())
    for name, value in metrics.items():
        yield from _values(("metric", name), value)


def _values(key: tuple[str, ...], value: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    """A metric's values: of an estimate value, low, high and n, of a dict everything."""
    if not isinstance(value, Mapping):
        if not isinstance(value, list):
            yield key, value
        return
    estimate = "value" in value
    for name in ("value", "low", "high", "n") if estimate else value:
        if name in value:
            yield from _values(key if estimate and name == "value" else (*key, name), value[name])


def _columns(keys: Iterable[tuple[str, ...]]) -> dict[tuple[str, ...], str]:
    """A name of its own for each: own columns first, then parameters, then parts of metrics."""
    order = (OWN, "parameter", "metric")
    out: dict[tuple[str, ...], str] = {}
    taken: set[str] = set()
    for key in sorted(keys, key=lambda k: (order.index(k[0]), -len(k), k)):
        name = " ".join(key[1:])
        while name in taken or (key[0] == "metric" and name in RUNS_OWN):
            name = f"{key[0]} {name}"
        taken.add(name)
        out[key] = name
    return out


def as_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as CSV; the columns of all of them, and an empty field for what is not known.

    Text that a spreadsheet would run as a formula begins with an apostrophe, here only.

    >>> as_csv([{"a": 1}, {"a": None, "b": "x,y"}])
    'a,b\\n1,\\n,"x,y"\\n'
    >>> as_csv([{"schema": 1, "a": "=1+1"}, {"a": -1}])
    "a,schema\\n'=1+1,1\\n-1,\\n"
    """
    names = sorted(dict.fromkeys(k for r in rows for k in r), key=lambda name: name == FIELD)
    out = io.StringIO()
    writer = csv.DictWriter(out, names, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows({k: _field(v) for k, v in r.items()} for r in rows)
    return out.getvalue()


def _field(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")):
        return f"'{value}"
    return json.dumps(value) if isinstance(value, (list, dict)) else value


def mend_table(folder: Path) -> None:
    """Cells of a killed sweep that say "running" are what their runs are, else stopped."""
    if not (folder / "sweep.json").exists():
        return
    board = Board(folder, [])
    left = [c for c in board.others if c.status == "running"]
    every = {p.parent: runs.given(p.parent) for p in sorted(folder.glob("*/config.json"))}
    for cell in left:
        mine = [p for p, held in every.items() if held | cell.params == held]
        at, status = (str(mine[-1]), runs.status(mine[-1])) if mine else ("", "stopped")
        why = "" if status == "done" else "its process is gone"
        board.cells.append(replace(cell, status=status, folder=at, reason=why))
    if left:
        board.write()


def mark_unfinished(folder: Path, status: str, reason: str) -> None:
    """Say in a run's own folder that it was stopped or failed, where nothing else could (a killed
    worker, a full disk). A run that did not begin has no folder; one that had written its metrics,
    which `_execute` takes away first, is done.
    """
    path = folder / "config.json"
    try:
        text = path.read_bytes()
        row = json.loads(text)
    except FileNotFoundError:
        with contextlib.suppress(OSError):
            folder.rmdir()
        return
    except (OSError, ValueError):
        return
    if row.get("status") != "running":
        return
    remove_sockets(folder)
    if status == "stopped" and (folder / "metrics.json").exists():
        status, reason = "done", ""
    try:
        runs.write_json(
            path, {**row, "status": status, "meta": {**row.get("meta", {}), "error": reason}}
        )
    except OSError:  # no room: in its place, in as many bytes
        old = b'"status": "running"'
        new = f'"status": "{status}"'.encode().ljust(len(old))
        with contextlib.suppress(OSError), path.open("r+b") as f:
            f.write(text.replace(old, new))


def remove_sockets(folder: Path) -> None:
    """A killed kernel leaves its sockets behind."""
    for p in folder.glob("kernel-ipc-*"):
        p.unlink(missing_ok=True)
