"""Remedies of the data room as commands: who types commands has `kit inspect` in place of `load`."""

from __future__ import annotations

import ast
import re
import shlex
from pathlib import Path

LOAD = re.compile(r"load\('[^'\n]*'(?:, \w+=(?:\{.*?\}|'.*?'))+\)")


def with_commands(text: str) -> str:
    """The text of an error or a finding with commands in place of calls of `load`.

    >>> with_commands("load('my rows.json', fields={'qid': 'task_id'})")
    "kit inspect 'my rows.json' --map qid=task_id --out 'my rows.kit.jsonl'"
    """
    return LOAD.sub(lambda match: _inspect_command(match[0]), text)


def _inspect_command(call: str) -> str:
    tree = ast.parse(call, mode="eval").body
    assert isinstance(tree, ast.Call)
    path = ast.literal_eval(tree.args[0])
    words = ["kit", "inspect", path]
    for option in tree.keywords:
        value = ast.literal_eval(option.value)
        if isinstance(value, dict):
            for yours, ours in value.items():
                words += ["--map", f"{yours}={ours}"]
        else:
            words += [f"--{str(option.arg).replace('_', '-')}", value]
    stem = Path(path).name.removesuffix(".gz")
    words += ["--out", f"{Path(stem).stem}.kit.jsonl"]
    return shlex.join(words)
