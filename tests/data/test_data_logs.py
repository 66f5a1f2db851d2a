"""Other tools' logs: read into tasks and answers, grades written back. The rows here are written
in these tools' own shapes (checked by hand on files that their repositories hold)."""

from __future__ import annotations

import json
import math
import struct
import zipfile
import zlib
from pathlib import Path

import pyarrow
import pytest

from kit.__main__ import main
from kit.data.logs import read_log, write_back
from kit.data.schemas import SCHEMAS
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
        for t, r in (p for p in found.places if not isinstance(p, str))
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
    assert write_back(path, graded(found, score=None), out)["graded"] == 1
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


def test_the_system_message_of_a_chat_is_kept(tmp_path):
    """With a chat for its input, what a solver's system message said was dropped."""
    path = tmp_path / "log.json"
    chat = [
        {"role": "user", "content": "Hi."},
        {"role": "assistant", "content": "Hi!"},
        {"role": "user", "content": "Name a river."},
    ]
    path.write_text(json.dumps({**LOG, "samples": [{**SAMPLE, "input": chat}]}))
    task = read_log(path).tasks["7"]
    assert (task.system, task.prompt) == ("Be short.", "Name a river.") and len(task.history) == 2
    own = [{"role": "system", "content": "Be long."}, *chat]
    path.write_text(json.dumps({**LOG, "samples": [{**SAMPLE, "input": own}]}))
    assert read_log(path).tasks["7"].system == "Be long."


def test_questions_on_two_pictures_are_two(tmp_path):
    """Pictures vanished: both prompts said "see ", and one had the other's verdict."""
    both = []
    for name in ("one", "two"):
        seen = [
            {"type": "text", "text": "see "},
            {"type": "image", "image": f"attachment://{name}"},
        ]
        both.append({**SAMPLE, "id": name, "input": [{"role": "user", "content": seen}]})
    path = tmp_path / "log.json"
    path.write_text(json.dumps({**LOG, "samples": both}))
    one, two = (t.prompt for t in read_log(path).tasks.values())
    assert one != two and one.startswith("see \n[image ") and one.endswith(", not shown]")


def packed(path, files, spoilt=""):
    """A zip in Zstandard, method 93, as inspect-ai writes it and Python 3.11 does not."""
    body, index = b"", b""
    for name, text in files.items():
        raw = text.encode()
        small = pyarrow.Codec("zstd").compress(raw, asbytes=True)
        crc = zlib.crc32(raw) ^ (name == spoilt)
        common = struct.pack("<HHHHHIII", 45, 0, 93, 0, 0, crc, len(small), len(raw))
        common += struct.pack("<HH", len(name), 0)
        index += b"PK\1\2" + struct.pack("<H", 45) + common
        index += struct.pack("<HHHII", 0, 0, 0, 0, len(body)) + name.encode()
        body += b"PK\3\4" + common + name.encode() + small
    end = struct.pack("<HHHHIIH", 0, 0, len(files), len(files), len(index), len(body), 0)
    path.write_bytes(body + index + b"PK\5\6" + end)


def test_an_eval_log_in_zstandard(tmp_path):
    """Every .eval log of today's inspect-ai was refused: "compression method is not supported"."""
    path, out = tmp_path / "log.eval", tmp_path / "new.eval"
    head = json.dumps({k: v for k, v in LOG.items() if k != "samples"})
    files = {"header.json": head, "samples/7_epoch_2.json": json.dumps(SAMPLE)}
    packed(path, files)
    found = read_log(path)
    assert found.answers[0].text == "The Seine." and not found.remarks
    assert write_back(path, graded(found), out)["graded"] == 1
    with zipfile.ZipFile(out) as z:
        assert json.loads(z.read("header.json"))["status"] == "success"
    packed(path, files, spoilt="header.json")
    with pytest.raises(DataError, match="header.json is damaged(.|\n)*--output-dir DIR FILE"):
        read_log(path)


