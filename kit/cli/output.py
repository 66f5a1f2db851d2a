"""What a command gives back, what its options read, and commands as texts: what to type next."""

import json
import math
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import cyclopts
from cyclopts import Parameter

from ..errors import DataError, KitError
from ..system.settings import parse

if TYPE_CHECKING:
    import pandas as pd

# characters of a line that goes into a pipe or a file: there nothing is folded
PIPED_WIDTH = 10_000


@dataclass(frozen=True, kw_only=True)
class Output:
    """What a command gives: lines and tables for people (default: the data; empty ones are left out), data for
    --json, what to do next (a page is opened), and the exit code.
    """

    lines: Sequence[Any] = ()
    data: Any = None
    next: str | Path = ""
    code: int = 0

    def text(self, as_json: bool) -> str:
        """What is printed: the lines and the next step, or the data as JSON."""
        if as_json:
            from ..records.tables import plain

            return json.dumps(plain(self.data), indent=1, ensure_ascii=False)
        lines = [
            line if isinstance(line, str) else text_table(line)
            for line in self.lines or [str(self.data)]
            if len(line)
        ]
        is_page = isinstance(self.next, Path)
        following = shlex.join(["open", str(self.next)]) if is_page else self.next
        if following:
            lines.append(f"next: {following}")
        return "\n".join(lines)


def _pairs(hint: Any, tokens: Sequence[cyclopts.Token]) -> dict[str, Any]:
    """Words such as NAME=VALUE as a mapping. The hint says what a value is: a text, or Any (YAML)."""
    kind = get_args(hint)[1]
    out: dict[str, Any] = {}
    for token in tokens:
        where = f"option {token.keyword}"
        # A text may name several: --map desc=text,qid=task_id
        split = re.split(r",(?=[^\s,=]+=)", token.value)
        for part in split if kind is str else [token.value]:
            name, sign, value = part.partition("=")
            if not (name and sign):
                raise DataError(f"{part!r} is not NAME=VALUE", where=where)
            out[name] = value if kind is str else parse(value, where)
    return out


PAIRS = Parameter(
    converter=_pairs,
    metavar="NAME=VALUE",
    accepts_keys=False,
    # One word after each flag, and the flag may be repeated.
    n_tokens=-1,
    consume_multiple=False,
)
Texts = Annotated[dict[str, str] | None, PAIRS]
Values = Annotated[dict[str, Any] | None, PAIRS]


def command_line(command: str, *words: object, **options: object) -> str:
    """A command as it is typed; words and options that are None or empty are left out.

    >>> command_line("judge", "my tasks.jsonl", None, "--retry", base_url="http://a", set={"how": "one"})
    "kit judge 'my tasks.jsonl' --retry --base-url http://a --set how=one"
    """
    line = ["kit", command, *map(str, filter(None, words))]
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        if isinstance(value, Mapping):
            for key, part in value.items():
                text = part if isinstance(part, str) else json.dumps(part)
                line += [flag, f"{key}={text}"]
        elif value:
            line += [flag, str(value)]
    return shlex.join(line)


def text_table(
    rows: "pd.DataFrame | Sequence[Mapping[str, str]]",
) -> str:
    """A table as aligned text, columns of numbers on the right. A terminal folds long cells.

    >>> print(text_table([{"judge": "a", "n": 5}, {"judge": "b", "n": 12}]))
    judge   n
    a       5
    b      12
    """
    # Help needs neither, and starts faster without them.
    import pandas as pd
    from rich.table import Table

    frame = pd.DataFrame(rows)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name, column in frame.items():
        is_number = pd.to_numeric(column, errors="coerce").notna().all()
        table.add_column(str(name), justify="right" if is_number else "left")
    for row in frame.itertuples(index=False):
        table.add_row(*map(_cell_text, row))
    return screen_text(table)


def _cell_text(value: object) -> str:
    """A number with at most three decimals; NaN is an empty cell."""
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{round(value, 3):.9g}"
    return str(value)


def screen_text(thing: object, *, folds: bool = True) -> str:
    """What rich makes of a thing: coloured in a terminal, plain in a pipe or a file."""
    from rich.console import Console

    # Texts of models are no markup.
    console = Console(markup=False, emoji=False, highlight=False)
    if not console.is_terminal:
        console.width = PIPED_WIDTH
    with console.capture() as screen:
        console.print(thing, soft_wrap=not folds)
    return "\n".join(map(str.rstrip, screen.get().splitlines()))


def inspect_command(file: str, *, fields: object = None, **options: object) -> str:
    """The command that writes a file in the kit's own form, beside where it is typed.

    >>> inspect_command("my rows.json.gz", fields={"qid": "task_id"})
    "kit inspect 'my rows.json.gz' --map qid=task_id --out 'my rows.kit.jsonl'"
    """
    out = Path(Path(file).name.removesuffix(".gz")).with_suffix(".kit.jsonl")
    # What `load` calls fields, the command calls map.
    return command_line("inspect", file, map=fields, **options, out=out)


def with_commands(error: KitError) -> str:
    """The text of an error with commands in place of calls of `load`.

    >>> call = "load('my rows.json', fields={'qid': 'task_id'})"
    >>> options = {"file": "my rows.json", "fields": {"qid": "task_id"}}
    >>> print(with_commands(KitError("there is no field 'task_id'", fix=call, calls={call: options})))
    there is no field 'task_id'
      to do: kit inspect 'my rows.json' --map qid=task_id --out 'my rows.kit.jsonl'
    """
    text = str(error)
    for call, options in error.calls.items():
        text = text.replace(call, inspect_command(**options))
    return text
