"""Fields that nothing reads: said once a file, and an error where the name is a slip of one that is
read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from ..records import Criterion, Response, Task, content, is_held_out
from .chats import is_chat
from .findings import Finding
from .labels import FIELDS, SAID, by_criterion, read_label
from .names import KINDS, OTHER, WEIGHS, against, mark, own, pitfall, spelled, weighs
from .values import LISTED, absent, as_text, blank, literal, number, parsed_json

RIGHT = ("met", "unmet")
VALUES = 100  # of a field that nothing reads are counted
WORDS = ("text", "criterion", "title", "name", "requirement")  # what names a criterion
OWN_TASK = frozenset(f.name for f in fields(Task))
OWN_CRITERION = frozenset(f.name for f in content(Criterion))
# of a task: unread, the answer is judged without them
CARRIED = ("truth", "history", "sources", "labels", "response")
# of a criterion: it is judged without what it consists of
PARTS = ("children", "sub_criteria", "subcriteria", "sub_tasks", "criteria", "items")
TEXTS = ("responses", "completions", "generations", "outputs", "candidates")  # of answers
# in an object among them: it is one answer, not answers by name
ONE_ANSWER = frozenset(f.name for f in fields(Response)).union(
    "response answer output completion content message role model name generator score".split()
)
# Patterns of names are of names in one spelling: names.spelled.
_WHO = "human|gold|expert|physician|rater|annotator|grader|reviewer|labell?er|judge"
JUDGED = re.compile(  # what is said of an answer, on one criterion or on each
    rf"(?:(?:{_WHO}|manual|criteri(?:a|on)|is)s?_|\w+_(?=fulfil))?"
    r"(?:labels?|verdicts?|ratings?|scores?|grades?|judge?ments?|annotations?|evaluations?|marks?"
    r"|decisions?|results?|outcomes?|met|pass|passed|correct|satisfied|fulfil\w+|value|feedback"
    rf"|(?P<other>answer|points))\Z|(?P<who>(?:{_WHO})s?(?:_\d+)?|\w+_label)\Z"
)
# of a criterion, too: the levels that it has
SCALES = ("rating_scale", "performance_levels", "score_descriptions", "levels")
OWN = {*SCALES, *PARTS, "scale", "scores", "range", "min", "max"}.union(
    ("ratings", "anchors", "scoring", "options", "choices")
)
ASKS = re.compile(  # fields that hold criteria, or what each weighs
    r"(?:.*?_)??(?:rubrics?|criteri(?:a|on|ons)|check_?lists?|checks|pitfalls|red_flags|requirements"
    r"|sub_?tasks|points|weights|penalties|importances?|(?:must|should)(?:_not)?(?:_have|_avoid)?"
    r"|nice_to_have|positives?|negatives?|instruction_id_list)(?P<one>_\d+(?:_[a-z]+)?)?\Z"
    r"|(?:.*_)?(?P<level>score_?\d+)_description\Z"
)
STEMS = re.compile(  # what a name says, at any place of it, where it may hold criteria
    r"rubric|criteri|check_?list|requirement|constraint|grading|guideline|expectation|assertion"
    r"|mark(?:ing)?_?scheme|nugget|key_?points"
    r"|(?:verification|yes_no|eval\w*|decomposed)_question"
)
SEVERAL = re.compile(rf"{LISTED.pattern}|\s*\S.*\n\s*\S")  # a list as text, or lines
ANSWERED = re.compile(  # what is said of an answer, not of what is asked
    r"(?:model|generator|response|answer|completion|output|sample|rater|annotator|judge|run|source"
    r"|generated|llm|policy)s?(?:_.*)?|.*_(?:model|rater|annotator|judge|by)|seed|temperature"
    r"|(?:.*_)?(?:timestamp|date|time|at)"
)
SAYS = re.compile(r"(?:model_)?(?:response|completion)(?:_(?:[a-z]|\d+))?")  # an answer
READS = re.compile(  # what an answer is held against
    r"(?:.*_)?(?:contexts?|passages?|documents?|background|snippets?|articles?|evidence)"
)
NOTES = re.compile(r".*(?:origin|notes?|comments?|explanation|reason(?:ing)?|category|type)")


@dataclass
class Unread:
    """The fields of a file's tasks, or of its criteria, that nothing reads.

    known : the fields that are read; what : "", or " of a criterion". found : name -> [how often,
    where first, the name that was meant, what is lost with it: "error" where an answer is judged
    without what it holds, "warning" where it may be, "" for nothing, None while it was blank, its
    first values].
    """

    known: frozenset[str]
    what: str = ""
    found: dict[str, list] = field(default_factory=dict)

    def add(self, name: str, where: str, there: Mapping[str, Any], bare: bool = False) -> None:
        """Count a field. there : it and those beside it; what stands there is not what is meant.
        bare : the row has no criterion."""
        if name not in self.found:
            meant = next((k for k in sorted(self.known) if k not in there and slip(name, k)), None)
            self.found[name] = [0, where, meant, None, {}]
        seen, value = self.found[name], there[name]
        seen[0] += 1
        if len(seen[4]) < VALUES and not blank(value):
            seen[4][as_text(value)[:40]] = None
        each = self.what or STEMS.search(spelled(name)) or mark(name, value)
        if (seen[3] is not None and not each) or seen[3] == "error" or blank(value):
            return  # a table's first cells may be empty
        said = judged(name, value)
        one = self.what or "criterion" in there
        worth = said or weighs(name, value) or (self.what and own(name) in OWN)
        answers = name in TEXTS and not bare and isinstance(value, (str, list, Mapping))
        lost = (one and worth) or (not self.what and (answers or _lost(name, there)))
        may = holds(name, value)
        if lost or (may and (bare or self.what) and "constraint" not in spelled(name)):
            seen[1:4] = where, None if said else seen[2], "error"
        else:
            may = may or (READS.fullmatch(spelled(name)) and number(value) is None)
            seen[3] = seen[3] or "warning" * bool(
                may or (bare and ASKS.match(spelled(name)) and len(as_text(value).split()) > 3)
            )

    def each(
        self, names: Iterable[str], where: str, there: Mapping[str, Any], of: str = ""
    ) -> None:
        """Count several fields. of : before their names, what holds them."""
        named = {f"{of}{k}": x for k, x in there.items()}
        for name in names:
            self.add(f"{of}{name}", where, named)

    def findings(self, file: str, rows: int) -> Iterator[Finding]:
        """One finding a field, the slips first. A criterion's kind and notes on it are an info,
        with their values."""
        order = sorted(self.found.items(), key=lambda x: (x[1][2] is None, -x[1][0]))
        for name, (n, where, meant, lost, values) in order:
            grave = "error" if meant else lost
            kind = (
                self.what
                and not grave
                and (own(name) in (*KINDS, "tags") or NOTES.fullmatch(own(name)))
            )
            usual = "warning" if self.what and not kind else "info"
            sure = f"{n}{'' if self.what or ': ' in name else f' of {rows} rows'}"
            said = f"{name!r}{self.what} ({sure}{_listed(values, 5 if kind else 1)})"
            yield Finding(
                code="unread-field",
                severity=grave or usual,
                where=where if grave else file,
                field=name,
                message=f"none of the values of {said} changes its sign or weight"
                if kind
                else f"nothing reads the field {said}; it is kept in meta",
                suggestion=_fix(name, meant, lost),
            )


def _listed(values: Mapping[str, None], most: int) -> str:
    """The first of a field's values; of several, how many more there are."""
    more = len(values) - most if most > 1 else 0
    said = ", ".join(map(repr, list(values)[:most]))
    return f": {said}" * bool(said) + f" and {more}{' or' * (len(values) == VALUES)} more" * (
        more > 0
    )