def episode(*nodes, ok=True, **trace):
    """A line of verifiers' traces.jsonl: nodes as (parent, role, text, sampled)."""
    held = [
        {"parent": at, "message": {"role": role, "content": text}, "sampled": sampled}
        for at, role, text, sampled in nodes
    ]
    trace = {"nodes": held, "rewards": {"r": {"score": 0.5, "weight": 2.0}}, **trace}
    return {"id": "e", "task": {"type": "t", "data": {}}, "ok": ok, "traces": [trace]}


def test_the_traces_of_verifiers_04(tmp_path):
    """What verifiers writes since 0.4 was "no log of inspect, verifiers, trl, open-instruct"."""
    asked = ((None, "system", "Be short.", False), (0, "user", "Name a river.", False))
    said, other = (1, "assistant", "The Seine.", True), (1, "assistant", "The Oise.", True)
    rows = [
        episode(*asked, said, calls=[{"finish_reason": "length"}]),
        episode(*asked, said, other, metrics={"turns": 1.0}, stop_condition="agent_completed"),
        episode(*asked, ok=False),
        episode(*asked, calls=[{"finish_reason": "length", "error": {}}]),
    ]
    path, out = jsonl(tmp_path / "traces.jsonl", rows), tmp_path / "new.jsonl"
    found = read_log(path)
    (task,) = found.tasks.values()
    assert (found.kind, task.system, task.prompt) == ("verifiers", "Be short.", "Name a river.")
    assert [a.text for a in found.answers] == ["The Seine.", "The Oise."]
    assert [a.truncated for a in found.answers] == [True, False]
    assert found.answers[1].meta["scores"] == {"r": 1.0, "turns": 1.0}
    assert found.places[2:] == ["error", "no completion"]
    assert write_back(path, graded(found), out)["graded"] == 2
    back = [json.loads(line) for line in out.read_text().splitlines()]
    assert back[0] == {**rows[0], "rubric_kit": 0.5, "rubric_kit_low": 0.25, "rubric_kit_high": 1.0}
    two = {**rows[0], "traces": rows[0]["traces"] * 2}
    with pytest.raises(DataError, match="2 agents have an answer"):
        read_log(jsonl(path, [two]))


def test_what_a_log_says_beside_its_answers_is_kept_or_named(tmp_path, capsys):
    """Metadata, explanations, info and metrics were in no file, and nothing said so."""
    score = {"value": "C", "answer": "Seine", "explanation": "EXPL"}
    more = {"metadata": {"diff": "META"}, "scores": {"match": score}, "events": [{"event": "e"}]}
    (tmp_path / "a.json").write_text(json.dumps({**LOG, "samples": [{**SAMPLE, **more}]}))
    row = {"prompt": PROMPT, "completion": SAID, "task": "t", "reward": 1.0}
    row |= {"info": {"k": "INFO"}, "metrics": {"m": "METRIC"}, "mask": [1, 0]}
    jsonl(tmp_path / "results.jsonl", [row])
    said = (0, "assistant", "The Seine.", True)
    lines = [episode((None, "user", "Name a river.", False), said, info={"k": "TRACE"})]
    jsonl(tmp_path / "traces.jsonl", lines)
    for name, kept, named in (
        ("a.json", ("META", "EXPL"), "events"),
        ("results.jsonl", ("INFO", "METRIC"), "mask"),
        ("traces.jsonl", ("TRACE", '"type": "t"'), ""),
    ):
        assert main(["logs", "read", str(tmp_path / name), "--out", str(tmp_path / "o")]) == 0
        text = (tmp_path / "o.answers.jsonl").read_text()
        assert all(word in text for word in kept)
        printed = capsys.readouterr().out
        assert (f"only in the log: {named}" in printed) == bool(named)


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
    log = {"id": 0, "task": "default", "generation_ms": 5.0}
    assert meta == {"scores": {"reward": 1.0, "correct": 1.0}, "target": "Seine", "log": log}
    out = tmp_path / "back.jsonl"
    assert write_back(path, graded(found)[:3], out) == {"graded": 3, "without": 1, "unplaced": 0}
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
    assert [a.id[:4] for a in found.answers] == ["1-0-", "1-1-"]
    assert found.answers[0].meta["scores"] == {"reward_len": 0.5, "advantage": 1.0}
    assert write_back(path, graded(found), tmp_path / "back.jsonl")["graded"] == 2


