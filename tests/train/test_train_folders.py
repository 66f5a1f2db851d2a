"""What lies in a run's folder: one run of one kind, numbers that a second look leaves alone, and
names that hold where a chain is moved.
"""

from __future__ import annotations

import json
import logging

import pytest

from kit.errors import KitError
from kit.records import Criterion, Task
from kit.train import export, grpo, line, rollouts, stages
from kit.train.config import DPOSettings, GRPOSettings, SFTSettings, build
from kit.train.presets import preset

ROWS = [{"prompt": f"say {i}", "response": "aaaa eee"} for i in range(6)]
PAIRS = [{"prompt": f"say {i}", "chosen": "aaaa", "rejected": "zzzz"} for i in range(4)]
CODE = Criterion(id="c1", text="Contains an a.", check={"name": "contains", "any": ["a", "e", "i"]})
TASKS = tuple(Task(id=f"t{i}", prompt=f"say {i}", criteria=(CODE,)) for i in range(4))


def sft(out, **more):
    return stages.train(build(SFTSettings, {**preset("test", "sft"), **more}), ROWS, out=out)


def one(out):
    return grpo.train(build(GRPOSettings, preset("test")), TASKS, out=out)


def chain(out):
    made = (build(SFTSettings, preset("test", "sft")), build(DPOSettings, preset("test", "dpo")))
    return line.Chain(
        stages=tuple(line.Stage(name=s.stage, settings=s) for s in made),
        out=out,
        rows=ROWS,
        pairs=PAIRS,
    )


def begin(kind, out):
    if kind == "chain":
        return line.run(chain(out))
    return sft(out) if kind == "sft" else one(out)


@pytest.fixture(scope="module")
def left(tmp_path_factory):
    """A finished run of each kind."""
    root = tmp_path_factory.mktemp("left")
    for kind in ("sft", "grpo", "chain"):
        begin(kind, root / kind)
    return root


def held(folder):
    return {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize(
    ("there", "new"),
    [("sft", "grpo"), ("sft", "chain"), ("grpo", "sft"), ("chain", "grpo"), ("chain", "sft")],
)
def test_a_run_in_the_folder_of_another_kind_of_run_is_refused(left, there, new):
    """A stage begun in a finished chain's folder wrote over its table, with exit code 0."""
    before = held(left / there)
    with pytest.raises(KitError, match="already holds a run"):
        begin(new, left / there)
    assert held(left / there) == before


def test_the_export_of_a_chain_says_to_name_a_stage(left):
    """It was a traceback: KeyError 'seconds_training'."""
    with pytest.raises(KitError, match="folder of a chain") as e:
        export.export(left / "chain", "adapter")
    assert "1_sft, 2_dpo" in str(e.value)


def test_an_export_elsewhere_leaves_the_run_as_it_was(left, tmp_path):
    """It wrote a README into the run first, so that an archived one could not be exported."""
    before = held(left / "grpo")
    card = export.export(left / "grpo", "adapter", tmp_path / "adapter") / "README.md"
    assert held(left / "grpo") == before
    assert "seconds of training" in card.read_text("utf-8")


@pytest.mark.parametrize("kind", ["sft", "grpo"])
def test_going_on_with_a_finished_run_keeps_its_recorded_seconds(left, kind):
    """`--resume` of a run that was over wrote the seconds of its own second into metrics.json."""
    path = left / kind / "metrics.json"
    noted = json.loads(path.read_text("utf-8"))
    noted |= {k: 1234.5 for k in noted if k in ("seconds_training", "seconds_total")}
    path.write_text(json.dumps(noted), "utf-8")
    if kind == "sft":
        s = build(SFTSettings, preset("test", "sft"))
        result = stages.train(s, ROWS, out=left / kind, resume=True)
    else:
        s = build(GRPOSettings, preset("test"))
        result = grpo.train(s, TASKS, out=left / kind, resume=True)
    assert json.loads(path.read_text("utf-8")) == noted == result.metrics


def test_the_seconds_of_a_resumed_sft_count_every_process(tmp_path):
    """Killed at step 43 of 60 and resumed, an SFT run said 36 s: those of the last process."""

    class Killed(Exception):
        pass

    def kill(row):
        if row["step"] == 3:
            raise Killed

    s = build(SFTSettings, {**preset("test", "sft"), "steps": 5, "save_every": 2})
    with pytest.raises(Killed):
        stages.train(s, ROWS, out=tmp_path, on_step=kill)
    log = tmp_path / rollouts.STEPS
    rows = [json.loads(x) | {"seconds": 1000.0} for x in log.read_text("utf-8").splitlines()]
    log.write_text("".join(json.dumps(r) + "\n" for r in rows), "utf-8")
    result = stages.train(s, ROWS, out=tmp_path, resume=True)
    assert [r["step"] for r in result.steps()] == [1, 2, 3, 4, 5]
    assert 2000 < result.metrics["seconds_training"] < 2900, "two steps were kept, the third redone"


def test_a_half_done_chain_goes_on_where_it_was_moved_to(tmp_path):
    """A renamed chain was refused ("another model"): its own folder's name had changed."""
    old, new = tmp_path / "old", tmp_path / "new"
    line.run(chain(old))
    last = old / "2_dpo"
    (last / "merged" / "config.json").unlink()
    (last / "adapter" / "adapter_config.json").unlink()
    old.rename(new)
    assert set(line.run(chain(new)).metrics) == {"sft", "dpo"}
    assert (new / "2_dpo" / "merged" / "config.json").exists()
    assert json.loads((new / "2_dpo" / "settings.json").read_text())["settings"]["model"] == (
        "../1_sft/merged"
    )
    merged = export.export(new / "2_dpo", "merged", tmp_path / "m")
    assert (merged / "config.json").exists()


def test_texts_in_an_instruction_layout_teach_the_chat_that_is_asked_later(tmp_path, caplog):
    """{text} rows of SFT were taught in their own layout, which DPO, GRPO and every evaluation
    never ask in: NLL of the taught answers .416 in the chat layout, .046 as prompt and response.
    """
    file = tmp_path / "rows.jsonl"
    rows = [f"### Instruction:\nSay {i}.\n\n### Response:\n{i}" for i in range(3)]
    file.write_text("".join(json.dumps({"text": t}) + "\n" for t in rows), "utf-8")
    found = stages.of_file(file, "sft")
    assert [(r["prompt"], r["response"]) for r in found] == [
        (f"Say {i}.", f"{i}") for i in range(3)
    ]
    settings = build(SFTSettings, preset("test", "sft"))
    with caplog.at_level(logging.WARNING):
        asked = stages.learned(settings, found)[0]
    assert asked["prompt"] == [{"role": "user", "content": "Say 0."}] and not caplog.records
    with caplog.at_level(logging.WARNING):
        stages.learned(settings, [{"text": "Once upon a time."}])
    assert "learned whole" in caplog.text
