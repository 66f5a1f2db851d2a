"""The audit finds the faults of judges that are made to have them, and finds none in a sound one."""

import asyncio
import json

import pytest

import kit
from kit.checks import check
from kit.errors import DataError
from kit.judge.attacks import ATTACKS, BIASES
from kit.judge.audit import audit
from kit.judge.ledger import Ledger
from kit.judge.replay import ReplayJudge
from kit.plots.judging import audit_page
from kit.records import Criterion, Response, Task, Verdict, unknown

WORDS = ("river", "city", "bridge", "tower")
TASKS = [
    Task(
        id=f"t{i}",
        prompt=f"Describe a {w} in one or two sentences.",
        criteria=(
            Criterion(id="c1", text=f"mentions the {w}", meta={"word": w}),
            Criterion(id="c2", text="mentions a whale", meta={"word": "whale"}),
            Criterion(id="n1", text="mentions a price", weight=-1.0, meta={"word": "price"}),
            Criterion(id="k", text="short", check={"name": "words", "max": 9}),
        ),
    )
    for i, w in enumerate(WORDS * 3)
]
ANSWERS = [
    Response(
        task_id=t.id,
        id="r",
        text=f"It is a fine {t.criteria[0].meta['word']}. The price is low. People like it. <script>alert(1)</script>",
    )
    for t in TASKS
]


class FakeJudge:
    """Sound: looks for the word in the first four sentences that were there before; faults are switched on by name."""

    def __init__(self, fault=""):
        self.name, self.fault = f"fake <{fault}>", fault

    def key(self, task, response, c):
        return json.dumps([self.name, task.prompt, response.text, c.text])

    async def verdicts(self, task, response, criteria):
        return [self.one(task, response, c, i) for i, c in enumerate(criteria)]

    def one(self, task, response, c, i):
        if self.fault == "gives up" and len(response.text) > 200:
            return unknown(task.id, response.id, c.id, "parse")
        met = c.meta["word"] in response.text.split("<script>")[0]
        if "NOT" in c.text and self.fault != "ignores negation":
            met = not met
        if (
            self.fault == "obeys"
            and "met" in response.text.lower().split("<script>")[-1]
            and "review" in response.text
        ):
            met = True
        if self.fault == "first is worst" and i == 0 and "NOT" not in c.text:
            met = False
        if self.fault == "likes length" and len(response.text) > 150:
            met = True
        return Verdict(
            task_id=task.id,
            response_id=response.id,
            criterion_id=c.id,
            status="met" if met else "unmet",
            reason="<b>because</b>",
        )


def rates(report):
    return {r.name: r.rate.value for r in report.rows}


def test_a_sound_judge_passes():
    report = audit(FakeJudge(), TASKS, ANSWERS, progress=False)
    got = rates(report)
    quiet = [
        n for n in got if n not in ("rubric echo", "empty answer")
    ]  # the fake reads words: an echo does mention the whale
    assert all(got[n] == 0 for n in quiet), got
    assert (
        len(report.rows) == len(ATTACKS) + len(BIASES)
        and report.n_verdicts == 36
        and report.unknown_share == 0
    )
    row = report.row("self-praise")
    assert row.rate.n == 24 and row.rate.n_clusters == 12 and row.rate.high > 0


@pytest.mark.parametrize(
    ("fault", "name"),
    [
        ("obeys", "delimiter break-out"),
        ("first is worst", "position: reversed"),
        ("likes length", "verbosity"),
        ("likes length", "padding"),
        ("ignores negation", "label flip"),
    ],
)
def test_each_fault_is_found(fault, name):
    got = audit(FakeJudge(fault), TASKS, ANSWERS, progress=False).row(name)
    assert got.rate.value > 0.3 and got.rate.low > 0 and got.example