@pytest.mark.parametrize(
    "shown",
    [
        "<|im_start|>system\nSYS<|im_end|>\n<|im_start|>user\nQ é<|im_end|>\n"
        "<|im_start|>assistant\n",
        "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nSYS<|eot_id|>"
        "<|start_header_id|>user<|end_header_id|>\n\nQ é<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\n",
        "<|system|>\nSYS\n<|user|>\nQ é\n<|assistant|>\n<think>\n",
    ],
)
def test_a_prompt_in_a_templates_marks_is_a_chat(tmp_path, shown):
    """Judges read the marks, and the system's words were the prompt's."""
    row = {"prompt": shown, "completion": "a", "step": 1, "advantage": 0.0}
    task = next(iter(read_log(jsonl(tmp_path / "c.jsonl", [row])).tasks.values()))
    assert (task.system, task.prompt) == ("SYS", "Q é")
    row["prompt"] = f"What does this say? {shown}"  # a quotation, no template's
    task = next(iter(read_log(jsonl(tmp_path / "c.jsonl", [row])).tasks.values()))
    assert task.prompt == row["prompt"]


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


def tokenizer(folder):
    """A tokenizer of a few words with an end mark, saved."""
    tokenizers = pytest.importorskip("tokenizers")
    transformers = pytest.importorskip("transformers")
    words = {"[UNK]": 0, "name": 1, "rivers": 2, "seine": 3, "<|end|>": 4}
    model = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="[UNK]"))
    model.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=model, eos_token="<|end|>", pad_token="<|end|>", unk_token="[UNK]"
    )
    fast.save_pretrained(str(folder))
    return fast


@pytest.mark.slow  # imports transformers
def test_open_instruct_with_a_tokenizer(tmp_path):
    """Every field that RolloutRecord of open-instruct (open_instruct/rl_utils.py, e6c3044a, August
    2026) writes with json.dumps of asdict; the answer kept its end mark, where it came from and the
    expected tokens were dropped."""
    tokenizer(tmp_path / "tok")
    calls = {"num_calls": 0, "timeouts": 0, "tool_errors": "", "tool_outputs": ""}
    calls |= {"tool_runtimes": 0.0, "tool_calleds": False, "tool_call_stats": []}
    row = {
        "step": 3,
        "sample_idx": 5,
        "prompt_idx": 1,
        "prompt_tokens": [1, 2],
        "response_tokens": [3, 4],
        "reward": 1.0,
        "advantage": math.nan,
        "finish_reason": "length",
        "dataset": "math",
        "ground_truth": [3],
        "request_info": {**calls, "rollout_state": {}},
        "logprobs": [-0.5, math.nan],
    }
    path = jsonl(tmp_path / "run_rollouts_000000.jsonl", [row, {**row, "prompt_tokens": [1]}])
    found = read_log(path, tokenizer=str(tmp_path / "tok"))
    answer = found.answers[0]
    assert answer.text == "seine" and answer.truncated and len(found.tasks) == 2
    assert next(iter(found.tasks.values())).prompt == "name rivers"
    assert answer.meta["target"] == [3] and answer.meta["dataset"] == "math"
    assert answer.meta["scores"]["reward"] == 1.0
    assert math.isnan(answer.meta["scores"]["advantage"])
    out = tmp_path / "back.jsonl"
    assert write_back(path, graded(found), out, tokenizer=str(tmp_path / "tok"))["graded"] == 2
    back = json.loads(out.read_text().splitlines()[0])
    assert back["rubric_kit"] == 0.5 and back["request_info"] == row["request_info"]


