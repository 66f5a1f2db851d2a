"""Exports: atomic, float32, offline; a GGUF answers as the adapter does, through the local server."""

from __future__ import annotations

import errno
import importlib.util
import json
import os
import shutil
import urllib.request

import pytest
from safetensors import SafetensorError

from kit.__main__ import main
from kit.errors import KitError, MissingError
from kit.records import Criterion, Task
from kit.system import paths
from kit.train import export, grpo
from kit.train.config import GRPOSettings, build
from kit.train.models import load
from kit.train.presets import preset
from kit.train.resume import save_adapter

C = (Criterion(id="c", text="x", check={"name": "contains", "any": list("abcdefghij")}),)
TASKS = [Task(id=f"t{i}", prompt=f"say {i}", criteria=C) for i in range(4)]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("export") / "run"
    return grpo.train(build(GRPOSettings, {**preset("test"), "lr": 1e-2}), TASKS, out=out).out


def logits(**changes):
    import torch

    model = load(build(GRPOSettings, {**preset("test"), **changes})).model.eval()
    with torch.no_grad():
        return model(input_ids=torch.tensor([[5, 6, 7, 8]])).logits.float()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_merged_model_answers_like_the_adapter(run, tmp_path, dtype):
    """Merging in bfloat16 rounds the update away; it is made in float32 whatever the machine likes."""
    import torch

    merged = export.merge("tiny-random", run / "adapter", tmp_path / "m")
    assert not list(tmp_path.glob("*.partial"))
    one, other = (
        logits(model=str(merged), dtype=dtype),
        logits(adapter=str(run / "adapter"), dtype=dtype),
    )
    near = 1e-5 if dtype == "float32" else 2e-2
    assert torch.allclose(one, other, atol=near)
    if dtype == "float32":
        assert not torch.allclose(one, logits(), atol=1e-5)


def test_the_command_exports(run, tmp_path, capsys):
    for to in ("adapter", "merged"):
        assert main(["export", str(run), "--to", to, "--out", str(tmp_path / to)]) == 0
    assert (tmp_path / "adapter" / "adapter_config.json").is_file()
    assert (tmp_path / "merged" / "config.json").is_file()
    assert main(["export", str(run), "--to", "merged", "--out", str(tmp_path / "merged")]) != 0
    assert "something already" in capsys.readouterr().err
    with pytest.raises(MissingError, match="record of a training is not there"):
        export.export(tmp_path, "gguf")


def test_an_adapter_is_merged_into_the_weights_that_it_was_trained_on(
    tmp_path, monkeypatch, capsys
):
    """`./mymodel` of another folder, or changed under its name, was merged into, with exit code 0."""
    import torch

    for place in ("a", "b"):
        (tmp_path / place).mkdir()
        monkeypatch.chdir(tmp_path / place)
        plain = load(build(GRPOSettings, preset("test")))
        model = plain.model.unload()
        torch.manual_seed(ord(place))
        for weight in model.parameters():
            weight.data.normal_(std=0.02)
        model.save_pretrained("mine")
        plain.tokenizer.save_pretrained("mine")
    monkeypatch.chdir(tmp_path / "a")
    settings = build(GRPOSettings, {**preset("test"), "model": "./mine"})
    done = str(grpo.train(settings, TASKS, out=tmp_path / "run").out)
    assert main(["export", done, "--to", "merged", "--out", str(tmp_path / "right")]) == 0
    for other in (tmp_path / "b", tmp_path):
        monkeypatch.chdir(other)
        capsys.readouterr()
        assert main(["export", done, "--to", "merged", "--out", str(tmp_path / "wrong")]) != 0
        assert "not those that the run was trained on" in capsys.readouterr().err
    assert main(["export", done, "--to", "adapter", "--out", str(tmp_path / "kept")]) == 0


CUT = {"settings.json": "record of a training", "metrics.json": "record of a training"}
CUT |= dict.fromkeys(("adapter_model.safetensors", "adapter_config.json"), "no whole adapter")


@pytest.mark.parametrize("keep", [0, 40, None])
@pytest.mark.parametrize("name", CUT)
def test_a_run_that_a_kill_cut_short_is_not_exported(run, tmp_path, name, keep):
    """JSONDecodeError and SafetensorError came raw; weights that were cut were exported, rc 0."""
    half = tmp_path / "half"
    shutil.copytree(run, half)
    (path,) = half.glob(f"**/{name}") if "adapter" not in name else [half / "adapter" / name]
    whole = path.read_bytes()
    path.unlink()
    if keep is not None:
        path.write_bytes(whole[:keep])
    with pytest.raises(KitError, match=CUT[name]):
        export.export(half, "adapter")
    assert not (half / "export").exists()


def full(*_, **__):
    raise SafetensorError(f"Error while serializing: I/O error: {os.strerror(errno.ENOSPC)}")


