"""The kinds of component that a reward config may name: rubric, citations, verifier; and its
format: what an answer must look like, visible on its own, not mixed into a judge's score."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from ..claims import NAMES, verify
from ..errors import KitError
from ..records import Criterion, Part, Response, Task, Verdict, criterion_from_json
from ..settings.read import FINITE, known_names, load, make, within
from .aggregate import HOWS, Plan, grade, leaves
from .citations import citation_part, claim_criteria, parse_answer
from .presets import PRESETS

FILE = Path(__file__).with_name("static_rubrics.json")  # three failure modes of cited answers
OPTIONS = {
    "rubric": ("how", "use", "gate_to", "static", "instance_rubrics_only"),
    "citations": ("f1_weight", "id_weight"),
    "verifier": ("verifier", "mode"),
}


def check_options(kind: Any, options: Mapping[str, Any], where: str) -> None:
    """KitError when the kind does not exist or an option is not one of its own."""
    known_names([kind], OPTIONS, where=f"{where}, field kind", what="kind")
    known_names(options, OPTIONS[kind], where=where, what=f"option of {kind}")
    known_names([options.get("how", "mean")], HOWS, where=f"{where}, field how", what="how")
    if kind == "verifier":
        known_names([options.get("verifier")], NAMES, where=where, what="verifier")


def criteria(
    kind: str, options: Mapping[str, Any], task: Task, response: Response
) -> tuple[Criterion, ...]:
    """What a component needs verdicts on."""
    if kind == "rubric":
        return leaves(rubric_of(options, task))
    return claim_criteria(task, response) if (kind == "citations" and task.sources) else ()


def score(
    kind: str,
    name: str,
    options: Mapping[str, Any],
    task: Task,
    response: Response,
    verdicts: Sequence[Verdict],
) -> Part:
    """What a component says of one response."""
    if kind == "rubric":
        return _rubric(name, options, task, response, verdicts)
    if kind == "citations":
        return (
            citation_part(task, response, verdicts, name=name, **options)
            if task.sources
            else Part.absent(name)
        )
    return verify(
        options["verifier"],
        task,
        response,
        name=name,
        **{k: v for k, v in options.items() if k != "verifier"},
    )


def rubric_of(options: Mapping[str, Any], task: Task) -> tuple[Criterion, ...]:
    """The task's criteria, and the static ones that the options ask for."""
    own = task.criteria
    static = options.get("static")
    if not static or options.get("instance_rubrics_only"):
        return own
    return own + tuple(c for c in static_criteria(static) if c.id not in {x.id for x in own})


def _rubric(
    name: str,
    options: Mapping[str, Any],
    task: Task,
    response: Response,
    verdicts: Sequence[Verdict],
) -> Part:
    rubric = rubric_of(options, task)
    if not Plan.of(rubric, where=f"task {task.id!r}").scored:
        return Part.absent(name)
    chosen = {k: options[k] for k in ("how", "use", "gate_to") if k in options}
    g = grade(task, verdicts, criteria=rubric, response_id=response.id, **chosen)
    return Part(
        name=name,
        low=g.score_low,
        high=g.score_high,
        range=g.meta["range"],
        details={
            "contributions": dict(g.parts),
            "unknown": g.meta["unknown"],
            "criteria": len(rubric),
        },
    )


@lru_cache(maxsize=1)
def static_sets() -> dict[str, tuple[Criterion, ...]]:
    """All static sets by name. Their criteria name bad things, so their weights are negative.

    >>> sorted(static_sets())
    ['citation_discipline', 'off_query_padding', 'wrong_entity_confabulation']
    """
    rows = json.loads(FILE.read_text(encoding="utf-8"))
    return {
        name: tuple(
            criterion_from_json(r, where=f"{FILE.name}, set {name}, criterion {i + 1}")
            for i, r in enumerate(rs)
        )
        for name, rs in rows.items()
    }


@lru_cache(maxsize=1)
def static_weights() -> dict[str, float]:
    """Criterion id -> weight, below 0, of all static rubrics."""
    return {c.id: c.weight for cs in static_sets().values() for c in cs}


