"""What another tool's log holds; inspect-ai's (`.eval`, a zip, or JSON) read and written back."""

from __future__ import annotations

import json
import os
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import DataError
from ..records import Criterion, Grade, Response, Task, fingerprint
from ..system.paths import whole, write_text
from .chats import chat_of
from .jsonl import dumps
from .rows import Context, Row
from .values import blank

SCORER = "rubric-kit"  # the name of our score in their logs
ZSTD = 93  # how a file in a zip is packed
MEDIA = ("image", "audio", "video", "document", "file")  # parts of a message without a text
BULK = ("events", "messages", "timelines")  # fields of inspect-ai: how a sample came about
SAMPLE = ("id", "epoch", "input", "target", "output", "scores", "attachments", "limit")
Place = tuple[str, str]  # task, answer
# why a model was cut off: finish_reason (open-instruct), stop_reason (inspect-ai), stop_condition
# (verifiers, where "max_turns_reached" is also how one turn ends as it should)
CUT = (
    "length",
    "max_tokens",
    "model_length",
    "prompt_too_long",
    "timeout_reached",
    "max_total_completion_tokens_reached",
    "max_turns",
    "max_input_tokens",
    "max_output_tokens",
    "max_total_tokens",
    "compaction_failed",
)


@dataclass
class Logged:
    """What a log holds.

    places : (task, answer) of each of its rows, in order; of a row without an answer the reason.
    status : of the whole log, "" where it says none. left : fields that stay in it -> in how many
    rows.
    """

    kind: str
    status: str = ""
    tasks: dict[str, Task] = field(default_factory=dict)
    answers: list[Response] = field(default_factory=list)
    places: list[Place | str] = field(default_factory=list)
    left: Counter[str] = field(default_factory=Counter)

    def add(self, task: Task, name: str, text: str, **more: Any) -> None:
        """One row of the log. Its answer's id tells the text, too: a grade goes to no other text
        that came to stand in its place.
        """
        name = f"{name}-{fingerprint([task.prompt, text])[:8]}"
        self.tasks.setdefault(task.id, task)
        self.answers.append(Response(task_id=task.id, id=name, text=text, **more))
        self.places.append((task.id, name))

    def rest(self, row: Mapping[str, Any], read: Collection[str]) -> dict[str, Any]:
        """{"log": the fields of a row that are not read}, for an answer's meta. Token ids and the
        like stay in the log, and are counted.
        """
        rest = {k: v for k, v in row.items() if k not in read and not blank(v)}
        bulk = [
            k
            for k, v in rest.items()
            if k in BULK or (isinstance(v, list) and all(isinstance(x, (int, float)) for x in v))
        ]
        self.left.update(bulk)
        rest = {k: v for k, v in rest.items() if k not in bulk}
        return {"log": rest} if rest else {}

    @property
    def remarks(self) -> list[str]:
        """What is not in it, in words: rows without an answer, samples that were not run."""
        lost = Counter(place for place in self.places if isinstance(place, str))
        why = ", ".join(f"{n} {reason}" for reason, n in lost.items())
        left = f"{lost.total()} rows have no answer and are left out: {why}"
        part = f"the log's own status is {self.status!r}: samples may be missing"
        stay = f"not read, and only in the log: {', '.join(sorted(self.left))}"
        out = [left] * bool(lost) + [part] * (self.status not in ("", "success"))
        return out + [stay] * bool(self.left)


def task_of(name: str, prompt: Any, criteria: tuple[Criterion, ...], where: str) -> Task:
    """A task with this rubric, out of a prompt that is a text or a chat."""
    chat = chat_of(Row({"prompt": prompt}, 1, where, Context()), prompt)
    text = chat.prompt
    if text is None:
        raise DataError("the row has no prompt", where=f"{where}, field prompt")
    return Task(id=name, prompt=text, criteria=criteria, meta=dict(chat.meta), **chat.fields)


def is_inspect(path: Path) -> bool:
    """Whether it is inspect-ai's log, by its ending or its first fields."""
    if path.suffix != ".json":
        return path.suffix == ".eval"
    with path.open(encoding="utf-8", errors="replace") as f:
        head = f.read(4096)
    return '"version"' in head and '"eval"' in head


def _samples(path: Path, out: Logged) -> Iterator[tuple[str, dict[str, Any]]]:
    """(entry's name, sample) of an inspect-ai log, in the log's order; out has its status then."""
    if path.suffix == ".json":
        data = _json(path.read_text("utf-8"), str(path))
        out.status = str(data.get("status", ""))
        yield from ((f"sample {n}", s) for n, s in enumerate(data.get("samples") or [], 1))
        return
    try:
        with zipfile.ZipFile(path) as held:
            names = held.namelist()
            head = (
                _entry(held, "header.json") if "header.json" in names else b'{"status": "started"}'
            )
            out.status = str(_json(head.decode("utf-8"), f"{path.name}, header").get("status", ""))
            for name in names:  # the header is written when the run ends
                if name.startswith("samples/") and name.endswith(".json"):
                    yield name, _json(_entry(held, name).decode("utf-8"), f"{path.name}, {name}")
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError) as e:
        raise DataError(
            f"the log cannot be unpacked: {e}",
            where=str(path),
            fix="convert it with inspect-ai: inspect log convert --to json --output-dir DIR FILE",
        ) from None


