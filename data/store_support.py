"""Store finished trainings of train_support.py: `python data/store_support.py [FOLDER]`.

Every held-out answer, and a fixed reply, is graded by two judges: the one that paid the tuned trainings, and a second
one that paid them nothing (the same model with the kit's own text). What FOLDER/ledger.sqlite holds is not asked again.
Writes three files:
support_runs.json, support_run_answers.jsonl and support_run_verdicts.jsonl.gz.
"""

import gzip
import json
import sys
from pathlib import Path

from train_support import JUDGES

import kit
from kit.evaluation import Result
from kit.system import paths

LOOKS = {"tuned": JUDGES["tuned"], "second": JUDGES["untuned"]}
# a baseline without skill
FIXED = "We are sorry. What is your order number?"
FIELDS = ("task_id", "response_id", "criterion_id", "status", "p")


def answers_of(name: str, evaluation, prefix: str) -> list[kit.Response]:
    """The held-out answers of one model; its name is their source."""
    return [
        kit.Response(
            task_id=r.task_id, id=f"{prefix}-{r.task_id}", text=r.text, source=name
        )
        for r in evaluation.responses
    ]


def main(folder: Path) -> None:
    """Read the finished runs in a folder, judge their answers, write the files."""
    answers, runs, ledger = [], {}, kit.Ledger(folder / "ledger.sqlite")
    for path in sorted(folder.glob("*-[0-9]")):
        result = Result.read(path)
        arm, seed = path.name.split("-")
        if arm == "sft":
            answers += answers_of(f"SFT, seed {seed}", result.after, f"sft-{seed}")
            continue
        answers += answers_of(f"{arm}, seed {seed}", result.after, path.name)
        steps = result.steps()
        runs[path.name] = {
            "arm": arm,
            "seed": int(seed),
            "rewards": steps["reward"].round(4).tolist(),
            "judge_calls": result.metrics["judge_calls"],
            "seconds": round(result.metrics["seconds"]),
            "trivial": result.trivial,
        }
        # what its training paid is not paid again
        kit.Ledger(path / "ledger.sqlite").export(folder / "paid.jsonl")
        ledger.load(folder / "paid.jsonl")
    tasks = Result.read(path).heldout
    answers += [
        kit.Response(
            task_id=t.id, id=f"fixed-{t.id}", text=FIXED, source="fixed reply"
        )
        for t in tasks
    ]
    verdicts = []
    for look, judge in LOOKS.items():
        table = kit.judge(tasks, answers, judge=judge, ledger=ledger)
        for v in table:
            row = {name: getattr(v, name) for name in FIELDS}
            verdicts.append(
                {
                    "record": "verdict",
                    **row,
                    "p": v.p and round(v.p, 4),
                    "judge": look,
                }
            )
    rows = [
        {
            "task_id": r.task_id,
            "response_id": r.id,
            "response": r.text,
            "source": r.source,
        }
        for r in answers
    ]
    paths.data("support_runs.json").write_text(
        json.dumps(runs, indent=0) + "\n", "utf-8"
    )
    write = paths.data("support_run_answers.jsonl").write_text
    write(
        "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8"
    )
    text = "".join(json.dumps(row) + "\n" for row in verdicts)
    # without a time stamp, equal verdicts make equal files
    paths.data("support_run_verdicts.jsonl.gz").write_bytes(
        gzip.compress(text.encode(), mtime=0)
    )


if __name__ == "__main__":
    main(Path(*sys.argv[1:]) if sys.argv[1:] else paths.runs() / "support")
