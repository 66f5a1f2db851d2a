"""Small notebooks that the tests of runs execute."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

PARAMETERS = 'profile = "test"\nseed = 0\nsteps = 2  # updates, in [1, 9]; n = 3\nrate = 1e-3\ntasks_file = ""\n'
KEEP = """from kit.stats import Estimate
gain = Estimate(.1 + .01 * seed, .05, .2, n=200, n_clusters=50, scale=1.0)
run.keep("gain", gain, "The held-out gain.")
run.keep("steps", steps)"""


@pytest.fixture(autouse=True)
def _same_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever edits the kit while the tests run does not give their runs other names."""
    monkeypatch.setenv("KIT_CODE_FINGERPRINT", "tests")


@pytest.fixture
def notebook(tmp_path: Path) -> Callable[..., Path]:
    """Writes a notebook: parameters, `kit.start`, the cells, `run.finish()`."""
    import nbformat
    from nbformat import v4

    def write(
        cells: Sequence[str] = (KEEP,), *, name: str = "07_small", parameters: str = PARAMETERS
    ) -> Path:
        book = v4.new_notebook(
            cells=[
                v4.new_markdown_cell("# A small notebook"),
                v4.new_code_cell(parameters, metadata={"tags": ["parameters"]}),
                v4.new_code_cell(f"import kit\nrun = kit.start({name!r}, locals())"),
                v4.new_markdown_cell("## The work"),
                *(v4.new_code_cell(cell) for cell in cells),
                v4.new_code_cell("run.finish();"),
            ],
            metadata={
                "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
                "language_info": {"name": "python"},
            },
        )
        path = tmp_path / f"{name}.ipynb"
        nbformat.write(book, path)
        return path

    return write
