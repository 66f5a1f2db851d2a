"""Other tools' logs: read into tasks and answers, grades written back. The rows here are written
in these tools' own shapes (checked by hand on files that their repositories hold)."""

from __future__ import annotations

import json
import math
import zipfile

import pytest

from kit.__main__ import main
from kit.data.logs import read_log, write_back
from kit.errors import DataError, KitError
from kit.people import read_grades
from kit.records import Grade, Verdict

SAMPLE = {
    "id": 7,
    "epoch": 2,
    "input": "Name a river.",
    "target": "Seine",
    "messages": [
        {"role": "system", "content": "attachment://abc"},
        {"role": "user", "content": "Name a river."},
        {"role": "assistant", "content": "The Seine."},
    ],
    "output": {
        "model": "m",
        "choices": [
            {
                "message": {
                    "role": "assistant",
                    "content": [
                        {"type": "reasoning", "reasoning": "hm"},
                        {"type": "text", "text": "The Seine."},
                    ],
                },
                "stop_reason": "max_tokens",
            }
        ],
    },
    "scores": {"match": {"value": "C", "answer": "Seine"}},
    "attachments": {"abc": "Be short."},
}
LOG = {"version": 2, "status": "success", "eval": {"task": "rivers"}, "samples": [SAMPLE]}
PROMPT = [{"role": "system", "content": "Be short."}, {"role": "user", "content": "Name a river."}]
SAID = [{"role": "assistant", "content": "The Seine."}]


def graded(found, score=0.5):
    """A grade for every answer of a log."""
    ends = {"score": score, "score_low": 0.25, "score_high": 1.0}
    return [
        Grade(
            task_id=t,
            response_id=r,
            **ends,
            verdicts=(
                Verdict(task_id=t, response_id=r, criterion_id="c", status="met", reason="so"),
            ),
        )
        for t, r in found.places
    ]


def jsonl(path, rows):
    """Write rows and give the path."""
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    return path


@pytest.mark.parametrize("suffix", [".json", ".eval"])
def test_inspect_there_and_back(tmp_path, suffix):
    path = tmp_path / f"log{suffix}"
    if suffix == ".json":
        path.write_text(json.dumps(LOG, indent=2))
    else:
        with zipfile.ZipFile(path, "w") as z:
            z.writestr("header.json", json.dumps({k: v for k, v in LOG.items() if k != "samples"}))
            z.writestr("samples/7_epoch_2.json", json.dumps(SAMPLE))
    found = read_log(path)
    task, answer = found.tasks["7"], found.answers[0]
    assert (task.prompt, task.system, answer.text) == (
        "Name a river.",
        "Be short.",
        "The Seine.",
    )
    assert answer.truncated and answer.meta["scores"] == {"match": "C"} and answer.source == "m"
    out = tmp_path / f"new{suffix}"
    assert write_back(path, graded(found, score=None), out) == 1
    if suffix == ".json":
        sample = json.loads(out.read_text())["samples"][0]
    else:
        with zipfile.ZipFile(out) as z:
            assert set(z.namelist()) == {"header.json", "samples/7_epoch_2.json"}
            sample = json.loads(z.read("samples/7_epoch_2.json"))
    score = sample["scores"]["rubric-kit"]
    assert math.isnan(score["value"]) and score["metadata"] == {"low": 0.25, "high": 1.0}
    assert (
        sample["scores"]["match"] == SAMPLE["scores"]["match"]
        and "c: met so" in score["explanation"]
    )


def test_verifiers_numbers_are_not_prompts(tmp_path):
    """`id` counts rows of a pass: the same number stands on different prompts of one file."""
    other = [PROMPT[0], {"role": "user", "content": "Name a hill."}]
    rows = [
        {
            "id": i // 2,
            "prompt": p,
            "completion": SAID,
            "task": "default",
            "answer": "Seine",
            "generation_ms": 5.0,
            "reward": 1.0,
            "correct": 1.0,
        }
        for i, p in enumerate([PROMPT, other, PROMPT, other])
    ]
    path = jsonl(tmp_path / "results.jsonl", rows)
    found = read_log(path)
    assert found.kind == "verifiers" and len(found.tasks) == 2 and len(found.answers) == 4
    assert len(set(found.places)) == 4
    meta = found.answers[0].meta
    assert meta == {"scores": {"reward": 1.0, "correct": 1.0}, "target": "Seine"}
    out = tmp_path / "back.jsonl"
    assert write_back(path, graded(found)[:3], out) == 3
    back = [json.loads(line) for line in out.read_text().splitlines()]
    assert [r["rubric_kit"] for r in back] == [0.5, 0.5, 0.5, None]
    assert [r["reward"] for r in back] == [1.0] * 4  # their own reward stays


