"""unsloth on a CPU: its own mode, and with the trainers that it writes for a GPU.

These tests need `make setup-gpu`: run them by `make test-gpu-paths`.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from training_cases import farthest, tasks, texts_of

import kit.training as training
from kit.errors import DataError

pytest.importorskip("bitsandbytes")
if importlib.util.find_spec("unsloth") is None:
    pytest.skip("unsloth is not installed: make setup-gpu", allow_module_level=True)
pytestmark = [pytest.mark.slow, pytest.mark.gpu_paths]
HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A Llama of width 64 as a folder: unsloth loads no model from memory."""
    from transformers import LlamaConfig, LlamaForCausalLM

    path = tmp_path_factory.mktemp("model")
    config = training.tiny_model().config.to_dict()
    config |= {"hidden_size": 64, "intermediate_size": 128, "max_position_embeddings": 8192}
    LlamaForCausalLM(LlamaConfig(**{**config, "head_dim": 16})).save_pretrained(path)
    training.tiny_tokenizer().save_pretrained(path)
    return str(path)


def run(mode, folder, out, **values):
    """The exit code and the output of unsloth_run.py."""
    script = str(HERE / "unsloth_run.py")
    command = [sys.executable, script, mode, folder, str(out), json.dumps(values)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("mode", "values"),
    [
        ("plain", {"stage": "sft"}),
        ("patched", {"stage": "dpo", "beta": 0.1}),
        ("patched", {"beta": 0.0, "quantize": "nf4"}),
        ("patched", {"beta": 0.1, "quantize": "nf4"}),
    ],
)
def test_a_killed_run_of_unsloth_goes_on_as_if_it_had_not_been(tmp_path, folder, mode, values):
    code, text = run(mode, folder, tmp_path / "whole", **values)
    assert code == 0, text
    # the kit's own schedule: unsloth's begins with a step of rate 0
    assert "step 1 rate 0.01" in text
    assert re.search(r"optimiser \S*adamw_torch_fused decay 0.0 warm-up 0", text, re.I), text
    assert ("UnslothGRPOTrainer" in text) == (mode == "patched")
    code, text = run(mode, folder, tmp_path / "parts", stop=3, **values)
    assert code == -9, text
    code, text = run(mode, folder, tmp_path / "parts", **values)
    assert code == 0 and "step 4" in text and "step 1 " not in text, text
    whole, parts = (training.Result.read(tmp_path / name) for name in ("whole", "parts"))
    assert farthest(whole.adapter, parts.adapter) < 1e-6
    assert whole.steps()["loss"].tolist() == pytest.approx(parts.steps()["loss"].tolist(), abs=1e-6)
    # what others do with a run
    assert texts_of(whole.folder, tasks()[4:]) == [r.text for r in whole.after.responses]
    assert (training.export(whole.folder, "merged") / "config.json").exists()


def test_an_evaluation_while_unsloth_trains_measures_the_model_as_it_is(tmp_path, folder):
    values = {"lr": 1e-9, "eval_every": 1, "steps": 3, "save_every": 0}
    code, text = run("patched", folder, tmp_path / "r", **values)
    assert code == 0, text
    files = sorted((tmp_path / "r").glob("eval_*.json"))
    texts = [[r["text"] for r in json.loads(f.read_text())["responses"]] for f in files]
    assert len(texts) == 4 and all(t == texts[0] for t in texts)


@pytest.mark.parametrize("config", ["instructions", "rlvr", "refiner", "biorlhf"])
def test_every_shipped_config_makes_a_step_with_its_options_for_a_t4(tmp_path, folder, config):
    values = {"config": config, "steps": 1, "max_answer_tokens": 8, "max_prompt_tokens": 6000}
    values |= {"eval_samples": 1, "save_every": 0, "forecast": False, "options": {}}
    # On a CPU unsloth's trainer computes in float16 beside weights in bfloat16, which no T4 has.
    values |= {"group_size": 4, "prompts_per_step": 1, "dtype": "float32"}
    code, text = run("patched", folder, tmp_path / "r", **values, judge="code")
    assert code == 0 and "step 1" in text, text


def test_unsloth_after_trl_is_refused():
    if "unsloth" in sys.modules:
        pytest.skip("unsloth is imported")
    import trl  # noqa: F401

    with pytest.raises(DataError, match="imported before unsloth"):
        training.build({"engine": "unsloth"}, profile="t4")


@pytest.mark.parametrize("package", ["unsloth", "unsloth_zoo", "trl", "peft"])
def test_the_pins_are_within_what_the_packages_ask_for(package):
    """One exception is the reason why unsloth goes in without its dependencies: it asks for a certifi of tomorrow."""
    from packaging.requirements import Requirement

    text = (HERE.parents[1] / "constraints.txt").read_text("utf-8")
    pins = dict(re.findall(r"^([\w.-]+)==([^\s;]+)", text, re.M))
    pins = {name.lower().replace("_", "-"): version for name, version in pins.items()}
    wrong = []
    for line in importlib.metadata.requires(package) or ():
        need = Requirement(line)
        pin = pins.get(need.name.lower().replace("_", "-"))
        applies = need.marker is None or need.marker.evaluate({"extra": ""})
        if applies and pin and need.name != "certifi" and not need.specifier.contains(pin):
            wrong.append(f"{line}: pinned {pin}")
    assert not wrong
