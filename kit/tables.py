"""Records as tables: one tidy row per verdict or grade, joined with human labels; one HTML table.

The way between records and statistics: `verdicts.table(human=tasks)`, then any function that takes
columns takes the table and the names of its columns.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from .errors import KitError
from .page import escape
from .records import Grade, Verdict, by_criterion, content, grouped, paid

if TYPE_CHECKING:
    import pandas as pd

VERDICT = ("task", "response", "criterion", "judge", "status", "value", "p", "failure", "reason")
SPENT = ("tokens_in", "tokens_out", "cost", "cached")
STYLE = "style='text-align:left;vertical-align:top;padding:2px 8px;white-space:pre-wrap'"
LONG = f"{STYLE[:-1]};min-width:16em'"  # a text: on a phone it was a letter or two a line


def table(records: Iterable[Any], *, human: Any = None, tasks: Any = None) -> pd.DataFrame:
    """A DataFrame of verdicts or grades, one row each, in their order; unknown is NaN, never 0.

    human : labels to put beside verdicts: a TaskSet or a list of verdicts by people.
    tasks : where a task's group and kind, a criterion's text, an answer's source are taken from
        (default: `human`, where it is a TaskSet).

    Verdict columns: task, response, criterion, judge, status, value, p, failure, reason, tokens_in,
    tokens_out, cost, cached (score and paid where a judge gives points); with labels also human (in
    [0, 1]) and correct (1.0 where judge and human
    stand on the same side of one half, NaN where either is unknown) and sure (max(p, 1 - p): the
    judge's confidence in its own side), and inclusion (the probability of the row to be drawn)
    where the labels say it.

    >>> one = Verdict(task_id="t", response_id="r", criterion_id="c", status="met", p=0.9)
    >>> table([one])[["task", "status", "p"]].values.tolist()
    [['t', 'met', 0.9]]
    """
    rows = list(records)
    if rows and isinstance(rows[0], Grade):
        frame = _grades(rows)
    elif all(isinstance(v, Verdict) for v in rows):
        frame = _verdicts(rows)
    else:
        raise KitError(
            f"a table is made of verdicts or grades, not of {type(rows[0]).__name__}",
            where="table(records)",
            fix="pass what kit.judge or kit.grade gave",
        )
    if human is not None:
        frame = _with_labels(frame, human)
    tasks = human if tasks is None and hasattr(human, "tasks") else tasks
    return frame if tasks is None else _with_tasks(frame, tasks)


def _verdicts(rows: Sequence[Verdict]) -> pd.DataFrame:
    import pandas as pd

    names = {"task": "task_id", "response": "response_id", "criterion": "criterion_id"}
    columns = {c: _whole(getattr(v, names.get(c, c)) for v in rows) for c in (*VERDICT, *SPENT)}
    if not rows or any("score" in v.meta for v in rows):  # a judge that gives points: 1 to 5, say
        columns["score"] = [v.meta.get("score") for v in rows]
        columns["paid"] = [paid(v) for v in rows]
    numbers = [c for c in ("value", "p", "cost", "score", "paid") if c in columns]
    frame = pd.DataFrame(columns, dtype=None if rows else object)  # texts, though there are none
    return frame.astype(dict.fromkeys(numbers, float))


def _grades(rows: Sequence[Grade]) -> pd.DataFrame:
    import pandas as pd

    columns: dict[str, list[Any]] = {
        "task": [g.task_id for g in rows],
        "response": [g.response_id for g in rows],
        "score": [g.score for g in rows],
        "low": [g.score_low for g in rows],
        "high": [g.score_high for g in rows],
        "unknown": [sum(not v.known for v in by_criterion(g.verdicts).values()) for g in rows],
        "cost": [g.cost for g in rows],
    }
    for name in dict.fromkeys(name for g in rows for name in g.parts):
        columns[f"part {name}"] = [g.parts.get(name) for g in rows]
    return pd.DataFrame(columns).astype({"score": float, "low": float, "high": float})


def labels_of(human: Any) -> dict[tuple[str, str, str], float]:
    """(task, response, criterion) -> label in [0, 1]: the mean over raters who gave one; none where
    they are split evenly.

    human : a TaskSet (its verdicts by judges named "human..."), or an iterable of verdicts.
    """
    means = {key: averaged(values) for key, values in ratings_of(human).items()}
    return {key: mean for key, mean in means.items() if mean is not None}


def averaged(ratings: Sequence[float]) -> float | None:
    """The mean of what raters gave; None where nobody did, or where they are split evenly: their
    mean is the middle, which nobody says, and half of them are below. Within rounding of a level (k
    of n) it is that level.

    >>> averaged([1.0, 0.0]), averaged([0.2, 0.2, 0.2]), averaged([0.6, 0.7, 0.2])
    (None, 0.2, 0.5)
    """
    if not ratings:
        return None
    mean = sum(ratings) / len(ratings)
    level = float(Fraction(mean).limit_denominator(1000))
    mean = level if abs(mean - level) < 1e-12 else mean
    even = 0.5 not in ratings and 2 * sum(r < 0.5 for r in ratings) == len(ratings)
    return None if mean == 0.5 and even else mean


def ratings_of(human: Any) -> dict[tuple[str, str, str], list[float]]:
    """(task, response, criterion) -> what raters gave there; takes what `labels_of` takes."""
    found = getattr(human, "verdicts", human)
    by_people = [v for v in found if v.judge.startswith("human")]
    return grouped((v.ids, v.value) for v in by_people or found if v.value is not None)


def _with_labels(frame: pd.DataFrame, human: Any) -> pd.DataFrame:
    labels = labels_of(human)
    keys = list(zip(frame["task"], frame["response"], frame["criterion"], strict=True))
    frame["human"] = [labels.get(key, math.nan) for key in keys]
    said = getattr(human, "verdicts", human)
    if drawn := {v.ids: v.meta["inclusion"] for v in said if "inclusion" in v.meta}:
        frame["inclusion"] = [drawn.get(key, math.nan) for key in keys]
    same = (frame["value"] >= 0.5) == (frame["human"] >= 0.5)
    known = frame["value"].notna() & frame["human"].notna()
    frame["correct"] = same.astype(float).where(known)
    frame["sure"] = frame["p"].where(frame["p"] >= 0.5, 1 - frame["p"])  # NaN stays NaN
    return frame


def _with_tasks(frame: pd.DataFrame, tasks: Any) -> pd.DataFrame:
    """What tasks and answers say of each row: the task's group and kind, who wrote the answer, the
    criterion.
    """
    rows = {t.id: t for t in getattr(tasks, "tasks", tasks)}
    answers = {r.ids: r for r in getattr(tasks, "responses", ())}
    mine = [rows.get(i) for i in frame["task"]]
    keys = list(zip(frame["task"], frame["response"], strict=True))
    given = [answers.get(key) for key in keys]
    more: dict[str, list[Any]] = {
        "group": [getattr(t, "group", None) or i for t, (i, _) in zip(mine, keys, strict=True)],
        "kind": [getattr(t, "kind", None) for t in mine],
        "prompt": [getattr(t, "prompt", None) for t in mine],
        "source": [getattr(r, "source", None) or "unnamed" for r in given],
        "answer": [getattr(r, "text", None) for r in given],
    }
    if "criterion" in frame:
        texts = {(t.id, c.id): c for t in rows.values() for c in t.criteria}
        named = [texts.get(key) for key in zip(frame["task"], frame["criterion"], strict=True)]
        more["weight"] = [math.nan if c is None else c.weight for c in named]
        more["text"] = [None if c is None else c.text for c in named]
    return frame.assign(**{name: _whole(column) for name, column in more.items()})


def _whole(column: Iterable[Any]) -> list[Any]:
    """Half a character (valid JSON: an emoji cut in two) as "?": columns of text hold none.

    >>> _whole(["a\\ud83d", None])
    ['a?', None]
    """
    return [x.encode("utf-8", "replace").decode() if isinstance(x, str) else x for x in column]


class Results(dict[str, Any]):
    """Results by name; `.kappa` picks that part of each. Shows itself as a table.

    >>> from kit.stats import mean
    >>> print(Results(a=mean([0, 1, 1, 1])).value)
    a  0.75
    """

    def __getattr__(self, part: str) -> Results:
        if part.startswith("_"):
            raise AttributeError(part)
        return Results({name: getattr(result, part) for name, result in self.items()})

    def _repr_html_(self) -> str:
        return pairs_html({name: brief(result) for name, result in self.items()})

    def __repr__(self) -> str:
        width = max(map(len, self), default=0)
        return "\n".join(f"{name:<{width}}  {brief(x)}" for name, x in self.items()) or "no rows"


def brief(result: Any) -> str:
    """A result in one line."""
    return cell(result).split("\n")[0]


def each(
    frame: pd.DataFrame,
    by: str,
    function: Callable[..., Any],
    *columns: str,
    cluster: str | None = None,
    **options: Any,
) -> Results:
    """A function of columns for each value of the column `by`, in order of first sight; rows
    without one are "unknown".

    >>> import pandas as pd
    >>> from kit.stats import mean
    >>> rows = pd.DataFrame({"judge": ["a", "a", "b"], "value": [1, 0, 1]})
    >>> each(rows, "judge", mean, "value").n
    a  2
    b  1
    """
    from .stats.columns import column, even

    even(frame, (*columns, *options.values()))
    named = [(by, "by"), *((c, "columns") for c in columns)]
    named += [] if cluster is None else [(cluster, "cluster")]
    for c, argument in named:
        column(frame, c, argument)
    out = Results()
    for name, rows in frame.groupby(by, sort=False, dropna=False):
        more = {} if cluster is None else {"cluster": rows[cluster]}
        key = "unknown" if rows[by].isna().any() else str(name)
        if key in out:  # 1 and "1"; "unknown" and none
            key += f" ({len(out) + 1})"
        out[key] = function(*(rows[c] for c in columns), **more, **options)
    return out


def show(rows: Any, *columns: str, caption: str = "", most: int = 40) -> Shown:
    """Anything as a table that shows itself: a DataFrame, dicts, records, settings, results by
    name.

    columns : which, in which order (default: all). Texts are shown whole. One record or settings
    object becomes a row per field, what differs from its default first.
    """
    found = [row_of(r) for r in _rows(rows)]
    if columns:
        found = [{c: r.get(c) for c in columns} for r in found]
    return Shown(found, caption=caption, most=most)


def _rows(rows: Any) -> Iterable[Any]:
    if hasattr(rows, "to_dict") and hasattr(rows, "columns"):
        return rows.to_dict("records")
    if dataclasses.is_dataclass(rows):
        return fields_of(rows)
    if isinstance(rows, Mapping):
        return [{"name": name, "value": brief(value)} for name, value in rows.items()]
    return rows


def row_of(record: Any) -> Mapping[str, Any]:
    """A record as a dict of its fields."""
    if isinstance(record, Mapping):
        return record
    return {f.name: getattr(record, f.name) for f in content(type(record))}


def fields_of(record: Any) -> list[dict[str, Any]]:
    """The fields of a record, those that differ from their default first."""
    rows = []
    for f in content(type(record)):
        made = f.default_factory is not dataclasses.MISSING
        default = f.default_factory() if made else f.default
        default = None if default is dataclasses.MISSING else default
        rows.append({"field": f.name, "value": getattr(record, f.name), "default": default})
    return sorted(rows, key=lambda r: r["value"] == r["default"])


def cell(value: Any) -> str:
    """A value as the text of a cell: unknown as an empty cell, numbers short, lists with commas.

    >>> cell(None), cell(0.12345), cell((1, 2)), cell(float("nan")), cell({"a": [1, 2]})
    ('', '0.123', '1, 2', '', 'a: 1, 2')
    """
    if value is None or (isinstance(value, float) and value != value):
        return ""
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1 else f"{value:,.4g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{k}: {cell(v)}" for k, v in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(map(cell, value))
    return str(value)


def rows_html(
    head: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    caption: str = "",
    raw: Collection[int] = (),
) -> str:
    """One HTML table. Every cell is escaped, but for the columns in `raw`, which hold our own HTML.

    >>> rows_html(["a"], [["<b>"]]).count("&lt;b&gt;")
    1
    """
    if not head:  # a caption over no columns is one word wide
        return f"<p>{escape(caption)}</p>"
    title = f"<caption {STYLE}>{escape(caption)}</caption>" if caption else ""
    heads = "".join(f"<th {STYLE}>{escape(str(h))}</th>" for h in head)
    body = "".join(f"<tr>{_cells(row, raw)}</tr>" for row in rows)
    return f"<table>{title}<tr>{heads}</tr>{body}</table>"


def _cells(row: Sequence[Any], raw: Collection[int]) -> str:
    shown = (x if i in raw else escape(cell(x)) for i, x in enumerate(row))
    return "".join(f"<td {LONG if len(x) > 60 else STYLE}>{x}</td>" for x in shown)


def pairs_html(rows: Mapping[str, Any] | Iterable[tuple[str, Any]], *, caption: str = "") -> str:
    """Two columns, name and value: settings, summaries. Every cell is escaped."""
    items = rows.items() if isinstance(rows, Mapping) else rows
    title = f"<caption {STYLE}>{escape(caption)}</caption>" if caption else ""
    body = "".join(
        f"<tr><th {STYLE}>{escape(str(k))}</th><td {STYLE}>{escape(cell(v))}</td></tr>"
        for k, v in items
    )
    return f"<table>{title}{body}</table>"


def dicts_html(
    rows: Sequence[Mapping[str, Any]], *, caption: str = "", most: int | None = None
) -> str:
    """Rows that are dicts, one column a key; beyond `most` rows it says how many there are."""
    head = list(dict.fromkeys(key for row in rows for key in row))
    shown = rows[:most]
    more = f"<p>{len(shown)} of {len(rows)} rows</p>" if len(shown) < len(rows) else ""
    return rows_html(head, [[r.get(k) for k in head] for r in shown], caption=caption) + more


class Shown(list[dict[str, Any]]):
    """Rows that show themselves as a table in a notebook, and as lines of text elsewhere."""

    def __init__(
        self, rows: Iterable[Mapping[str, Any]] = (), *, caption: str = "", most: int = 40
    ):
        super().__init__(dict(r) for r in rows)
        self.caption, self.most = caption, most

    def _repr_html_(self) -> str:
        return dicts_html(self, caption=self.caption, most=self.most)

    def __repr__(self) -> str:
        shown = self[: self.most]
        lines = ["  ".join(f"{k}: {cell(v)}" for k, v in row.items()) for row in shown]
        lines += [f"{len(shown)} of {len(self)} rows"] if len(shown) < len(self) else []
        return "\n".join([self.caption, *lines] if self.caption else lines) or "no rows"


def plain(value: Any) -> Any:
    """Values as JSON: estimates become {value, low, high, n, ...}; NaN becomes None; numpy becomes
    Python.

    >>> plain({"a": float("nan"), "b": (1, 2.5)})
    {'a': None, 'b': [1, 2.5]}
    """
    if value is None or type(value) in (str, int, bool):  # most are
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            k: plain(v)
            for k, v in ((f.name, getattr(value, f.name)) for f in content(type(value)))
            if v is not None and v != ""
        }
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, (str, int, float)) else str(value)