def _fix(name: str, meant: str | None, lost: str | None) -> str | None:
    if meant:
        return f"did you mean {meant!r}?"
    advice = {
        "put what it asks for among the row's criteria, each with its weight; labels of an answer "
        "under 'labels', criterion's id -> label": True,
        f"write {name} as in the kit's own rows (kit.save writes them)": name in (*CARRIED, *PARTS),
        "write levels, worst first, and the weight": name not in PARTS
        and (own(name) in OWN or WEIGHS.match(own(name))),
        "write it beside the answer: labels, criterion's id -> label": JUDGED.match(spelled(name)),
        "write a row for each answer, its text under 'response'": name in TEXTS,
    }
    return [text for text, fits in advice.items() if fits][-1] if lost else None


def asks(name: str, value: Any) -> bool:
    """True for a field that holds criteria or their weights, also one object deeper.

    >>> asks("negative_rubrics", ["Is rude"]), asks("reward_model", {"rubric": [{}]})
    (True, True)
    >>> asks("rubric_source", ["a"]), asks("points", 3), asks("rubric - 3. criterion", "Is rude")
    (False, False, True)
    """
    deep = isinstance(value, Mapping) and any(asks(str(k), v) for k, v in value.items())
    found = value and ASKS.match(spelled(name))
    sure = found and (found["one"] or found["level"] or isinstance(value, (list, Mapping)))
    return bool(deep or sure or (found and as_text(value).startswith("-")))


