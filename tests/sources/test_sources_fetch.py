"""Pinned fetches: checksum first, offline clear, unpacking safe; and the real packages where they are cached."""

import hashlib
import io
import subprocess
import sys
import tarfile
import zipfile

import pytest

from kit.data import fetch, models, recorded
from kit.errors import DataError, MissingError


def wheel(folder, name="tiny_kit_test", version="1.0"):
    """A minimal wheel."""
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as z:
        z.writestr(f"{name}/model/data.txt", "hello")
        z.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        z.writestr(
            f"{info}/WHEEL",
            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        z.writestr(f"{info}/RECORD", "")
    return path


@pytest.fixture
def index(tmp_path, monkeypatch):
    """pip finds only what lies in a folder; the kit's cache is empty."""
    (tmp_path / "links").mkdir()
    monkeypatch.setenv("KIT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "links"))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.delenv("KIT_OFFLINE", raising=False)
    return tmp_path / "links"


def test_a_package_is_fetched_verified_cached_and_unpacked(index, monkeypatch, tmp_path):
    digest = hashlib.sha256(wheel(index).read_bytes()).hexdigest()
    path = fetch.package("tiny-kit-test", "1.0", sha256=digest)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == digest
    monkeypatch.setenv("KIT_OFFLINE", "1")
    assert fetch.package("tiny-kit-test", "1.0", sha256=digest) == path  # from the cache
    got = fetch.unpack(path, tmp_path / "out", members=["tiny_kit_test/model/data.txt"])
    assert got["tiny_kit_test/model/data.txt"].read_text() == "hello"
    path.write_bytes(b"tampered")
    with pytest.raises(MissingError, match="KIT_OFFLINE"):
        fetch.package("tiny-kit-test", "1.0", sha256=digest)


def test_another_checksum_is_refused_and_leaves_nothing(index, tmp_path):
    wheel(index)
    with pytest.raises(MissingError, match="another checksum"):
        fetch.package("tiny-kit-test", "1.0", sha256="0" * 64)
    folder = tmp_path / "home/downloads/tiny-kit-test-1.0-wheel"
    assert list(folder.iterdir()) == []


def test_an_absent_package_and_offline_are_clear_errors(index, monkeypatch):
    with pytest.raises(MissingError, match="could not fetch") as e:
        fetch.package("no-such-kit-package", "1.0", sha256="0" * 64)
    assert "kit fetch" in str(e.value)
    monkeypatch.setenv("KIT_OFFLINE", "1")
    for call in (recorded.load, models.smollm2_gguf):
        with pytest.raises(MissingError, match="KIT_OFFLINE"):
            call()


def test_unpacking_refuses_links_and_stays_in_its_folder(tmp_path):
    bad = tmp_path / "x-1.0.tar.gz"
    with tarfile.open(bad, "w:gz") as t:
        link = tarfile.TarInfo("x-1.0/link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        t.addfile(link)
        for name, body in (
            ("x-1.0/../../evil", b"e"),
            ("x-1.0/big", b"0" * 5000),
            ("x-1.0/ok", b"fine"),
        ):
            member = tarfile.TarInfo(name)
            member.size = len(body)
            t.addfile(member, io.BytesIO(body))
    out = tmp_path / "out"
    for name in ("*/link", "*/absent"):
        with pytest.raises(DataError):
            fetch.unpack(bad, out, members=[name])
    fetch.unpack(bad, out, members=["x-1.0/../../evil"])
    assert fetch.unpack(bad, out, members=["*/ok"])["*/ok"].read_bytes() == b"fine"
    assert not (tmp_path / "evil").exists()


def test_the_lock_keeps_a_second_process_out(tmp_path):
    code = (
        "import sys, time\nfrom pathlib import Path\nfrom kit.system.processes import alone\n"
        "p = Path(sys.argv[1] + '.log')\nwith alone(p.parent, 'l', lambda text: None):\n"
        "    with p.open('a') as f: f.write('in\\n')\n    time.sleep(0.3)\n    with p.open('a') as f: f.write('out\\n')\n"
    )
    both = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "l")]) for _ in range(2)]
    assert [p.wait(60) for p in both] == [0, 0]
    assert (tmp_path / "l.log").read_text().split() == ["in", "out", "in", "out"]


def cached(what):
    from kit.system import paths

    return {
        "recorded": paths.home() / "recorded" / f"flakyjudge-{recorded.SHA256[:12]}" / "complete",
        "smollm2": paths.home() / "models" / models.SMOLLM2 / models.MARK,
    }[what].is_file()


@pytest.mark.skipif(
    not cached("recorded"),
    reason="the recorded judges are not in the cache (python -m kit fetch recorded)",
)
def test_recorded_judges_are_whole():  # their kappas: tests/judges/test_judges_replay.py
    r = recorded.load()
    assert len(r.items) == 998 and len(r.paraphrases) == 6320 and len(r.judges) == 5
    assert r.reply("gpt-4o", "never asked") is None
    human = r.human_verdicts()
    assert sum(not v.known for v in human) == 2 and all(
        v.value is None or 0 <= v.value <= 1 for v in human
    )
    with pytest.raises(DataError, match="no recorded judge"):
        r.judge("gpt-9")


@pytest.mark.slow
@pytest.mark.skipif(
    not cached("smollm2"), reason="SmolLM2 is not in the cache (python -m kit fetch smollm2)"
)
def test_smollm2_stops():
    torch = pytest.importorskip("torch")
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = models.smollm2()
    tokenizer, model = (
        AutoTokenizer.from_pretrained(folder),
        AutoModelForCausalLM.from_pretrained(folder),
    )
    assert (
        tokenizer.eos_token_id,
        tokenizer.pad_token_id,
        tokenizer.padding_side,
        model.dtype,
    ) == (2, 0, "left", torch.float32)
    fed = tokenizer.apply_chat_template(
        [{"role": "user", "content": "What is the capital of France? Answer in one sentence."}],
        add_generation_prompt=True,
        return_tensors="pt",
        return_dict=True,
    )
    out = model.generate(**fed, max_new_tokens=60, do_sample=False)[0][fed["input_ids"].shape[1] :]
    assert out[-1] == 2 and len(out) < 60 and "Paris" in tokenizer.decode(out)
    text = "Hello 12345 ▁x  é\n"
    assert tokenizer.decode(tokenizer(text).input_ids) == text
