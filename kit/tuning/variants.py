"""Trials beyond wording: the rubric's own text, options with scores, examples, judges of judges.

Each is a setting of a trial, plain values that are kept with it:

    reword   {criterion: new text, or its parts}: parts are judged apart and met when all are
    options  {option: score in [0, 1], or None: says nothing}: labels in place of met / unmet
    of       names of other trials: their majority; with `bands`, a cheap one and a strong one
    bands    {criterion, "" for others: (low, high)}: the strong one decides where P lies between
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import random
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import DataError, KitError
from ..judge.panel import combine, doubtful
from ..judge.templates import neutral
from ..records import PAID, Criterion, Verdict, fingerprint, grouped, paid
from ..settings.read import known_names, nearest
from .makers import MakeJudge
from .search import Labelled, ask
from .trials import BASELINE, WORDS, Trial, row_id

if TYPE_CHECKING:
    from .bench import Workbench

OWN = frozenset({"reword", "options", "of", "bands"})
ROWS = 20  # labels of train that a criterion needs for cuts of its own
GRID = np.round(np.linspace(-0.05, 1.05, 23), 2)  # its ends hold a P of exactly 0 and 1, too
FIELDS = ("task", "answer", "criterion", "verdict")
SHOWN = 400  # characters of an example


def checked(
    bench: Workbench,
    name: str,
    prompt: str | None,
    settings: Mapping[str, Any],
    coming: Iterable[str] = (),
) -> dict[str, Any]:
    """The settings of the trial `name` as JSON gives them back; KitError where these, its name or
    its prompt cannot be meant. Nothing is asked. coming : trials that will be there.
    """
    for what, text in (("name", name), ("prompt", "its parent's" if prompt is None else prompt)):
        if not worded(text):
            raise DataError(f"the {what} is {text!r}", where=f"trial {name!r}", fix="write one")
    for key, value in settings.items():
        _said(key, value)
    known = sorted({c.text for r in bench.rows for c in r.task.criteria})
    for text, new in _mapping(settings, "reword").items():
        if text not in known:
            raise KitError("no criterion has this text", where=text, fix=nearest(text, known))
        parts = [new] if isinstance(new, str) else new
        if not (isinstance(parts, (list, tuple)) and parts and all(map(worded, parts))):
            raise KitError(
                f"a criterion becomes {new!r}",
                where=text,
                fix="give its new text, or a list of its parts",
            )
    for option, score in _mapping(settings, "options").items():
        if not (score is None or (isinstance(score, (int, float)) and 0 <= score <= 1)):
            raise KitError(
                f"an option's score is {score!r}",
                where=f"options, {option!r}",
                fix="give a score from 0 to 1, or None: it says nothing",
            )
    options = settings.get("options", {"yes": 1, "no": 0})
    names = {option.casefold() for option in options}
    wrong = {  # the first may always be said, and says nothing
        "an option is named 'cannot_tell'": "cannot_tell" in names,
        "two options are alike, or there is one": len(names) < max(2, len(options)),
        "all options have one score": len(set(options.values())) < 2,
    }
    if why := next((text for text, there in wrong.items() if there), None):
        raise KitError(why, where="options", fix="name others, each with what it is worth")
    _of_others(settings, name)
    known = {BASELINE, *bench.trials, *coming}
    of = settings.get("of", ())
    known_names(of, known, where=f"trial {name!r}", what="trial")
    plain = {k: v for k, v in settings.items() if k not in OWN}
    if not of:
        bench.make(prompt or bench.prompt, **plain)  # it refuses what the judge cannot be asked
    own = {k: v for k, v in settings.items() if k in OWN}
    return {**settings, **json.loads(json.dumps(own))}


def _said(key: str, value: Any) -> None:
    """KitError for a setting that says nothing, or that no judge can be asked with."""
    try:
        json.dumps(value, allow_nan=False, ensure_ascii=False, default=str).encode()
    except ValueError:
        value = None
    if value is None or value == "" or (key == "template" and not isinstance(value, str)):
        why = "it is empty, or no value of such a setting"
        raise KitError(f"{key}: {why}", where=f"settings, {key}", fix="give one, or leave it out")


def _of_others(settings: Mapping[str, Any], name: str) -> None:
    """KitError where a trial is made of itself, or says what only one that asks a judge can."""
    of, bands, where = settings.get("of"), _mapping(settings, "bands"), f"trial {name!r}"
    named = isinstance(of, (list, tuple)) and all(isinstance(n, str) for n in of)
    idle = sorted(settings.keys() & {"bands"} if of is None else settings.keys() - {"of", "bands"})
    why = "bands need the trials that they are for" if of is None else "it asks no judge itself"
    KitError.first(
        (
            bands and not ("" in bands and all(map(_banded, bands.values()))),
            f"the bands are {bands}",
            where,
            """they are {criterion: [low, high], "": [low, high]}; `cascade` fits them""",
        ),
        (
            of is not None and (not named or len(set(of)) < 2 or name in of),
            f"it is made of {of!r}",
            where,
            "name two or more of the trials",
        ),
        (
            idle,
            f"{''.join(idle[:1])} changes nothing: {why}",
            where,
            "leave it out, or give it to the trials that are named in `of`",
        ),
    )


def _banded(band: Any) -> bool:
    """True for two numbers that rise."""
    two = isinstance(band, list) and len(band) == 2
    return two and all(isinstance(x, (int, float)) for x in band) and band[0] <= band[1]


def _mapping(settings: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = settings.get(name, {})
    if not isinstance(value, Mapping):
        raise KitError(
            f"{name} is {value!r}", where=name, fix="give a mapping, as `kit tune --help` shows"
        )
    return value


def worded(text: Any) -> bool:
    """True for a text that says something."""
    return isinstance(text, str) and bool(text.strip())


def asked(row: Labelled, settings: Mapping[str, Any]) -> list[Labelled]:
    """The row as it is put to the judge: with its criterion reworded or in parts, with options."""
    parts = {c.id: _parts(c, row, settings) for c in row.task.criteria}
    task = dataclasses.replace(row.task, criteria=tuple(itertools.chain(*parts.values())))
    return [dataclasses.replace(row, task=task, criterion=c) for c in parts[row.criterion.id]]


def _parts(c: Criterion, row: Labelled, settings: Mapping[str, Any]) -> list[Criterion]:
    new = settings.get("reword", {}).get(c.text, c.text)
    texts = [new] if isinstance(new, str) else new
    more: dict[str, Any] = {"title": None} if texts != [c.text] else {}
    if "options" in settings:
        names = sorted(settings["options"])
        random.Random(fingerprint([row.task.asked, row.response.text, c.text])).shuffle(names)
        more |= {"scale": "ordinal", "levels": tuple(names)}
    ids = [c.id] if len(texts) == 1 else [f"{c.id}.{k}" for k in range(1, len(texts) + 1)]
    return [dataclasses.replace(c, id=i, text=t, **more) for i, t in zip(ids, texts, strict=True)]


def verdicts(make: MakeJudge, trial: Trial, rows: Sequence[Labelled], **more: Any) -> list[Verdict]:
    """The judge's verdicts on these rows, put to it as the trial says."""
    plain = {k: v for k, v in trial.settings.items() if k not in OWN}
    parts = [asked(r, trial.settings) for r in rows]
    got = iter(ask(partial(make, **plain), trial.prompt, list(itertools.chain(*parts)), **more))
    both = [[(p, next(got)) for p in few] for few in parts]
    options = trial.settings.get("options")
    return [answered(r, b, options) for r, b in zip(rows, both, strict=True)]


