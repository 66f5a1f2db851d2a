"""The task set `data/ladder.jsonl`: short questions with one right answer, each rung harder than
the last.

    python data/make_ladder.py OUT.jsonl --seed 1      # the same design, other questions

Sums of numbers of one, two and three digits; three, four and five letters in reverse; and questions
that nobody can answer, where "unknown" is right. Decided by code, exact but for case and full stop.
No text is in both splits, but of one-digit sums there are only 81, 45 up to the order of their
numbers: 15 of the 20 that are held out (seed 0) are trained ones with the numbers swapped. So that
rung shows what was remembered as well as what was learnt; notebook 6 shows the score without them.
No row of letters reads the same backwards, so that repeating the question is never right.
"""

from __future__ import annotations

import argparse
import json
import random
import string
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kit.records import Criterion, Task

SYSTEM = 'Give the answer alone, or "unknown" if nobody can know it.'
UNKNOWN = "unknown"
COUNTS = {"train": 60, "heldout": 20}  # questions per rung
NAMES = "Tor Mar Bel Kas Vin Dru Hal Pel Zan Gor Lim Fer Nod Quil Ras Sem".split()
ENDS = "vin ek an ric os una dor lis mek tia".split()
HIDDEN = (
    "In which year was {} born?",
    "How old is {}?",
    "What is {} thinking of?",
    "What is 7 + the age of {}?",
    "How many coins has {}?",
    "Reverse the letters of the word that {} hides.",
)


def _sum(digits: int) -> Callable[[random.Random], tuple[str, str]]:
    low, high = (1, 9) if digits == 1 else (10 ** (digits - 1) + 1, 10**digits - 1)

    def make(rng: random.Random) -> tuple[str, str]:
        a, b = rng.randint(low, high), rng.randint(low, high)
        return f"What is {a} + {b}?", str(a + b)

    return make


def _reverse(letters: int) -> Callable[[random.Random], tuple[str, str]]:
    def make(rng: random.Random) -> tuple[str, str]:
        row = rng.sample(string.ascii_lowercase, letters)
        return f"Reverse the letters: {' '.join(row)}", " ".join(row[::-1])

    return make


def _hidden(rng: random.Random) -> tuple[str, str]:
    name = f"{rng.choice(NAMES)}{rng.choice(ENDS)}"
    return rng.choice(HIDDEN).format(name), UNKNOWN


RUNGS: dict[str, Callable[[random.Random], tuple[str, str]]] = {
    "sum 1": _sum(1),
    "sum 2": _sum(2),
    "sum 3": _sum(3),
    "reverse 3": _reverse(3),
    "reverse 4": _reverse(4),
    "reverse 5": _reverse(5),
    "unknown": _hidden,
}


def tasks(seed: int = 0) -> list[Task]:
    """The whole set, its rungs in turn; the same seed gives the same questions.

    >>> from kit.training.rows import exact_answer
    >>> made = tasks()
    >>> len(made), made[0].prompt, exact_answer(made[0]), made[6].kind
    (560, 'What is 9 + 7?', '16', 'unknown')
    """
    rungs = {k: _rung(k, seed) for k in RUNGS}
    counts = COUNTS.items()
    places = [(s, i) for s, n in counts for i in range(n)]
    return [_task(k, s, i, *rungs[k].pop()) for s, i in places for k in RUNGS]


def _rung(kind: str, seed: int) -> list[tuple[str, str]]:
    """As many different questions as both splits need."""
    rng, found = random.Random(f"{seed}/{kind}"), {}
    while len(found) < sum(COUNTS.values()):
        question, right = RUNGS[kind](rng)
        found[question] = right
    return list(found.items())


def _task(kind: str, split: str, i: int, question: str, right: str) -> Task:
    exact = Criterion(
        id="right",
        text=f"The answer is {right}.",
        check={"name": "exact", "answers": [right]},
    )
    return Task(
        id=f"{kind.replace(' ', '')}-{split}-{i:02d}",
        prompt=question,
        system=SYSTEM,
        criteria=(exact,),
        split=split,
        kind=kind,
        group=kind,
        truth={"answerable": right != UNKNOWN},
    )


def _criteria(task: Task) -> dict[str, Any]:
    return {
        "criteria": [
            {"id": c.id, "text": c.text, "check": c.check} for c in task.criteria
        ]
    }


def write(path: str | Path, seed: int = 0) -> None:
    """The set as JSONL, one task a line."""
    kept = ("id", "prompt", "system", "split", "kind", "group", "truth")
    rows = [
        json.dumps({k: getattr(t, k) for k in kept} | _criteria(t))
        for t in tasks(seed)
    ]
    Path(path).write_text("\n".join(rows) + "\n", "utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", help="the file to write, JSONL")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    write(given.out, given.seed)
