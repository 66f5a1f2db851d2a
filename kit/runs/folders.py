"""The folder of a run: its name, its record `run.json` with metrics and results, and how runs are found again.

Jupyter, papermill and `kit run` share these folders. The name holds a fingerprint of everything that shapes
the result, so a finished run is found again, and a killed one goes on in its folder.
"""

import hashlib
import math
import os
import socket
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

import msgspec
import psutil

from ..errors import DataError, KitError, MissingError
from ..records import Run, fingerprint
from ..records.tables import plain
from ..stats import Estimate, format_number
from ..system import paths, profiles
from ..system.settings import nearest
from . import parameters

RECORD = "run.json"
# a training has no record: its files say what it was, and one that did not finish has steps only
MARKS = (RECORD, "training.html", "steps.jsonl")
CODE = "KIT_CODE_FINGERPRINT"


@dataclass(frozen=True)
class Plan:
    """What a run would do. values : all parameters. name : the folder's name."""

    book: Path
    values: dict[str, Any]
    profile: profiles.Profile
    name: str


def find_notebook(name: str | Path) -> Path:
    """A notebook by path, name or number ("3" is 03_...)."""
    path = Path(name).expanduser()
    if path.suffix == ".ipynb" and path.is_file():
        return path.resolve()
    books = sorted(paths.notebooks().glob("[0-9]*.ipynb"))
    for book in books:
        number = book.name.split("_")[0]
        if str(name) in (book.name, book.stem, number, number.lstrip("0")):
            return book
    raise MissingError(
        f"there is no notebook {str(name)!r}",
        where=str(paths.notebooks()),
        fix="one of: " + ", ".join(book.stem for book in books),
    )


def plan(
    book: Path, values: Mapping[str, Any], *, profile: str | None = None
) -> Plan:
    """Check the parameters of a notebook and name its run. Nothing starts with a wrong one."""
    full = parameters.check(book, values)
    if profile and values.get("profile") not in (None, "", profile):
        raise DataError(
            f"two profiles: {profile}, {full['profile']}", where="--profile, --set"
        )
    chosen = profiles.resolve(profile or full.get("profile"))
    if "profile" in full:
        # "" and "cpu" are one run on a machine where "" resolves to "cpu"
        full["profile"] = chosen.name
    # The text of the cells counts, their outputs do not: storing outputs makes no new run.
    code = [
        cell["source"]
        for cell in parameters.code_cells(book)
        if "parameters" not in cell["metadata"].get("tags", ())
    ]
    # A digest of the file that a parameter names: a changed file makes another run.
    files = {
        name: hashlib.sha256(Path(value).read_bytes()).hexdigest()
        for name, value in full.items()
        if isinstance(value, str) and os.path.isfile(value)
    }
    # Eight digits are enough for a folder of runs, and short enough to be typed.
    key = fingerprint([code, code_fingerprint(), chosen.name, full, files])
    return Plan(book, full, chosen, f"{book.stem}-{key[:8]}")


def code_fingerprint() -> str:
    """A fingerprint of the kit's code and shipped data. The cells of a sweep take that of its start."""
    # Code that is edited during a sweep must not rename the cells to come.
    if os.environ.get(CODE):
        return os.environ[CODE]
    digest = hashlib.sha256()
    # Presets and prompts are files beside the code, and shape a result as it does.
    for file in sorted([*paths.PACKAGE.rglob("*.*"), *paths.data().rglob("*.*")]):
        if file.is_file() and file.suffix != ".pyc":
            # Names count too: a renamed file changes what is read.
            digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()[:16]


