"""Old import paths: each still works for one version and names its new place.

>>> import warnings
>>> with warnings.catch_warnings(record=True) as seen:
...     warnings.simplefilter("always")
...     from kit.sources import load_tasks
>>> str(seen[0].message)
'kit.sources is now kit.data; the old name goes away in version 0.3'
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
import warnings
from collections.abc import Sequence
from types import ModuleType

MOVED = {
    "kit.inspect": "kit.rubrics",
    "kit.sources": "kit.data",
    "kit.rubrics.words": "kit.data.words",
    "kit.rewards.verifiers": "kit.claims",
    "kit.rewards.parts": "kit.records",
    "kit.parts": "kit.records",
    "kit.rewards.ask": "kit.rewards.composer",
    "kit.rewards.static": "kit.rewards.components",
    "kit.rewards.steps": "kit.rewards.composer",
    "kit.judge.checks": "kit.checks",
    "kit.judge.checks_rules": "kit.checks.rules",
    "kit.judge.checks_text": "kit.checks.text",
    "kit.judge.checks_language": "kit.checks.language",
    "kit.judge.base": "kit.judge.session",
    "kit.judge.bill": "kit.judge.prices",
    "kit.judge.escalate": "kit.judge.panel",
    "kit.judge.ladder": "kit.judge.attacks",
    "kit.judge.layout": "kit.judge.templates",
    "kit.judge.lines": "kit.judge.forms",
    "kit.judge.objects": "kit.judge.forms",
    "kit.judge.prefix": "kit.judge.local",
    "kit.judge.reasons": "kit.judge.parse",
    "kit.judge.rows": "kit.judge.exchange",
    "kit.judge.served": "kit.judge.server",
    "kit.judge.thoughts": "kit.judge.parse",
    "kit.params": "kit.settings.params",
    "kit.profiles": "kit.settings.profiles",
    "kit.paths": "kit.system.paths",
    "kit.processes": "kit.system.processes",
    "kit.progress": "kit.system.progress",
    "kit.headless": "kit.runs.headless",
    "kit.sweep": "kit.runs.sweep",
    "kit.report": "kit.runs.report",
    "kit.compare": "kit.runs.compare",
    "kit.data.published": "kit.calibration.published",
    "kit.data.given": "kit.data.load",
    "kit.data.kinds": "kit.data.files",
    "kit.data.lists": "kit.data.values",
    "kit.rubrics.sketches": "kit.rubrics.corpus",
    "kit.stats.macro": "kit.stats.rates",
    "kit.stats.policies": "kit.stats.correction",
    "kit.data.notes": "kit.data.findings",
    "kit.data.plain": "kit.data.jsonl",
    "kit.calibration.recompute": "kit.calibration.published",
    "kit.train.unsloth_engine": "kit.train.models",
    "kit.train.payment": "kit.train.reward",
    "kit.train.needs": "kit.train.inputs",
    "kit.train.pooling": "kit.train.evaluation",
    "kit.train.packed_rows": "kit.train.packing",
    "kit.train.gguf_file": "kit.train.export",
    "kit.train.kl": "kit.train.trainer",
    "kit.train.sentinels": "kit.train.audit",
    "kit.train.holdout": "kit.train.inputs",
    "kit.rewards.config": "kit.rewards.components",
    "kit.claims.amounts": "kit.claims.bags",
    "kit.claims.slots": "kit.claims.compare",
    "kit.confidence.languages": "kit.confidence.grammar",
    "kit.confidence.scores": "kit.confidence.reader",
    "kit.people.grades": "kit.people.labels",
    "kit.tuning.candidates": "kit.tuning.study",
    "kit.tuning.simulate": "kit.tuning.study",
    "kit.tuning.stability": "kit.tuning.study",
    "kit.stats.ordinal": "kit.stats.ranking",
    "kit.stats.risk": "kit.stats.ranking",
    "kit.stats.panel": "kit.stats.raters",
    "kit.calibration.baselines": "kit.calibration.scores",
    "kit.judge.address": "kit.judge.keys",
    "kit.judge.budget": "kit.judge.prices",
    "kit.rewards.formatting": "kit.rewards.components",
    "kit.html": "kit.page",
}


def place(name: str) -> str | None:
    """Where the module of this old name is now; None for a name that never moved."""
    head, tail = name, ""
    while head and head not in MOVED:
        head, _, last = head.rpartition(".")
        tail = f".{last}{tail}"
    return MOVED[head] + tail if head else None


class _Moved(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Asked first: the path of a moved package would find its submodules a second time."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not name.startswith("kit.") or place(name) is None:
            return None
        return importlib.machinery.ModuleSpec(name, self)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        new = place(spec.name)
        assert new is not None
        warnings.warn(
            f"{spec.name} is now {new}; the old name goes away in version 0.3",
            DeprecationWarning,
            stacklevel=2,
        )
        module = importlib.import_module(new)
        self._kept = (module.__spec__, getattr(module, "__loader__", None))
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__, module.__loader__ = self._kept


def install() -> None:
    """Make the old names importable. Called once, by `import kit`."""
    if not any(isinstance(finder, _Moved) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Moved())
