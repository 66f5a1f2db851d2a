"""An executed notebook as a page beside it, in the look of the report; it needs no network."""

import re
from pathlib import Path

from .. import plots

FIGURE = "application/vnd.plotly.v1+json"


def write_notebook_page(book: Path) -> None:
    """Write BOOK.html beside an executed notebook, unless it is there already; figures become static."""
    page = book.with_suffix(".html")
    # a kernel in Jupyter leaves no executed notebook in the run's folder
    if not book.is_file() or (
        page.is_file() and page.stat().st_mtime > book.stat().st_mtime
    ):
        return
    import nbformat
    from nbconvert import HTMLExporter

    notebook = nbformat.read(book, 4)
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            if FIGURE in output.get("data", {}):
                output.data["text/html"] = plots.figure_html(
                    output.data.pop(FIGURE)
                )
    body, _ = HTMLExporter(template_name="basic").from_notebook_node(notebook)
    # a badge from elsewhere would ask the network: its words stay
    body = re.sub(r'<img alt="([^"]*)" src="https?:[^>]*>', r"\1", body)
    plots.page(f"Executed notebook {book.stem}", [plots.Html(body)], path=page)