def test_trl_completions_as_parquet(tmp_path):
    pd = pytest.importorskip("pandas")
    rows = {
        "step": [1, 1],
        "prompt": ["Name a river."] * 2,
        "completion": ["Seine", "no"],
        "reward_len": [0.5, float("nan")],
        "advantage": [1.0, -1.0],
    }
    path = tmp_path / "completions_00001.parquet"
    pd.DataFrame(rows).to_parquet(path)
    found = read_log(path)
    assert found.kind == "trl" and len(found.tasks) == 1
    assert [a.id for a in found.answers] == ["1-0", "1-1"]
    assert found.answers[0].meta["scores"] == {"reward_len": 0.5, "advantage": 1.0}
    assert write_back(path, graded(found), tmp_path / "back.jsonl") == 2


def test_open_instruct_needs_the_tokenizer(tmp_path):
    row = {
        "step": 3,
        "sample_idx": 0,
        "prompt_idx": 0,
        "prompt_tokens": [1, 2],
        "response_tokens": [3],
        "reward": 1.0,
        "advantage": 0.0,
        "finish_reason": "length",
    }
    path = jsonl(tmp_path / "run_rollouts_000000.jsonl", [row])
    with pytest.raises(KitError, match="token ids"):
        read_log(path)


@pytest.mark.slow  # imports transformers
def test_open_instruct_with_a_tokenizer(tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    transformers = pytest.importorskip("transformers")
    words = {"[UNK]": 0, "name": 1, "rivers": 2, "seine": 3}
    model = tokenizers.models.WordLevel(words, unk_token="[UNK]")
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizers.Tokenizer(model))
    fast.save_pretrained(str(tmp_path / "tok"))
    row = {
        "step": 3,
        "prompt_tokens": [1, 2],
        "response_tokens": [3],
        "reward": 1.0,
        "advantage": 0.0,
        "finish_reason": "length",
    }
    path = jsonl(tmp_path / "run_rollouts_000000.jsonl", [row])
    found = read_log(path, tokenizer=str(tmp_path / "tok"))
    assert found.answers[0].text == "seine" and found.answers[0].truncated
    assert next(iter(found.tasks.values())).prompt == "name rivers"


def test_from_a_log_to_judge_and_back_by_commands(tmp_path, capsys):
    log = jsonl(tmp_path / "results.jsonl", [{"prompt": PROMPT, "completion": SAID, "reward": 1.0}])
    rubric = tmp_path / "rubric.json"
    check = {"name": "contains", "any": ["Seine"]}
    rubric.write_text(json.dumps([{"text": "Names the Seine.", "weight": 2, "check": check}]))
    assert main(["logs", "read", str(log), "--rubric", str(rubric), "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    grades = str(tmp_path / "g.jsonl")
    judge = ["judge", made["tasks"], made["answers"], "--judge", "code", "--out", grades]
    assert main([*judge, "--ledger", str(tmp_path / "l.sqlite")]) == 0
    assert read_grades(grades)[0].score == 1.0
    out = tmp_path / "new.jsonl"
    assert main(["logs", "write", str(log), grades, "--out", str(out)]) == 0
    assert json.loads(out.read_text())["rubric_kit"] == 1.0
    assert main(["logs", "write", str(log), grades, "--out", str(log)]) == 2
    assert main(["logs", "reed", str(log)]) == 2
    assert "did you mean 'read'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("x.jsonl", '{"a": 1}\n', "no log of"),
        ("x.eval", "no zip", "cannot be unpacked"),
        ("x.json", '{"version": 2, "eval": {}, "samples": [}', "broken JSON"),
        ("x.json", '{"version": 2, "eval": {}}', "no samples"),
        ("y.jsonl", '{"prompt": "p", "completion": 3}\n', "completion is no text"),
    ],
)
def test_broken_logs_say_where(tmp_path, name, text, said):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(DataError, match=said):
        read_log(path)
