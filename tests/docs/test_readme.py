"""The README and the walk-through: their size, their links, and their blocks, which are run."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kit import cli
from kit.system import paths

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text("utf-8")
WALK = (ROOT / "notebooks" / "WALKTHROUGH.md").read_text("utf-8")
BLOCK = re.compile(r"^```(\w+)( fails)?\n(.*?)^```", re.M | re.S)
NEED_RECORDED = pytest.mark.skipif(
    not any((paths.home() / "recorded").glob("*")), reason="needs the download `recorded`"
)
# Lines that are not run, and why.
SKIPPED = {
    "git clone": "needs the network",
    "make ": "installs packages or runs for minutes; the targets have tests of their own",
    "endpoint:": "stands for a server of the reader; a test of `kit answer` and `kit compare` has one",
    "--set model=my-folder": "my-folder stands for a model of the reader",
    "kit train": "the config is read instead: training needs a download and minutes",
}


def blocks(text, kind):
    """(code, it should fail) of each block of a kind, without comments at the ends of lines."""
    return [(code, bool(fails)) for name, fails, code in BLOCK.findall(text) if name == kind]


def run(line):
    """(exit code, what it printed) of a `kit` line, in this process."""
    words = shlex.split(line.removeprefix("python -m ").partition("  #")[0])
    assert words.pop(0) == "kit"
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        code = cli.main(words)
    return code, out.getvalue()


def fake_server(*reply):
    """The fake judge of tests/judging, loaded by its path: the folders of tests are no packages."""
    import importlib.util

    path = ROOT / "tests" / "judging" / "fake_server.py"
    spec = importlib.util.spec_from_file_location("fake_server_of_docs", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.FakeServer(*reply)


def test_the_readme_says_where_training_in_4_bits_is_measured():
    check = json.loads((ROOT / "data" / "gpu_check.json").read_text("utf-8"))
    is_cpu = check["machine"]["kind"] == "cpu"
    assert ("are tested on CPUs only" in README) == is_cpu
    # a file with a failed part would be shown as if it were whole
    parts = {k: v for k, v in check.items() if isinstance(v, dict)}
    assert len(parts) == 8 and not [k for k, v in parts.items() if "error" in v]
    assert check["resume"]["equal"]


def test_caps_of_the_readme():
    assert len(README.encode()) <= 8000 and len(README.split()) <= 1100
    assert len(WALK.encode()) <= 8192
    prose = BLOCK.sub("", README)
    paragraphs = [p for p in re.split(r"\n\s*\n|\n(?=- )", prose) if not p.startswith("|")]
    assert max(len(p.split()) for p in paragraphs) <= 45


@pytest.mark.parametrize(("text", "folder"), [(README, ROOT), (WALK, ROOT / "notebooks")])
def test_sentences_are_short_and_links_lead_somewhere(text, folder):
    prose = re.sub(r"^\|.*$|^#.*$|^\[\w+\]: .*$|`[^`\n]*`", "x.", BLOCK.sub("", text), flags=re.M)
    sentences = re.split(r"[.?!:](?=\s|$|\*)|\n\s*\n|\n- ", prose)
    assert [s for s in sentences if len(s.split()) > 20] == []
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert [x for x in links if not x.startswith("https://") and not (folder / x).exists()] == []


@NEED_RECORDED
def test_the_example_prints_what_the_readme_says(monkeypatch):
    monkeypatch.chdir(ROOT)
    (example, _), *_ = blocks(README, "python")
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(example, "README.md", "exec"), {})
    assert out.getvalue() == blocks(README, "text")[0][0]


def test_the_other_python_and_bash_blocks_of_the_readme_run(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    for code, _ in blocks(README, "python")[1:]:
        exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out == blocks(README, "text")[1][0]
    lines = [line for code, _ in blocks(README, "bash") for line in code.splitlines()]
    for line in lines:
        if not any(mark in line for mark in SKIPPED):
            assert run(line)[0] == 0, line


def test_commands_of_the_readme_exist():
    spans = re.findall(r"`([^`\n]+)`", README)
    commands = {m[1] for span in spans if (m := re.match(r"(?:python -m )?kit ([a-z]+)", span))}
    assert commands and commands <= {
        f.__name__ for step in cli.commands.STEPS.values() for f in step
    }
    targets = re.findall(r"^make (\w[\w-]*)", "\n".join(c for c, _ in blocks(README, "bash")), re.M)
    assert all(re.search(rf"^{t}:", (ROOT / "Makefile").read_text(), re.M) for t in targets)


def test_the_walkthrough_runs_with_a_server(tmp_path, monkeypatch):
    """Every command in order; a fake server stands for the judge, since `small` is a download of 1.1 GB."""
    monkeypatch.setenv("KIT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("KIT_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    shutil.copytree(ROOT / "data" / "walkthrough", tmp_path / "my-files")
    monkeypatch.chdir(tmp_path / "my-files")
    (config, _), *_ = blocks(WALK, "yaml")
    Path("grpo.yaml").write_text(config)
    outputs = {}
    with fake_server() as server:
        judge = f"--judge endpoint --model fake --base-url {server.url}"
        for text, fails in blocks(WALK, "bash"):
            for line in text.splitlines():
                if line.startswith(("cp ", "cd ")) or any(mark in line for mark in SKIPPED):
                    continue
                if not line.startswith("kit "):  # the edit of a rubric
                    subprocess.run(line, shell=True, check=True)
                    continue
                line = line.replace("--judge small", judge)
                line = line.replace("http://127.0.0.1:8000/v1", server.url)
                code, outputs[line] = run(line)
                assert (code != 0) == fails, (line, outputs[line])
    printed = "\n".join(outputs.values())
    for sentence in (
        "--map desc=text", "opening / sunday", "0 of 13 criteria faulty", "12 answers", "26 verdicts",
        "kappa", "no search and no sealed test", "tuned.txt", "26 verdicts from the ledger",
    ):  # fmt: skip
        assert sentence in printed, sentence


def test_the_config_of_the_walkthrough_is_read(tmp_path):
    """In a process of its own: `python -m kit train` reads the config before it needs a model."""
    (config, _), *_ = blocks(WALK, "yaml")
    (tmp_path / "grpo.yaml").write_text(config.replace("steps: 5", "stepz: 5"))
    line = [sys.executable, "-m", "kit", "train", "grpo.yaml"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(line, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "stepz" in done.stderr and "steps" in done.stderr
