"""GEPA search with a fake judge and a fake LM: the better instructions are found, unknown verdicts are no agreement."""

import pytest

from kit.errors import DataError
from kit.records import Criterion, Response, Task, Verdict, unknown
from kit.tuning import makers, search

gepa = pytest.importorskip("gepa")
STRICT = "Read each criterion strictly."


class FakeJudge:
    """Passes everything, unless its instructions are strict: then it reads the answer. It cannot read "odd" answers."""

    def __init__(self, instructions):
        self.instructions, self.name = instructions, "fake"
        self.asked = 0

    async def verdicts(self, task, response, criteria):
        FakeJudge.calls = getattr(FakeJudge, "calls", 0) + 1
        met = "good" in response.text if STRICT in self.instructions else True
        ids = {"task_id": task.id, "response_id": response.id}
        if "odd" in response.text:
            return [unknown(**ids, criterion_id=c.id, failure="parse") for c in criteria]
        return [
            Verdict(**ids, criterion_id=c.id, status="met" if met else "unmet", reason="because")
            for c in criteria
        ]


class FakeLM:
    """Writes strict instructions, and keeps what it was shown."""

    def __init__(self):
        self.seen = []

    def __call__(self, prompt):
        self.seen.append(prompt)
        return f"```\n{STRICT}\n```"


def labelled(n=24):
    rows = []
    for i in range(n):
        task = Task(
            id=f"t{i}",
            prompt=f"Question {i}",
            criteria=(Criterion(id="a", text="Is right."), Criterion(id="b", text="Is clear.")),
        )
        good = i % 3 == 0
        answer = Response(task_id=task.id, id="r", text="a good answer" if good else "a bad answer")
        rows += [search.Labelled(task, answer, c, float(good), f"t{i}") for c in task.criteria]
    return rows


def test_search_finds_the_better_instructions():
    lm, rows = FakeLM(), labelled()
    found = search.search(
        rows, make_judge=FakeJudge, reflect=lm, seed_text="Be kind.", max_rows=120
    )
    assert found.instructions["seed"] == "Be kind." and STRICT in found.instructions.values()
    best = max(found.train_scores, key=found.train_scores.get)
    assert found.instructions[best] == STRICT and found.judged_rows > 0
    assert "Wrong: people say not met." in lm.seen[0] and "Be kind." in lm.seen[0]


def test_the_criteria_of_one_answer_go_out_together():
    rows = labelled(10)
    FakeJudge.calls = 0
    verdicts = search.ask(FakeJudge, STRICT, rows[::-1])
    assert FakeJudge.calls == 10 and [v.criterion_id for v in verdicts[:2]] == ["b", "a"]
    assert [(v.task_id, v.response_id) for v in verdicts] == [
        (r.task.id, r.response.id) for r in rows[::-1]
    ]


def test_unknown_is_no_agreement_and_says_why():
    row = labelled(1)[0]
    odd = search.Labelled(row.task, Response(task_id="t0", id="r", text="odd"), row.criterion, 1.0)
    adapter = search.JudgeAdapter(FakeJudge, {0.0: 1.0, 1.0: 2.0})
    batch = adapter.evaluate([odd, row], {search.COMPONENT: STRICT}, capture_traces=True)
    assert batch.scores == [0.0, 2.0]
    lessons = adapter.make_reflective_dataset({}, batch, [search.COMPONENT])[search.COMPONENT]
    assert (
        "no usable verdict (parse)" in lessons[0]["Generated Outputs"]["Verdict"]
        and "Wrong" in lessons[0]["Feedback"]
    )


def test_labels_of_one_kind_are_refused():
    with pytest.raises(DataError, match="same"):
        search.search(
            [r for r in labelled() if r.human],
            make_judge=FakeJudge,
            reflect=FakeLM(),
            seed_text="x",
        )


def test_a_made_judge_keeps_the_frame():
    make = makers.maker({"endpoint": "m", "base_url": "http://127.0.0.1:9/v1"})
    judge = make("Be strict.")
    assert judge.template.system == "Be strict." and "{criteria}" in judge.template.user
    assert judge.template.id != make("Be kind.").template.id