def _entry(held: zipfile.ZipFile, name: str) -> bytes:
    """A file of a packed log; Python knows Zstandard, in which inspect-ai packs, from 3.14 on."""
    entry = held.getinfo(name)
    if entry.compress_type != ZSTD:
        return held.read(name)
    import pyarrow

    assert held.fp is not None
    held.fp.seek(entry.header_offset + 26)  # two lengths, then what they are the lengths of
    held.fp.seek(sum(struct.unpack("<HH", held.fp.read(4))), os.SEEK_CUR)
    packed = pyarrow.BufferReader(held.fp.read(entry.compress_size))
    body = pyarrow.input_stream(packed, compression="zstd").read()
    if zlib.crc32(body) != entry.CRC:
        raise zipfile.BadZipFile(f"{name} is damaged")
    return body


def _json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as e:
        raise DataError(
            f"broken JSON: {e.msg}",
            where=f"{where}, line {e.lineno}",
            fix="fetch or copy the log again",
        ) from None


def read_inspect(path: Path, criteria: tuple[Criterion, ...], _: str | None = None) -> Logged:
    """Tasks and answers of inspect-ai's log; DataError names the sample that is none."""
    out = Logged("inspect")
    for name, sample in _samples(path, out):
        if why := _unanswered(sample):
            out.places.append(why)
        else:
            _sample(out, sample, criteria, f"{path.name}, {name}")
    return out


def _unanswered(sample: Mapping[str, Any]) -> str:
    """Why a sample has no answer, "" where it has one. One that failed may have half of one."""
    output = sample.get("output") or {}
    silent = not (output.get("choices") or output.get("completion"))
    why = {"error": sample.get("error"), "invalidated": sample.get("invalidation")}
    return next((reason for reason, so in (why | {"no output": silent}).items() if so), "")


def _sample(
    out: Logged, sample: Mapping[str, Any], criteria: tuple[Criterion, ...], where: str
) -> None:
    task_id = str(sample.get("id"))
    held = sample.get("attachments") or {}
    turns = sample.get("input")
    turns = turns if isinstance(turns, list) else [{"role": "user", "content": turns}]
    if not any(t.get("role") == "system" for t in turns):  # a solver may have said it
        said = [m for m in sample.get("messages") or [] if m.get("role") == "system"]
        turns = [*({"role": "system", "content": m.get("content")} for m in said[:1]), *turns]
    turns = [{**t, "content": text_of(t.get("content"), held)} for t in turns]
    task = task_of(task_id, turns, criteria, where)
    fix = "give samples ids that differ as text"
    DataError.first(
        (sample.get("id") is None, "the sample has no id", f"{where}, field id", fix),
        (
            out.tasks.get(task_id, task).prompt != task.prompt,
            f"two questions have the id {task_id!r}",
            where,
            fix,
        ),
    )
    output = sample["output"]
    choice = next(iter(output.get("choices") or [{}]))
    said = (choice.get("message") or {}).get("content")
    # an agent that submits its answer writes it into the completion, and not into the message
    text = text_of(output.get("completion"), held) or text_of(said, held)
    given = sample.get("scores") or {}
    meta = {
        "scores": {k: s.get("value") for k, s in given.items()},
        "target": sample.get("target"),
        "epoch": sample.get("epoch", 1),
    }
    why = {k: {n: x for n, x in s.items() if n != "value" and x} for k, s in given.items()}
    told = [m for m in sample.get("messages") or [] if m.get("role") in ("assistant", "tool")]
    read = (*SAMPLE, *["messages"] * (len(told) < 2))
    meta |= out.rest({**sample, "scored": {k: s for k, s in why.items() if s}}, read)
    cut = choice.get("stop_reason") in CUT or bool(sample.get("limit"))
    out.add(
        task,
        f"{task_id}-epoch-{meta['epoch']}",
        text,
        source=output.get("model") or None,
        truncated=cut,
        meta=meta,
    )


def _part(part: Mapping[str, Any], held: Mapping[str, str]) -> str:
    """A part of a message: its text; of a picture or a file what it is, and which: two questions on
    two pictures are two."""
    kind = str(part.get("type"))
    if any(medium in kind for medium in MEDIA):
        return f"[{kind} {fingerprint(part)[:8]}, not shown]"
    return text_of(part.get("text"), held)


def text_of(content: Any, held: Mapping[str, str]) -> str:
    """The text of a message's content; what is stored beside the sample is looked up."""
    if isinstance(content, list):
        return "\n".join(filter(None, (_part(p, held) for p in content if isinstance(p, dict))))
    text = content if isinstance(content, str) else ""
    return held.get(text.removeprefix("attachment://"), text)


def _scored(sample: dict[str, Any], g: Grade) -> dict[str, Any]:
    """A sample with our score; one that is not known is NaN, as inspect-ai has it."""
    why = "\n".join(f"{v.criterion_id}: {v.status} {v.reason or ''}".strip() for v in g.verdicts)
    score = {
        "value": float("nan") if g.score is None else g.score,
        "explanation": why,
        "metadata": {"low": g.score_low, "high": g.score_high},
    }
    return {**sample, "scores": {**(sample.get("scores") or {}), SCORER: score}}


def write_inspect(source: Path, found: Sequence[Grade | None], target: Path) -> None:
    """The log once more, with a score in each sample that has a grade."""
    if source.suffix == ".json":
        data = _json(source.read_text("utf-8"), str(source))
        both = zip(data["samples"], found, strict=True)
        data["samples"] = [s if g is None else _scored(s, g) for s, g in both]
        write_text(target, json.dumps(data, indent=2, ensure_ascii=False))
        return
    with (
        zipfile.ZipFile(source) as held,
        whole(target) as part,
        zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        samples = _samples(source, Logged(""))
        marked = {name: g for (name, _), g in zip(samples, found, strict=True)}
        for name in held.namelist():
            g, body = marked.get(name), _entry(held, name)
            new.writestr(name, body if g is None else dumps(_scored(json.loads(body), g)))