def answered(row: Labelled, parts: Sequence[tuple[Labelled, Verdict]], options: Any) -> Verdict:
    """One verdict on the row: an option's score; of several parts the worst that is known."""
    votes = [_scored(p.criterion, v, options) for p, v in parts]
    low = [v for v in votes if v.known and v.value < 0.5]
    last = next(iter([*low, *(v for v in votes if not v.known), *votes]))
    return with_costs(dataclasses.replace(last, criterion_id=row.criterion.id), votes)


def _scored(c: Criterion, v: Verdict, options: Mapping[str, float | None] | None) -> Verdict:
    if options is None or not v.known:
        return v
    name = c.levels[round(v.value * (len(c.levels) - 1))]
    said = {"p": None, "reason": f"[{name}] {v.reason or ''}"}
    if options[name] is None:
        return dataclasses.replace(v, status="unknown", failure="abstain", **said)
    return dataclasses.replace(v, value=float(options[name]), **said)


def with_costs(v: Verdict, of: Sequence[Verdict], **meta: Any) -> Verdict:
    """The verdict with what all of these cost when they were asked."""
    if len(of) == 1:
        return v
    sums = {what: sum(paid(x, what) for x in of) for what in PAID}
    return dataclasses.replace(v, meta={**v.meta, **meta, "paid": sums})


def joined(bench: Workbench, settings: Mapping[str, Any], rows: Sequence[int]) -> list[Verdict]:
    """The verdicts of a panel or cascade of trials; its strong one is asked only where needed."""
    first, *others = (bench.trials[n] for n in settings["of"])
    got = bench._more(first, rows).verdicts
    bands = settings.get("bands")
    if bands is None:
        columns = [got, *(bench._more(t, rows).verdicts for t in others)]
        votes = [[_sided(c[i]) for c in columns] for i in rows]
        return [with_costs(combine(v), v) for v in votes]
    band = {i: bands.get(bench.rows[i].criterion.text, bands[""]) for i in rows}
    hard = [i for i in rows if doubtful(got[i], *band[i])]
    last = bench._more(others[0], hard).verdicts
    both = {i: with_costs(last[i], [got[i], last[i]], escalated=True) for i in hard}
    return [both.get(i, got[i]) for i in rows]


def _sided(v: Verdict) -> Verdict:
    """A vote: a level counts as met from one half on, as in the trial itself."""
    if v.status != "level":
        return v
    return dataclasses.replace(v, status="met" if v.value >= 0.5 else "unmet", value=None)


