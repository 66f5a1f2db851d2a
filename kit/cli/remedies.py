"""Commands as texts: what to type next, and `kit inspect` in place of a remedy's call of `load`."""

import ast
import json
import re
import shlex
from collections.abc import Mapping
from pathlib import Path

LOAD = re.compile(r"load\('[^'\n]*'(?:, \w+=(?:\{.*?\}|'.*?'))+\)")


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
