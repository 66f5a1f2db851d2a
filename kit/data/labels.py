"""Human labels as recorded verdicts: colours, yes / no, 1-5, N/A, from one rater or several."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..records import NO_ANSWER, Verdict
from .findings import Finding
from .names import spelled
from .values import as_text, blank, literal, number

READ: dict[str, tuple[str, float | None]] = {  # word -> (status, value)
    **dict.fromkeys(
        (
            "green",
            "yes",
            "y",
            "true",
            "wahr",
            "ja",
            "met",
            "pass",
            "passed",
            "satisfied",
            "present",
            "fully",
            "full",
            "meets",
            "fulfilled",
            "🟢",
            "✅",
            "✔",
            "✔️",
            "👍",
        ),
        ("met", None),
    ),
    **dict.fromkeys(
        (
            "red",
            "no",
            "n",
            "false",
            "falsch",
            "nein",
            "unmet",
            "fail",
            "failed",
            "unsatisfied",
            "absent",
            "🔴",
            "❌",
            "✘",
            "👎",
        ),
        ("unmet", None),
    ),
    **dict.fromkeys(
        (
            "yellow",
            "partial",
            "partially",
            "partly",
            "somewhat",
            "mixed",
            "amber",
            "🟡",
            "🟠",
        ),
        ("level", 0.5),
    ),
    # "none" too: Python writes a label that nobody gave so
    **dict.fromkeys(NO_ANSWER, ("unknown", None)),
}
HOW = re.compile(r"(?:(not|does not|doesn't)(?: fully)?|(partially|partly)|fully) (.+)")
EMOJI = "🟢🟡🟠🔴⚪✅❌✔✘👍👎\ufe0f"


def _fold(text: str) -> str:
    return text.strip().strip(".!*_\"' ").casefold()


def read_label(label: Any, *, scale: tuple[float, float] | None = None) -> tuple[str, float | None]:
    """(status, value) of one label; status is "met", "unmet", "level", "unknown" or "?" (not
    understood).

    scale : (lowest, highest) of numeric labels; None = numbers 0 and 1 are unmet and met, others
        are not understood. "k/n" is this part of the whole, but on a scale that ends at n.

    >>> (read_label("🟢 Green"), read_label("N/A"),
    ...  read_label(4, scale=(1, 5)), read_label("4/5"), read_label("perhaps"))
    (('met', None), ('unknown', None), ('level', 0.75), ('level', 0.8), ('?', None))
    >>> read_label("Not Satisfied"), read_label("partially fulfilled"), read_label("not bad")
    (('unmet', None), ('level', 0.5), ('?', None))
    >>> read_label("60%"), read_label("0/4"), read_label("4/5", scale=(1, 5))
    (('level', 0.6), ('level', 0.0), ('level', 0.75))
    """
    if label is None:
        return "unknown", None
    if isinstance(label, bool):
        return ("met" if label else "unmet"), None
    if isinstance(label, (int, float)):
        return _number(label, scale)
    if not isinstance(label, str):
        return "?", None
    text = _fold(label)
    for one in (text, _fold(text.strip(EMOJI)), _fold("".join(c for c in text if c in EMOJI))):
        if one in READ and (one or not text):
            return READ[one]
        how = HOW.fullmatch(one)
        if how and READ.get(how[3].replace("meet", "met")) == READ["met"]:
            return READ[(how[1] and "unmet") or (how[2] and "partly") or "met"]
    if part := fraction(text):
        x, top = part
        return _number(x, scale if scale and scale[1] == top else (0.0, top))
    try:
        if text.endswith("%"):
            return _number(float(text[:-1]) / 100, None)
        return _number(float(text), scale)
    except (ValueError, OverflowError):
        return "?", None


def fraction(label: Any) -> tuple[float, float] | None:
    """The two numbers of a label such as "2/4"; None of any other.

    >>> fraction("2/4"), fraction("2"), fraction("n/a")
    ((2.0, 4.0), None, None)
    """
    head, _, tail = label.partition("/") if isinstance(label, str) else ("", "", "")
    both = number(head), number(tail)
    return None if None in both else both


def _number(x: float, scale: tuple[float, float] | None) -> tuple[str, float | None]:
    if isinstance(x, float) and math.isnan(x):
        return "unknown", None
    low, high = scale or (0.0, 1.0)
    if not low <= x <= high or high <= low:
        return "?", None
    value = (float(x) - low) / (high - low)
    if scale is None:
        return {1.0: ("met", None), 0.0: ("unmet", None)}.get(value, ("level", value))
    return "level", value


def extent(labels: Iterable[Any]) -> tuple[float, float]:
    """(smallest, largest) of the numeric labels; (inf, 0.0) where none is a number. "0/4" says that
    they begin at 0."""
    low, top = math.inf, 0.0
    for x in labels:
        x = 0 if (fraction(x) or "1")[0] == 0 else x
        try:
            value = math.nan if isinstance(x, bool) or x is None else float(x)
        except (TypeError, ValueError, OverflowError):
            continue
        if math.isfinite(value):
            low, top = min(low, value), max(top, value)
    return low, top


def scale_of(low: float, top: float) -> tuple[float, float] | None:
    """The scale of the numeric labels of a file, between low and top: None (0/1) where none exceeds
    1, 1-5 or 1-10 by the largest.

    (nan, nan), on which no number is understood, where both 1-5 and 0/1 occur, more than 10 or
    less than 0: a 1 would be the best on one scale and the worst on the other.

    >>> scale_of(*extent([1, 4, None])), scale_of(*extent([0, 1])), scale_of(*extent([0, 5]))
    ((1.0, 5.0), None, (nan, nan))
    """
    if low >= 0 and top <= 1:
        return None
    if low < 1 or top > 10:
        return (math.nan, math.nan)
    return (1.0, 5.0) if top <= 5 else (1.0, 10.0)


def by_rater(label: Any, judge: str = "human") -> Iterator[tuple[str, Any]]:
    """(judge, label) for one label; ("human:r1", ...) per element of a list; ("human:<name>", ...)
    per key of an object, but for one that says its label and more about it, a judge's name, too.

    >>> list(by_rater(["yes", "no"])), list(by_rater({"label": "yes", "confidence": 0.9}))
    ([('human:r1', 'yes'), ('human:r2', 'no')], [('human', 'yes')])
    >>> list(by_rater({"label": "yes", "rater": "ann"})), list(by_rater({"met": 1, "judge": "m"}))
    ([('human:ann', 'yes')], [('m', 1)])
    """
    if isinstance(label, list):
        yield from ((f"{judge}:r{i}", x) for i, x in enumerate(label, 1))
    elif said := entry(label):
        beside = {k: x for k, x in label.items() if k not in said}
        own = giver(beside, (*RATERS, "user", "name"))[1]
        rest = {spelled(k): x for k, x in beside.items() if not _gives(k)}
        more = [k for k, x in rest.items() if not MORE.fullmatch(k) and read_label(x)[0] != "?"]
        one = len(said) == 1 and not more and rest.keys().isdisjoint(SCALE)
        one = one and _says(said[0], label[said[0]])
        yield judge if own == "human" else own, label[said[0]] if one else label
    elif isinstance(label, Mapping):
        yield from ((f"{judge}:{k}", x) for k, x in label.items() if x is not None)
    else:
        yield judge, label


FIELDS = ("labels", "verdicts", "ratings")  # what a row with an answer calls its labels
ON = ("criterion_id", "criterion", "id")  # what an entry of a list of labels is on
SAID = ("label", "verdict", "rating", "met", "criteria_met", "score", "value")
ANSWERS = (*SAID, "correct", "passed", "answer", "result", "points", "grade", "decision")
SCALE = (
    "max",
    "max_points",
    "max_score",
    "out_of",
    "scale",
    "min",
)  # it is no number of the file's
MORE = re.compile(  # what is said beside a label, by no rater of this name
    r"(?:.*_)?(?:confidence|certainty|probability|agreement|weight|reason\w*|explanation|rationale"
    r"|comments?|notes?|id|timestamp|source|evidence|feedback)"
)
RATERS = tuple(
    "rater annotator labeler labeller grader reviewer evaluator assessor expert worker by "
    "labeled_by labelled_by annotated_by".split()
)
BY = (*RATERS, "judge", "user", "name")
JUDGES = re.compile(  # a model's name stands there
    r"(?:llm_)?judge(?:_(?:model|name|id))?|(?:evaluator|grader|rater|annotator)_model"
)
MODEL = re.compile(r"(?:gpt|claude|gemini|llama|qwen|mistral|deepseek|llm|model)(?![a-z])", re.I)
WHO = re.compile(r"(?:label|annotat|rat|grad|evaluat)\w*_(?:type|source|kind)")  # who, in a word


def _gives(name: str) -> bool:
    """True for a field that says who gave a label, or for which model."""
    field = spelled(name)
    return field.removesuffix("_id") in BY or bool(JUDGES.fullmatch(field))


def _is_model(name: str, said: str) -> bool:
    """True where this field says that a model gave a label."""
    return bool(
        (name == "is_human" and said.casefold() in ("false", "no", "0"))
        or (JUDGES.fullmatch(name) and said != "human")
        or (WHO.fullmatch(name) and MODEL.match(said))
    )


def giver(row: Mapping[str, Any], raters: Sequence[str] = RATERS) -> tuple[str | None, str]:
    """The field of a row, or of a label's object, that says who gave its labels, and the judge that
    is meant. raters : names of fields of a person, the first that is there counts.

    >>> giver({"judge_model": "gpt-4o"}), giver({"judge": "human", "rater": "ann"}), giver({"x": 1})
    (('judge_model', 'gpt-4o'), ('rater', 'human:ann'), (None, 'human'))
    """
    names = {
        k: spelled(str(k))
        for k, x in row.items()
        if not blank(x) and (k == "is_human" or not isinstance(x, bool))
    }
    model = next((k for k, n in names.items() if _is_model(n, as_text(row[k]))), None)
    ids = {name.removesuffix("_id"): k for k, name in names.items()}
    person = next((ids[r] for r in raters if r in ids), None)
    if model is not None:
        return model, "model" if names[model] == "is_human" else as_text(row[model])
    if person is None:
        return None, "human"
    name = as_text(row[person])
    return person, name if MODEL.match(name) else f"human:{name}"


def entry(label: Any) -> list[str]:
    """The fields of an object that say a label, or else all of one that says more about it, or
    counts words; [] for an object of raters, and what is no object.
    """
    if not isinstance(label, Mapping):
        return []
    if said := [k for k, x in label.items() if _says(k, x)]:
        return said
    names = {k: str(k).casefold() for k in label}
    odd = [k for k, n in names.items() if n in SCALE or MORE.fullmatch(n) or n in BY]
    words = [k for k in label if read_label(k)[0] in ("met", "unmet")]
    counts = [k for k in words if isinstance(label[k], bool) or number(label[k]) is not None]
    return list(label) * bool(odd or counts)


def _says(name: Any, value: Any) -> bool:
    """True for a field that says a label: what is asked, or a word for "met", true or false."""
    asked = str(name).casefold() in ANSWERS
    return asked or (isinstance(value, bool) and read_label(name)[0] == "met")


def silent(label: Any) -> dict[str, Any]:
    """What nothing reads of a label's object.

    >>> silent({"criterion": "c1", "label": "met", "rater": "ann", "mood": "good"}), silent("met")
    ({'mood': 'good'}, {})
    """
    read = {*ON, *SCALE, *(said := entry(label))}
    return {k: x for k, x in label.items() if k not in read and not _gives(str(k))} if said else {}


def by_criterion(given: Any) -> list[tuple[str, Any]] | None:
    """(criterion's id, label) of an object criterion -> label, or of a list of objects with both;
    None for what is neither.

    >>> by_criterion([{"criterion": "c1", "verdict": "met"}]), by_criterion("met")
    ([('c1', 'met')], None)
    """
    given = literal(given)
    if isinstance(given, Mapping):
        return [(str(k), label) for k, label in given.items()]
    if not isinstance(given, list) or not all(isinstance(x, Mapping) for x in given):
        return None
    pairs = [
        (next((x[k] for k in ON if k in x), None), [k for k in SAID if k in x], x) for x in given
    ]
    good = all(isinstance(on, (str, int)) and len(said) == 1 for on, said, _ in pairs)
    return [(str(on), _by(x, *said)) for on, said, x in pairs] if good else None


def _by(item: Mapping[str, Any], said: str) -> Any:
    """A label of a list, with who gave it, where that is said."""
    who = {k: x for k, x in item.items() if _gives(k) and k != "name"}
    return {said: item[said], **who} if who else item[said]


def human(
    task_id: str,
    response_id: str,
    criterion_id: str,
    label: Any,
    *,
    scale: tuple[float, float] | None = None,
    judge: str = "human",
) -> tuple[Verdict, bool]:
    """(verdict, understood?) of one rater's label; the label as it stood is kept in
    `meta["label"]`."""
    status, value = read_label(label, scale=scale)
    meta = {
        "label": label
        if isinstance(label, (str, int, float, bool)) or label is None
        else json.dumps(label, ensure_ascii=False, default=str)
    }
    verdict = Verdict(
        task_id=task_id,
        response_id=response_id,
        criterion_id=criterion_id,
        status="unknown" if status == "?" else status,
        value=value,
        failure={"unknown": "abstain", "?": "parse"}.get(status),
        judge=judge,
        meta=meta,
    )
    return verdict, status != "?"


HEADS = (*SAID, "human", "grade", "judgment")  # before a criterion's id in a column's name


def is_column(f: Finding, criteria: set[str]) -> bool:
    """Whether a field that nothing read is called as a criterion: "label_c1", "c1"."""
    named = f.code == "unread-field" and f.severity == "info" and f.field
    head, _, tail = (named or "").partition("_")
    return named in criteria or (tail in criteria and head.casefold() in HEADS)


def odd_labels(verdicts: list[Verdict], criteria: dict[str, set[str]]) -> Iterator[Finding]:
    """Labels on criteria that their task lacks, and two labels of one rater or verdicts of one
    judge that differ; a judge that was asked again after an unknown verdict says nothing odd.
    """
    told: dict[tuple[str, ...], float | None] = {}
    for v in verdicts:
        place = {"task_id": v.task_id, "criterion_id": v.criterion_id, "severity": "error"}
        if v.criterion_id not in criteria.get(v.task_id, {v.criterion_id}):
            yield Finding(
                code="unknown-criterion",
                message=f"a label names the criterion {v.criterion_id!r}, "
                "which the task does not have",
                suggestion="correct the id",
                **place,
            )
        key = (*v.ids, v.judge)
        said_so = v.value is not None or v.judge.startswith("human")
        if said_so and told.setdefault(key, v.value) != v.value:
            yield Finding(
                code="two-labels",
                message=f"{v.judge} gives response {v.response_id!r} {told[key]} and {v.value}: "
                "its score is not known",
                suggestion="keep one of the two; labels of several people need a column rater",
                **place,
            )


def means(v: Verdict) -> tuple[Any, ...]:
    """What makes verdicts of two sets one: a person's label by what it means."""
    judged = (v.p, v.reason, v.key, as_text(v.meta)) if "label" not in v.meta else ()
    unread = as_text(v.meta.get("label")) if v.failure == "parse" else None
    return (*v.ids, v.judge, v.status, v.value, v.failure, unread, *judged)
