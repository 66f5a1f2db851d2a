"""The local judge beside bare llama.cpp:  python tests/benchmarks/bench_local.py [--model small] [--rounds 4]

Both ask one word on the same criteria of new answers, through a server of the same file in the same process. Bare
llama.cpp is posted the very messages of the kit, one after the other, on one connection each, without a ledger. Rounds
take turns, because a busy neighbour slows both. `cached` is the share of prompt tokens that the server took from its
cache: the criteria of an answer share their beginning.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import urllib.request
from statistics import median
from typing import Any

import kit
from kit.judging import Question

TARGET = 0.9
PROMPTS, CRITERIA = 2, 4


def material(number: int) -> list[tuple[kit.Task, kit.Response]]:
    """Answers of a round, which no round had before."""
    tasks = kit.load(kit.system.paths.data("support.jsonl")).tasks[:PROMPTS]
    text = "Thank you for message {}. What is your order number?"
    return [
        (
            task,
            kit.Response(task_id=task.id, id=f"r{number}-{k}", text=text.format(10 * number + k)),
        )
        for task in tasks
        for k in range(2)
    ]


def bare(judge: Any, number: int) -> tuple[float, float]:
    """Verdicts a second of llama.cpp alone, and the share of prompt tokens from its cache."""
    bodies = []
    for task, answer in material(number):
        for c in task.criteria:
            request = next(judge.plan(Question.of(task, [answer], [c])))
            body = {"messages": request.messages, "max_completion_tokens": request.max_tokens}
            bodies.append(json.dumps({**body, **request.fields}).encode())
    base_url, key = judge.server.address_and_key()
    heads = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
    address, evaluated, total = f"{base_url}/chat/completions", 0, 0
    start = time.perf_counter()
    for body in bodies:
        with urllib.request.urlopen(urllib.request.Request(address, body, heads)) as reply:
            data = json.loads(reply.read())
        evaluated += data["timings"]["prompt_n"]
        total += data["usage"]["prompt_tokens"]
    seconds = time.perf_counter() - start
    return len(bodies) / seconds, 1 - evaluated / total


def through_the_kit(judge: Any, number: int) -> float:
    """Verdicts a second of `kit.judge`, with a ledger in memory."""
    pairs = material(number)
    tasks = {task.id: task for task, _ in pairs}.values()
    start = time.perf_counter()
    answers = [answer for _, answer in pairs]
    verdicts = kit.judge(list(tasks), answers, judge=judge, ledger=kit.Ledger(None), progress=False)
    assert verdicts.spent.calls == len(verdicts) and all(v.p is not None for v in verdicts)
    return len(verdicts) / (time.perf_counter() - start)


def main() -> None:
    """Print both rates and whether the target is met."""
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--model", choices=["small", "local"], help="default: small where it is fetched")
    p.add_argument("--rounds", type=int, default=4)
    a = p.parse_args()
    name = a.model or "small"
    try:
        judge = kit.judge_of(name)
    except kit.MissingError:
        print("the 1.5B model is not fetched (kit fetch judge): the 135M model instead")
        judge = kit.judge_of("local")
    bare(judge, 0)  # the model is loaded
    ours, theirs, cached = [], [], 0.0
    for n in range(1, a.rounds + 1):
        rate, cached = bare(judge, 2 * n)
        theirs.append(rate)
        ours.append(through_the_kit(judge, 2 * n + 1))
    ratio = median(x / y for x, y in zip(ours, theirs, strict=True))
    met = "met" if ratio >= TARGET else "MISSED"
    print(
        f"{judge.name}, {os.cpu_count()} threads, load {os.getloadavg()[0]:.1f}, {a.rounds} rounds"
    )
    print(
        f"bare llama.cpp {median(theirs):.2f} verdicts a second, {cached:.0%} of prompt tokens cached"
    )
    print(f"kit            {median(ours):.2f}, {ratio:.2f} of bare, target {TARGET}: {met}")


if __name__ == "__main__":
    main()
