"""Pinned downloads: the checksum counts, an offline machine gets a clear error; the recorded judges are whole."""

import hashlib
import zipfile

import numpy as np
import pytest

from kit import Response
from kit.data import fetch, judge_model, recorded_judges, small_model
from kit.errors import DataError, MissingError
from kit.system import downloads, paths

KAPPA = {  # the published agreement with people, score and mean label >= 3: bare, parity
    "gpt-4o": (0.525, 0.504),
    "claude-sonnet": (0.506, 0.545),
    "gpt-4o-mini": (0.465, 0.491),
    "claude-haiku": (0.412, 0.405),
    "llama-8b": (0.027, 0.055),
}


def is_cached(*parts):
    return paths.home().joinpath(*parts).exists()


needs_recordings = pytest.mark.skipif(
    not is_cached("recorded", "flakyjudge-f7e139a4df44", "complete"),
    reason="the recordings are not in the cache: python -m kit fetch recorded",
)


@pytest.fixture
def wheel(tmp_path, monkeypatch):
    """A minimal wheel in a folder that is all pip sees; the kit's cache is empty."""
    links = tmp_path / "links"
    links.mkdir()
    for name, value in {
        "KIT_HOME": tmp_path / "home",
        "PIP_NO_INDEX": 1,
        "PIP_FIND_LINKS": links,
    }.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.delenv("KIT_OFFLINE", raising=False)
    path = links / "tiny_kit_test-1.0-py3-none-any.whl"
    info = "tiny_kit_test-1.0.dist-info"
    tag = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    with zipfile.ZipFile(path, "w") as z:
        z.writestr("tiny_kit_test/model/data.txt", "hello")
        z.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny_kit_test\nVersion: 1.0\n")
        z.writestr(f"{info}/WHEEL", tag)
        z.writestr(f"{info}/RECORD", "")
    return path


def test_a_package_is_fetched_verified_and_cached(wheel, monkeypatch, tmp_path):
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    path = downloads.fetch_package("tiny-kit-test", "1.0", sha256=digest)
    monkeypatch.setenv("KIT_OFFLINE", "1")
    assert downloads.fetch_package("tiny-kit-test", "1.0", sha256=digest) == path
    downloads.unpack_files(path, tmp_path, "data.txt")
    assert (tmp_path / "data.txt").read_text() == "hello"
    path.write_bytes(b"changed")
    with pytest.raises(MissingError, match="KIT_OFFLINE"):
        downloads.fetch_package("tiny-kit-test", "1.0", sha256=digest)


def test_another_checksum_and_an_absent_package_are_refused(wheel):
    for name in ("tiny-kit-test", "no-such-kit-package"):
        with pytest.raises(MissingError, match="pinned checksum"):
            downloads.fetch_package(name, "1.0", sha256="0" * 64)
    assert not list((paths.home() / "downloads").glob("*/*.whl"))


def test_a_half_built_folder_is_never_there(tmp_path):
    folder, mark = tmp_path / "models/m", ("mark", "1")

    def broken(part):
        (part / "half").write_text("x")
        raise OSError

    with pytest.raises(OSError):
        downloads.build_folder(folder, mark, broken)
    assert not folder.exists()
    calls = []
    for _ in range(2):
        downloads.build_folder(folder, mark, calls.append)
    assert len(calls) == 1
    downloads.build_folder(folder, ("mark", "2"), calls.append)
    assert len(calls) == 2


def test_offline_without_a_cache_is_a_clear_error(tmp_path, monkeypatch):
    monkeypatch.setenv("KIT_HOME", str(tmp_path))
    monkeypatch.setenv("KIT_OFFLINE", "1")
    for call in (recorded_judges, small_model, judge_model, lambda: fetch("judge")):
        with pytest.raises(MissingError, match=r"fetch"):
            call()
    with pytest.raises(DataError, match="recorded"):
        fetch("record")


@needs_recordings
def test_the_recordings_are_whole():
    judges = recorded_judges()
    s = judges.taskset()
    assert len(s) == 998 == len(s.responses) and len({t.group for t in s}) < 998
    assert sum(not v.is_known for v in s.verdicts) == 2 and all(
        v.judge.startswith("human:") for v in s.verdicts
    )
    assert judges.reply("gpt-4o", "never sent") is None
    with pytest.raises(DataError, match="gpt"):
        judges.judge("gpt-9")


@needs_recordings
@pytest.mark.parametrize("judge", KAPPA)
def test_kappas_with_people_are_the_published_ones(judge):
    """The published numbers count two items without a label (-1) as below 3; without them kappa moves by < .005."""
    from sklearn.metrics import cohen_kappa_score

    judges = recorded_judges()
    for expected, parity in zip(KAPPA[judge], (False, True), strict=True):
        pairs = []
        for item in judges.items.values():
            prompt = f"Query: {item['query']}\n\nResponse: {item['response']}\n\nUnit Test: {item['natural_unit_test']}"
            if parity:
                prompt += (
                    f"\n\nRubric: {item['rubric']}\n\nReference Answer: {item['reference_answer']}"
                )
            reply = judges.reply(judge, prompt)
            digits = [c for c in reply.text if c in "12345"]
            if digits:
                pairs.append((int(digits[0]) >= 3, item["label"] >= 3))
        assert len(pairs) > 900
        assert cohen_kappa_score(*np.array(pairs).T) == pytest.approx(expected, abs=0.001)


@pytest.mark.skipif(
    not is_cached("models", "SmolLM2-135M-Instruct"),
    reason="SmolLM2 is not in the cache: python -m kit fetch small",
)
def test_the_small_model_stops():
    transformers = pytest.importorskip("transformers")
    tokenizer = transformers.AutoTokenizer.from_pretrained(small_model())
    ids = (tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id)
    assert ids == (1, 2, 0) and tokenizer.padding_side == "left"
    chat = tokenizer.apply_chat_template(
        [{"role": "user", "content": "Hi"}], tokenize=False, add_generation_prompt=True
    )
    assert chat.endswith("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n")
    assert tokenizer.decode(tokenizer("12 é")["input_ids"]) == "12 é" and Response
