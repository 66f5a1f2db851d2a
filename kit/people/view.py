"""Answers with their verdicts and reasons as one page: filtered and searched without a network."""

from __future__ import annotations

import html
import logging
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .. import page as pages
from ..checks.text import answered
from ..data import TaskSet, answers_of, tasks_of
from ..errors import DataError
from ..records import Criterion, Grade, Response, Task, Verdict
from ..rewards.aggregate import PASS_AT, leaves
from ..system.paths import write_text
from .labels import Labels, read_grades, read_labels, strays, verdicts_of

log = logging.getLogger(__name__)
KINDS = ("unmet", "met", "level", "unknown")  # as view.js counts them
HERE = Path(__file__).parent
FILES = ("view.css", "view.js", "recompute.js")
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
STYLE = "body{margin:0;background:#fff}main{max-width:1200px;margin:0 auto;padding:16px 14px 60px}"
DARK = "@media (prefers-color-scheme:dark){body{background:#15191d}}h1{font-size:23px;margin:0}"


def judgments(
    grades: Any,
    *,
    tasks: Any = None,
    answers: Any = None,
    labels: Any = None,
    set: str = "",
) -> dict[str, Any]:
    """Grades as the data of a page: tasks, and answers with a row for each verdict.

    grades : a file of `kit judge`, or grades; tasks : file or TaskSet (None: ids stand for texts);
    answers : file, TaskSet or responses; labels : as in kit.agreement. set : a name for these
    answers ("before", say) where a page holds several. "uneven": the labels were drawn with unequal
    probability, so that the page has no agreement, and says why.
    """
    rows = read_grades(grades) if isinstance(grades, (str, os.PathLike)) else list(grades)
    by_id = {t.id: t for t in tasks_of(tasks)} if tasks is not None else {}
    texts = {r.ids: r for r in answers_of(answers, by_id.values() if by_id else None)}
    if texts and not any(g.ids in texts for g in rows):
        raise DataError(
            "none of these answers was graded",
            where="--answers",
            fix="give the answers that were judged; task_id and response_id must be equal",
        )
    read = by_id and isinstance(answers, (str, os.PathLike))
    there = TaskSet(tasks=list(by_id.values()), responses=list(texts.values()) if read else [])
    given = read_labels(labels, there)
    for said in filter(None, [*strays(given, (v.ids for v in verdicts_of(rows))), given.unread]):
        log.warning("%s", said)
    out: dict[str, Any] = {"tasks": [], "answers": []}
    out["uneven"] = len({*given.inclusion.values()}) > 1
    at: dict[str, int] = {}
    for g in rows:
        task = by_id.get(g.task_id)
        if task is None and tasks is not None:
            raise DataError(
                f"there is no task {g.task_id!r}",
                where="--tasks",
                fix="give the tasks that were judged, or leave --tasks out",
            )
        if g.task_id not in at:
            at[g.task_id] = len(out["tasks"])
            out["tasks"].append(_task(g.task_id, task))
        entry = out["tasks"][at[g.task_id]]
        out["answers"].append(_answer(g, at[g.task_id], entry, texts.get(g.ids), given, set))
    return out


def joined(*parts: Mapping[str, Any]) -> dict[str, Any]:
    """Several sets of judgments as one, the answers to one task beside each other.

    >>> one = {"tasks": [{"id": "t", "prompt": "", "criteria": []}], "answers": []}
    >>> len(joined(one, one)["tasks"])
    1
    """
    tasks: dict[str, dict[str, Any]] = {}
    answers = []
    for part in parts:
        for t in part["tasks"]:
            tasks.setdefault(t["id"], {**t, "criteria": [*t["criteria"]]})
        for a in part["answers"]:
            old = part["tasks"][a["t"]]
            new = tasks[old["id"]]  # its criteria may stand in other places
            verdicts = [[_number(new, old["criteria"][at]), *rest] for at, *rest in a["v"]]
            answers.append((old["id"], {**a, "v": verdicts}))
    order = {name: i for i, name in enumerate(tasks)}
    ranked = sorted(answers, key=lambda a: order[a[0]])
    return {
        "tasks": list(tasks.values()),
        "answers": [{**a, "t": order[i]} for i, a in ranked],
        "uneven": any(part.get("uneven") for part in parts),
    }