def cascade(bench: Workbench, cheap: Trial, strong: Trial, tolerance: float) -> dict[str, Any]:
    """The settings of a cascade of two trials, its bands fitted on train."""
    train = np.flatnonzero(bench.part == "train")
    p = [v.p if v.known else None for v in map(cheap.verdicts.__getitem__, train)]
    KitError.first(
        (
            not 0 <= tolerance <= 1,
            f"the tolerance is {tolerance}",
            "cascade",
            "give a share of the answers, .02 say",
        ),
        (
            all(x is None for x in p),
            "its verdicts have no P(met): the strong one would be asked for all",
            f"cascade, trial {cheap.name!r}",
            'give it one, as in try_(..., probability="stated")',
        ),
    )
    loss = (bench.right(strong.name) - bench.right(cheap.name))[train]
    texts = [bench.rows[i].criterion.text for i in train]
    return {
        "of": [cheap.name, strong.name],
        "bands": fitted(np.array(p, dtype=float), loss, texts, tolerance),
    }


def fitted(
    p: np.ndarray, loss: np.ndarray, texts: Sequence[str], tolerance: float
) -> dict[str, list[float]]:
    """The narrowest bands of doubt that lose at most `tolerance` in agreement, on train.

    p : (n,) P(met) of the cheap judge, NaN where it has none. loss : (n,) what its verdict loses to
    the strong one's (1, 0, -1; NaN where a label or verdict is unknown). texts : (n,) criteria: one
    with ROWS labels or more has a band of its own, the others share "".

    >>> p, loss = np.array([0.05, 0.45, 0.55, 0.95] * 9), np.array([0, 1, 1, 0] * 9)
    >>> fitted(p, loss, ["a"] * 36, 0.02)
    {'a': [0.4, 0.6], '': [0.4, 0.6]}
    """
    texts = np.asarray(texts, dtype=object)
    known = ~(np.isnan(p) | np.isnan(loss))
    picks = {t: known & (texts == t) for t in dict.fromkeys(texts)}
    own = {t: k for t, k in picks.items() if k.sum() >= ROWS}
    rest = known & ~np.isin(texts, list(own))
    own[""] = rest if rest.any() else known
    return {t: _narrowest(p[k], loss[k], tolerance) for t, k in own.items()}


def _narrowest(p: np.ndarray, loss: np.ndarray, tolerance: float) -> list[float]:
    found = []
    for low, high in itertools.product(GRID[GRID <= 0.5], GRID[GRID >= 0.5]):
        hard = (p > low) & (p < high)
        if loss[~hard].sum() <= tolerance * len(p):
            found.append((hard.sum(), high - low, float(low), float(high)))
    return [*min(found)[2:]]


def examples(rows: Sequence[Labelled], right: np.ndarray, k: int, seed: int) -> str:
    """`k` labelled rows as lines of a prompt: met and unmet by turns, each of another prompt, those
    that the judge got wrong first. What they quote is made harmless, as all judged text is.
    """
    order = np.random.default_rng(seed).permutation(len(rows))
    order = sorted(order, key=lambda i: right[i] == 1)
    picked: list[Labelled] = []
    for turn in range(k):
        used = {r.cluster for r in picked}
        fits = (rows[i] for i in order if rows[i].human == (turn + 1) % 2)
        picked += [r for r in fits if r.cluster not in used][:1]
    if len(picked) < max(k, 1):
        raise DataError(
            f"{k} examples are asked for, and train has {len(picked)} such rows",
            where="examples",
            fix="ask for fewer, and for 1 or more",
        )
    parts = (
        (r.task.asked[:SHOWN], r.response.text[:SHOWN], r.criterion.text, WORDS[r.human])
        for r in picked
    )
    lines = [json.dumps(dict(zip(FIELDS, row, strict=True)), ensure_ascii=False) for row in parts]
    return neutral("\n".join(["Examples of verdicts on other tasks:", *lines]))


def whole(
    rows: Iterable[Labelled],
) -> tuple[list[Labelled], dict[str, list[str]], list[list[str]]]:
    """One row an answer: does it meet all of its criteria, put as one plain rubric? Beside them the
    rubrics with their criteria, as `reword` takes them, and the ids of the rows that each was made
    of. Pitfalls (weight < 0) are left out.
    """
    answers = grouped(((r.task.id, r.response.id), r) for r in rows if r.criterion.weight >= 0)
    out, parts = [], {}
    for members in answers.values():
        texts = [r.criterion.text for r in members]
        c = Criterion(id="all", text="All of these hold:\n" + "\n".join(f"- {t}" for t in texts))
        parts[c.text] = texts
        out.append(
            dataclasses.replace(
                members[0],
                task=dataclasses.replace(members[0].task, criteria=(c,)),
                criterion=c,
                human=min(r.human for r in members),
            )
        )
    return out, parts, [list(map(row_id, members)) for members in answers.values()]
