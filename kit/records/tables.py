"""Records as pandas DataFrames: one row per verdict or grade, beside people's labels and the tasks' columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
import numpy as np
import pandas as pd
from msgspec.structs import asdict

from ..errors import DataError
from . import FAILURES, Grade, Verdict, check_labels, count_of

IDS = ["task", "response", "criterion"]
VERDICT_COLUMNS = (
    "judge", "status", "value", "p", "failure", "reason", "tokens_in", "tokens_out", "cost", "cached",
)  # fmt: skip


def table(
    records: Iterable[Verdict] | Iterable[Grade],
    *,
    human: object = None,
    tasks: object = None,
) -> pd.DataFrame:
    """One row per verdict or grade. Unknown is NaN, never 0.

    human : people's labels (a TaskSet, or verdicts whose judge is "human" or "human:NAME"). Adds `human`,
        `correct` (NaN where either side is unknown) and `confidence` (max(p, 1 - p)).
    tasks : a TaskSet. Adds group, kind, prompt, source, answer, and the criterion's weight and text.
    """
    rows: list[Any] = list(records)
    frame = (
        _grades(rows) if rows and isinstance(rows[0], Grade) else _verdicts(rows)
    )
    if human is not None:
        frame = frame.merge(labels_of(human), how="left", on=IDS)
        # Unknown on either side is no disagreement: it is left out, and counted elsewhere.
        distance = (met_of(frame["value"]) - met_of(frame["human"])).abs()
        frame = frame.assign(
            correct=1 - distance,
            confidence=np.maximum(frame["p"], 1 - frame["p"]),
        )
        if tasks is None and hasattr(human, "tasks"):
            tasks = human
        if tasks is not None:
            labels: Any = getattr(human, "verdicts", human)
            judged: Any = getattr(tasks, "tasks", tasks)
            check_labels(judged, labels, "labels")
    return frame if tasks is None else _with_tasks(frame, tasks)


def _verdicts(rows: list[Verdict]) -> pd.DataFrame:
    data = [(*v.ids, *(getattr(v, name) for name in VERDICT_COLUMNS)) for v in rows]
    # A column of None alone would be of type object, and no statistic takes it.
    return pd.DataFrame(data, columns=[*IDS, *VERDICT_COLUMNS]).astype(
        {"value": float, "p": float}
    )


def _grades(rows: list[Grade]) -> pd.DataFrame:
    data = []
    for g in rows:
        unknown = sum(not v.is_known for v in g.verdicts)
        data.append(
            (*g.answer_ids, g.score, g.score_low, g.score_high, g.cost, unknown)
        )
    parts = pd.DataFrame([g.parts for g in rows]).add_prefix("part ")
    columns = ["task", "response", "score", "low", "high", "cost", "unknown"]
    return pd.DataFrame(data, columns=columns).astype({"score": float}).join(parts)


def labels_of(human: object) -> pd.DataFrame:
    """Columns task, response, criterion, human: the mean label over raters.

    NaN where every rater chose unknown, or where raters split evenly between met and unmet.
    """
    verdicts: Any = getattr(human, "verdicts", human)
    data = [
        (*v.ids, v.value, v.meta.get("inclusion"), v.status != "level")
        for v in verdicts
        if v.judge.startswith("human")
    ]
    labels = (
        pd.DataFrame(data, columns=[*IDS, "human", "inclusion", "binary"])
        .astype({"human": float})
        .groupby(IDS, as_index=False, sort=False)
        .agg(
            human=("human", "mean"),
            sides=("human", "nunique"),
            binary=("binary", "all"),
            inclusion=("inclusion", "first"),
        )
    )
    # The mean of two levels may be .5 and still be a label; one met and one unmet are a tie.
    tie = labels["binary"] & (labels["human"] == 0.5) & (labels["sides"] > 1)
    labels.loc[tie, "human"] = np.nan
    return labels.drop(columns=["sides", "binary"])


def met_of(values: pd.Series) -> pd.Series:
    """1 where a value is on the side of "met" (from .5 on), 0 where it is not, NaN where unknown."""
    # NaN >= .5 is False, which would turn unknown into unmet.
    return values.ge(0.5).astype(float).where(values.notna())


def _with_tasks(frame: pd.DataFrame, tasks: object) -> pd.DataFrame:
    rows: Any = getattr(tasks, "tasks", tasks)
    # A task without a group is a cluster of its own.
    about = pd.DataFrame(
        [(t.id, t.group or t.id, t.kind, t.conversation) for t in rows],
        columns=["task", "group", "kind", "prompt"],
    )
    answers = pd.DataFrame(
        [(*r.ids, r.source, r.text) for r in getattr(tasks, "responses", ())],
        columns=["task", "response", "source", "answer"],
    )
    frame = frame.merge(about, how="left", on="task").merge(
        answers, how="left", on=["task", "response"]
    )
    if "criterion" not in frame:
        return frame
    return frame.merge(
        pd.DataFrame(
            [(t.id, c.id, c.weight, c.text) for t in rows for c in t.criteria],
            columns=["task", "criterion", "weight", "text"],
        ),
        how="left",
        on=["task", "criterion"],
    )


class Verdicts(list[Verdict]):
    """A list of verdicts.

    spent : what they took. `.table()` is a DataFrame, `.causes()` explains unknown ones.
    """

    spent: Any = None

    @property
    def failures(self) -> Counter[str]:
        """The causes of what is unknown, with their numbers."""
        return Counter(str(v.failure) for v in self if not v.is_known)

    def table(self, *, human: object = None, tasks: object = None) -> pd.DataFrame:
        """One row per verdict, beside people's labels and the tasks' columns."""
        return table(self, human=human, tasks=tasks)

    def causes(self) -> pd.DataFrame:
        """A DataFrame of what is unknown: cause, verdicts, meaning, what to do."""
        return pd.DataFrame(
            [(x, n, *FAILURES[x]) for x, n in self.failures.most_common()],
            columns=["cause", "verdicts", "meaning", "what to do"],
        )

    def __repr__(self) -> str:
        causes = ", ".join(
            f"{n} {cause}" for cause, n in self.failures.most_common()
        )
        return f"{count_of(len(self), 'verdict')} ({self.spent}); unknown: {causes or 'none'}"

    def _repr_html_(self) -> str:
        return show(
            self.table(),
            *(*IDS, "status", "p", "failure", "reason"),
            caption=repr(self),
            limit=20,
        ).to_html()


class Results(dict[str, Any]):
    """Results by name, shown as a table. `.kappa` gives the part `kappa` of each."""

    def __getattr__(self, part: str) -> Results:
        # Notebooks and copy look for methods such as _repr_png_, which no result has.
        if part.startswith("_"):
            raise AttributeError(part)
        return Results({name: getattr(x, part) for name, x in self.items()})

    def __repr__(self) -> str:
        return "\n".join(f"{name}: {x}" for name, x in self.items())

    def _repr_html_(self) -> str:
        texts = pd.Series(self, dtype=object).map(str)
        return texts.to_frame("result").to_html()


def table_column(frame: pd.DataFrame, name: str, where: str = "") -> pd.Series[Any]:
    """A column of a table. Files say task_id, response_id, criterion_id; tables leave `_id` out: both are read.

    >>> table_column(pd.DataFrame({"task_id": ["t"]}), "task").tolist()
    ['t']
    """
    for column in (name, f"{name}_id", name.removesuffix("_id")):
        if column in frame.columns:
            return frame[column]
    raise DataError(
        f"there is no column {name!r}",
        where=where,
        fix=f"columns: {', '.join(map(str, frame.columns))}",
    )


def per_group(
    frame: pd.DataFrame,
    by: str,
    function: Callable[..., Any],
    *columns: str,
    cluster: str | None = None,
    **options: Any,
) -> Results:
    """Apply a statistic to each group of rows, for example kappa to each judge.

    by : the column whose values name the groups. columns : the columns that `function` receives.
    cluster : the column that it receives as `cluster=`.

    >>> frame = pd.DataFrame({"judge": ["a", "a", "b"], "value": [1.0, 0.0, 1.0]})
    >>> per_group(frame, "judge", np.mean, "value")
    a: 0.5
    b: 1.0
    """
    out = Results()
    for name, rows in frame.groupby(
        table_column(frame, by, "by"), sort=False, dropna=False
    ):
        if cluster:
            options["cluster"] = table_column(rows, cluster, "cluster")
        values = [table_column(rows, column) for column in columns]
        out[str(name)] = function(*values, **options)
    return out


def show(
    rows: pd.DataFrame | Mapping[str, object] | Iterable[Any],
    *columns: str,
    caption: str = "",
    limit: int = 40,
) -> pd.io.formats.style.Styler:
    """Show a DataFrame, or a list of dicts or records, as a table with whole texts.

    columns : the columns to show (default: all). limit : the number of rows. All text is escaped.
    """
    if isinstance(rows, Mapping):
        rows = [{"name": name, "result": str(x)} for name, x in rows.items()]
    if not isinstance(rows, pd.DataFrame):
        rows = pd.DataFrame(
            [asdict(r) if isinstance(r, msgspec.Struct) else r for r in rows]
        )
    frame = rows.reindex(columns=list(columns) or rows.columns).head(limit)
    return (
        frame.style.set_caption(caption)
        .hide(axis="index")
        # Answers are hostile text: without the escape, a notebook would run their HTML.
        .format(precision=3, na_rep="", escape="html")
        # A notebook would align the heads of columns to the right of their cells.
        .set_table_styles(
            [
                {
                    "selector": "th, td",
                    "props": "text-align: left; white-space: pre-wrap",
                }
            ]
        )
    )


def plain(value: object) -> Any:
    """Values as JSON holds them: NaN becomes None, numpy becomes Python, records become dicts."""

    def convert(x: object) -> object:
        if isinstance(x, pd.DataFrame):
            return x.to_dict("records")
        return x.tolist() if hasattr(x, "tolist") else str(x)

    return msgspec.json.decode(msgspec.json.encode(value, enc_hook=convert))
