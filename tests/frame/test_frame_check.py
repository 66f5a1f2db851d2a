"""`kit check`: fast where there is no GPU, and honest about what only a GPU needs."""

from __future__ import annotations

import json
import subprocess
import sys

from kit.cli import check
from kit.colab import has_gpu


def test_check_loads_no_torch_where_no_gpu_is_seen() -> None:
    """It took 20 s on a busy machine, nearly all of it for importing torch."""
    code = (
        "import sys; from kit.__main__ import main; main(['check', '--json'])\n"
        "sys.stderr.write(str('torch' in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    device = next(r for r in json.loads(done.stdout) if r["name"] == "device")
    assert device["status"] == "ok" and device["says"]
    assert done.stderr.endswith(str(has_gpu()))


def test_what_only_a_gpu_needs_is_no_warning_without_one(monkeypatch) -> None:
    from kit import runs

    monkeypatch.setattr(runs, "versions", lambda: {"unsloth": "not installed", "numpy": "1.0"})
    monkeypatch.setattr(check, "has_gpu", lambda: False)
    (unsloth, numpy) = check.packages()
    assert unsloth["status"] == "ok" and "make setup-gpu" in unsloth["says"]
    assert numpy["status"] == "warn"
    monkeypatch.setattr(check, "has_gpu", lambda: True)
    assert check.packages()[0]["status"] == "warn"
    monkeypatch.setattr(runs, "versions", lambda: {"numpy": "not installed"})
    assert check.packages()[0]["status"] == "fail"
