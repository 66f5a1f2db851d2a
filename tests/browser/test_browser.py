"""A smoke test in a real Chromium: the report, the notebooks as GitHub shows them, and their widgets in JupyterLab."""

from __future__ import annotations

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
from typing import Any

import pytest

import kit
from kit import runs
from kit.stats import Estimate

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


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_report(tab, width, scheme):
    import plotly.express as px

    for seed in range(3):
        session = kit.start("mine", {"profile": "test", "seed": seed})
        session.keep(
            "gain", Estimate(0.1 + seed / 50, 0.05, 0.2, n=200, scale=1.0), "The held-out gain."
        )
        session.keep("curve", px.line(y=[1, 3, 2], title="A curve"))
        session.keep("rows", [{"text": "x" * 300, "n": i} for i in range(5)])
        session.finish()
    t = tab(width, scheme)
    t.page.goto(runs.report().as_uri())
    t.page.wait_for_selector(".plotly-graph-div .main-svg")
    assert t.page.evaluate("document.documentElement.scrollWidth") <= width, (
        "the page scrolls sideways"
    )
    assert "Mean over 3 seeds" in t.page.inner_text("body") and not t.errors
    back, ink = t.page.evaluate(
        "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
    )
    assert (sum(map(int, _rgb(back))) < sum(map(int, _rgb(ink)))) == (scheme == "dark")
    t.shot(f"report-{width}")


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


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """JupyterLab over a copy of the notebooks with profile test: (address, token)."""
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
    yield address, token
    server.terminate()
    server.wait(20)


@pytest.mark.parametrize("book", BOOKS, ids=lambda p: p.stem[:2])
def test_notebooks_run_in_jupyterlab(tab, lab, book):
    """Run all cells by the menu: no error, figures are drawn, and each widget shows what it explores."""
    address, token = lab
    t = tab(1360)
    t.page.goto(
        f"{address}/lab/tree/{book.name}?token={token}&reset", wait_until="domcontentloaded"
    )
    t.page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=90_000)
    t.page.wait_for_timeout(4000)  # until the kernel is connected
    t.page.click('.lm-MenuBar-itemLabel:text-is("Run")')
    t.page.wait_for_timeout(500)
    t.page.click('[data-command="runmenu:run-all"]')
    end = time.monotonic() + 600
    while time.monotonic() < end:
        time.sleep(1)
        prompts = t.page.eval_on_selector_all(
            ".jp-CodeCell .jp-InputPrompt", "es => es.map(e => e.textContent)"
        )
        wrong = t.page.eval_on_selector_all(
            "[data-mime-type='application/vnd.jupyter.error']", "es => es.map(e => e.textContent)"
        )
        assert not wrong, wrong[0][:2000]
        if prompts and "*" not in "".join(prompts) and any(c.isdigit() for c in prompts[-1]):
            break
    else:
        raise AssertionError(f"not done after 600 s: {prompts}")
    t.page.wait_for_timeout(1500)
    t.shot(f"lab-{book.stem}")
    used = [
        _use_widgets(t.page, cell)
        for cell in t.page.query_selector_all(".jp-CodeCell:has(.widget-dropdown, .widget-slider)")
    ]
    assert all(used), f"widgets that change nothing: {used}"
    assert not t.page.query_selector_all("[data-mime-type='application/vnd.jupyter.error']")
    t.shot(f"lab-{book.stem}-used")


def _use_widgets(page: Any, cell: Any) -> bool:
    """Chooses the last option of each dropdown, moves each slider by one step; True when the page follows each time."""
    areas = ".widget-output"
    cell.scroll_into_view_if_needed()
    for control in cell.query_selector_all(".widget-dropdown select, .widget-slider .noUi-handle"):
        before = page.evaluate(
            "([c, a]) => [...c.querySelectorAll(a)].map(e => e.innerHTML).join()", [cell, areas]
        )
        options = control.query_selector_all("option")
        if options:
            # the option that is not chosen yet
            chosen = control.evaluate("e => e.selectedIndex")
            control.select_option(index=len(options) - 1 if chosen < len(options) - 1 else 0)
        else:
            control.focus()
            page.keyboard.press("ArrowRight")
        try:
            page.wait_for_function(
                "([c, a, b]) => [...c.querySelectorAll(a)].map(e => e.innerHTML).join() !== b",
                arg=[cell, areas, before],
                timeout=30_000,
            )
        except Exception:
            return False
    return True
