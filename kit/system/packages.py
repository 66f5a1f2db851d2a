"""What the kit is called where packages are installed, where it comes from, and how its extras are
installed.
"""

from __future__ import annotations

from . import paths

NAME = (
    "rubric-rewards-kit"  # free on the package index when it was chosen; `rubric-kit` is not ours
)
ADDRESS = "https://github.com/rubric-rewards-kit/rubric-rewards-kit"


def extra(name: str) -> str:
    """The command that installs an extra, from the checkout or the address.

    Never by the bare name: whoever registers it on the index would choose what is installed.

    >>> "[sweep]" in extra("sweep")
    True
    """
    if (paths.ROOT / "pyproject.toml").exists():
        return f"pip install -c {paths.ROOT}/constraints.txt -e '{paths.ROOT}[{name}]'"
    return f"pip install '{NAME}[{name}] @ git+{ADDRESS}'"
