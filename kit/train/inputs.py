"""What goes into a training, looked at: characters that nothing can encode, rows that are cut or
cut to nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..errors import DataError
from ..records import Task
from .config import DPOSettings, GRPOSettings, Settings

logger = logging.getLogger(__name__)


def readable(tasks: Iterable[Task]) -> None:
    """DataError for a task whose id or prompt holds half of a surrogate pair: no tokenizer takes
    it.

    >>> readable([Task(id="t", prompt="half: \\ud83d")])
    Traceback (most recent call last):
    ...
    kit.errors.DataError: the prompt holds half of a character ('\\ud83d', at 6)
      where: task 't'
      to do: write whole characters: the text was cut inside an emoji, say
    """
    for t in tasks:
        whole(t.id, "the id", f"task {t.id!r}")
        turns = [t.system or "", *(turn["content"] for turn in t.history), t.prompt]
        for text in (*turns, *t.sources, *t.sources.values()):
            whole(text, "the prompt", f"task {t.id!r}")


def whole(text: str, what: str, where: str) -> None:
    """DataError when a text cannot be written in UTF-8."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as e:
        raise DataError(
            f"{what} holds half of a character ({text[e.start]!r}, at {e.start})",
            where=where,
            fix="write whole characters: the text was cut inside an emoji, say",
        ) from None


def filled(row: Mapping[str, Any], names: Sequence[str], where: str) -> None:
    """DataError when a text to learn from is empty or holds half a character."""
    for name in names:
        if not row[name].strip():
            raise DataError(
                f"the field {name!r} is empty: there is nothing to learn from it",
                where=where,
                fix="leave the row out",
            )
        whole(row[name], f"the field {name!r}", where)


def fitting(
    rows: Sequence[dict[str, Any]], tokenizer: Any, settings: Settings
) -> list[dict[str, Any]]:
    """The rows of which something to learn is left after max_tokens; a warning counts the cut ones.

    DataError when nothing is left of any.
    """
    limit: int = settings.max_tokens  # type: ignore[attr-defined]
    ends = ("chosen", "rejected") if isinstance(settings, DPOSettings) else ("completion",)
    kept, cut = [], 0
    for row in rows:
        start, whole_ = _lengths(row, ends, tokenizer)
        if start < limit or not getattr(settings, "answer_only", True):
            kept.append(row)
            cut += whole_ > limit
    if not kept:
        raise DataError(
            f"every prompt alone fills max_tokens={limit}: no answer is left to learn from",
            where="setting max_tokens",
            fix="raise max_tokens, or shorten the prompts",
        )
    for n, what in ((len(rows) - len(kept), "left out: the prompt alone fills"), (cut, "cut at")):
        if n:
            logger.warning("%d of %d rows are %s max_tokens=%d", n, len(rows), what, limit)
    return kept


def _lengths(row: Mapping[str, Any], ends: Sequence[str], tokenizer: Any) -> tuple[int, int]:
    """Tokens of the prompt, and of the whole row (of its longer end)."""
    if "text" in row:
        return 0, len(tokenizer(row["text"])["input_ids"])
    prompt = row["prompt"]
    return _size(tokenizer, prompt), max(_size(tokenizer, [*prompt, *row[e]]) for e in ends)


def _size(tokenizer: Any, chat: list[dict[str, str]]) -> int:
    """Tokens of a chat, with the words that begin an answer where the user spoke last."""
    ask = chat[-1]["role"] == "user"
    found = tokenizer.apply_chat_template(
        chat, add_generation_prompt=ask, tokenize=True, return_dict=True
    )
    return len(found["input_ids"])


def order(tasks: Sequence[Task], settings: GRPOSettings) -> list[Task]:
    """The prompts of all steps in the order they are trained on: pass after pass, each in an order
    that seed and pass decide.

    Written out as one epoch, so that a resumed run goes on with the same prompts.
    """
    import random

    wanted, out = settings.steps * settings.prompts_per_step, []
    for turn in range(-(-wanted // len(tasks))):
        out += random.Random(f"{settings.seed}/{turn}").sample(list(tasks), len(tasks))
    return out[:wanted]
