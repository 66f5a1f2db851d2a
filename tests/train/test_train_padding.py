"""Padding over a run: the alarm fires on rollouts that grow by filler or repetition, and stays quiet on honest ones that grow. Offline."""

from __future__ import annotations

import random
import re

import pytest

from kit.data import load_tasks
from kit.judge.attacks import FILLER
from kit.plots import training as plots
from kit.records import Criterion, Task
from kit.system import paths
from kit.train import grpo, monitor, padding
from kit.train.config import GRPOSettings, build
from kit.train.presets import preset
from kit.widgets import training as widgets

# Filler in words of its own: none of it was looked at when the list of light words was made.
FRESH = """It bears repeating that this is a matter of some weight.
Before going further, let us pause and think about what has been said so far.
Needless to say, there is always more to be said.
As we all know, things are rarely as simple as they first appear.
At the end of the day, what counts is that the question has been given the care it merits.
To put it another way, the picture is rich and full of detail.
In light of the above, the reader may wish to reflect on what this means.
I hope that this helps to make the whole thing a little clearer.""".split("\n")
STEPS = 24


def pool():
    out = []
    for file in ("answers.jsonl", "citation_answers.jsonl", "fact_answers.jsonl"):
        tasks = {
            "answers.jsonl": "rubrics.json",
            "citation_answers.jsonl": "citations.jsonl",
            "fact_answers.jsonl": "facts.jsonl",
        }[file]
        known = load_tasks(paths.data(tasks))
        assert known.tasks
        out += [
            (r.task_id, r.text)
            for r in load_tasks(paths.data(file)).responses
            if r.source in ("good", "middling", "bad")
        ]
    return out


POOL = pool()


def pad(text, n, how, rng):
    said = [s for s in re.split(r"(?<=[.!?])\s+|\n+", text) if s.strip()]
    added, i = [], rng.randrange(100)
    while sum(len(a.split()) for a in added) < n:
        added.append(
            {
                "filler": FILLER[i % len(FILLER)],
                "fresh": FRESH[i % len(FRESH)],
                "repeats": "In other words, " + said[i % len(said)],
            }[how]
        )
        i += 1
    return " ".join([text, *added])


def run(seed, how, *, reward_rises=True):
    """A made-up run: 4 prompts x 4 answers a step. honest: ever more of the answer's own sentences; else: ever more padding."""
    rng, watch, rows = random.Random(seed), padding.Growth(), []
    for step in range(STEPS):
        done = step / (STEPS - 1)
        answers = []
        for _ in range(4):
            (task, text), (_, other) = rng.choice(POOL), rng.choice(POOL)
            for _ in range(4):
                if how == "honest":  # twice the content at the end
                    said = [s for s in re.split(r"(?<=[.!?])\s+", f"{text} {other}") if s]
                    answer = " ".join(
                        said[
                            : max(1, round(len(said) * min(1.0, rng.gauss(0.5 + 0.5 * done, 0.1))))
                        ]
                    )
                else:
                    answer = (
                        text
                        if how == "flat"
                        else pad(
                            text,
                            int(len(text.split()) * max(0.0, rng.gauss(1.2 * done, 0.2))),
                            how,
                            rng,
                        )
                    )
                answers.append(
                    {"task_id": task, "text": answer, "reward": done if reward_rises else 1 - done}
                )
        rows.append(
            {
                "words": sum(len(a["text"].split()) for a in answers) / len(answers),
                "reward": answers[0]["reward"],
                **padding.measure(answers),
            }
        )
        watch.check(rows[-1])
    return watch.alarm, rows


@pytest.mark.parametrize("how", ["filler", "fresh", "repeats"])
def test_padded_runs_raise_the_alarm(how):
    """18 of 20 such runs each, when measured."""
    alarms = [run(seed, how)[0] for seed in range(8)]
    assert sum(a is not None for a in alarms) >= 6
    assert all("says nothing new" in a for a in alarms if a)


@pytest.mark.parametrize("how", ["flat", "honest"])
def test_honest_runs_are_left_alone(how):
    """A sample of the 840 clean runs behind the stated rate (kit.train.padding); an alarm in 2% of runs would show here one time in three."""
    assert [a for a in (run(100 + seed, how)[0] for seed in range(20)) if a] == []


def test_growth_that_is_not_paid_raises_no_alarm():
    assert run(0, "repeats")[0] and run(0, "repeats", reward_rises=False)[0] is None


def test_what_answers_to_other_prompts_say_too_is_empty():
    own = [
        f"The {w} river rises in the {v} hills. Bright morning songs carry across frozen valleys tonight."
        for w, v in (("Oder", "western"), ("Elbe", "southern"))
    ]
    rows = [{"task_id": str(i), "text": t, "reward": float(i)} for i, t in enumerate(own)]
    assert (
        padding.measure(rows)["empty_words"] == 8 and padding.measure(rows[:1])["empty_words"] == 0
    )
    assert (
        padding.measure(rows)["length_reward"] is None
        and padding.measure([])["empty_words"] is None
    )
    paid = [
        {"task_id": "t", "text": "word " * n, "reward": r}
        for n, r in ((3, 0.1), (6, 0.4), (9, 0.7), (5, None))
    ]
    assert padding.measure(paid)["length_reward"] == pytest.approx(1.0)


def test_unknown_steps_are_passed_over_and_zero_counts_only():
    quiet = padding.Growth(on=False)
    _, rows = run(0, "repeats")
    assert all(quiet.check(r) is None for r in rows) and len(quiet.steps) == STEPS
    loud = padding.Growth()
    for r in rows:
        loud.check({**r, "reward": None})
    assert loud.alarm is None and loud.steps == []


def test_while_training_it_stops_the_run_where_that_is_set(tmp_path, monkeypatch, caplog):
    """That an alarm without sentinel_stop lets a run go on is tested with the other sentinels: the code is the same."""
    turn = iter(range(100))
    real = monitor.summary

    def grows(rows, names=None):
        n = next(turn) if rows else 0
        return {
            **real(rows),
            "words": 20.0 + 10 * n,
            "empty_words": 10.0 * n + n % 2,
            "reward": 0.1 * n,
        }

    monkeypatch.setattr(monitor, "summary", grows)
    monkeypatch.setattr(padding, "SPAN", 2)
    task = [
        Task(
            id=f"t{i}",
            prompt=f"say {i}",
            criteria=(
                Criterion(id="c", text="x", check={"name": "contains", "any": list("aeiou")}),
            ),
        )
        for i in range(4)
    ]
    r = grpo.train(
        build(
            GRPOSettings,
            {**preset("test"), "steps": 6, "sentinel_alarm": 1.0, "sentinel_stop": True},
        ),
        task,
        out=tmp_path,
    )
    steps = r.steps()
    first = next(i for i, s in enumerate(steps) if s["alarms"])
    assert (
        first >= 3
        and steps[first]["alarms"][0].startswith("padding: answers grew")
        and len(steps) < 6
    )
    assert r.metrics["padding_alarm"] in steps[-1]["alarms"][0] and r.metrics["stopped"] is not None
    assert sum("padding: answers grew" in m for m in caplog.messages) == 1
    html = widgets.status_html(steps)
    assert "words that say nothing new" in html and "padding: answers grew" in html
    fig = plots.sentinels(steps)
    assert (
        any(t.name == "words that say nothing new" for t in fig.data)
        and len(fig.layout.shapes) == 1
    )
    assert plots.table(steps)[0]["empty_words"] is not None
