"""Keeps one picture per notebook for people who read on GitHub: the figure that stands first in the report, as a PNG.

`python tests/browser/keep_pictures.py RUNS` takes the figures of a folder of finished runs (of `make demo`, say), draws
them in Chromium, and writes each into its notebook as the only output there. Needs Playwright and a Chromium.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

from kit import page, runs  # noqa: E402
from kit.system import paths  # noqa: E402

WIDTH, HEIGHT = 760, 420
# The cell that draws it, by a part of its source; the figure is known by its name in figures.json.
KEPT = {
    "01_inspect_rubrics": ('run.figure("weights"', "weights"),
    "02_tune_judge": ('run.figure("kappa"', "kappa"),
    "03_train_grpo": ('run.figure("beside trivial', "beside trivial policies"),
    "04_plot_calibration": ('run.figure("judges side by side"', "judges side by side"),
    "05_compare_runs": ('run.figure(f"over seeds', "over seeds: gain in strict passes"),
    "06_chain_stages": ('run.figure("what each stage brought"', "what each stage brought"),
}


def png(browser: Any, figure: dict[str, Any]) -> bytes:
    """The figure as a PNG of WIDTH pixels."""
    height = int(figure["layout"].get("height") or HEIGHT)
    tab = browser.new_page(viewport={"width": WIDTH, "height": height})
    html = f"<html><body style='margin:0'>{page.plotly_js()}{page.figure_div(figure, 'f')}</body></html>"
    tab.set_content(html)
    tab.wait_for_selector("#f .main-svg")
    tab.evaluate("document.querySelectorAll('.modebar-container').forEach(e => e.remove())")
    shot = tab.screenshot()
    tab.close()
    return shot


def keep(book: Path, part: str, picture: bytes, title: str) -> None:
    """Write the picture into the cell whose source holds `part`; every other output goes."""
    whole = json.loads(book.read_text("utf-8"))
    for cell in whole["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None
    (cell,) = [
        c for c in whole["cells"] if c["cell_type"] == "code" and part in "".join(c["source"])
    ]
    data = {"image/png": base64.b64encode(picture).decode() + "\n", "text/plain": [title]}
    cell["execution_count"] = 1  # nbval takes outputs of a cell that never ran for a mistake
    cell["outputs"] = [{"output_type": "display_data", "data": data, "metadata": {}}]
    book.write_text(json.dumps(whole, indent=1, ensure_ascii=False) + "\n", "utf-8")


def main(folder: str) -> None:
    """Draw and keep the pictures of all notebooks that have a run in the folder."""
    from playwright.sync_api import sync_playwright

    found = {r.notebook: f for f, r in runs.find(Path(folder))}
    path = os.environ.get("KIT_CHROMIUM") or shutil.which("chromium")
    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        for name, (part, title) in KEPT.items():
            if name in found:
                figures = json.loads((found[name] / "figures.json").read_text("utf-8"))
                figure = next(f["figure"] for f in figures if f["name"] == title)
                keep(paths.notebooks() / f"{name}.ipynb", part, png(browser, figure), title)
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1])
