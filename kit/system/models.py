"""What is public about hosted models: prices and shutdown dates, from the file models.json."""

from __future__ import annotations

import datetime
import functools
import json
import re
from pathlib import Path
from typing import Any


@functools.cache
def catalog() -> dict[str, Any]:
    """The data file: `as_of`, `default` (a model's name) and `models` by name."""
    return json.loads(Path(__file__).with_name("models.json").read_text("utf-8"))


def entry(model: str) -> dict[str, Any]:
    """The data on a model, {} when it is not in the file.

    price : US dollars per million tokens, [input, output].

    >>> entry("gpt-5-mini-2025-08-07")
    {'price': [0.25, 2.0], 'reasoning': True, 'shutdown': '2026-12-11'}
    """
    # Providers name snapshots by their date; a snapshot costs what its family costs.
    family = re.sub(r"-\d{4}-\d\d-\d\d$", "", model)
    models = catalog()["models"]
    return models.get(model) or models.get(family) or {}


def reasons_first(model: str) -> bool:
    """True for models that think first: only the default temperature, more room.

    >>> reasons_first("gpt-5-mini"), reasons_first("gpt-4o"), reasons_first("llama-3")
    (True, False, False)
    """
    # A model that is newer than the data file is taken for one of its family.
    row = entry(model)
    return bool(
        row.get("reasoning") if row else re.match(r"(gpt-[5-9]|o\d)", model)
    )


def shutdown_warning(model: str, today: datetime.date | None = None) -> str | None:
    """A sentence when the provider turns a model off within 120 days, else None.

    >>> shutdown_warning("gpt-5-mini", datetime.date(2026, 11, 21))
    'gpt-5-mini is shut down on 2026-12-11; use gpt-6-luna'
    """
    day = entry(model).get("shutdown")
    today = today or datetime.date.today()
    if day is None or (datetime.date.fromisoformat(day) - today).days > 120:
        return None
    verb = "is" if day > today.isoformat() else "was"
    return f"{model} {verb} shut down on {day}; use {catalog()['default']}"
