"""An executed notebook as one HTML file that needs no network: plotly.js is embedded once, nothing
else is fetched.
"""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

from .system import paths

PLOTLY = "application/vnd.plotly.v1+json"
_EXTERNAL = re.compile(
    r'<script[^>]+src="[^"]*"[^>]*>\s*</script>|<script '
    r'type="module">\s*document\.addEventListener\("DOMContentLoaded", async.*?</script>',
    re.S,
)

TURNS = re.compile("[\u202a-\u202e\u2066-\u2069]")  # the direction of what follows
_IMAGE = re.compile(r'<img(?=[^>]*src="https?:)(?:(?=[^>]*alt="(?P<alt>[^"]*)")|)[^>]*>')

PAGE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:1100px;margin:2em auto;padding:0 "
    "1em;color:#222}"
    "table{border-collapse:collapse;width:100%}caption{text-align:left;padding:.6em 0;color:#555}"
    "th,td{border-bottom:1px solid #ddd;padding:.35em .6em;vertical-align:top;text-align:left}"
)

LAB_DARK = (  # the same for plots in a dark JupyterLab or editor
    "<style>:is([data-jp-theme-light=false],.vscode-dark) .js-plotly-plot"
    "{filter:invert(.91) hue-rotate(180deg)}</style>"
)
DARK = (  # colours keep their hue; pictures that are no plots stay as they are
    "@media screen and (prefers-color-scheme:dark){html{background:#1c1c1c}"
    "body{filter:invert(.89) hue-rotate(180deg)}img{filter:invert(1) hue-rotate(180deg)}}"
)


def escape(text: str, quote: bool = True) -> str:
    """Text for HTML; what would turn the direction of our own numbers behind it is shown instead.

    >>> escape("<b>" + chr(0x202E))
    '&lt;b&gt;\u2039U+202E\u203a'
    """
    return html.escape(TURNS.sub(lambda m: f"\u2039U+{ord(m[0]):X}\u203a", text), quote)


def plotly_js() -> str:
    """The installed plotly.js, and what fits a figure to its page (`kitPlot`), as one <script>."""
    from plotly.offline import get_plotlyjs

    fitted = Path(__file__).with_suffix(".js").read_text("utf-8")
    return f"<script>{get_plotlyjs()}\n{fitted}</script>"


def script_json(value: Any) -> str:
    """JSON that is safe inside a <script>: no `</`, no `<!--`, no line separators.

    >>> script_json("</script>")
    '"\\\\u003c/script>"'
    """
    text = json.dumps(value, ensure_ascii=False)
    if any("\ud800" <= c <= "\udfff" for c in text):  # half a character: no file can hold it
        text = json.dumps(value)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def figure_div(figure: dict[str, Any], name: str) -> str:
    """A plotly figure (its JSON) as a <div> and the call that draws it; `name` is its id."""
    safe = html.escape(re.sub(r"[^A-Za-z0-9_-]", "-", name), quote=True)
    data = script_json(figure.get("data", []))
    layout = script_json(figure.get("layout", {}))
    height = int(figure.get("layout", {}).get("height") or 420)
    return (
        f'<div id="{safe}" class="kit-figure" style="height:{height}px;width:100%"></div>'
        f'<script>kitPlot(document.getElementById("{safe}"),{data},{layout})</script>'
    )


def document(title: str, body: str) -> str:
    """One HTML page that needs no network; `title` is escaped, `body` is our own."""
    name = html.escape(title)
    head = plotly_js() if "kitPlot(" in body else ""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{name}</title><style>{PAGE}</style>{head}</head>"
        f"<body><h1>{name}</h1>{body}</body></html>"
    )


def figures_html(*figures: Any) -> str:
    """Plotly figures for the body of a `document`."""
    return "".join(figure_div(json.loads(f.to_json()), f"f{i}") for i, f in enumerate(figures))


def settle(path: Path) -> None:
    """Streams of an executed notebook as a screen would show them: a line that moved stands once,
    as it was last. Forty steps of a training were eighty red lines.
    """
    import nbformat

    book = nbformat.read(str(path), as_version=4)
    for cell in book.cells:
        kept: list[Any] = []
        for o in cell.get("outputs", []):
            stream = (o.output_type, o.get("name")) if o.output_type == "stream" else None
            if kept and stream == (kept[-1].output_type, kept[-1].get("name")):
                kept[-1].text += o.text
            else:
                kept.append(o)
        for o in kept:
            if o.output_type == "stream":
                o.text = re.sub(r"[^\n]*\r(?!\n)", "", o.text)
        if cell.cell_type == "code":
            cell.outputs = kept
    nbformat.write(book, str(path))


def notebook_html(path: Path) -> str:
    """A notebook with its outputs as self-contained HTML; text outputs are escaped by nbconvert.

    path : an executed .ipynb; its plotly outputs must be plotly mime bundles (renderer
        "plotly_mimetype").
    """
    import nbformat
    from nbconvert import HTMLExporter

    book = nbformat.read(str(path), as_version=4)
    plots = 0
    for cell in book.cells:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if PLOTLY in data:
                plots += 1
                output["data"] = {
                    "text/html": figure_div(data[PLOTLY], f"{path.stem}-plot-{plots}")
                }
    book.metadata.pop("widgets", None)
    exporter = HTMLExporter(
        template_name="lab",
        mathjax_url="",
        require_js_url="",
        exclude_input_prompt=True,
        exclude_output_prompt=True,
    )
    body, _ = exporter.from_notebook_node(book, resources={"metadata": {"name": path.stem}})
    body = _EXTERNAL.sub("", body)
    body = _IMAGE.sub(
        lambda m: html.escape(m["alt"] or "picture"), body
    )  # a badge, say: its link stays, its picture is on a network
    head = f"<style>{DARK}</style>{plotly_js() if plots else ''}"
    return body.replace("</head>", head + "</head>", 1)


def write_notebook_html(path: Path) -> Path:
    """Write NAME.html beside NAME.ipynb and return its path."""
    out = path.with_suffix(".html")
    paths.write_text(out, notebook_html(path))
    return out
