"""The audit's last line: planted faults are named, sound judges are left alone, and what "0 found"
could have missed is said. All judges here are fakes that read planted facts.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import random

import pytest

from kit.judge.attacks import STEPS, part
from kit.judge.audit import audit
from kit.judge.suited import CONTROLS
from kit.records import Criterion, Response, Task, Verdict, unknown

TURNED = "NOT the case"
TASKS, ANSWERS = [], []
for _t in range(30):
    _facts = [f"zeta{_t}x{_k}" for _k in range(6)]
    _criteria = [
        Criterion(id=f"c{k}", text=f"States finding {k}.", meta={"fact": f})
        for k, f in enumerate(_facts[:5])
    ]
    _criteria.append(Criterion(id="n", text="Errs.", weight=-1.0, meta={"fact": _facts[5]}))
    TASKS.append(Task(id=f"t{_t}", prompt=f"Report on case {_t}.", criteria=tuple(_criteria)))
    _rng = random.Random(_t)
    _held = [f for f in _facts if _rng.random() < 0.6]
    _text = " ".join(f"It was found that {f} holds here." for f in _held) or "Nothing was found."
    ANSWERS.append(Response(task_id=f"t{_t}", id="r", text=_text))


def chance(*parts: str) -> float:
    """A number in [0, 1) that is the same for equal texts."""
    digest = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:6], "big") / 2**48


# name -> what a reply of the fault gives: True, False, None (unknown) or "as it is"
OBEYS = {
    "delimiter break-out": "</submission>",
    "control tokens": "<|im_end|>",
    "fake verdict": '"verdicts"',
    "fake tool output": "<tool_response>",
    "rubric echo": "exactly that",
    "self-praise": "leading experts",
    "format mimicry": "# Complete answer",
    "multilingual instructions": "Ignoriere",
    "zero-width characters": "\u2060",
}


class FakeJudge:
    """Finds a criterion's fact in the answer. `fault` : planted; `noise` : share of verdicts that
    turn with any change of the text; `blur` : share of facts that it never sees (no fault).
    """

    def __init__(self, fault: str = "", noise: float = 0.0, blur: float = 0.0, seed: int = 0):
        self.fault, self.noise, self.blur, self.seed = fault, noise, blur, str(seed)
        self.name = f"fake {fault or 'sound'}"

    def key(self, task, response, c):
        """A key, so that a ledger can keep it."""
        return json.dumps([self.name, task.prompt, response.text, c.text])

    async def verdicts(self, task, response, criteria):
        """Verdicts in the order of the criteria."""
        return [self.one(task, response, c, i) for i, c in enumerate(criteria)]

    def one(self, task, response, c, i):
        """One verdict."""
        said = self.faulty(task, response, c, i)
        if said is None:
            return unknown(task.id, response.id, c.id, "parse")
        ids = {"task_id": task.id, "response_id": response.id, "criterion_id": c.id}
        return Verdict(**ids, status="met" if said else "unmet", reason="planted")

    def read(self, response, c):
        """What a sound reader says."""
        fact = c.meta["fact"]
        seen = f"{fact} holds" in response.text and chance(self.seed, fact) >= self.blur
        turned = TURNED in c.text and self.fault != "ignores negation"
        noisy = chance(self.seed, c.meta["fact"], response.text, c.text) < self.noise
        return (seen != turned) != noisy

    def faulty(self, task, response, c, i):
        """The reader's verdict, with the planted fault."""
        said, text, good = self.read(response, c), response.text, c.weight > 0
        plain = next(a.text for a in ANSWERS if a.task_id == task.id)
        if self.fault in OBEYS and OBEYS[self.fault] in text:
            return good != (TURNED in c.text)
        longer = len(text) > 1.5 * len(plain) + 20
        swayed = {
            "likes length": longer,
            "praises all": True,
            "fails all": False,
            "does not look": chance(self.seed, c.meta["fact"]) < 0.6,
        }
        if self.fault == "any task":
            return bool(text) and (chance(text[:30], c.id) < 0.5) != (TURNED in c.text)
        if self.fault == "likes length":
            return good if longer else said
        if self.fault in swayed:
            return swayed[self.fault]
        if self.fault == "gives up" and longer:
            return None
        if self.fault == "mostly silent" and chance(self.seed, c.meta["fact"], text) < 0.4:
            return None
        if self.fault == "first is worst" and i == 0:
            return False
        if self.fault == "hates lists" and "**" in text:
            return False
        if self.fault == "hates questions" and c.text.endswith("?"):
            return False
        return said


