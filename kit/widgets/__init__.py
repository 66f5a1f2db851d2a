"""ipywidgets controls over plain functions. Every widget has a static twin that a headless run
shows, and that stands under the controls in a saved notebook.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

Explorer = Callable[..., Any]

# A kernel draws the controls: the twin is hidden. No kernel, "model not found": the controls are.
# Two rules: CSS allows no :has() inside another, and one bad selector undoes its whole rule.
_ONE_OF_BOTH = (
    "<style>.jp-OutputArea:has(.kit-twin):not(:has(.widget-vbox))"
    ">.jp-OutputArea-child:has(>.jupyter-widgets){display:none}"
    ".jp-OutputArea:has(.kit-twin):has(.widget-vbox)"
    ">.jp-OutputArea-child:not(:has(.widget-vbox)){display:none}</style>"
    "<div class='kit-twin'></div>"
)


def live() -> bool:
    """True where somebody can move a control: a notebook kernel that is not run headless.

    Headless, explorers return what they show at first: nobody can use them there, and an Output
    widget can make nbclient wait for ever (it answers on the shell channel with the cell's own
    header, and the cell's end is lost).
    """
    return os.environ.get("KIT_HEADLESS", "0") in ("", "0")


def twinned(twin: Callable[..., Any]) -> Callable[[Explorer], Explorer]:
    """An explorer whose controls are displayed with its static twin under them; headless, the twin.

    twin : takes the explorer's arguments and gives a figure, or the text of a page.
    A saved notebook keeps no widget's state: without the twin JupyterLab shows "Error displaying
    widget: model not found" there, and GitHub nothing.
    """

    def still(*args: Any, **options: Any) -> Any:
        from IPython.display import HTML

        shown = twin(*args, **options)
        return HTML(shown) if isinstance(shown, str) else shown

    def of(explorer: Explorer) -> Explorer:
        @functools.wraps(explorer)
        def controls(*args: Any, **options: Any) -> Any:
            if not live():
                return still(*args, **options)
            box = explorer(*args, **options)
            box._ipython_display_ = lambda **_: _display(box, still(*args, **options))
            return box

        return controls

    return of


def drawn(make: Callable[[], Any], *controls: Any) -> Any:
    """An Output widget that shows what `make()` gives, now and whenever a control moves."""
    import ipywidgets as w
    from IPython.display import display

    out = w.Output()

    def draw(_: Any = None) -> None:
        out.clear_output(wait=True)
        with out:
            display(make())

    watch(draw, *controls)
    return out


def watch(draw: Callable[..., Any], *controls: Any) -> None:
    """Call `draw` now, and whenever a control moves (then with what changed)."""
    for control in controls:
        control.observe(draw, "value")
    draw()


def _display(box: Any, still: Any) -> None:
    """The controls as ipywidgets 7.7 or 8 shows them, then the twin."""
    from IPython.display import HTML, display

    drawn = getattr(type(box), "_ipython_display_", None)  # ipywidgets 7
    if drawn:
        drawn(box)
    else:
        display(box._repr_mimebundle_(), raw=True)
    display(HTML(_ONE_OF_BOTH), still)
