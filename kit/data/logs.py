"""Other people's logs as tasks and answers, and grades written back into them.

inspect-ai      `.eval` (a zip) or JSON: samples with messages, output, scores
verifiers       `results.jsonl`: prompt, completion, reward, a column a reward function;
                `traces.jsonl` (from 0.4 on): an episode a line, of one agent
TRL             `completions_*.parquet` (or the same rows as JSONL): prompt, completion, rewards
open-instruct   `*_rollouts_*.jsonl`: token ids, reward; needs the tokenizer

What their own scorers said is kept in an answer's meta["scores"]; it is no verdict of the kit.
A row whose run failed has no answer: it is counted, and never an empty answer, which is worth 0.
"""

from __future__ import annotations

import json
import os
import re
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import DataError, KitError, MissingError
from ..records import Criterion, Grade, Response, Task, fingerprint
from ..system.paths import whole, write_text
from .chats import chat_of
from .jsonl import dumps, write_jsonl
from .rows import Context, Row
from .tables import read_rows

KINDS = ("inspect", "verifiers", "trl", "open-instruct")
SCORER = "rubric-kit"  # the name of our score in their logs
TIMES = ("generation_ms", "scoring_ms", "total_ms")
ZSTD = 93  # how a file in a zip is packed
Decode = Callable[..., str]
Place = tuple[str, str]  # task, answer
# how chat templates (ChatML, Llama 3, Tulu) say who speaks, and that the turn is over
SPEAKS = re.compile(
    r"<\|(?:im_start\|>|start_header_id\|>)?(system|user|assistant)(?:<\|end_header_id)?(?:\|>)?\n+"
)
OVER = re.compile(r"(?:<\|(?:im_end|eot_id|end|endoftext)\|>|</s>)\Z")
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
REASONS = ("finish_reason", "stop_condition")


@dataclass
class Logged:
    """What a log holds.

    places : (task, answer) of each of its rows, in order; of a row without an answer the reason.
    status : of the whole log, "" where it says none.
    """

    kind: str
    status: str = ""
    tasks: dict[str, Task] = field(default_factory=dict)
    answers: list[Response] = field(default_factory=list)
    places: list[Place | str] = field(default_factory=list)

    def add(self, task: Task, name: str, text: str, **more: Any) -> None:
        """One row of the log. Its answer's id tells the text, too: a grade goes to no other text
        that came to stand in its place.
        """
        name = f"{name}-{fingerprint([task.prompt, text])[:8]}"
        self.tasks.setdefault(task.id, task)
        self.answers.append(Response(task_id=task.id, id=name, text=text, **more))
        self.places.append((task.id, name))

    @property
    def remarks(self) -> list[str]:
        """What is not in it, in words: rows without an answer, samples that were not run."""
        lost = Counter(place for place in self.places if isinstance(place, str))
        why = ", ".join(f"{n} {reason}" for reason, n in lost.items())
        left = f"{lost.total()} rows have no answer and are left out: {why}"
        part = f"the log's own status is {self.status!r}: samples may be missing"
        return [left] * bool(lost) + [part] * (self.status not in ("", "success"))


def read_log(
    path: str | os.PathLike[str],
    *,
    criteria: Sequence[Criterion] = (),
    tokenizer: str | None = None,
) -> Logged:
    """Tasks and answers of a log, its kind found by its fields.

    criteria : the rubric that every task gets. tokenizer : folder or name, for open-instruct.
    DataError names file and line of a row that is none of these.
    """
    where = Path(path)
    if not where.is_file():
        raise MissingError("there is no such log", where=str(path), fix="give the log's file")
    read = _inspect if _is_inspect(where) else _rows
    out = read(where, tuple(criteria), tokenizer)
    if not out.answers:
        what = "; ".join(out.remarks) or "the log has no samples"
        raise DataError(what, where=str(path), fix="give the log of a run that has answers")
    return out