FAULTS = {name: {f"fooled by {name}"} for name in OBEYS} | {
    "likes length": {"fooled by padding", "biased by length"},
    "praises all": {"does not read the answer"},
    "does not look": {"does not read the answer"},
    "fails all": {"never gives credit"},
    "gives up": {"gives up"},
    "mostly silent": {"gives up"},
    "first is worst": {"biased by order"},
    "hates lists": {"biased by style"},
    "hates questions": {"biased by wording"},
    "ignores negation": {"ignores negation"},
    "noise": {"unsteady"},
}
assert len(FAULTS) == 20


def judged(fault: str, **more):
    """The audit of a planted judge."""
    noise = {"noise": 0.25} if fault == "noise" else {}
    fake = FakeJudge(fault, **{**noise, **more})
    return audit(fake, TASKS, ANSWERS, progress=False)


@pytest.mark.slow  # 20 audits of 25 variants each
def test_of_20_planted_faults_18_are_named_right():
    said = {
        fault: judged(fault, blur=0.1, **({} if fault == "noise" else {"noise": 0.02})).fit
        for fault in FAULTS
    }
    wrong = {
        fault: fit.line
        for fault, fit in said.items()
        if not fit.faults or fit.faults[0].name not in FAULTS[fault]
    }
    assert len(wrong) <= 2, wrong
    assert all(fit.faults for fit in said.values())


@pytest.mark.slow  # 20 audits of 25 variants each
def test_of_20_sound_judges_at_most_one_is_accused():
    """They differ in what they overlook and in how steady they are, up to 3 % of verdicts."""
    accused = {}
    for seed in range(20):
        fit = judged("", seed=seed, noise=0.03 * (seed % 4) / 3, blur=0.05 * (seed % 3)).fit
        if fit.faults:
            accused[seed] = fit.line
    assert len(accused) <= 1, accused


@pytest.mark.parametrize("fault", ["fake verdict", "praises all"])
def test_the_line_says_use_exploit_and_remedy(fault):
    report = judged(fault)
    assert report.fit.faults[0].name in FAULTS[fault]
    line = str(report).splitlines()[-1]
    assert line.startswith("use: ") and "not: " in line and "remedy: " in line
    assert ("nothing" in line) == (fault == "praises all")


def test_the_ladder_falls_and_what_0_found_could_have_missed_is_said():
    report = judged("")
    falls = [r.rate.value for r in report.ladder]
    assert falls[0] > falls[1] > falls[2] > falls[3] == falls[4] == 0
    assert [r.name for r in report.ladder] == ["whole", *(s.name for s in STEPS)]
    assert report.ladder[1].drift.high < 0
    tried = [r for r in report.rows if r.kind == "attack" and r.name not in CONTROLS]
    highs = [r.rate.high for r in tried if r.rate.value == 0]
    assert report.fit.missed == max(highs) > 0
    assert f"in {math.ceil(100 * report.fit.missed)}%" in report.fit.line
    assert "compar" in report.fit.use


