"""What a command gives back, what its options read, and commands as texts: what to type next."""

import ast
import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import cyclopts
from cyclopts import Parameter

from ..errors import DataError
from ..system.settings import parse

LOAD = re.compile(r"load\('[^'\n]*'(?:, \w+=(?:\{.*?\}|'.*?'))+\)")


@dataclass(frozen=True, kw_only=True)
class Output:
    """What a command gives: text for people (default: the data), data for --json, what to open or run
    next, and the exit code.

    next_without : an option; next comes the same command without it.
    """

    text: str = ""
    data: Any = None
    next: str = ""
    next_without: str = ""
    code: int = 0


Command = Callable[..., Output]


def _pairs(hint: Any, tokens: Sequence[cyclopts.Token]) -> dict[str, Any]:
    """Words such as NAME=VALUE as a mapping. The hint says what a value is: str, Any (YAML), a list with commas."""
    kind = get_args(hint)[1]
    out: dict[str, Any] = {}
    for token in tokens:
        # A text may name several: --map desc=text,qid=task_id
        split = re.split(r",(?=\w+=)", token.value)
        for part in split if kind is str else [token.value]:
            name, sign, value = part.partition("=")
            where = f"option {token.keyword}"
            if not (name and sign):
                raise DataError(f"{part!r} is not NAME=VALUE", where=where)
            if get_origin(kind) is list:
                value = f"[{value}]"
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
Lists = Annotated[dict[str, list[Any]] | None, PAIRS]


def command_line(command: str, *words: object, **options: object) -> str:
    """A command as it is typed; options that are None, False or empty are left out.

    >>> command_line("judge", "my tasks.jsonl", None, base_url="http://a", set={"how": "one"}, retry=True)
    "kit judge 'my tasks.jsonl' --base-url http://a --set how=one --retry"
    """
    line = ["kit", command, *(str(word) for word in words if word)]
    for name, value in options.items():
        flag = f"--{name.strip('_').replace('_', '-')}"
        if isinstance(value, Mapping):
            for key, part in value.items():
                text = part if isinstance(part, str) else json.dumps(part)
                line += [flag, f"{key}={text}"]
        elif value is True:
            line.append(flag)
        elif value not in (None, False, ""):
            line += [flag, str(value)]
    return shlex.join(line)


def inspect_command(file: str, **options: object) -> str:
    """The command that writes a file in the kit's own form, beside where it is typed.

    >>> inspect_command("my rows.json.gz", map={"qid": "task_id"})
    "kit inspect 'my rows.json.gz' --map qid=task_id --out 'my rows.kit.jsonl'"
    """
    stem = Path(Path(file).name.removesuffix(".gz")).stem
    return command_line("inspect", file, **options, out=f"{stem}.kit.jsonl")


def with_commands(text: str) -> str:
    """The text of an error or a finding with commands in place of calls of `load`.

    >>> with_commands("load('my rows.json', fields={'qid': 'task_id'})")
    "kit inspect 'my rows.json' --map qid=task_id --out 'my rows.kit.jsonl'"
    """
    return LOAD.sub(_command_of_call, text)


def _command_of_call(call: re.Match[str]) -> str:
    tree = ast.parse(call[0], mode="eval").body
    assert isinstance(tree, ast.Call)
    options = {str(o.arg): ast.literal_eval(o.value) for o in tree.keywords}
    # What `load` calls fields, the command calls map.
    fields = options.pop("fields", None)
    return inspect_command(ast.literal_eval(tree.args[0]), map=fields, **options)
