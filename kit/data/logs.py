"""Other people's logs as tasks and answers, and grades written back into them.

inspect-ai      `.eval` (a zip) or JSON: samples with messages, output, scores
verifiers       `results.jsonl`: prompt, completion, reward, a column a reward function;
                `traces.jsonl` (from 0.4 on): an episode a line, of one agent
TRL             `completions_*.parquet` (or the same rows as JSONL): prompt, completion, rewards
open-instruct   `*_rollouts_*.jsonl`: token ids, reward; needs the tokenizer

What their own scorers said is kept in an answer's meta["scores"]; it is no verdict of the kit. The
other fields of its row are in meta["log"], but for token ids and the like, which are named.
A row whose run failed has no answer: it is counted, and never an empty answer, which is worth 0.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import DataError, KitError, MissingError
from ..records import Criterion, Grade, fingerprint, is_number
from .evals import CUT, Logged, is_inspect, read_inspect, task_of, text_of, write_inspect
from .jsonl import write_jsonl
from .tables import read_rows

KINDS = ("inspect", "verifiers", "trl", "open-instruct")
TIMES = ("generation_ms", "scoring_ms", "total_ms")
Decode = Callable[..., str]
# how chat templates (ChatML, Llama 3, Tulu) say who speaks, and that the turn is over
SPEAKS = re.compile(
    r"<\|(?:im_start\|>|start_header_id\|>)?(system|user|assistant)(?:<\|end_header_id)?(?:\|>)?\n+"
)
OVER = re.compile(r"(?:<\|(?:im_end|eot_id|end|endoftext)\|>|</s>)\Z")
REASONS = ("finish_reason", "stop_condition")
NAMED = {"answer": "target", "ground_truth": "target", "dataset": "dataset"}
EPISODE = ("traces", "nodes", "rewards", "metrics", "calls", "ok")
TOKENS = {"prompt_tokens": "prompt", "response_tokens": "completion"}
READ = ("prompt", "completion", "error", "is_truncated", *NAMED, *TOKENS)


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
        raise MissingError(
            "there is no such log",
            where=str(path),
            fix="give the log's file",
        )
    out = (read_inspect if is_inspect(where) else _rows)(where, tuple(criteria), tokenizer)
    if not out.answers:
        raise DataError(
            "; ".join(out.remarks) or "the log has no samples",
            where=str(path),
            fix="give the log of a run that has answers",
        )
    return out


def _rows(path: Path, criteria: tuple[Criterion, ...], tokenizer: str | None) -> Logged:
    first = next(read_rows(path), None)
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
    if TOKENS.keys() <= row.keys():
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


# -- rows ------------------------------------------------------------------------------------


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
        completion = text_of(said[-1].get("content"), {}) if said else None
    error = out.kind == "verifiers" and row.get("error")
    if completion is None or error:
        out.places.append("error" if error else "no completion")
        return
    if not isinstance(completion, str):
        raise DataError("the completion is no text", where=f"{where}, field completion")
    meta |= out.rest(row, {*READ, *meta["scores"]})
    task = task_of(task_id, _turns(shown), criteria, where)
    name = f"{row['step']}-{n}" if row.get("step") is not None else str(n)
    out.add(
        task,
        name,
        completion,
        truncated=any([row.get("is_truncated"), *(row.get(k) in CUT for k in REASONS)]),
        meta=meta,
    )


def _flat(row: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """An episode of verifiers 0.4 as a row of the versions before: the branch that came last."""
    if "traces" not in row:
        return row
    if len(row["traces"]) > 1:
        raise DataError(
            f"{len(row['traces'])} agents have an answer in this episode",
            where=f"{where}, field traces",
            fix="write a file for each agent",
        )
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
    flat = {
        "prompt": said[:first],
        "completion": said[first:],
        "error": not row.get("ok"),
        "stop_condition": trace.get("stop_condition"),
        "finish_reason": ends[-1] if ends else None,
    }
    both = {**row, **trace}
    flat["episode"] = {k: v for k, v in both.items() if k not in (*flat, *EPISODE) and v}
    return {**trace.get("metrics", {}), **given, **flat}


def _scores(row: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers that the log's own scorers gave, the expected answer, and whose row it was.

    open-instruct keeps token ids in ground_truth, text in older versions: kept as it is.
    """
    skip = {"id", "example_id", "step", "sample_idx", "prompt_idx", *TIMES}
    numbers = {k: v for k, v in row.items() if k not in skip and is_number(v)}
    kept = {ours: row[name] for name, ours in NAMED.items() if row.get(name) not in (None, "")}
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
        raise MissingError(
            f"the tokenizer cannot be loaded: {str(e).splitlines()[0] if str(e) else e!r}",
            where=f"--tokenizer {tokenizer}",
            fix="give its folder",
        ) from None


def _decoded(row: Mapping[str, Any], decode: Decode, where: str) -> dict[str, Any]:
    out = dict(row)
    for theirs, ours in TOKENS.items():
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
    form = source.suffix if is_inspect(source) else ".jsonl"
    KitError.first(
        (
            target.suffix.lower() in {".eval", ".json", ".parquet", ".pq"} - {form},
            f"this log comes back as {form}",
            str(out),
            f"give --out the ending {form}",
        ),
        (
            target.resolve() == source.resolve(),
            "OUT is the log, which would be lost",
            str(out),
            "give --out another name",
        ),
    )
    by_place = {g.ids: g for g in grades}
    places = read_log(path, tokenizer=tokenizer).places
    found = [by_place.get(place) for place in places]
    without = found.count(None)
    if without == len(found):
        raise DataError(
            "no grade is on an answer of this log",
            where=str(path),
            fix="give the grades of the answers that `kit logs read` makes of this log as it is",
        )
    if form != ".jsonl":
        write_inspect(source, found, target)
    else:
        rows = (row for _, row in read_rows(path))
        write_jsonl(target, ({**r, **_own(g)} for r, g in zip(rows, found, strict=True)))
    return {
        "graded": len(found) - without,
        "without": without,
        "unplaced": len(by_place.keys() - set(places)),
    }


def _own(g: Grade | None) -> dict[str, Any]:
    names = {"": "score", "_low": "score_low", "_high": "score_high"}
    return {f"rubric_kit{end}": getattr(g, name, None) for end, name in names.items()}