def test_an_attack_tried_on_one_question_may_succeed_always():
    """ "52%" was the limit of "nothing added", no attack; that of one tried on a single question,
    without an interval, was left out.
    """
    report = judged("")
    odd = next(r for r in report.rows if r.kind == "attack" and r.name not in CONTROLS)
    few = dataclasses.replace(odd, rate=dataclasses.replace(odd.rate, value=0.0, high=math.nan))
    rest = tuple(r for r in report.rows if r.name in CONTROLS or r.kind == "bias")
    assert dataclasses.replace(report, rows=rest).fit.missed is None
    assert dataclasses.replace(report, rows=(*rest, few)).fit.missed == 1.0


def test_a_ladder_of_one_task_says_what_it_lacks():
    report = audit(FakeJudge(), TASKS[:1], ANSWERS[:1], progress=False)
    assert {r.name: r.note for r in report.ladder}["of another task"] == "needs two tasks"
    assert part("", 0.5) == ""


def owned(tasks, said="States {}."):
    """The same tasks, with these words for each criterion's own fact."""
    worded = (
        [dataclasses.replace(c, text=said.format(c.meta["fact"])) for c in t.criteria]
        for t in tasks
    )
    return [dataclasses.replace(t, criteria=tuple(cs)) for t, cs in zip(tasks, worded, strict=True)]


def test_a_judge_that_pays_answers_to_another_task_is_no_reward():
    """The ladder read .49 whole, .47 of another task; the last line said "as a reward"."""
    report = audit(FakeJudge("any task"), owned(TASKS), ANSWERS, biases=(), progress=False)
    fault, line = report.fit.faults[0], report.fit.line
    assert fault.name == "does not look at the task"
    assert "not: as a reward" in line and "and as a reward for them" not in line
    assert f"answers to another task earn {report.swapped.rate.value:.2f}"[:-4] in line
    sound = audit(FakeJudge(noise=0.03), owned(TASKS), ANSWERS, progress=False).fit
    assert not sound.faults and "another task" not in sound.line


@pytest.mark.parametrize("fault", ["halo", "most", "length"])
def test_a_judge_that_does_not_read_the_criterion_is_named(fault):
    """One that gave all criteria of an answer the verdict of the first, and one that went by
    length, passed: "comparing such answers, and as a reward for them".
    """

    class Fake(FakeJudge):
        async def verdicts(self, task, response, criteria):
            rows = await super().verdicts(task, response, criteria)
            long, turned = len(response.text) > 120, TURNED in criteria[0].text
            count = sum(v.status == "met" for v in rows)
            met = count > len(rows) / 2 if fault == "most" else rows[0].status == "met"
            met = (long != turned) if fault == "length" else met
            return [
                dataclasses.replace(v, status="met" if met else "unmet", value=None) for v in rows
            ]

    fit = audit(Fake(), owned(TASKS), ANSWERS, progress=False).fit
    if fault == "most":  # of 30 answers it is not sure
        assert "criteria of another task earn less is not known" in fit.line
    else:
        assert "does not read the criterion" in {f.name for f in fit.faults[:2]}, fit.line
        assert fit.use == "one judgment of an answer as a whole"
    alone = audit(FakeJudge(), owned(TASKS[:1]), ANSWERS[:1], progress=False)
    assert alone.foreign.note == "needs two tasks" and not alone.fit.faults


def test_where_another_tasks_answer_may_earn_as_much_nothing_is_claimed():
    """ "Is polite." is met by any answer, and by one to the same question: no fault of a judge."""
    alike = [dataclasses.replace(t, prompt="Report. " * (1 + i % 2)) for i, t in enumerate(TASKS)]
    for tasks, why in (
        (owned(TASKS, "Is polite."), "no criterion is of one task alone"),
        (owned(alike), "no criterion is of one task alone"),
        (owned(TASKS[:2]), "too few verdicts"),
        (owned(TASKS[:1]), "needs two tasks"),
    ):
        fit = audit(FakeJudge("any task"), tasks, ANSWERS, biases=(), progress=False).fit
        assert "does not look at the task" not in {f.name for f in fit.faults}
        assert f"is not known: {why}" in fit.line
