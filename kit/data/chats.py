"""Chats: what is asked last, the turns before it, what follows; and the prompt of a row, text or
chat."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ..records import AFTER
from .values import as_text, literal, says_nothing

if TYPE_CHECKING:
    from .rows import Row

ROLES = {
    **{name: name for name in ("user", "assistant", "system", "tool")},
    **dict.fromkeys(("gpt", "model", "bot", "ai"), "assistant"),
    "human": "user",
}
TURN = {"role", "content"}, {"role", "tool_calls"}, {"from", "value"}  # fields of one
OFF = {"weight", "loss_weight", "train"}  # 0 or false: not to be learned
PLAIN = ("text", "input_text", "output_text")  # kinds of parts that are what is said
HIDDEN = re.compile("think|thought|reason")  # of those that nobody sees who reads the turn
TOLD = re.compile(rf"{HIDDEN.pattern}|tool|call|function|image|audio|video|file")  # nor who judges
READ = {"role", "from", "content", "value", "tool_calls", "function_call", "id", *OFF}
TORN = re.compile(  # a chat as text
    r"""\s*\[\s*\{\s*["'](?:role|from|content)["']\s*:.*\]\s*""", re.S
)
PROMPTS = ("prompt", "question", "query", "instruction", "messages", "input")


@dataclass(frozen=True)
class Chat:
    """A chat taken apart: system text, turns so far, the last user turn, the turns behind it that
    an answer goes on from.

    answer : the last turn of an assistant behind the prompt, in rows that are there to be imitated.
    meta : {"messages": the turns as they stood} where the parts do not hold everything, {AFTER:
    the turns behind the prompt} where there are some.
    """

    system: str | None = None
    prompt: str | None = None
    history: tuple[Mapping[str, str], ...] = ()
    after: tuple[Mapping[str, str], ...] = ()
    answer: str | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)

    @property
    def fields(self) -> dict[str, Any]:
        """The task's fields that a chat fills, but prompt and meta."""
        return {"history": self.history} | ({} if self.system is None else {"system": self.system})

    @property
    def turns(self) -> list[Mapping[str, str]]:
        """All of it that an answer goes on from."""
        system = [] if self.system is None else [{"role": "system", "content": self.system}]
        asked = {"role": "user", "content": self.prompt or ""}
        return [*system, *self.history, asked, *self.after]

    def followed(self, row: Row, turns: Any) -> Chat:
        """This chat with an answer of several turns behind it; with any other value as it is."""
        turns = literal(turns)
        if self.prompt is None or not isinstance(turns, list) or not is_chat(turns):
            return self
        whole = chat_of(row, [*self.turns, *turns], answered=True)
        meta = {**self.meta, **whole.meta}
        if "messages" in meta:
            meta["messages"] = [*self.meta.get("messages", self.turns), *turns]
        return replace(whole, meta=meta)


def chat_of(row: Row, value: Any, *, answered: bool = False) -> Chat:
    """A chat out of a list of turns ({role, content} or {from, value}); text is a single user turn.

    An answer goes on from the turns behind the prompt up to a tool's last; an assistant's behind
    them is an answer already, which nobody who answers may see. answered : it is there to learn
    from, and goes on from all turns before it.
    """
    value = literal(value)
    if isinstance(value, str):
        return Chat(prompt=value)
    raw = value if isinstance(value, list) else [value]
    objects = [t for t in raw if isinstance(t, Mapping)]
    unread_in(row, objects)
    turns = list(map(turn_of, objects))
    if len(turns) != len(raw):
        row.find("field-type", "a turn of the chat is not an object", field="messages")
    meta = {} if [plain for plain, _ in turns] == raw else {"messages": list(raw)}
    said = [turn for turn, _ in turns if turn["content"] is not None]
    first = next((i for i, t in enumerate(said) if t["role"] == "system"), None)
    system = None if first is None else said.pop(first)["content"]
    last = max((i for i, t in enumerate(said) if t["role"] == "user"), default=None)
    if last is None:
        return Chat(system=system, meta={"messages": list(raw)})
    behind = tuple(said[last + 1 :])
    off = [id(t) for (t, _), o in zip(turns, objects, strict=True) if 0 in map(o.get, OFF)]
    wanted = "assistant" if answered else None
    ends = [i for i, t in enumerate(behind) if t["role"] == wanted and id(t) not in off]
    tools = (i for i, t in enumerate(behind, 1) if t["role"] == "tool")
    cut = ends[-1] if ends else max(tools, default=0)
    shown = behind[:cut]
    lost = behind[cut + bool(ends) :]
    answer = behind[cut]["content"] if ends else None
    if lost:
        row.find(
            "unread-turns",
            f"{len(lost)} turns follow the last "
            f"{'answer' if ends else said[last + cut]['role'] + ' turn'}: "
            "neither judge nor policy sees them",
            field="messages",
            suggestion="cut the chat before them; they are kept in meta",
        )
    if silent := sum(t["content"] is None for t, _ in turns):
        row.find(
            "unread-turns",
            f"{silent} turns hold no text: neither judge nor policy sees them",
            field="messages",
            suggestion="write out what they do; they are kept in meta",
        )
    if first not in (None, 0):
        row.find(
            "moved-turn",
            f"turn {first + 1} is a system text; it is read as if it came first",
            field="messages",
            suggestion="put it first; the chat is kept in meta",
        )
    if silent or first not in (None, 0) or lost:
        meta = {"messages": list(raw)}
    if shown:
        meta = {**meta, AFTER: list(shown)}
    return Chat(system, said[last]["content"], tuple(said[:last]), shown, answer, meta)


def turn_of(turn: Mapping[str, Any], *, judged: bool = False) -> tuple[dict[str, Any], list[str]]:
    """({role, content}, the kinds of its parts that are no text); content None where the turn has
    none.

    Reasoning is left out, a part that is no text is JSON. judged : calls of tools, pictures and the
    like are left out, too, unless there is nothing else.
    """
    role = as_text(turn.get("role", turn.get("from", "")))
    said_by = ROLES.get(role.casefold(), role)
    content = turn.get("content", turn.get("value"))
    parts = content if isinstance(content, list) else [x for x in (content,) if x]
    each = [_part(p) for p in parts]
    if calls := turn.get("tool_calls") or turn.get("function_call"):
        each.append(("tool_calls", as_text(calls)))
    hidden = TOLD if judged and not all(TOLD.search(kind) for kind, _ in each) else HIDDEN
    if content is not None or calls:
        shown = [(kind, text) for kind, text in each if not hidden.search(kind)]
        # an answer's blocks of text are one text: with citations each sentence has its own
        whole = said_by == "assistant" and all(kind in PLAIN for kind, _ in shown)
        content = ("" if whole else "\n").join(text for _, text in shown)
    said = {"role": said_by, "content": content}
    return said, [kind for kind, _ in each if kind not in PLAIN]


def unread_in(row: Row, turns: Any, what: str = "a turn of the chat") -> bool:
    """Name the fields of turns that nothing reads, and their parts that are no text; whether there
    are any. what : what the turns are."""
    turns = [t for t in (turns if isinstance(turns, list) else [turns]) if isinstance(t, Mapping)]
    more = [{k: x for k, x in t.items() if k not in READ} for t in turns]
    row.within("messages", *more)
    kinds = ", ".join(dict.fromkeys(kind for t in turns for kind in turn_of(t)[1]))
    said = (
        f"{what} holds more than text ({kinds}): reasoning is left out, in a judged answer with "
        "text calls and media, too; the rest is shown as JSON"
    )
    if kinds and said not in [f.message for f in row.findings]:
        row.find("field-type", said, field="messages")
    return any(more) or bool(kinds)


def _part(part: Any) -> tuple[str, str]:
    """(what a part of a turn calls itself, its text, or else JSON)."""
    if not isinstance(part, Mapping):
        return "text" if isinstance(part, str) else type(part).__name__, as_text(part)
    kind, text = part.get("type") or next(iter(part), "part"), part.get("text", part.get("value"))
    kind = "thinking" if part.get("thought") is True else kind  # Gemini's mark
    return (str(kind), text) if isinstance(text, str) else (f"{kind} part", as_text(part))


def is_chat(value: Any) -> bool:
    """True for a list of turns, or one turn."""
    turns = value if isinstance(value, list) else [value]
    return bool(turns) and all(
        isinstance(t, Mapping) and any(names <= t.keys() for names in TURN) for t in turns
    )


def torn(row: Row, name: str, value: Any) -> None:
    """Say that a text looks like a chat that a cell holds, and cannot be read as one."""
    if isinstance(value, str) and TORN.fullmatch(value) and isinstance(literal(value), str):
        row.find(
            "unreadable-list",
            f"the field {name!r} begins like a chat and cannot be read as one: {value[:60]!r}",
            severity="error",
            field=name,
            suggestion="write it as JSON",
        )


def turns_in(value: Any) -> Any:
    """A chat that a cell holds as JSON or as Python's repr, an answer's bare parts as its turn;
    another value, text too, as it is.

    >>> turns_in("[{'role': 'user', 'content': 'Hi'}]"), turns_in('{"a": 1.0}')
    ([{'role': 'user', 'content': 'Hi'}], '{"a": 1.0}')
    >>> turns_in('[{"type": "text", "text": "4."}]')
    [{'role': 'assistant', 'content': [{'type': 'text', 'text': '4.'}]}]
    """
    held = literal(value)
    each = held if isinstance(held, list) else []
    kinds = [str(p.get("type")) if isinstance(p, Mapping) else "" for p in each]
    # others may be the JSON that was asked for: shapes, events, calls alone
    if any(k in PLAIN or HIDDEN.search(k) for k in kinds) and all(
        k in PLAIN or TOLD.search(k) for k in kinds
    ):
        return [{"role": "assistant", "content": held}]
    return held if is_chat(held) else value


def answer_of(value: Any) -> str | None:
    """The answer that a chat, one turn, or an object or a list of one text holds: the last turn of
    an assistant; None where there is none.

    >>> answer_of([{"role": "assistant", "content": "Blue."}]), answer_of(["Blue."])
    ('Blue.', 'Blue.')
    >>> answer_of({"role": "user", "content": "Why?"}), answer_of(["Blue.", "Green."])
    (None, None)
    """
    turns = value if isinstance(value, list) else [value]
    if is_chat(value):
        said = [turn_of(t, judged=True)[0] for t in turns]
        return next((t["content"] for t in reversed(said) if t["role"] == "assistant"), None)
    one = turns[0] if len(turns) == 1 else None
    one = one["text"] if isinstance(one, Mapping) and one.keys() == {"text"} else one
    return one if isinstance(one, str) else None


def ask(row: Row, *names: str) -> Chat:
    """The prompt of a row, out of the first of these fields that is filled: text or a chat.

    Text in `input` beside an instruction belongs to the prompt and is set below it. No prompt is an
    error.
    """
    names = names or PROMPTS
    raw = row.take(*names)
    raw = None if isinstance(raw, str) and raw.strip() and says_nothing(raw) else raw
    value = literal(raw)
    if value in ([], {}):
        raw = value = None
    if is_chat(value) or (
        value is not None and "messages" in names and row.data.get("messages") is raw
    ):
        chat = chat_of(row, value)
    else:
        torn(row, names[0], raw)
        chat = Chat(prompt=None if raw is None else _below(row, row.text(*names) or ""))
    turns = literal(row.data.get("history"))
    if not chat.history and isinstance(turns, list) and (is_chat(turns) or not turns):
        row.used.add("history")
        said = [turn_of(t)[0] for t in turns]
        unread_in(row, turns)
        if said != turns:
            row.keep("history", turns)
        chat = replace(chat, history=tuple(t for t in said if t["content"] is not None))
    row.need(
        chat.prompt is not None,
        f"the field {names[0]!r} is missing or null"
        if raw is None
        else "the chat has no user message",
        names[0],
    )
    return chat


def _below(row: Row, prompt: str) -> str:
    """The prompt with the row's `input` below it, unless `input` is the prompt."""
    given = row.data.get("input")
    if "input" in row.used or not isinstance(given, str):
        return prompt
    row.used.add("input")
    row.rivals.pop("input", None)
    return f"{prompt}\n\n{given}" if given.strip() else prompt
