"""Store finished runs for `kit.training.stored`: `python data/store_runs.py NAME "seed 0=FOLDER" ...`.

NAME is a config of STORED_RUNS. Its file, learning.json or ladder_runs.json, gets the held-out answers before each
run and after each of its stages. A run whose rewards were shuffled is `control=FOLDER`.
"""

import json
import sys
from pathlib import Path

from kit.errors import DataError
from kit.evaluation import Result
from kit.evaluation.stored_runs import STORED_RUNS
from kit.system import paths


def main(name: str, folders: dict[str, str | Path], file: Path) -> None:
    """Write finished runs in place of what the file holds of this config."""
    data = json.loads(file.read_text("utf-8")) if file.exists() else {}
    data[name] = {}
    for run, folder in folders.items():
        result = Result.read(folder)
        if not result.looks:
            raise DataError("the run held nothing out", where=str(folder))
        stages = {}
        for stage, look, _ in result.looks:
            # a training of one stage has a before and an after
            answers = [(r.task_id, r.text, r.confidence) for r in look.responses]
            stages[stage if result.stages else look.name] = {"answers": answers}
        data[name][run.removeprefix("seed ")] = stages
    file.write_text(json.dumps(data, indent=0, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    name, *runs = sys.argv[1:]
    main(
        name,
        dict(run.split("=", 1) for run in runs),
        paths.data(STORED_RUNS[name][0]),
    )