def static_criteria(names: str | Sequence[str]) -> tuple[Criterion, ...]:
    """The criteria of the named sets ("all", one name, or several), in that order.

    >>> len(static_criteria("all")) >= 3
    True
    """
    sets = static_sets()
    if names in ("all", True):
        names = list(sets)
    wanted = [names] if isinstance(names, str) else list(names)
    known_names(wanted, sets, where="option static", what="static rubric set")
    return tuple(c for n in wanted for c in sets[n])


@dataclass(frozen=True, kw_only=True)
class Component:
    """One line of the config: what is scored, with which weight and options."""

    kind: str
    name: str
    weight: float = 1.0
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        within(vars(self), {"weight": FINITE})


@dataclass(frozen=True, kw_only=True)
class Gate:
    """When a component scores below `below`, the whole reward is at most `to`."""

    component: str
    below: float
    to: float = 0.0

    def __post_init__(self) -> None:
        within(vars(self), {"below": FINITE, "to": FINITE})


def values(config: Mapping[str, Any] | str | Path) -> tuple[dict[str, Any], str]:
    """The fields of a reward, those of its preset under its own, and where they stand.

    config : a mapping, a file, or a preset's name.
    """
    if not isinstance(config, (Mapping, str, Path)):
        raise KitError(
            f"{config!r} is no reward",
            where="reward",
            fix="a preset's name, a file, or a mapping",
        )
    where = "config" if isinstance(config, Mapping) else str(config)
    if isinstance(config, Mapping):
        found = dict(config)
    elif where in PRESETS or not Path(where).is_file():
        found = {"preset": where}
    else:
        found = load(where, what="reward config")
    if (name := found.pop("preset", None)) is None:
        return found, where
    if name not in PRESETS:
        raise KitError(
            f"{name!r} is neither a file nor a preset",
            where=where,
            fix=f"presets: {', '.join(PRESETS)}",
        )
    return {**PRESETS[name], **found}, where


def component(row: Any, where: str) -> Component:
    """A component of a row of the config; what is no field of it is an option of its kind."""
    if not isinstance(row, Mapping):
        raise KitError(f"{row!r} is no component", where=where, fix="{kind: rubric, weight: 1}")
    own = {k: row[k] for k in ("kind", "name", "weight") if k in row}
    options = {k: v for k, v in row.items() if k not in own}
    check_options(own.get("kind"), options, where)
    own = {"name": str(options.get("verifier") or own["kind"]), **own}
    return make(Component, {**own, "options": options}, where=where)


@dataclass(frozen=True, kw_only=True)
class FormatResult:
    """ok : every demand is fulfilled; score : share of fulfilled demands in [0, 1]; problems : one
    sentence each.
    """

    ok: bool
    score: float
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Format:
    """What an answer must look like, and what that does to the reward.

    mode : "off"; "gate" (an answer with a fault earns gate_to, or at most gate_to where that is
        above 0; in the first case no judge is asked); "bonus" (+ bonus x share of fulfilled
        demands).
    answer_block : exactly one <answer>...</answer>, not empty.
    pattern : a regular expression that must be found (DOTALL: a dot also matches a line break).
    """

    mode: Literal["off", "gate", "bonus"] = "off"
    answer_block: bool = False
    pattern: str | None = None
    bonus: float = 0.1
    gate_to: float = 0.0

    def __post_init__(self) -> None:
        within({"bonus": self.bonus}, {})

    def check(self, task: Task, response: Response) -> FormatResult:
        """Which demands the response fulfils; no demands = ok with score 1."""
        demands: list[str | None] = []
        if self.answer_block:
            demands.append(parse_answer(response.text).block_problem)
        if self.pattern is not None:
            found = re.search(self.pattern, response.text, re.DOTALL)
            demands.append(None if found else f"nothing matches {self.pattern!r}")
        problems = tuple(d for d in demands if d)
        return FormatResult(
            ok=not problems,
            score=1 - len(problems) / len(demands) if demands else 1.0,
            problems=problems,
        )


def shown(form: Format) -> str:
    """What a config changes of a format, in one line.

    >>> shown(Format(mode="gate", answer_block=True)), shown(Format())
    ('mode=gate, answer_block=True', 'as it is')
    """
    own = ((f.name, getattr(form, f.name)) for f in fields(form))
    return ", ".join([f"{k}={v}" for k, v in own if v != getattr(Format, k)]) or "as it is"
