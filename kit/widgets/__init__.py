"""ipywidgets controls over plain functions. Every widget has a static twin that a headless run
shows.
"""

from __future__ import annotations

import os


def live() -> bool:
    """True where somebody can move a control: a notebook kernel that is not run headless.

    Headless, explorers return what they show at first: nobody can use them there, and an Output
    widget can make nbclient wait for ever (it answers on the shell channel with the cell's own
    header, and the cell's end is lost).
    """
    return os.environ.get("KIT_HEADLESS", "0") in ("", "0")