@pytest.mark.slow  # one step of a tiny random model
def test_the_file_that_trl_writes(tmp_path):
    """Not rows in its shape: what TRL's own trainer leaves with log_completions."""
    trl = pytest.importorskip("trl")
    datasets = pytest.importorskip("datasets")
    from transformers import LlamaConfig, LlamaForCausalLM

    words = tokenizer(tmp_path / "tok")
    sizes = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 2}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=5, eos_token_id=4, **sizes, **heads))
    args = trl.GRPOConfig(
        output_dir=str(tmp_path / "out"),
        log_completions=True,
        logging_steps=1,
        max_steps=1,
        num_generations=2,
        per_device_train_batch_size=4,
        max_completion_length=3,
        report_to="none",
        use_cpu=True,
        bf16=False,
        save_strategy="no",
    )

    def length(completions, log_extra, **_):
        log_extra("note", ["seen"] * len(completions))
        return [float(len(c)) for c in completions]

    rows = datasets.Dataset.from_list([{"prompt": "name rivers"}, {"prompt": "name seine"}])
    trl.GRPOTrainer(model, length, args=args, train_dataset=rows, processing_class=words).train()
    (path,) = (tmp_path / "out" / "completions").glob("completions_*.parquet")
    found = read_log(path)
    assert found.kind == "trl" and len(found.answers) == 4
    assert {t.prompt for t in found.tasks.values()} == {"name rivers", "name seine"}
    for answer in found.answers:
        assert answer.meta["scores"]["length"] == len(answer.text)
        assert "advantage" in answer.meta["scores"] and "step" not in answer.meta["scores"]
    assert write_back(path, graded(found), tmp_path / "back.jsonl")["graded"] == 4
    back = [json.loads(line) for line in (tmp_path / "back.jsonl").read_text().splitlines()]
    assert {r["note"] for r in back} == {"seen"} and all(r["rubric_kit"] == 0.5 for r in back)


