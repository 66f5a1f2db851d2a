"""Store the answers of finished trainings of train_confidence.py: `python data/store_confidence.py [FOLDER]`.

Writes confidence_answers.jsonl: held-out answers after SFT and after each arm, two to a question. The source names
stage and seed.
"""

import json
import sys
from pathlib import Path

from train_confidence import VERIFIERS

from kit.evaluation import Result
from kit.system import paths


def main(folder: Path) -> None:
    """Read the finished runs in a folder, write the file."""
    rows = []
    for path in sorted(folder.glob("*-[0-9]")):
        stage, seed = path.name.split("-")
        if stage not in VERIFIERS:
            continue
        run = Result.read(path)
        looks = {stage: run.after}
        if stage == "proper":
            # both arms begin with the same model
            looks["sft"] = run.before
        for name, look in looks.items():
            for n, answer in enumerate(look.responses):
                row = {
                    "task_id": answer.task_id,
                    "response_id": f"{name}-{seed}-{n}",
                    "response": answer.text,
                }
                rows.append({**row, "source": f"{name}, seed {seed}"})
    text = "".join(json.dumps(row) + "\n" for row in rows)
    paths.data("confidence_answers.jsonl").write_text(text, "utf-8")


if __name__ == "__main__":
    main(Path(*sys.argv[1:]) if sys.argv[1:] else paths.runs() / "confidence")
