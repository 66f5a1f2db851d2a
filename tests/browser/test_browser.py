"""A smoke test in a real Chromium: the report, the notebooks as GitHub shows them, and their widgets in JupyterLab."""

from __future__ import annotations

import importlib.util
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pytest

import kit
from kit import runs
from kit.people import Labeller
from kit.stats import Estimate
from kit.system import paths

ROOT = Path(__file__).resolve().parents[2]
BOOKS = sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))
ARTEFACTS = ROOT / "test-artifacts"
# What a page may complain of without being broken.
HARMLESS = (
    "favicon",
    "ResizeObserver",
    "deprecated",
    "DevTools",
    "INTERNET_DISCONNECTED",
    "Failed to load",
    "Manifest",
)
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A headless Chromium: KIT_CHROMIUM, else the first one on the path."""
    names = ("chromium", "chromium-browser", "google-chrome")
    path = os.environ.get("KIT_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if path is None:
        pytest.skip("no Chromium on this machine; install one or set KIT_CHROMIUM")
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with api.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


class Tab:
    """A page without a network beyond this machine, and what its console complained of."""

    def __init__(self, browser: Any, width: int, scheme: str):
        self.context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme
        )
        self.context.route(
            lambda url: not url.startswith(("file:", "data:", "blob:", "http://127.0.0.1")),
            self.refuse,
        )
        self.errors: list[str] = []
        self.page = self.context.new_page()
        self.page.on("console", lambda m: self.note(m.text) if m.type == "error" else None)
        self.page.on("pageerror", lambda e: self.note(str(e)))

    def refuse(self, route: Any) -> None:
        route.abort()

    def note(self, text: str) -> None:
        if not any(word in text for word in HARMLESS):
            self.errors.append(text)

    def shot(self, name: str) -> None:
        ARTEFACTS.mkdir(exist_ok=True)
        self.page.screenshot(path=str(ARTEFACTS / f"{name}.png"), full_page=True)


@pytest.fixture
def tab(chromium: Any) -> Iterator[Any]:
    """Makes tabs of a width in CSS pixels, light or dark."""
    tabs: list[Tab] = []

    def make(width: int = 1280, scheme: str = "light") -> Tab:
        tabs.append(Tab(chromium, width, scheme))
        return tabs[-1]

    yield make
    for t in tabs:
        t.context.close()


QUESTIONS = [f"Is answer {n} right?" for n in range(6)]


def make_demo(result: Any) -> Path:
    """A report as large as that of the demo: six notebooks, each with figures, tables and a dozen numbers."""
    import plotly.express as px

    for number, question in enumerate(QUESTIONS):
        for seed in range(3):
            session = kit.start(f"0{number}_book", {"profile": "test", "seed": seed})
            gain = Estimate(0.1 + seed / 50, 0.05, 0.2, n=200, scale=1.0)
            session.keep("gain", gain, question)
            session.keep("words", "It is, as far as this run can tell.", question)
            session.keep(
                "level", {f"kind {k}": Estimate(k / 9, k / 9 - 0.1, k / 9 + 0.1) for k in range(6)}
            )
            session.keep("curve", px.line(y=[1, 3, 2], title="A curve"))
            session.keep(
                "risk",
                kit.risk_coverage([k / 999 for k in range(999)], [k % 3 > 0 for k in range(999)]),
            )
            session.keep("reliability", result)
            session.keep("rows", [{"text": "x" * 300, "n": i} for i in range(5)])
            session.finish()
    return runs.report()


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (820, "light"), (390, "dark")])
def test_report(tab, width, scheme):
    """Small, short, without a network; the first screen answers, contents lead on, every figure has words."""
    path = make_demo(
        kit.reliability([k / 200 for k in range(200)], [k % 3 > 0 for k in range(200)])
    )
    assert path.stat().st_size <= 1_500_000
    t = tab(width, scheme)
    requests: list[str] = []
    t.page.on("request", lambda r: requests.append(r.url))
    t.page.goto(path.as_uri())
    size = t.page.evaluate(
        "[document.documentElement.scrollWidth, document.documentElement.scrollHeight]"
    )
    assert size[0] <= width, "the page scrolls sideways"
    assert width > 390 or size[1] <= 12_000
    assert requests == [path.as_uri()] and not t.errors
    assert "Mean over 3 seeds" in t.page.inner_text("main > .cards") and not t.errors
    links = t.page.eval_on_selector_all("a[href^='#']", "es => es.map(e => e.getAttribute('href'))")
    assert len(links) > 12 and all(t.page.query_selector(link) for link in links)
    pictures = t.page.eval_on_selector_all(
        "svg", "es => es.map(e => e.getAttribute('aria-label') || e.getAttribute('aria-hidden'))"
    )
    assert len(pictures) > 60 and all(pictures)
    assert all(t.page.eval_on_selector_all("figure", "es => es.map(e => e.textContent.trim())"))
    # figures and contents are open on a desk and folded on a phone; the keyboard opens them
    assert t.page.locator(".plane").first.is_visible() == (width > 1000)
    assert t.page.locator("nav ol").is_visible() == (width > 1000)
    if width < 1000:
        t.page.focus("nav summary")
        t.page.keyboard.press("Enter")
        assert t.page.locator("nav ol").is_visible()
    back, ink = t.page.evaluate(
        "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
    )
    assert (sum(map(int, _rgb(back))) < sum(map(int, _rgb(ink)))) == (scheme == "dark")
    t.shot(f"report-{width}")
    t.page.emulate_media(media="print")
    t.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert t.page.locator("table").last.is_visible() and not t.page.locator("nav").is_visible()


def _rgb(css: str) -> list[str]:
    return css[css.index("(") + 1 : -1].split(",")[:3]


@pytest.mark.parametrize("book", BOOKS, ids=lambda p: p.stem[:2])
def test_notebooks_as_github_shows_them(tab, book, tmp_path):
    """Stored outputs only, no kernel, no scripts of plotly: the pictures are there, and nothing is an error."""
    html = tmp_path / "book.html"
    command = [sys.executable, "-m", "nbconvert", "--to", "html", "--output", str(html), str(book)]
    subprocess.run(command, check=True, capture_output=True)
    t = tab(1000)
    t.page.goto(html.as_uri(), wait_until="domcontentloaded")
    assert not t.page.query_selector_all(
        "[data-mime-type='application/vnd.jupyter.error'], .jp-RenderedText[data-mime-type*=error]"
    )
    pictures = t.page.eval_on_selector_all(
        "img[src^='data:image/png']", "es => es.map(e => e.naturalWidth)"
    )
    assert pictures and min(pictures) >= 300
    t.shot(f"github-{book.stem}")


class Lab(NamedTuple):
    """A JupyterLab server, and the folder of its runs."""

    address: str
    token: str
    runs: Path


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """JupyterLab over a copy of the notebooks with profile test."""
    base = tmp_path_factory.mktemp("lab")
    shutil.copytree(ROOT / "notebooks", base / "notebooks")
    for part, settings in (
        ("notebook-extension/tracker", {"windowingMode": "none"}),  # every cell stays in the page
        ("apputils-extension/notification", {"fetchNews": "false", "checkForUpdates": False}),
    ):
        file = base / "settings" / "@jupyterlab" / f"{part}.jupyterlab-settings"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(settings))
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    token, address = secrets.token_hex(16), f"http://127.0.0.1:{port}"
    env = {
        **os.environ,
        "KIT_PROFILE": "test",
        "KIT_JUDGE_KEY": "test",
        "KIT_RUNS": str(base / "runs"),
        "JUPYTERLAB_SETTINGS_DIR": str(base / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(base / "workspaces"),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    env.pop("KIT_HEADLESS", None)
    words = f"--no-browser --allow-root --ip 127.0.0.1 --port {port} --notebook-dir {base / 'notebooks'}"
    command = [
        sys.executable,
        "-m",
        "jupyterlab",
        *words.split(),
        f"--IdentityProvider.token={token}",
    ]
    server = subprocess.Popen(
        command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    for _ in range(360):
        try:
            urllib.request.urlopen(f"{address}/api/status?token={token}", timeout=5)
            break
        except OSError:
            time.sleep(0.5)
    yield Lab(address, token, base / "runs")
    server.terminate()
    server.wait(20)


def open_book(page: Any, lab: Lab, book: Path) -> None:
    page.goto(
        f"{lab.address}/lab/tree/{book.name}?token={lab.token}&reset", wait_until="domcontentloaded"
    )
    page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=90_000)
    page.wait_for_timeout(4000)  # until the kernel is connected
    choose(page, "Run", "runmenu:run-all")
    wait_until_run(page)


def choose(page: Any, menu: str, command: str) -> None:
    page.click(f'.lm-MenuBar-itemLabel:text-is("{menu}")')
    page.wait_for_timeout(500)
    page.click(f'[data-command="{command}"]')


def wait_until_run(page: Any) -> None:
    """Until the last cell has a number; an error in a cell ends the test."""
    end = time.monotonic() + 600
    while time.monotonic() < end:
        time.sleep(1)
        prompts = page.eval_on_selector_all(
            ".jp-CodeCell .jp-InputPrompt", "es => es.map(e => e.textContent)"
        )
        wrong = page.eval_on_selector_all(ERRORS, "es => es.map(e => e.textContent)")
        assert not wrong, wrong[0][:2000]
        if prompts and "*" not in "".join(prompts) and any(c.isdigit() for c in prompts[-1]):
            page.wait_for_timeout(1500)
            return
    raise AssertionError(f"not done after 600 s: {prompts}")


@pytest.mark.parametrize("book", BOOKS, ids=lambda p: p.stem[:2])
def test_every_control_of_the_notebooks_works_in_jupyterlab(tab, lab, book):
    """Run all cells by the menu, then use each control once: the page follows, and nothing is an error."""
    t = tab(1360)
    open_book(t.page, lab, book)
    t.shot(f"lab-{book.stem}")
    cells = t.page.locator(f".jp-CodeCell:has({', '.join(CONTROLS)})")
    for n in range(cells.count()):
        cells.nth(n).scroll_into_view_if_needed()
        use_controls(t.page, cells.nth(n))
    assert cells.count() >= {"01": 2, "02": 2, "04": 1}.get(book.name[:2], 0)
    unused = f".jupyter-widgets :is({INPUTS}):not(:is({', '.join(CONTROLS)}))"
    assert not t.page.locator(unused).count(), "a control that this test does not use"
    assert not t.page.query_selector_all(ERRORS) and not t.errors
    t.shot(f"lab-{book.stem}-used")


ERRORS = "[data-mime-type='application/vnd.jupyter.error']"
# selector of a control -> how to use it once
CONTROLS = {
    # first, before the fields hold nonsense
    ".jupyter-button": lambda page, e: e.click(),
    ".widget-dropdown select": lambda page, e: e.select_option(
        index=e.evaluate("e => (e.selectedIndex + e.options.length - 1) % e.options.length")
    ),
    ".widget-slider .noUi-handle": lambda page, e: (e.focus(), page.keyboard.press("ArrowRight")),
    ".widget-text input[type=text]": lambda page, e: (e.fill("no such words"), e.press("Enter")),
    ".widget-text input[type=number]": lambda page, e: (e.press("ArrowUp"), e.press("Tab")),
    ".widget-textarea textarea": lambda page, e: (e.fill("Other words."), e.press("Tab")),
}
# They may change a price on a button, or nothing until one is pressed
SILENT = (".widget-text input[type=number]", ".widget-textarea textarea")
INPUTS = ":is(input, select, textarea, button, .noUi-handle):not(.js-plotly-plot *)"
OUTPUTS = "c => [...c.querySelectorAll('.jp-OutputArea')].map(e => e.innerHTML).join()"


def use_controls(page: Any, cell: Any) -> None:
    """Use every control once; the outputs of the cell must follow."""
    for selector, use in CONTROLS.items():
        for n in range(cell.locator(selector).count()):
            # the page may be drawn anew after each use, with fewer buttons
            control = cell.locator(selector).nth(n)
            if n >= cell.locator(selector).count():
                continue
            before = cell.evaluate(OUTPUTS)
            is_silent = control.get_attribute("placeholder") or selector in SILENT
            use(page, control)
            end = time.monotonic() + 120
            while not is_silent and cell.evaluate(OUTPUTS) == before:
                assert time.monotonic() < end, f"{selector} {n} changes nothing"
                page.wait_for_timeout(200)
            page.wait_for_timeout(500)
            assert not page.query_selector_all(ERRORS), f"{selector} {n}"
            wrong = cell.locator(".widget-html pre:has-text('to do:')")
            assert not wrong.count(), wrong.inner_text()


def test_a_person_labels_twenty_answers_in_notebook_1(tab, lab):
    """Each click is in the file, a kernel restart loses nothing, and the end shows how far people agree."""
    file = lab.runs / "labels.csv"
    file.unlink(missing_ok=True)
    tasks = kit.load(paths.data("rubrics.json")).joined(kit.load(paths.data("answers.jsonl")))
    ben = Labeller(kit.label(tasks, n=20), out=file, rater="ben")
    for _ in range(20):
        ben.answer("met" if ben.place % 3 else "unmet")
    t = tab(1360)
    open_book(t.page, lab, BOOKS[0])
    label_some(t.page, ["met", "unmet", "partly"])
    assert progress_of(t.page) == "3 of 20" and read_labels(file) == ["met", "unmet", "partly"]
    t.page.click(f"{LABELLER} .jupyter-button:text-is('back')")
    assert progress_of(t.page) == "3 of 20"
    t.page.fill(f"{LABELLER} .widget-text input", "it is half there")
    label_some(t.page, ["unknown"])
    t.shot("labeller")
    t.page.wait_for_timeout(500)
    assert read_labels(file) == ["met", "unmet", "unknown"]
    choose(t.page, "Run", "runmenu:restart-and-run-all")
    t.page.click(".jp-Dialog .jp-mod-accept")
    t.page.wait_for_timeout(3000)
    wait_until_run(t.page)
    assert progress_of(t.page) == "3 of 20"
    label_some(t.page, ["met", "unmet"] * 8 + ["met"])
    t.page.wait_for_selector(f"{LABELLER}:has-text('human:ben and human:me')")
    t.page.query_selector(LABELLER).scroll_into_view_if_needed()
    t.shot("labeller-end")
    assert len(read_labels(file)) == 20 and not t.errors
    labels = kit.load(file).verdicts
    assert len(labels) == 40 and {v.judge for v in labels} == {"human:ben", "human:me"}
    assert [v.meta["note"] for v in labels if v.meta.get("note")] == ["it is half there"]


def test_a_person_plays_with_a_criterion(tab, lab, tmp_path):
    """Edit a criterion, read the price on the button, judge, see the flip, keep the files."""
    with fake_server() as server:
        code = PLAY.format(url=server.url, folder=tmp_path / "edited")
        cell = {
            "cell_type": "code",
            "execution_count": None,
            "metadata": {},
            "outputs": [],
            "source": code,
        }
        kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
        book = lab.runs.parent / "notebooks" / "play.ipynb"
        whole = {"cells": [cell], "metadata": kernel, "nbformat": 4, "nbformat_minor": 4}
        book.write_text(json.dumps(whole))
        t = tab(1360)
        open_book(t.page, lab, book)
        button = ".jupyter-button >> nth=0"
        assert t.page.inner_text(button).startswith("Judge: at most 2 calls")
        t.page.fill(".widget-textarea textarea >> nth=1", "Names no river")
        t.page.keyboard.press("Tab")
        t.page.wait_for_selector(".jupyter-button:has-text('Judge: at most 2 calls')")
        t.page.click(button)
        t.page.wait_for_selector(".widget-html :text('1 of 2 verdicts flipped')")
        t.page.wait_for_selector(".jupyter-button:text-is('Judge: free, all stored')")
        t.shot("playground")
        assert t.page.locator("text=differs").count() == 1 and len(server.calls) == 2
        assert not t.page.query_selector_all(".widget-html img") and not t.errors
        t.page.click(".jupyter-button:text-is('Keep as files')")
        t.page.wait_for_selector(".widget-html :text('rubrics.jsonl and prompt.txt')")
    criteria = kit.load(tmp_path / "edited" / "rubrics.jsonl").tasks[0].criteria
    assert [c.text for c in criteria] == ["Names a river", "Names no river"]


PLAY = """
from kit import Criterion, Response, Task
from kit.data import TaskSet
from kit.tuning import Playground
criteria = (Criterion(id="a", text="Names a river"), Criterion(id="b", text="Names a hill"))
task = Task(id="t", prompt="Where?", criteria=criteria)
answer = Response(task_id="t", id="r", text="<img src=x> river")
judge = {{"endpoint": "fake", "base_url": "{url}"}}
Playground(TaskSet(tasks=[task], responses=[answer]), judge=judge, out="{folder}", ledger="{folder}.db")
"""


def fake_server() -> Any:
    """The fake judge of tests/judging, loaded by its path."""
    path = ROOT / "tests" / "judging" / "fake_server.py"
    spec = importlib.util.spec_from_file_location("fake_server_of_browser", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.FakeServer()


LABELLER = ".jp-CodeCell:has(.jupyter-button:text-is('back'))"


def progress_of(page: Any) -> str:
    return page.inner_text(f"{LABELLER} .widget-html b >> nth=0")


def label_some(page: Any, labels: list[str]) -> None:
    """Press these buttons, each when the page has counted the one before."""
    for label in labels:
        before = page.inner_html(f"{LABELLER} .widget-html")
        page.click(f"{LABELLER} .jupyter-button:text-is('{label}')")
        page.wait_for_function(
            "([s, b]) => document.querySelector(s).innerHTML !== b",
            arg=[".jp-CodeCell:has(input[placeholder^='a note']) .widget-html", before],
        )


def read_labels(file: Path) -> list[str]:
    rows = pd.read_csv(file, keep_default_na=False, dtype=str)
    return rows[(rows["rater"] == "me") & (rows["label"] != "")]["label"].tolist()
