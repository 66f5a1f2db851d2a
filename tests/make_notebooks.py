"""Runs the notebooks with the cpu profile and stores their outputs in them: `make notebooks`.

Figures become PNG, drawn by a local Chromium, because GitHub shows no plotly figure. Widget state, progress bars and
paths of this machine are taken out. A fingerprint of each code cell tells a test which outputs are stale.

    python tests/make_notebooks.py [NUMBER ...]     all, or some
    python tests/make_notebooks.py --list           the notebooks that can run here, for nbval
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
NEED_RECORDED = ("02_", "04_")  # notebooks that read the recorded judges
FIGURE, WIDGET = "application/vnd.plotly.v1+json", "application/vnd.jupyter.widget-view+json"
WIDTH, HEIGHT = 760, 420  # of a figure, CSS pixels
PNG_MOST, BOOK_MOST = 60_000, 1_500_000  # bytes
DRAW = "([figure, width, height, scale]) => Plotly.toImage(figure, {format: 'png', width, height, scale})"


def books() -> list[Path]:
    """The notebooks, in order."""
    return sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))


def source(cell: dict[str, Any]) -> str:
    """The text of a cell."""
    return "".join(cell["source"])


def fingerprint(cell: dict[str, Any]) -> str:
    """Eight hex digits of a cell's text, without space at its ends."""
    return hashlib.sha256(source(cell).strip().encode()).hexdigest()[:8]


def stale(book: dict[str, Any]) -> list[str]:
    """What says that the stored outputs are not those of the code: changed, new or unexecuted cells."""
    code = [c for c in book["cells"] if c["cell_type"] == "code" and source(c).strip()]
    stored = book["metadata"].get("outputs_of", [])
    out = [source(c)[:60] for c, old in zip(code, stored, strict=False) if fingerprint(c) != old]
    if len(code) != len(stored):
        out.append(f"{len(code)} code cells, {len(stored)} stored")
    return out + [source(c)[:60] for c in code if c["execution_count"] is None]


class Painter:
    """Draws plotly figures as PNG in Chromium (KIT_CHROMIUM, else the one on the path)."""

    def __init__(self) -> None:
        from playwright.sync_api import sync_playwright
        from plotly.offline import get_plotlyjs

        names = ("chromium", "chromium-browser", "google-chrome")
        path = os.environ.get("KIT_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
        if path is None:
            sys.exit("make notebooks needs Chromium: install one, or set KIT_CHROMIUM")
        self.playwright = sync_playwright().start()
        self.browser = self.playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-gpu"]
        )
        self.page = self.browser.new_page()
        self.page.set_content("<html><body></body></html>")
        self.page.add_script_tag(content=get_plotlyjs())

    def png(self, figure: dict[str, Any]) -> str:
        """A figure as base64 PNG, smaller where it would exceed the limit."""
        height = figure.get("layout", {}).get("height") or HEIGHT
        for scale in (1.5, 1, 0.8, 0.6):
            address = self.page.evaluate(DRAW, [figure, WIDTH, height, scale])
            text = address.partition(",")[2]
            if len(base64.b64decode(text)) <= PNG_MOST:
                return text + "\n"
        raise ValueError("the figure has too many points for a small picture")

    def close(self) -> None:
        self.browser.close()
        self.playwright.stop()


def tidy(output: dict[str, Any], painter: Painter, folder: Path) -> dict[str, Any] | None:
    """An output as it is committed; None for one that is left out."""
    if output["output_type"] == "stream":
        if output["name"] == "stderr":  # progress bars
            return None
        text = "".join(output["text"]).replace(str(folder.parent), "runs").replace(f"{ROOT}/", "")
        return {**output, "text": text}
    data = output.get("data", {})
    if data.pop(WIDGET, None) and set(data) == {"text/plain"}:  # a progress bar, or controls
        return None
    if FIGURE in data:
        figure = data.pop(FIGURE)
        data = {"image/png": painter.png(figure), "text/plain": "a figure"}
    if "text/html" in data:  # an address in memory differs from run to run
        data["text/plain"] = "a table" if data["text/plain"][0][0] in "<H" else data["text/plain"]
    return {**output, "data": data} if data else None


def make(path: Path, base: Path, painter: Painter) -> int:
    """Execute a notebook and store its outputs; returns its size in bytes."""
    from kit import runs

    book = json.loads(path.read_text("utf-8"))
    declares_runs = any(
        "parameters" in c["metadata"].get("tags", []) and "runs_dir" in source(c)
        for c in book["cells"]
    )
    values = {"runs_dir": str(base)} if declares_runs else {}
    folder = runs.run(
        path, values, profile="cpu", out=base, echo=lambda line: print(line, file=sys.stderr)
    )
    record = runs.load(folder)
    if record.status != "done":
        sys.exit(f"{path.name} {record.status}: {record.meta.get('error')}")
    executed = json.loads((folder / path.name).read_text("utf-8"))["cells"]
    executed = [c for c in executed if "injected-parameters" not in c["metadata"].get("tags", [])]
    for cell, result in zip(book["cells"], executed, strict=True):
        if cell["cell_type"] == "code":
            outputs = [tidy(o, painter, folder) for o in result["outputs"]]
            cell["outputs"] = [o for o in outputs if o is not None]
            cell["execution_count"] = result["execution_count"]
    code = [c for c in book["cells"] if c["cell_type"] == "code" and source(c).strip()]
    book["metadata"].pop("widgets", None)
    book["metadata"]["outputs_of"] = [fingerprint(c) for c in code]
    text = json.dumps(book, indent=1, ensure_ascii=False) + "\n"
    if len(text.encode()) > BOOK_MOST:
        sys.exit(f"{path.name} would be {len(text.encode()):,} bytes: show fewer rows or figures")
    path.write_text(text, "utf-8")
    return len(text.encode())


def main(words: list[str]) -> None:
    """Make all notebooks, or those with these numbers; --list prints those that can run here."""
    if words == ["--list"]:
        from kit.system import paths

        cached = any(paths.home().glob("recorded/*"))
        print(*(b for b in books() if cached or not b.name.startswith(NEED_RECORDED)))
        return
    painter, base = Painter(), Path(tempfile.mkdtemp(prefix="kit-books-")) / "runs"
    base.mkdir()
    os.environ["KIT_RUNS"] = str(base)
    for path in books():
        if not words or str(int(path.name[:2])) in words:
            print(f"{path.name}: {make(path, base, painter):,} bytes")
    painter.close()


if __name__ == "__main__":
    main(sys.argv[1:])
