"""A real JupyterLab on 127.0.0.1 and a real Chromium. Skipped, with the reason, where there is no browser."""

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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
ARTEFACTS = ROOT / "test-artifacts"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# What a page may complain of without being broken.
HARMLESS = (
    "favicon",
    "ResizeObserver",
    "has been deprecated",
    "DevTools",
    "net::ERR_INTERNET_DISCONNECTED",
    "Failed to load resource",
    "Manifest",
    "apple-mobile-web-app",
    "is deprecated",
    "unload",
)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """A headless Chromium: KIT_CHROMIUM, else the first one on the path."""
    path = os.environ.get("KIT_CHROMIUM") or next(
        (p for n in ("chromium", "chromium-browser", "google-chrome") if (p := shutil.which(n))),
        None,
    )
    if not path:
        pytest.skip("no Chromium on this machine; install one or set KIT_CHROMIUM")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@dataclass
class Page:
    """A page and what its console complained of."""

    page: Any
    errors: list[str]

    def shot(self, name: str, *, whole: bool = False) -> Path:
        """A screenshot in test-artifacts/."""
        ARTEFACTS.mkdir(exist_ok=True)
        self.page.screenshot(path=str(ARTEFACTS / f"{name}.png"), full_page=whole)
        return ARTEFACTS / f"{name}.png"


@pytest.fixture
def page(chromium: Any) -> Iterator[Page]:
    """A fresh page, without a network beyond this machine; its console errors are collected."""
    context = chromium.new_context(viewport={"width": 1360, "height": 1000})
    context.route(
        lambda url: "127.0.0.1" not in url and not url.startswith(("file:", "data:", "blob:")),
        lambda route: route.abort(),
    )
    tab = context.new_page()
    errors: list[str] = []
    tab.on(
        "console",
        lambda m: (
            errors.append(m.text)
            if m.type == "error" and not any(h in m.text for h in HARMLESS)
            else None
        ),
    )
    tab.on(
        "pageerror",
        lambda e: errors.append(str(e)) if not any(h in str(e) for h in HARMLESS) else None,
    )
    yield Page(tab, errors)
    context.close()


@dataclass
class Lab:
    """A running JupyterLab: its address, token and folder of notebooks."""

    url: str
    token: str
    folder: Path

    def api(self, path: str) -> Any:
        """GET of the server's REST interface."""
        with urllib.request.urlopen(f"{self.url}/api/{path}?token={self.token}", timeout=20) as r:
            return json.load(r)

    def open(self, page: Page, name: str) -> None:
        """Open a notebook and wait until its kernel is there."""
        page.page.goto(
            f"{self.url}/lab/tree/{name}?token={self.token}&reset", wait_until="domcontentloaded"
        )
        page.page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=90_000)
        deadline = time.monotonic() + 60
        while not self.api("sessions") and time.monotonic() < deadline:
            time.sleep(0.5)

    def run_all(self, page: Page, *, timeout: float = 600) -> None:
        """Run all cells by the menu and wait until the last code cell has its number; fails on an error output."""
        page.page.wait_for_timeout(4000)  # until the kernel is connected
        page.page.click('.lm-MenuBar-itemLabel:text-is("Run")')
        page.page.wait_for_timeout(500)
        page.page.click('[data-command="runmenu:run-all"]')
        deadline = time.monotonic() + timeout
        time.sleep(2)
        while time.monotonic() < deadline:
            prompts = page.page.eval_on_selector_all(
                ".jp-CodeCell .jp-InputPrompt", "es => es.map(e => e.textContent)"
            )
            if (
                prompts
                and not any("*" in p for p in prompts)
                and any(c.isdigit() for c in prompts[-1])
            ):
                break
            if page.page.query_selector(
                '.jp-OutputArea-output[data-mime-type="application/vnd.jupyter.error"]'
            ):
                break
            time.sleep(1)
        else:
            raise AssertionError(f"not done after {timeout} s: {prompts}")
        wrong = page.page.eval_on_selector_all(
            '.jp-OutputArea-output[data-mime-type="application/vnd.jupyter.error"]',
            "es => es.map(e => e.textContent)",
        )
        assert not wrong, wrong[0][:3000]


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """JupyterLab over a copy of the notebooks, profile `test`; stopped at the end."""
    base = tmp_path_factory.mktemp("lab")
    folder = base / "notebooks"
    shutil.copytree(ROOT / "notebooks", folder)
    settings = base / "settings" / "@jupyterlab" / "notebook-extension"
    settings.mkdir(parents=True)
    (settings / "tracker.jupyterlab-settings").write_text(
        '{"windowingMode": "none"}'
    )  # every cell stays in the page
    quiet = base / "settings" / "@jupyterlab" / "apputils-extension"
    quiet.mkdir(parents=True)
    (quiet / "notification.jupyterlab-settings").write_text(
        '{"fetchNews": "false", "checkForUpdates": false}'
    )
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    token = secrets.token_hex(16)
    env = {
        **os.environ,
        "KIT_PROFILE": os.environ.get("KIT_BROWSER_PROFILE", "test"),
        "KIT_RUNS": str(base / "runs"),
        "JUPYTERLAB_SETTINGS_DIR": str(base / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(base / "workspaces"),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    env.pop("KIT_HEADLESS", None)
    log = (base / "lab.log").open("w")
    server = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "jupyterlab",
            "--no-browser",
            "--allow-root",
            "--ip",
            "127.0.0.1",
            "--port",
            str(port),
            f"--IdentityProvider.token={token}",
            "--notebook-dir",
            str(folder),
            "--LabApp.news_url=None",
            "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        ],
        env=env,
        stdout=log,
        stderr=log,
    )
    it = Lab(f"http://127.0.0.1:{port}", token, folder)
    for _ in range(120):
        try:
            it.api("status")
            break
        except OSError:
            time.sleep(0.5)
    else:
        server.kill()
        raise AssertionError((base / "lab.log").read_text()[-3000:])
    yield it
    server.terminate()
    server.wait(timeout=20)