def test_from_a_log_to_judge_and_back_by_commands(tmp_path, capsys):
    log = jsonl(tmp_path / "results.jsonl", [{"prompt": PROMPT, "completion": SAID, "reward": 1.0}])
    rubric = tmp_path / "rubric.json"
    check = {"name": "contains", "any": ["Seine"]}
    rubric.write_text(json.dumps([{"text": "Names the Seine.", "weight": 2, "check": check}]))
    assert main(["logs", "read", str(log), "--rubric", str(rubric), "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    for name in ("tasks", "answers"):  # the answers had no number of their form
        assert json.loads(Path(made[name]).read_text())["schema"] == SCHEMAS["record"]
    grades = str(tmp_path / "g.jsonl")
    judge = ["judge", made["tasks"], made["answers"], "--judge", "code", "--out", grades]
    assert main([*judge, "--ledger", str(tmp_path / "l.sqlite")]) == 0
    assert read_grades(grades)[0].score == 1.0
    out = tmp_path / "new.jsonl"
    assert main(["logs", "write", str(log), grades, "--out", str(out)]) == 0
    assert json.loads(out.read_text())["rubric_kit"] == 1.0
    assert main(["logs", "write", str(log), grades, "--out", str(log)]) == 2
    with pytest.raises(SystemExit, match="2"):
        main(["logs", "reed", str(log)])
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


@pytest.mark.parametrize("suffix", [".json", ".eval"])
def test_half_a_character_comes_back_as_it_was(tmp_path, suffix):
    """A traceback; what was left read as a whole log with three of five samples, or was empty."""
    half = "Seine \ud83d"
    sample = json.loads(json.dumps(SAMPLE).replace("The Seine.", half.replace("\ud83d", "\\ud83d")))
    path, out = tmp_path / f"log{suffix}", tmp_path / f"new{suffix}"
    if suffix == ".json":
        path.write_text(json.dumps({**LOG, "samples": [sample]}))
    else:
        with zipfile.ZipFile(path, "w") as z:
            z.writestr("samples/7_epoch_2.json", json.dumps(sample))
    found = read_log(path)
    assert found.answers[0].text == half and write_back(path, graded(found), out)["graded"] == 1
    assert read_log(out).answers[0].text == half


def test_a_log_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    """A cut zip stood under the name of the new log."""
    path, out = tmp_path / "log.eval", tmp_path / "new.eval"
    with zipfile.ZipFile(path, "w") as z:
        z.writestr("samples/7_epoch_2.json", json.dumps(SAMPLE))
    found = graded(read_log(path))

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(zipfile.ZipFile, "writestr", full)
    with pytest.raises(OSError, match=r"No space left on device.*new\.eval"):
        write_back(path, found, out)
    assert [p.name for p in tmp_path.iterdir()] == ["log.eval"]


@pytest.mark.parametrize(
    ("log", "out"),
    [("c.parquet", "w.parquet"), ("c.jsonl", "w.json"), ("i.json", "w.eval"), ("i.json", "w.pq")],
)
def test_an_ending_that_says_another_form_is_refused(tmp_path, log, out):
    """JSONL was written under the name W.parquet, which no reader of Parquet opens."""
    pd = pytest.importorskip("pandas")
    row = {"step": 1, "prompt": "Name a river.", "completion": "Seine", "advantage": 1.0}
    path = tmp_path / log
    if path.suffix == ".parquet":
        pd.DataFrame([row]).to_parquet(path)
    else:
        path.write_text(json.dumps(LOG if path.suffix == ".json" else row))
    with pytest.raises(KitError, match="this log comes back as"):
        write_back(path, graded(read_log(path)), tmp_path / out)
    assert not (tmp_path / out).exists()


def test_two_questions_of_one_id_are_refused(tmp_path):
    """Ids 1 and "1": the second answer stood at the first question."""
    path = tmp_path / "log.json"
    samples = [{**SAMPLE, "id": 1}, {**SAMPLE, "id": "1", "input": "Name a hill."}]
    path.write_text(json.dumps({**LOG, "samples": samples}))
    with pytest.raises(DataError, match="two questions have the id '1'"):
        read_log(path)


def failing(error=None, **more):
    """A sample of inspect-ai that failed: it has an output, and no choice in it."""
    return (
        {**SAMPLE, "id": "f", "output": {"model": "m", "choices": [], "completion": ""}}
        | ({"error": error} if error else {})
        | more
    )


@pytest.mark.parametrize("suffix", [".json", ".eval"])
def test_a_sample_that_failed_has_no_answer(tmp_path, suffix, capsys):
    """It became the answer "", was paid to the judge, and got a score of 0 into its log."""
    boom = {"message": "boom", "traceback": "", "traceback_ansi": ""}
    none = {k: v for k, v in SAMPLE.items() if k != "output"} | {"id": "n"}
    late = {**SAMPLE, "id": "late", "error": boom}  # half an answer is none
    samples = [failing(boom), SAMPLE, none, late]
    log, out = tmp_path / f"log{suffix}", tmp_path / f"new{suffix}"
    if suffix == ".json":
        log.write_text(json.dumps({**LOG, "status": "error", "samples": samples}))
    else:
        with zipfile.ZipFile(log, "w") as z:
            for s in samples:
                z.writestr(f"samples/{s['id']}_epoch_2.json", json.dumps(s))
            z.writestr("header.json", json.dumps({**LOG, "status": "error", "samples": None}))
    found = read_log(log)
    assert [a.task_id for a in found.answers] == ["7"] == list(found.tasks)
    assert found.places[0] == found.places[3] == "error" and found.places[2] == "no output"
    assert main(["logs", "read", str(log)]) == 0
    said = capsys.readouterr().out
    assert "3 rows have no answer and are left out: 2 error, 1 no output" in said
    assert "the log's own status is 'error'" in said
    assert write_back(log, graded(found), out) == {"graded": 1, "without": 3, "unplaced": 0}
    back = read_log(out).answers[0].meta["scores"]
    assert back == {"match": "C", "rubric-kit": 0.5}


def test_an_eval_without_a_header_never_ended(tmp_path):
    """A killed evaluation's log read as a whole one."""
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w") as z:
        z.writestr("samples/7_epoch_2.json", json.dumps(SAMPLE))
    assert read_log(path).status == "started"


def test_a_rollout_that_failed_has_no_answer(tmp_path):
    """verifiers' rows with an error, or with nothing said, became the answer ""."""
    row = {"prompt": PROMPT, "completion": SAID, "reward": 0.5}
    error = {"error": "ModelError", "error_chain_repr": "boom"}
    rows = [row | {"error": error, "completion": []}, row | {"error": error}, row | {"error": None}]
    rows += [row | {"completion": None}, row | {"completion": [PROMPT[1]]}]
    found = read_log(jsonl(tmp_path / "results.jsonl", rows))
    assert [a.text for a in found.answers] == ["The Seine."] and found.places[:2] == ["error"] * 2
    assert found.places[3:] == ["no completion"] * 2
    with pytest.raises(DataError, match="1 rows have no answer and are left out: 1 error"):
        read_log(jsonl(tmp_path / "r.jsonl", rows[:1]))


def test_what_an_agent_submits_is_its_answer(tmp_path):
    """inspect-ai's agents write it into the completion alone: the message before it was graded."""
    output = {**SAMPLE["output"], "completion": "The Seine.\n\nSeine"}
    path = tmp_path / "log.json"
    path.write_text(json.dumps({**LOG, "samples": [{**SAMPLE, "output": output}]}))
    assert read_log(path).answers[0].text == "The Seine.\n\nSeine"


@pytest.mark.parametrize(
    ("more", "cut"),
    [
        ({"is_truncated": True}, True),
        ({"is_truncated": False, "stop_condition": "max_turns_reached"}, False),
        ({"stop_condition": "timeout_reached"}, True),
        ({"finish_reason": "length"}, True),
    ],
)
def test_a_rollout_that_was_cut_says_so_in_several_fields(tmp_path, more, cut):
    """verifiers' own is_truncated was not read: a cut answer counted as a whole one."""
    path = jsonl(tmp_path / "r.jsonl", [{"prompt": PROMPT, "completion": SAID, **more}])
    assert read_log(path).answers[0].truncated is cut


@pytest.mark.parametrize("kind", ["token", "time", "operator"])
def test_a_sample_that_met_a_limit_was_cut(tmp_path, kind):
    """inspect-ai ends a sample at a limit, whatever the model's own stop reason was."""
    choice = {**SAMPLE["output"]["choices"][0], "stop_reason": "stop"}
    sample = {**SAMPLE, "output": {"choices": [choice]}}
    path = tmp_path / "log.json"
    for limit, cut in ((None, False), ({"type": kind, "limit": 5}, True)):
        path.write_text(json.dumps({**LOG, "samples": [{**sample, "limit": limit}]}))
        assert read_log(path).answers[0].truncated is cut


def test_a_grade_goes_to_the_text_that_was_graded(tmp_path, capsys):
    """Two rollouts changed places, one was said anew: each row got another text's score."""
    rows = [{"prompt": PROMPT, "completion": [{**SAID[0], "content": t}]} for t in "abcd"]
    log, out = jsonl(tmp_path / "r.jsonl", rows), tmp_path / "new.jsonl"
    grades = graded(read_log(log))
    rows[0]["completion"][0]["content"] = "CHANGED"
    jsonl(log, [rows[1], rows[0], *rows[2:]])
    assert write_back(log, grades, out) == {"graded": 2, "without": 2, "unplaced": 2}
    back = [json.loads(line)["rubric_kit"] for line in out.read_text().splitlines()]
    assert back == [None, None, 0.5, 0.5]
    lines = [{"score": 1.0, "score_low": 1.0, "score_high": 1.0, "verdicts": []} for _ in grades]
    ids = [{"task_id": g.task_id, "response_id": g.response_id} for g in grades]
    given = jsonl(tmp_path / "g.jsonl", [a | b for a, b in zip(ids, lines, strict=True)])
    assert main(["logs", "write", str(log), str(given), "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "2 rows have a grade, 2 have none" in said and "2 grades go nowhere" in said


def test_a_score_that_is_not_known_is_null(tmp_path):
    """NaN stood bare in the answers' file, which is no JSON."""
    row = {"step": 1, "prompt": "p", "completion": "c", "r": math.nan, "advantage": 0.0}
    log = jsonl(tmp_path / "t.jsonl", [row])
    assert main(["logs", "read", str(log)]) == 0
    (line,) = (tmp_path / "t.answers.jsonl").read_text().splitlines()
    assert json.loads(line, parse_constant=pytest.fail)["meta"]["scores"]["r"] is None


def test_a_sample_without_an_id_is_refused(tmp_path):
    """It became the task "None"."""
    path = tmp_path / "log.json"
    path.write_text(json.dumps({**LOG, "samples": [{**SAMPLE, "id": None}]}))
    with pytest.raises(DataError, match="the sample has no id") as e:
        read_log(path)
    assert "sample 1, field id" in str(e.value)