def holds(name: str, value: Any) -> bool:
    """True for a list, an object or a text of several lines, if its name, or that of a part of it,
    says that it may hold criteria.

    >>> holds("rubric_json", '[{"criterion": "Is kind"}]'), holds("rubric_type", "binary")
    (True, False)
    """
    value = parsed_json(value)
    deep = isinstance(value, Mapping) and any(holds(str(k), v) for k, v in value.items())
    each = (x.keys() for x in (value if isinstance(value, list) else ()) if isinstance(x, Mapping))
    named = any({"weight", "points"} & x and {"text", "criterion"} & x for x in each)
    many = isinstance(value, (list, Mapping)) or SEVERAL.match(as_text(value))
    return bool(
        deep
        or (value and many and (named or ASKS.match(spelled(name))))
        or (value and many and STEMS.search(spelled(name)) and not OTHER.match(spelled(name)))
    )


def _lost(name: str, there: Mapping[str, Any]) -> bool:
    """True for a field of a row without which an answer is judged on less than the row asks."""
    value = there[name]
    one = "criterion" in there or isinstance(there.get("rubric"), str)
    signed = one and (against({name: value}) or pitfall(name, value))
    words = value if isinstance(value, list) else [value]
    said = any(not isinstance(x, str) or read_label(x)[0] in RIGHT for x in words)
    carried = name in CARRIED and not blank(value) and (name != "labels" or said)
    at_odds = there.get("split") and not is_held_out(there["split"]) and mark(name, value)
    found = signed or at_odds or carried or asks(name, value)
    return bool(found or _of_criteria(name, there) or _unheard(name, there))


def _unheard(name: str, there: Mapping[str, Any]) -> bool:
    """True for turns of a chat that stand nowhere else in the row, for an answer under a name that
    is not read, and for a verdict on an answer without a criterion."""
    value = parsed_json(there[name])
    if isinstance(value, list) and is_chat(value):
        return not _turns(value) <= {t for k, x in there.items() if k != name for t in _turns(x)}
    said = SAYS.fullmatch(spelled(name)) and isinstance(value, str)
    one = "response" in there and JUDGED.match(spelled(name))
    if not one or isinstance(value, (list, Mapping)):
        return bool(said or (one and _graded(value)))
    people = one["who"] or name.casefold() in ("label", "verdict") or "met" in as_text(value)
    return bool(said or (people and judged(name, value)))


def _turns(value: Any) -> set[str]:
    """The texts of a chat's turns; a text is one."""
    value = parsed_json(value)
    each = value if isinstance(value, list) else [value]
    return {as_text(x.get("content", x.get("value")) if is_chat(x) else x) for x in each}


def _of_criteria(name: str, there: Mapping[str, Any]) -> bool:
    """True for a field of a row that says something of each criterion of a list beside it: its
    weight, its levels, or what people said of an answer."""
    value = literal(there[name])
    held = (parsed_json(x) for k, x in there.items() if k != name and ASKS.match(spelled(k)))
    lists = [x for x in held if isinstance(x, list)]
    each = [x if isinstance(x, Mapping) else {"text": x} for c in lists for x in c]
    ids = {f"c{i}" for c in lists for i, _ in enumerate(c, 1)}.union(
        as_text(x.get("id")) for x in each
    )
    texts = {as_text(x.get(k)) for x in each for k in WORDS}
    answered = not {"response", "output", "completion", "submission"}.isdisjoint(there)
    alone = answered and JUDGED.match(spelled(name))
    items = value if isinstance(value, list) else []
    same = len(items) * any(len(c) == len(items) for c in lists)
    signs = (
        name in SCALES and isinstance(value, (list, Mapping)),
        name == "scale" and re.match(r"\d+\s*(?:-|–|to)\s*\d+", as_text(value)),
        any(on in ids or on in texts for on, _ in by_criterion(value) or ()),
        alone
        and not alone["other"]
        and (
            judged(name, value)
            or (same and all(number(x) is not None or read_label(x)[0] != "?" for x in items))
        ),
        any(isinstance(x, Mapping) and not x.keys().isdisjoint(FIELDS) for x in items),
        any(isinstance(x, Mapping) and _graded(x) for x in items),
        answered and same > 1 and all(read_label(x)[0] in RIGHT for x in items),
        items and all(isinstance(x, str) and x in ids for x in items),
        same > 1 and None not in map(number, items) and not OTHER.match(spelled(name)),
        same and any(pitfall("type", x) for x in items),
    )
    return bool(lists) and any(signs)