def _rows(path: Path, criteria: tuple[Criterion, ...], tokenizer: str | None) -> Logged:
    rows = read_rows(path)
    first = next(rows, None)
    if first is None:
        raise DataError("the log has no rows", where=str(path))
    kind = kind_of(first[1], first[0])
    decode = _decoder(tokenizer, path) if kind == "open-instruct" else None
    out = Logged(kind)
    for n, (place, row) in enumerate(read_rows(path)):
        flat = _decoded(row, decode, place) if decode else _flat(row, place)
        _row(out, flat, n, place, criteria)
    return out


def kind_of(row: Mapping[str, Any], where: str = "the log") -> str:
    """Whose row this is.

    >>> kind_of({"prompt": "p", "completion": "c", "reward": 1.0, "task": "default"})
    'verifiers'
    """
    if {"prompt_tokens", "response_tokens"} <= row.keys():
        return "open-instruct"
    if {"task", "traces"} <= row.keys():
        return "verifiers"
    if {"prompt", "completion"} <= row.keys():
        return "trl" if {"step", "advantage"} & row.keys() else "verifiers"
    raise DataError(
        f"this is no log of {', '.join(KINDS)}; fields: {', '.join(list(row)[:12])}",
        where=where,
        fix="give an inspect-ai .eval or .json, results.jsonl, completions_*.parquet, or rollouts",
    )


def _is_inspect(path: Path) -> bool:
    if path.suffix != ".json":
        return path.suffix == ".eval"
    with path.open(encoding="utf-8", errors="replace") as f:
        head = f.read(4096)
    return '"version"' in head and '"eval"' in head


# -- inspect-ai ------------------------------------------------------------------------------


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
        fix = "convert it with inspect-ai: inspect log convert --to json --output-dir DIR FILE"
        raise DataError(f"the log cannot be unpacked: {e}", where=str(path), fix=fix) from None


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
        fix = "fetch or copy the log again"
        raise DataError(
            f"broken JSON: {e.msg}", where=f"{where}, line {e.lineno}", fix=fix
        ) from None


def _inspect(path: Path, criteria: tuple[Criterion, ...], _: str | None = None) -> Logged:
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
    task_id, held = str(sample.get("id")), sample.get("attachments") or {}
    turns = sample.get("input")
    turns = turns if isinstance(turns, list) else [{"role": "user", "content": turns}]
    if not any(t.get("role") == "system" for t in turns):  # a solver may have said it
        said = [m for m in sample.get("messages") or [] if m.get("role") == "system"]
        turns = [*({"role": "system", "content": m.get("content")} for m in said[:1]), *turns]
    turns = [{**t, "content": _text(t.get("content"), held)} for t in turns]
    task = _task(task_id, turns, criteria, where)
    fix = "give samples ids that differ as text"
    if sample.get("id") is None:
        raise DataError("the sample has no id", where=f"{where}, field id", fix=fix)
    if out.tasks.get(task_id, task).prompt != task.prompt:
        raise DataError(f"two questions have the id {task_id!r}", where=where, fix=fix)
    output = sample["output"]
    choice = next(iter(output.get("choices") or [{}]))
    said = (choice.get("message") or {}).get("content")
    # an agent that submits its answer writes it into the completion, and not into the message
    text = _text(output.get("completion"), held) or _text(said, held)
    scores = {k: s.get("value") for k, s in (sample.get("scores") or {}).items()}
    meta = {"scores": scores, "target": sample.get("target"), "epoch": sample.get("epoch", 1)}
    cut = choice.get("stop_reason") in CUT or bool(sample.get("limit"))
    source = output.get("model") or None
    out.add(task, f"{task_id}-epoch-{meta['epoch']}", text, source=source, truncated=cut, meta=meta)


def _text(content: Any, held: Mapping[str, str]) -> str:
    """The text of a message's content; what is stored beside the sample is looked up."""
    if isinstance(content, list):
        texts = (_text(p.get("text"), held) for p in content if isinstance(p, dict))
        return "\n".join(t for t in texts if t)
    if not isinstance(content, str):
        return ""
    return held.get(content.removeprefix("attachment://"), content)


# -- rows ------------------------------------------------------------------------------------


