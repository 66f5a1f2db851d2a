"""Five real evaluation files: the composed reward follows from the stored verifier scores to 1e-12."""

import json
import math
from pathlib import Path

import pytest

from kit.records import Part, Response, Task
from kit.rewards import components
from kit.rewards.composer import Composer

FOLDER = Path(__file__).resolve().parents[2] / ".." / "shared" / "data" / "biorlhf"
FILES = sorted(FOLDER.glob("grpo_*eval*.json"))
# In the files V1 is the direction (pathway) verifier, V2 the factual one: the scores of V1 are values of the pathway formula.
NAMES = {"V1": "direction", "V2": "factual", "V3": "consistency", "V4": "uncertainty"}


@pytest.mark.skipif(not FILES, reason="the real files are not here (../shared/data/biorlhf)")
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_composed_rewards(path, monkeypatch):
    rows = json.loads(path.read_text(encoding="utf-8"))["per_sample"]
    composer = Composer.from_config("biorlhf_published")
    stored: dict[str, float] = {}

    def given(kind, name, options, task, response, verdicts):
        return Part.known(name, stored[name]) if name in stored else Part.absent(name)

    monkeypatch.setattr(components, "score", given)
    for i, row in enumerate(rows):
        stored = {NAMES[k]: v for k, v in row["verifier_scores"].items()}
        g = composer.score(
            Task(id="t", prompt=row["prompt"]),
            Response(task_id="t", id=str(i), text=row["response"]),
            [],
        )
        assert abs(g.score - row["total_reward"]) <= 1e-12
        assert math.fsum(v for v in g.parts.values() if v is not None) == pytest.approx(
            g.score, abs=1e-12
        )
    mean = json.loads(path.read_text(encoding="utf-8"))["grpo"]["mean_reward"]
    assert mean == pytest.approx(sum(r["total_reward"] for r in rows) / len(rows), abs=1e-12)


def test_five_files_or_none():
    assert len(FILES) in (0, 5)