def commit() -> str | None:
    """The git commit of the checkout, with "+changes" where files differ from it."""
    try:
        return subprocess.run(
            # Without tags, because the name of a tag would hide the commit.
            ["git", "describe", "--always", "--dirty=+changes", "--exclude=*"],
            cwd=paths.ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None


def save(folder: Path, run: Run) -> None:
    """Write the record of a run, whole or not at all."""
    # A field per line, so that two records can be compared with diff.
    paths.write(
        folder / RECORD,
        msgspec.json.format(msgspec.json.encode(plain(run)), indent=1),
    )


def load(folder: str | Path) -> Run:
    """The record of a run or a training. Its status is running, done, failed, or stopped (its process is gone)."""
    path = Path(folder) / RECORD
    if not path.is_file():
        from ..evaluation import Result

        return Result.read(folder).record
    try:
        run = msgspec.json.decode(path.read_bytes(), type=Run)
    except msgspec.DecodeError as e:
        raise DataError(
            f"this is not a record of a run: {e}", where=str(path)
        ) from None
    # Only the machine of a run can tell whether its process still runs.
    if (
        run.status == "running"
        and run.meta["host"] == socket.gethostname()
        and not psutil.pid_exists(run.meta["pid"])
    ):
        return msgspec.structs.replace(run, status="stopped")
    return run


def find_folder(name: str | Path) -> Path:
    """The folder of a run by its path, or by its name wherever one stands: "runs/x", "x" and "demo/x" are read."""
    path, base = Path(name).expanduser(), paths.runs()
    for place in (
        path,
        base / path,
        base.parent / path,
        *base.glob(f"*/{path.name}"),
    ):
        if place.is_dir():
            return place.resolve()
    names = [at.name for depth in ("*/", "*/*/") for at in base.glob(depth)]
    raise MissingError(
        "there is no such folder",
        where=str(name),
        # All names would fill the screen.
        fix=nearest(path.name, names)[:400],
    )


def is_done(folder: Path) -> bool:
    """True where a run came to its end."""
    return (folder / RECORD).is_file() and load(folder).status == "done"


def find(folder: str | Path | None = None) -> list[tuple[Path, Run]]:
    """All runs and trainings in a folder and two levels below it, oldest first, as (folder, record).

    folder : default: the kit's runs. What cannot be read has the status "broken": a record that was damaged, a
        training that did not finish.
    """
    base = Path(folder or paths.runs()).expanduser().resolve()
    if not base.is_dir():
        raise MissingError(
            "there is no such folder", where=str(base), fix="kit run NOTEBOOK"
        )
    out, depths = [], ("", "*/", "*/*/")
    folders = {p.parent for d in depths for m in MARKS for p in base.glob(d + m)}
    # below a run lies what is part of it: its training, or a stage of a chain
    for at in [f for f in folders if not folders.intersection(f.parents)]:
        try:
            run = load(at)
        except KitError as e:  # one bad record must not hide the others
            run = Run(
                id=at.name,
                notebook=at.name,
                profile="",
                seed=0,
                status="broken",
                meta={"error": e.what},
            )
        out.append((at, run))
    # Names end in fingerprints: only the time of start tells what is newest.
    return sorted(out, key=lambda pair: (pair[1].started or "", pair[0].name))


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """A sentence, or a table or figure in a file of the run's folder. caption : one sentence about it."""

    kind: Literal["sentence", "table", "figure"]
    name: str = ""
    text: str = ""
    file: str = ""
    caption: str = ""


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A number of a run. estimate : its interval, where it has one; value is None where it is unknown."""

    value: Any
    caption: str = ""
    estimate: Estimate | None = None

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """A metric as run.json holds it."""
        estimate = None
        if "low" in row:
            # JSON has no NaN: an unknown number, like a field that an older kit lacks, is the default.
            parts = {name: x for name, x in row.items() if x is not None}
            # It has no infinity either: None is a side without a bound.
            low, high = row.get("bounds") or (None, None)
            parts["bounds"] = (
                -math.inf if low is None else low,
                math.inf if high is None else high,
            )
            estimate = msgspec.convert({"value": math.nan, **parts}, Estimate)
        return cls(
            value=row.get("value"),
            estimate=estimate,
            caption=row.get("caption") or "",
        )

    @property
    def is_difference(self) -> bool:
        """True for a difference, which is 0 where nothing differs; False for a level."""
        return self.estimate is not None and not math.isnan(self.estimate.scale)

    def __str__(self) -> str:
        if self.estimate:
            return str(self.estimate)
        if self.value is None or isinstance(self.value, float):
            return format_number(self.value)
        return str(self.value)


def metrics_of(run: Run) -> dict[str, Metric]:
    """The metrics of a run by name."""
    return {name: Metric.from_row(row) for name, row in run.metrics.items()}


def kept_by(run: Run) -> list[Kept]:
    """The sentences, tables and figures of a run."""
    return msgspec.convert(list(run.meta.get("results", ())), list[Kept])
