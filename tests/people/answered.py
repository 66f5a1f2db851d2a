"""Small files of tasks, labels and grades for the tests of this folder."""

from __future__ import annotations

import json
from pathlib import Path

CRITERIA = [("c0", 1.0), ("c1", 2.0), ("n", -1.0)]


def write(path: Path, rows: list) -> str:
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    return str(path)


def made(folder: Path, prompts: int = 20, answers: int = 2) -> tuple[str, str, str]:
    """Tasks, labels and grades; the judge misses `c1` in every third answer."""
    tasks, labels, grades = [], [], []
    for t in range(prompts):
        criteria = [{"id": c, "text": f"text of {c}", "weight": w, "meta": {}} for c, w in CRITERIA]
        code = {"id": "k", "text": "short", "check": {"name": "words", "max": 9}, "meta": {}}
        tasks.append({"id": f"t{t}", "prompt": f"question {t}", "criteria": [*criteria, code]})
        for a in range(answers):
            i = t * answers + a
            truth = {"c0": i % 2, "c1": int(i % 4 < 2), "n": i % 3 == 0, "k": 1}
            said = {**truth, "c1": truth["c1"] ^ (i % 3 == 0)}
            ids = {"task_id": f"t{t}", "response_id": f"r{a}"}
            labels.append({**ids, "response": "An answer.", "labels": truth})
            verdicts = [
                {
                    "criterion_id": c,
                    "status": "met" if v else "unmet",
                    "reason": f"because {i}",
                    "judge": "code" if c == "k" else "j",
                    "p": 0.9 if v else 0.1,
                }
                for c, v in said.items()
            ]
            if i == 1:
                verdicts[0] = {"criterion_id": "c0", "status": "unknown", "failure": "parse"}
            ends = {"score": 0.5, "score_low": 0.5, "score_high": 0.5}
            grades.append({**ids, **ends, "verdicts": verdicts})
    return (
        write(folder / "tasks.jsonl", tasks),
        write(folder / "labels.jsonl", labels),
        write(folder / "grades.jsonl", grades),
    )


def rows_of(path: str) -> list:
    """The rows of a JSONL file."""
    return [json.loads(line) for line in Path(path).read_text().splitlines()]