def _graded(value: Any) -> bool:
    """True for what holds verdicts on criteria: an object of them, a list of their words, an object
    that says one, at any depth."""
    many = isinstance(value, Mapping)
    each = list(value.values()) if many else [x for x in value if not isinstance(x, (bool, int))]
    said = many and any(k in SAID[:-1] and judged(k, x) for k, x in value.items())
    right = bool(each) and all(read_label(x)[0] in RIGHT for x in each)
    return said or right or any(_graded(x) for x in each if isinstance(x, (list, Mapping)))


def of_answer(name: str, value: Any) -> bool:
    """True for a field that tells of an answer: who wrote it, what was said of it, a number that is
    no id.

    >>> of_answer("model", "m"), of_answer("score", 3), of_answer("explanation", "Why not?")
    (True, True, True)
    >>> of_answer("passage", "Rome"), of_answer("question_id", 3), of_answer("uid", "a")
    (False, False, False)
    """
    told = any(x.fullmatch(spelled(name)) for x in (ANSWERED, JUDGED, NOTES))
    return told or (
        number(value) is not None
        and not re.fullmatch(r"(?:.*_)?(?:id|uid|key|index|idx)", spelled(name))
    )


def answers_in(value: Any, criteria: Iterable[Criterion]) -> list[tuple[str | None, str]] | None:
    """(name, text) of the answers that a list of texts, or an object name -> text, holds; None for
    what is neither: an object that is one answer, or that holds labels by criterion.

    >>> answers_in(["Nile"], ()), answers_in({"m1": "Nile"}, ()), answers_in({"text": "Nile"}, ())
    ([(None, 'Nile')], [('m1', 'Nile')], None)
    """
    each: list[tuple[str | None, Any]] = []
    if isinstance(value, list):
        each = [(None, x) for x in value]
    elif isinstance(value, Mapping):
        said = ONE_ANSWER.union(*((c.id, c.text) for c in criteria))
        each = [(str(k), x) for k, x in value.items() if not absent(x)]
        if any(spelled(k) in said or k in said for k, _ in each):
            return None
    if not each and value != []:
        return None
    return each if all(isinstance(x, str) for _, x in each) else None


def judged(name: str, value: Any) -> bool:
    """True for what a field says of one criterion when it holds a verdict.

    >>> judged("criteria_met", True), judged("passed", "no"), judged("label", "Tone")
    (True, True, False)
    """
    return bool(JUDGED.match(spelled(name))) and read_label(value)[0] in ("met", "unmet")


def slip(name: str, known: str) -> bool:
    """True when a name is another one mistyped: other case, letters swapped, or one letter that is
    missing, too many or wrong. A plural or a participle is another name.

    >>> slip("wieght", "weight"), slip("Prompt", "prompt"), slip("requird", "required")
    (True, True, True)
    >>> slip("sources", "source"), slip("scaled", "scale"), slip("test", "text")
    (False, False, False)
    """
    a, b = name.casefold(), known.casefold()
    if a == b:
        return name != known
    if len(b) < 4 or a[:1] != b[0]:
        return False
    if len(a) == len(b):
        inner = range(1, len(b) - 1)
        wrong = (a[:i] + a[i + 1 :] == b[:i] + b[i + 1 :] for i in inner)
        if len(b) >= 6 and any(wrong):
            return True
        return sorted(a) == sorted(b)
    short, long = sorted((a, b), key=len)
    odd = {long[:i] + long[i + 1 :] for i in range(1, len(long))}
    return short in odd and long not in (f"{short}s", f"{short}d")