def thinned(data: Mapping[str, Any], every: int) -> dict[str, Any]:
    """Judgments of one task in `every`, with all its answers: spread over the set, chosen by place
    and not by verdict.

    >>> two = {"tasks": [{"id": "a"}, {"id": "b"}], "answers": [{"t": 0}, {"t": 1}]}
    >>> thinned(two, 2)
    {'tasks': [{'id': 'a'}], 'answers': [{'t': 0}]}
    """
    kept = [{**a, "t": a["t"] // every} for a in data["answers"] if a["t"] % every == 0]
    return {**data, "tasks": data["tasks"][::every], "answers": kept}


def _number(task: dict[str, Any], criterion: Mapping[str, Any]) -> int:
    """The criterion's place in the task; one that is not there is added."""
    ids = [c["id"] for c in task["criteria"]]
    if criterion["id"] not in ids:
        task["criteria"].append(dict(criterion))
        return len(ids)
    return ids.index(criterion["id"])


def _task(name: str, task: Task | None) -> dict[str, Any]:
    below = () if task is None else leaves(task.criteria)
    parents = () if task is None else (c for c in task.criteria if c not in below)
    return {
        "id": name,
        "prompt": "" if task is None else task.asked,
        "group": None if task is None else task.group,
        "criteria": [_criterion(c) for c in (*below, *parents)],
    }


def _criterion(c: Criterion) -> dict[str, Any]:
    """`gate` : the value from which on a required criterion passes (below it, a negative one)."""
    more = {"gate": c.meta.get("pass_at", PASS_AT)} if c.required else {}
    more |= {"parent": c.parent} if c.parent is not None else {}
    return {"id": c.id, "text": c.text, "weight": c.weight, **more}


def _answer(
    g: Grade,
    number: int,
    task: dict[str, Any],
    response: Response | None,
    labels: Labels,
    set: str,
) -> dict[str, Any]:
    def known(x: float | None) -> float | None:
        return None if x is None or math.isnan(x) else x

    said = None if response is None else answered(response.text)
    whole = {} if response is None or said == response.text else {"whole": response.text}
    return {
        "t": number,
        "id": g.response_id,
        "text": said,
        **whole,
        "source": None if response is None else response.source,
        "set": set,
        "score": known(g.score),
        "low": known(g.score_low),
        "high": known(g.score_high),
        "v": [_verdict(v, task, labels) for v in g.verdicts],
    }


def _verdict(v: Verdict, task: dict[str, Any], labels: Labels) -> list[Any]:
    known = bool(task["prompt"])  # a verdict on what the rubric does not hold counts nothing
    place = _number(task, {"id": v.criterion_id, "text": "", "weight": 0.0 if known else 1.0})
    label = labels.values.get(v.ids)
    kind = KINDS.index(v.status)
    return [place, kind, v.value, v.p, v.reason or "", label, v.judge, v.failure]


def assets() -> str:
    """Style and scripts of judgments, once a page."""
    style, cards, numbers = ((HERE / n).read_text("utf-8") for n in FILES)
    return f"<style>{style}</style><script>{numbers}\n{cards}</script>"


def part(name: str, data: Mapping[str, Any]) -> str:
    """Judgments as an element of a page that has the assets."""
    safe = html.escape(name, quote=True)
    panel = f"kitPanel({_element(name + '-numbers')},data);"
    return (
        f'<div id="{safe}-numbers"></div><div id="{safe}"></div>'
        f'<script type="application/json" id="{safe}-data">{pages.script_json(data)}</script>'
        f"<script>(()=>{{const data=JSON.parse({_element(name + '-data')}.textContent);"
        f"{panel}kitJudgments({_element(name)},data)}})()</script>"
    )


def _element(name: str) -> str:
    return f"document.getElementById({pages.script_json(name)})"


def page(data: Mapping[str, Any], *, title: str = "Judgments") -> str:
    """One HTML page of judgments that needs no network; hostile text stays text."""
    name = html.escape(title)
    lead = f"{len(data['answers'])} answers to {len(data['tasks'])} tasks"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        f'<meta name="color-scheme" content="light dark"><title>{name}</title>'
        f'<style>{STYLE}{DARK}</style></head><body><main class="kv"><h1>{name}</h1>'
        f'<p class="note">{lead}</p>{assets()}{part("judgments", data)}</main></body></html>'
    )


def view(
    grades: Any,
    *,
    tasks: Any = None,
    answers: Any = None,
    labels: Any = None,
    out: str | os.PathLike[str] | None = None,
) -> Path:
    """Write grades as one page for a browser; its path (default: GRADES.html beside the file)."""
    named = isinstance(grades, (str, os.PathLike))
    if out is None and not named:
        raise DataError("there is no file to write", where="view(out=)", fix="give out=")
    path = Path(out) if out is not None else Path(grades).with_suffix(".html")
    if named and path.resolve() == Path(grades).resolve():
        raise DataError(
            "OUT is the file of grades, which would be lost",
            where=str(path),
            fix="give --out another name",
        )
    data = judgments(grades, tasks=tasks, answers=answers, labels=labels)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, page(data, title=Path(grades).name if named else "Judgments"))
    return path