def _task(name: str, prompt: Any, criteria: tuple[Criterion, ...], where: str) -> Task:
    row = Row({"prompt": prompt}, 1, where, Context())
    chat = chat_of(row, prompt)
    text = chat.prompt
    if text is None:
        raise DataError("the row has no prompt", where=f"{where}, field prompt")
    return Task(id=name, prompt=text, criteria=criteria, meta=dict(chat.meta), **chat.fields)


def _turns(shown: Any) -> Any:
    """A prompt in a chat template's marks as turns, and another one as it is.

    >>> _turns("<s><|user|>\\nHi?</s>\\n<|assistant|>\\n")
    [{'role': 'user', 'content': 'Hi?'}]
    """
    head, *parts = SPEAKS.split(shown) if isinstance(shown, str) else [""]
    if not parts or not re.fullmatch(r"(?:<[^<>]*>|\s)*", head):
        return shown
    said = [OVER.sub("", text.rstrip()).rstrip() for text in parts[1::2]]
    turns = [{"role": r, "content": text} for r, text in zip(parts[::2], said, strict=True)]
    return (turns[:-1] if turns[-1]["role"] == "assistant" else turns) or shown


def _row(
    out: Logged, row: Mapping[str, Any], n: int, where: str, criteria: tuple[Criterion, ...]
) -> None:
    """A row with prompt and completion. Equal prompts are one task: the numbers in these logs are
    of a step, or of a pass (verifiers' `id` 0 stands on three different prompts of one file).
    """
    shown = row.get("prompt")
    task_id = "p-" + fingerprint(str(shown))[:12]
    completion, meta = row.get("completion"), _scores(row)
    if isinstance(completion, list):
        said = [t for t in completion if isinstance(t, Mapping) and t.get("role") == "assistant"]
        meta |= {"turns": completion} if len(completion) > 1 else {}
        completion = _text(said[-1].get("content"), {}) if said else None
    error = out.kind == "verifiers" and row.get("error")
    if completion is None or error:
        out.places.append("error" if error else "no completion")
        return
    if not isinstance(completion, str):
        raise DataError("the completion is no text", where=f"{where}, field completion")
    task = _task(task_id, _turns(shown), criteria, where)
    name = f"{row['step']}-{n}" if row.get("step") is not None else str(n)
    cut = any([row.get("is_truncated"), *(row.get(k) in CUT for k in REASONS)])
    out.add(task, name, completion, truncated=cut, meta=meta)


