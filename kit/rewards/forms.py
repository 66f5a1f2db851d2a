"""The smallest texts that fulfil a form: what a policy writes that reads no prompt at all.

A form is a check by code that recurs over a data set ("ends with #### and a number", "JSON with
these keys"). A text that fulfils it knows nothing of any task, and may still earn most of a rubric.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import reduce
from operator import getitem, or_
from typing import Any

from ..checks import check
from ..checks.language import STOP
from ..records import Criterion, Response, Task

RECURS = 0.1  # of the tasks: a check that fewer have is no form
# one of what is counted, and what stands between two
COUNTED = {
    "words": ("x", " "),
    "own_words": ("x", " "),
    "sentences": ("It is so.", " "),
    "paragraphs": ("x", "\n\n"),
    "lines": ("x", "\n"),
    "chars": ("x", ""),
    "bullets": ("- x", "\n"),
    "numbered": ("1. x", "\n"),
}
SEVERAL = {"anyOf": 1, "oneOf": 1, "allOf": None}  # how many of them must hold
FORMATS = {
    "date": "2000-01-01",
    "date-time": "2000-01-01T00:00:00Z",
    "email": "a@b.org",
    "uri": "https://a.org",
}
_CLASSES = {"DIGIT": "0", "WORD": "x", "SPACE": " ", "NOT_DIGIT": "x", "NOT_SPACE": "x"}
_OTHERS = "x0 .-"  # one of them stands for a character of any kind


def forms(tasks: Sequence[Task]) -> tuple[str, ...]:
    """A text for each check that recurs, the most frequent first; where none is known, none.

    >>> c = Criterion(id="c", text="Ends so.", check={"name": "regex", "pattern": r"#### -?\\d+$"})
    >>> forms([Task(id=str(i), prompt=f"{i} + 1?", criteria=(c,)) for i in range(4)])
    ('#### 0',)
    """
    wanted = {
        (t.id, str(c.check)): (t, c) for t in tasks for c in t.criteria if c.check and c.weight > 0
    }
    often = Counter(said for _, said in wanted)
    one = {said: pair for (_, said), pair in wanted.items()}
    least = max(2, RECURS * len(tasks))
    found = (_fulfils(*one[said]) for said, n in often.most_common() if n >= least)
    return tuple(dict.fromkeys(text for text in found if text))


def _fulfils(task: Task, criterion: Criterion) -> str:
    """The first text of those its check could ask for that is met; "" where there is none."""
    with suppress(Exception):  # whatever a check or a schema may hold: then no text is known
        for text in _texts(criterion.check or {}):
            response = Response(task_id=task.id, id="form", text=text)
            if check(task, response, criterion).status == "met":
                return text
    return ""


def _texts(asked: Mapping[str, Any]) -> Iterable[str]:
    one, between = COUNTED.get(asked["name"], ("", ""))
    times = int(asked.get("min") or 1)
    if one:
        yield between.join([one] * times)
    if asked["name"] == "json":
        import json

        schema = asked.get("schema")
        yield json.dumps(_instance(schema, schema))
    if "pattern" in asked:
        found = _pattern(asked["pattern"])
        yield "\n".join([found] * times)
        yield " ".join([found] * times)
    if "code" in asked:
        yield STOP[asked["code"]]
    for field in ("text", "answers", "any", "all", "value"):
        if (said := asked.get(field)) is not None:
            said = said if isinstance(said, (list, tuple)) else [said]
            yield str(said[0])
            yield " ".join(map(str, said))


def _instance(schema: Any, root: Any) -> Any:
    """The smallest value that a JSON schema asks for; root : the whole, where "$ref" points."""
    schema = schema if isinstance(schema, Mapping) else {}
    parts = [part for k in ("anyOf", "oneOf", "allOf") for part in schema.get(k, ())[: SEVERAL[k]]]
    if "$ref" in schema:
        parts = [reduce(getitem, schema["$ref"].split("/")[1:], root)]
    if parts:
        return _instance(reduce(or_, parts), root)
    if "enum" in schema or "const" in schema:
        return schema.get("const", next(iter(schema.get("enum", ())), None))
    kind = schema.get("type", "object")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object":
        fields = schema.get("properties", {})
        return {name: _instance(fields.get(name), root) for name in schema.get("required", fields)}
    if kind == "array":
        items = schema.get("prefixItems", [schema.get("items")] * int(schema.get("minItems", 1)))
        made = [_instance(item, root) for item in items]
        return [x + type(x)(i) for i, x in enumerate(made)] if schema.get("uniqueItems") else made
    if kind == "string":
        text = schema.get("pattern") and _pattern(schema["pattern"])
        return text or FORMATS.get(schema.get("format"), "x" * int(schema.get("minLength", 1)))
    least = schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1)
    return {"boolean": True, "null": None}.get(kind, min(least, schema.get("maximum", least)))


def _pattern(pattern: Any) -> str:
    from re import _parser  # type: ignore[attr-defined]

    return _matching(_parser.parse(str(pattern)))


def _matching(parsed: Iterable[tuple[Any, Any]]) -> str:
    """The shortest text of a parsed pattern; what must not stand there is left to chance."""
    return "".join(_piece(str(op), arg) for op, arg in parsed)


def _piece(op: str, arg: Any) -> str:
    return _PIECES.get(op.rpartition("_REPEAT")[1] or op, lambda _: "")(arg)


def _one_of(items: Sequence[tuple[Any, Any]]) -> str:
    if str(items[0][0]) != "NEGATE":
        return _piece(str(items[0][0]), items[0][1])
    barred = {_piece(str(op), arg) for op, arg in items[1:]}
    return next((c for c in _OTHERS if c not in barred), "")


_PIECES: dict[str, Callable[[Any], str]] = {
    "LITERAL": chr,
    "RANGE": lambda ends: chr(ends[0]),
    "_REPEAT": lambda arg: _matching(arg[2]) * arg[0],
    "ASSERT": lambda arg: _matching(arg[1]),
    "BRANCH": lambda arg: _matching(arg[1][0]),
    "SUBPATTERN": lambda arg: _matching(arg[-1]),
    "ATOMIC_GROUP": _matching,
    "CATEGORY": lambda kind: _CLASSES.get(str(kind).removeprefix("CATEGORY_"), "."),
    "IN": _one_of,
    "ANY": lambda _: "x",
    "NOT_LITERAL": lambda _: "x",
}
