"""Fields that nothing reads: said once a file, and an error where the name is a slip of one that is
read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields

from ..records import Criterion, Task
from .findings import Finding

OWN_TASK = frozenset(f.name for f in fields(Task))
OWN_CRITERION = frozenset(f.name for f in fields(Criterion))
# of a task: unread, the answer is judged without them
CARRIED = ("truth", "history", "sources", "labels", "response")
# of a criterion: it is judged without what it consists of
PARTS = ("children", "sub_criteria", "subcriteria", "sub_tasks", "criteria", "items")
NOTES = re.compile(
    r".*(?:origin|notes?|comments?|explanation|reason(?:ing)?|category|type)\Z", re.I
)


@dataclass
class Unread:
    """The fields of a file's tasks, or of its criteria, that nothing reads.

    known : the fields that are read; what : "", or " of a criterion"; usual : the severity of a
    field that is no slip. found : name -> [how often, where first, the name that was meant].
    """

    known: frozenset[str]
    what: str = ""
    usual: str = "info"
    found: dict[str, list] = field(default_factory=dict)

    def add(self, name: str, where: str, there: Iterable[str] = ()) -> None:
        """Count a field. there : the fields beside it; what stands there is not what is meant."""
        if name in self.found:
            self.found[name][0] += 1
            return
        meant = next((k for k in sorted(self.known) if k not in there and slip(name, k)), None)
        self.found[name] = [1, where, meant]

    def findings(self, file: str, rows: int) -> Iterator[Finding]:
        """One finding a field, the slips first; after fifty the rest is counted. Notes on a
        criterion are there to be passed over."""
        told = [x for x in self.found.items() if not (self.what and NOTES.match(x[0]))]
        order = sorted(told, key=lambda x: (x[1][2] is None, -x[1][0]))
        for name, (n, where, meant) in order[:50]:
            lost = name in (PARTS if self.what else CARRIED)
            yield Finding(
                code="unread-field",
                severity="error" if meant or lost else self.usual,
                where=where if meant or lost else file,
                field=name,
                message=f"nothing reads the field {name!r}{self.what} "
                f"({n}{'' if self.what else f' of {rows} rows'}); it is kept in meta",
                suggestion=_fix(name, meant, lost),
            )
        if len(order) > 50:
            yield Finding(
                code="unread-field",
                severity="info",
                where=file,
                message=f"and {len(order) - 50} more fields that nothing reads",
            )


def _fix(name: str, meant: str | None, lost: bool) -> str | None:
    if meant:
        return f"did you mean {meant!r}?"
    return f"write {name} as in the kit's own rows (kit.save writes them)" if lost else None


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
    if len(b) < 4 or abs(len(a) - len(b)) > 1 or a[0] != b[0]:
        return False
    if len(a) == len(b) and sorted(a) == sorted(b):
        return True
    at = next(
        (i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b))
    )
    if len(a) == len(b):
        return len(b) >= 6 and at < len(b) - 1 and a[at + 1 :] == b[at + 1 :]
    long, short = (a, b) if len(a) > len(b) else (b, a)
    inside = at < len(short) or long[-1] not in "sd"
    return inside and long[at + 1 :] == short[at:]
