"""The state of a sweep while it runs: one tidy table, parameters beside metrics, and the time left."""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import io
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .. import runs
from ..data.schemas import FIELD, readable, stamped
from ..errors import KitError


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
    earlier sweeps into the folder stay, after this one's.
    """

    folder: Path
    cells: list[Cell]
    began: float = field(default_factory=time.monotonic)
    rows: dict[int, dict[str, Any]] = field(default_factory=dict)
    say: Callable[[str], None] = lambda text: None

    def __post_init__(self) -> None:
        """DataError where a newer kit wrote the folder's sweep: it is not written over."""
        mine = [c.params for c in self.cells]
        self.others = [c for c in self._before() if c.params not in mine]
        self.rows |= {len(mine) + i: row(c) for i, c in enumerate(self.others)}

    def _before(self) -> list[Cell]:
        """Cells of earlier sweeps; a damaged file is named and put aside; its runs are used."""
        path = self.folder / "sweep.json"
        try:
            cells = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
            return [Cell(**readable("sweep", c, where=str(path))) for c in cells]
        except (ValueError, TypeError, AttributeError) as e:
            aside = path.replace(path.with_name("sweep.json.damaged"))
            self.say(f"  {path} is damaged ({e}): kept as {aside}; finished cells are skipped")
            return []

    def change(self, index: int, **fields: Any) -> Cell:
        """Change a cell and write the table."""
        self.cells[index] = cell = dataclasses.replace(self.cells[index], **fields)
        self.rows[index] = row(cell)
        self.write()
        return cell

    def write(self) -> None:
        """Write sweep.json, table.json and table.csv whole."""
        self.folder.mkdir(parents=True, exist_ok=True)
        cells = [*self.cells, *self.others]
        rows = [self.rows.get(i) or row(c) for i, c in enumerate(cells)]
        rows = [stamped("sweep", r) for r in rows]
        runs.write_json(self.folder / "sweep.json", [stamped("sweep", vars(c)) for c in cells])
        runs.write_json(self.folder / "table.json", rows)
        runs.write_text(self.folder / "table.csv", as_csv(rows))

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
        left = len(self.cells) - len(ended)
        text = f"{len(ended)} of {len(self.cells)} done"
        if ran and left:
            text += f", about {(time.monotonic() - self.began) / len(ran) * left:.0f} s left"
        return text + (f", ${cost:.4f}" if cost else "")


def row(cell: Cell) -> dict[str, Any]:
    """A cell as a row of the table; metrics of an unfinished cell are not there, never 0."""
    out = {**cell.params, "status": cell.status, "seconds": round(cell.seconds, 2)}
    out |= {"cost": cell.cost, "reason": cell.reason, "folder": Path(cell.folder).name}
    if cell.status != "done":
        return out
    for name, value in _metrics(cell.folder).items():
        column = f"metric {name}" if name in out else name
        if isinstance(value, Mapping) and "value" in value:
            out[column] = value["value"]
            out |= {f"{column} {k}": value[k] for k in ("low", "high", "n") if k in value}
        elif isinstance(value, (int, float, str, type(None))):
            out[column] = value
    return out


def _metrics(folder: str) -> Mapping[str, Any]:
    try:
        return runs.load(Path(folder)).metrics
    except KitError:  # removed meanwhile
        return {}


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


def mark_unfinished(folder: Path, status: str, reason: str) -> None:
    """Say in a run's own folder that it was stopped or failed, where nothing else could (a killed
    worker, a full disk). A run that did not begin has no folder.
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
    try:
        meta = {**row.get("meta", {}), "error": reason}
        runs.write_json(path, {**row, "status": status, "meta": meta})
    except OSError:  # no room: in its place, in as many bytes
        old = b'"status": "running"'
        new = f'"status": "{status}"'.encode().ljust(len(old))
        with contextlib.suppress(OSError), path.open("r+b") as f:
            f.write(text.replace(old, new))