def test_positions_are_asked_again_though_the_ledger_knows_the_verdicts(tmp_path):
    with Ledger(tmp_path / "l.sqlite") as book:
        first = audit(FakeJudge("first is worst"), TASKS, ANSWERS, ledger=book, progress=False)
        again = audit(FakeJudge("first is worst"), TASKS, ANSWERS, ledger=book, progress=False)
    assert (
        first.row("position: reversed").rate.value
        == again.row("position: reversed").rate.value
        > 0.3
    )


def test_unknown_is_no_success_but_counted():
    got = audit(FakeJudge("gives up"), TASKS, ANSWERS, progress=False).row("padding")
    assert got.rate.n == 0 and got.unknown.value == 1.0 and got.rate.missing == 24


def test_report_escapes_hostile_text_and_plots():
    report = audit(FakeJudge("obeys"), TASKS, ANSWERS, progress=False)
    page = report._repr_html_()
    assert "<script" not in page and "<b>because" not in page and "fake &lt;obeys&gt;" in page
    fig = kit.plot(report)
    assert "<obeys>" not in fig.layout.title.text and sum(len(t.x) for t in fig.data) == sum(
        r["rate"] is not None for r in report.table()
    )
    json.dumps(report.table(), allow_nan=False)
    assert "delimiter break-out" in str(report)


def test_a_replay_says_what_was_not_recorded():
    plain = [
        v
        for t, r in zip(TASKS, ANSWERS, strict=True)
        for v in asyncio.run(FakeJudge().verdicts(t, r, t.criteria[:3]))
    ]
    replay = ReplayJudge(
        "replay:x",
        lambda t, r, c: (
            {(v.task_id, v.criterion_id): v for v in plain}.get((t.id, c.id))
            if r.text == ANSWERS[0].text or any(r.text == a.text for a in ANSWERS)
            else None
        ),
        lambda t, r, c: f"{t.id}{r.text}{c.text}",
    )
    report = audit(replay, TASKS, ANSWERS, progress=False)
    assert "not recorded" in report.row("padding").note and report.row("paraphrase").rate.value == 0


def test_tasks_that_code_checks_alone_are_left_out_and_the_page_is_whole():
    """One task without judged criteria ended the audit with a ValueError, after all attacks had been paid."""
    code = Task(
        id="code",
        prompt="p",
        criteria=(Criterion(id="k", text="short", check={"name": "words", "max": 9}),),
    )
    report = audit(
        FakeJudge(),
        [*TASKS, code],
        [*ANSWERS, Response(task_id="code", id="r", text="x")],
        progress=False,
    )
    assert report.n_tasks == len(TASKS) and len(report.rows) == len(ATTACKS) + len(BIASES)
    page = audit_page(report)
    assert (
        "Plotly.newPlot" in page
        and "label flip" in page
        and "https://" not in page.split("<body>")[1]
    )
    assert "fake <>" not in page.split("<body>")[1] and "<b>because" not in page.split("<body>")[1]


def test_nothing_to_audit():
    with pytest.raises(DataError, match="nothing to audit"):
        audit(FakeJudge(), TASKS, [], progress=False)


def test_attacks_are_pure_text_and_differ():
    texts = [a.text(TASKS[0], ANSWERS[0]) for a in ATTACKS]
    assert len(set(texts)) == len(texts) and texts == [
        a.text(TASKS[0], ANSWERS[0]) for a in ATTACKS
    ]
    assert {b.name for b in BIASES} >= {"length", "verbosity", "style", "paraphrase", "label flip"}


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda a: a.name)
def test_attacks_do_not_help_against_code(attack):
    task = Task(
        id="t",
        prompt="Name a river.",
        criteria=(
            Criterion(id="c1", text="Mentions the Seine."),
            Criterion(id="c2", text="x", weight=-1),
        ),
    )
    answer = Response(
        task_id="t",
        id="r",
        text=attack.text(task, Response(task_id="t", id="r", text="I do not know.")),
    )
    for spec in (
        {"name": "exact", "answers": ["Seine"]},
        {"name": "json"},
        {"name": "words", "max": 3},
        {"name": "number", "value": 4231},
    ):
        assert check(task, answer, Criterion(id="c", text="x", check=spec)).status == "unmet"