def test_a_full_disk_is_named_and_leaves_no_half_of_an_export(run, tmp_path, monkeypatch, capsys):
    """A raw SafetensorError, and m.partial stayed."""
    (tmp_path / "out").mkdir()
    monkeypatch.setattr("peft.tuners.lora.LoraModel.merge_and_unload", lambda self: FullModel())
    assert main(["export", str(run), "--to", "merged", "--out", str(tmp_path / "out" / "m")]) == 2
    said = capsys.readouterr().err
    assert "No space left" in said and "free some space" in said and str(tmp_path) in said
    assert not list((tmp_path / "out").iterdir())


class FullModel:
    def to(self, dtype):
        return self

    def save_pretrained(self, folder):
        os.mkdir(folder)
        full()


def test_bytes_that_numpy_could_not_write_are_a_full_disk(tmp_path):
    """ "1572864 requested and 687712 written", at an unknown file."""
    with pytest.raises(OSError, match="No space left") as e, paths.naming(tmp_path / "m.gguf"):
        raise OSError("1572864 requested and 687712 written")
    assert e.value.errno == errno.ENOSPC and e.value.filename == str(tmp_path / "m.gguf")


def test_a_kill_while_the_adapter_is_saved_leaves_none(tmp_path):
    """The folder adapter/ was written in place, and half of it looked finished."""

    class Killed(FullModel):
        def named_parameters(self):
            return []

        def save_pretrained(self, folder, **_):
            os.mkdir(folder)
            assert not (tmp_path / "adapter").exists()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        save_adapter(Killed(), None, tmp_path / "adapter")
    assert not list(tmp_path.iterdir())


def test_a_tokenizer_that_llama_cpp_cannot_read_is_refused(run, tmp_path):
    with pytest.raises(KitError, match="no merges"):
        export.export(run, "gguf", tmp_path / "x.gguf")
    assert not (tmp_path / "x.gguf").exists()


def test_other_shapes_are_refused(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "mamba"}))
    with pytest.raises(KitError, match="not 'mamba'"):
        export.write_gguf(tmp_path, tmp_path / "x.gguf")


def greedy(model, ids, n):
    import torch

    with torch.no_grad():
        for _ in range(n):
            ids = torch.cat([ids, model(input_ids=ids).logits[:, -1:].argmax(-1)], dim=1)
    return ids[0, -n:].tolist()


@pytest.mark.slow  # SmolLM2, trained and served
@pytest.mark.skipif(importlib.util.find_spec("xllamacpp") is None, reason="xllamacpp is missing")
def test_a_gguf_answers_like_the_adapter(tmp_path):
    """Greedy continuations of the server and of the model with its adapter, token by token."""
    import torch

    from kit.judge.server import LocalServer

    more = {"model": "SmolLM2-135M-Instruct", "max_answer_tokens": 4, "lr": 1e-3, "save_every": 0}
    values = {**preset("test"), **more}
    run = grpo.train(build(GRPOSettings, values), TASKS, out=tmp_path / "run").out
    path = export.export(run, "gguf", tmp_path / "m.gguf", kind="f32")
    loaded = load(build(GRPOSettings, {**values, "adapter": str(run / "adapter")}))
    text = "The capital of France is the city of 1789, and"
    ids = loaded.tokenizer(text, add_special_tokens=False)["input_ids"]
    wanted = greedy(loaded.model.eval(), torch.tensor([ids]), 12)
    with LocalServer(path, context=256) as server:
        body = {
            "prompt": text,
            "temperature": 0,
            "n_predict": 12,
            "max_tokens": 12,
            "ignore_eos": True,
        }
        request = urllib.request.Request(
            server.base_url + "/completions",
            json.dumps({"model": server.model, **body}).encode(),
            {"Authorization": f"Bearer {server.key}", "Content-Type": "application/json"},
        )
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        said = json.load(opener.open(request, timeout=60))
    assert said["usage"]["prompt_tokens"] == len(ids)
    assert said["choices"][0]["text"] == loaded.tokenizer.decode(wanted)


def test_an_adapter_of_another_model_is_told(run, tmp_path, caplog):
    """A chain's adapter went onto the plain base without a word; of another size: a traceback."""
    import torch

    merged = export.merge("tiny-random", run / "adapter", tmp_path / "sft" / "merged")
    again = {**preset("test"), "model": str(merged)}
    second = grpo.train(build(GRPOSettings, again), TASKS, out=tmp_path / "second").out / "adapter"
    caplog.clear()
    load(build(GRPOSettings, {**again, "adapter": str(second)}))
    assert not caplog.messages
    load(build(GRPOSettings, {**preset("test"), "adapter": str(second)}))
    assert f"was trained on {merged}, and the model is tiny-random" in caplog.text
    file = second / "adapter_model.safetensors"
    from safetensors.torch import load_file, save_file

    save_file(
        {k: torch.zeros(v.shape[0], v.shape[1] + 8) for k, v in load_file(file).items()}, file
    )
    with pytest.raises(KitError, match="does not fit the model"):
        load(build(GRPOSettings, {**again, "adapter": str(second)}))