def _flat(row: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """An episode of verifiers 0.4 as a row of the versions before: the branch that came last."""
    if "traces" not in row:
        return row
    if len(row["traces"]) > 1:
        what = f"{len(row['traces'])} agents have an answer in this episode"
        raise DataError(what, where=f"{where}, field traces", fix="write a file for each agent")
    trace = next(iter(row["traces"]), {})
    nodes, branch = trace.get("nodes") or [], []
    at = len(nodes) - 1 if nodes else None
    while at is not None:
        branch.insert(0, nodes[at])
        at = nodes[at].get("parent") if len(branch) <= len(nodes) else None
    first = next((i for i, n in enumerate(branch) if n.get("sampled")), len(branch))
    said = [n["message"] for n in branch]
    ends = [c.get("finish_reason") for c in trace.get("calls") or [] if not c.get("error")]
    given = {k: r["score"] * r.get("weight", 1.0) for k, r in trace.get("rewards", {}).items() if r}
    flat = {"prompt": said[:first], "completion": said[first:], "error": not row.get("ok")}
    flat |= {
        "stop_condition": trace.get("stop_condition"),
        "finish_reason": ends[-1] if ends else None,
    }
    return {**trace.get("metrics", {}), **given, **flat}


def _scores(row: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers that the log's own scorers gave, the expected answer, and whose row it was.

    open-instruct keeps token ids in ground_truth, text in older versions: kept as it is.
    """
    skip = {"id", "example_id", "step", "sample_idx", "prompt_idx", *TIMES}
    numbers = {
        k: v
        for k, v in row.items()
        if k not in skip and isinstance(v, (int, float)) and not isinstance(v, bool)
    }
    named = (("answer", "target"), ("ground_truth", "target"), ("dataset", "dataset"))
    kept = {ours: row[name] for name, ours in named if row.get(name) not in (None, "")}
    return {"scores": numbers, **kept}


def _decoder(tokenizer: str | None, where: Path) -> Decode:
    if tokenizer is None:
        raise KitError(
            "open-instruct keeps token ids, which only the model's tokenizer reads",
            where=str(where),
            fix="give --tokenizer, a folder or a name",
        )
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(tokenizer).decode
    except (OSError, ValueError) as e:
        what = f"the tokenizer cannot be loaded: {str(e).splitlines()[0] if str(e) else e!r}"
        raise MissingError(what, where=f"--tokenizer {tokenizer}", fix="give its folder") from None


def _decoded(row: Mapping[str, Any], decode: Decode, where: str) -> dict[str, Any]:
    out = dict(row)
    for theirs, ours in (("prompt_tokens", "prompt"), ("response_tokens", "completion")):
        ids = row.get(theirs)
        if not isinstance(ids, list):
            raise DataError(f"{theirs} is no list of numbers", where=f"{where}, field {theirs}")
        # the prompt's marks tell who speaks; the answer's end mark is no part of what was said
        out[ours] = decode(ids, skip_special_tokens=ours == "completion")
    return out


# -- back ------------------------------------------------------------------------------------


def write_back(
    path: str | os.PathLike[str],
    grades: Sequence[Grade],
    out: str | os.PathLike[str],
    *,
    tokenizer: str | None = None,
) -> dict[str, int]:
    """The log once more with the grades in it: {graded, without} rows, and grades that are of a
    text which the log has not (in its place), which go nowhere (unplaced).

    inspect-ai: a further score named "rubric-kit" in each sample (JSON or .eval, as the log is).
    Others: JSONL with the fields rubric_kit (None where unknown), rubric_kit_low, rubric_kit_high;
    their own reward stays. KitError for an `out` whose ending says another form.
    """
    source, target = Path(path), Path(out)
    form = source.suffix if _is_inspect(source) else ".jsonl"
    if target.suffix.lower() in {".eval", ".json", ".parquet", ".pq"} - {form}:
        fix = f"give --out the ending {form}"
        raise KitError(f"this log comes back as {form}", where=str(out), fix=fix)
    if target.resolve() == source.resolve():
        fix = "give --out another name"
        raise KitError("OUT is the log, which would be lost", where=str(out), fix=fix)
    by_place = {(g.task_id, g.response_id): g for g in grades}
    places = read_log(path, tokenizer=tokenizer).places
    found = [by_place.get(place) for place in places]
    without = found.count(None)
    if without == len(found):
        fix = "give the grades of the answers that `kit logs read` makes of this log as it is now"
        raise DataError("no grade is on an answer of this log", where=str(path), fix=fix)
    if form != ".jsonl":
        _inspect_back(source, found, target)
    else:
        rows = (row for _, row in read_rows(path))
        write_jsonl(target, ({**r, **_own(g)} for r, g in zip(rows, found, strict=True)))
    unplaced = len(by_place.keys() - set(places))
    return {"graded": len(found) - without, "without": without, "unplaced": unplaced}


def _own(g: Grade | None) -> dict[str, Any]:
    names = {"": "score", "_low": "score_low", "_high": "score_high"}
    return {f"rubric_kit{end}": getattr(g, name, None) for end, name in names.items()}


def _scored(sample: dict[str, Any], g: Grade) -> dict[str, Any]:
    """A sample with our score; one that is not known is NaN, as inspect-ai has it."""
    why = "\n".join(f"{v.criterion_id}: {v.status} {v.reason or ''}".strip() for v in g.verdicts)
    score = {
        "value": float("nan") if g.score is None else g.score,
        "explanation": why,
        "metadata": {"low": g.score_low, "high": g.score_high},
    }
    return {**sample, "scores": {**(sample.get("scores") or {}), SCORER: score}}


def _inspect_back(source: Path, found: Sequence[Grade | None], target: Path) -> None:
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
