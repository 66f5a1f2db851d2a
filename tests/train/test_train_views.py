"""Figures, tables and widgets of a training, on hand-made rows."""

from __future__ import annotations

import json

import pytest

from kit.plots import training as plots
from kit.records import Grade, Response, Verdict
from kit.train import evaluation
from kit.widgets import training as widgets

STEPS = [
    {
        "step": i,
        "reward": None if i == 3 else 0.1 * i,
        "reward_low": None if i == 3 else 0.1 * i - 0.05,
        "reward_high": None if i == 3 else 0.1 * i + 0.05,
        "groups": 4,
        "mixed": 2,
        "good": 1,
        "bad": 1,
        "flat": 0,
        "groups_unknown": 0,
        "words": 9.0 + i,
        "tokens": 12.0,
        "truncated": 0.1,
        "entropy": 2.0,
        "kl": None,
        "seconds_generation": 1.0,
        "seconds_judge": 0.2,
        "seconds_update": 0.8,
        "criteria": {"c1": 0.5, "c2": None if i == 2 else 0.1 * i},
        "judge_cost": 0.0,
        "seconds_left": 60.0,
        "unknown_rewards": 0,
    }
    for i in range(1, 7)
]
EVIL = "<script>alert(1)</script>"
ROLLOUTS = [
    {
        "step": 1,
        "task_id": EVIL,
        "text": EVIL,
        "reward": r,
        "advantage": a,
        "truncated": True,
        "verdicts": [{"id": "c1", "status": s, "failure": EVIL if s == "unknown" else None}],
    }
    for r, a, s in ((0.5, 0.1, "met"), (None, None, "unknown"), (0.9, 1.0, "unmet"))
]


def _gain():
    def make(name, shift):
        rs = [Response(task_id=f"t{i}", id=f"{name}{i}", text="a b c") for i in range(4)]
        gs = [
            Grade(
                task_id=r.task_id,
                response_id=r.id,
                score=0.1 * i + shift,
                score_low=0,
                score_high=1,
                verdicts=(
                    Verdict(
                        task_id=r.task_id,
                        response_id=r.id,
                        criterion_id="c1",
                        status="met" if i % 2 else "unmet",
                    ),
                ),
            )
            for i, r in enumerate(rs)
        ]
        return evaluation.Evaluation(name=name, responses=tuple(rs), grades=tuple(gs))

    return evaluation.compare(make("b", 0.0), make("a", 0.2), trivial={"empty": make("e", -0.1)})


@pytest.mark.parametrize(
    "build",
    [
        lambda: plots.reward(STEPS),
        lambda: plots.health(STEPS),
        lambda: plots.criteria(STEPS, names={"c1": "x" * 80}),
        lambda: plots.lengths(STEPS),
        lambda: plots.time_split(STEPS),
        lambda: plots.gain(_gain()),
        lambda: plots.policies(_gain()),
        lambda: plots.reward([]),
        lambda: plots.health([]),
    ],
)
def test_figures_build_and_serialise(build):
    fig = build()
    assert json.loads(fig.to_json())["layout"]["title"]["text"]


def test_sentinels_show_counts_and_alarms():
    rows = [
        {
            **s,
            "answers": 8,
            "flagged": i,
            "sentinels": {"parroting": i} if i else {},
            "alarms": ["sentinels: " + EVIL] if i > 3 else [],
        }
        for i, s in enumerate(STEPS)
    ]
    html = widgets.status_html(rows)
    assert (
        "parroting 5" in html
        and "<script>" not in html
        and "role='alert'" in html
        and "role='alert'" not in widgets.status_html(rows[:2])
    )
    assert "not looked at" in widgets.status_html(STEPS)


def test_health_sums_to_one():
    fig = plots.health(STEPS)
    assert [sum(t.y[i] for t in fig.data) for i in range(6)] == pytest.approx([1.0] * 6)


def test_unknown_rewards_are_gaps_not_zero():
    fig = plots.reward(STEPS)
    dots = next(t for t in fig.data if t.name == "step")
    assert dots.y[2] is None


def test_gain_figure_shows_the_numbers():
    g = _gain()
    fig = plots.gain(g)
    assert fig.data[0].x[-1] == pytest.approx(g.reward.value) and fig.data[0].y[-1] == "reward"


def test_text_of_answers_is_escaped_and_unknown_is_said():
    html = widgets.answers_html(ROLLOUTS)
    assert "<script>" not in html and "unknown" in html and "cut off" in html
    assert html.index("0.900") < html.index("0.500")
    assert "<script>" not in widgets.status_html([{**STEPS[0], "reward": None}])


def test_headless_views_are_static(monkeypatch):
    monkeypatch.setenv("KIT_HEADLESS", "1")
    box, on_step = widgets.live(total=6)
    on_step(STEPS[0])
    assert on_step.steps == STEPS[:1] and "headless" in box.data
    assert " answers" in widgets.browser(ROLLOUTS).data


def test_widgets_wrap_the_plain_functions(monkeypatch):
    monkeypatch.setenv("KIT_HEADLESS", "0")
    box, on_step = widgets.live(total=6)
    for s in STEPS:
        on_step(s)
    assert box.value == widgets.status_html(STEPS, total=6) and on_step.steps == STEPS
    view = widgets.browser(ROLLOUTS)
    assert "of 3 answers" in view.children[1].value
    view.children[0].children[1].value = EVIL
    assert "<script>" not in view.children[1].value


def test_a_static_twin_stands_under_the_controls(monkeypatch):
    """A saved notebook said "Error displaying widget: model not found", and nothing stood there."""
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.display import display
    from IPython.utils.capture import capture_output

    monkeypatch.setenv("KIT_HEADLESS", "0")
    InteractiveShell.instance()
    with capture_output() as said:
        display(widgets.browser(ROLLOUTS))
    kinds = [set(o.data) for o in said.outputs]
    assert "application/vnd.jupyter.widget-view+json" in kinds[0]
    assert not any("application/vnd.jupyter.widget-view+json" in k for k in kinds[1:])
    assert " answers" in said.outputs[-1].data["text/html"]


def test_every_explorer_has_a_twin():
    from kit.widgets import bench, calibration, compare, data, rewards

    explorers = (data.browse, bench.explorer)
    more = (calibration.bins_explorer, compare.explorer, rewards.weight_explorer, widgets.browser)
    assert all(hasattr(f, "__wrapped__") for f in (*explorers, *more))


def test_the_interval_of_a_steps_reward_stays_in_the_rewards_range():
    """The band of notebook 3's training curve reached from -.4 to 1.9; rewards lie in [0, 1]."""
    from kit.train.monitor import summary

    same = {"range": [0.0, 1.0], "verdicts": [], "text": "x", "truncated": False, "tokens": 1}
    rows = [{**same, "task_id": t, "reward": r} for t, r in (("a", 1.0), ("b", 0.9), ("c", 0.2))]
    s = summary(rows)
    assert 0 <= s["reward_low"] < s["reward"] < s["reward_high"] <= 1
    two = summary(rows[1:])  # Student's t of two prompts alone has a factor of 12.7
    assert 0 <= two["reward_low"] < two["reward"] < two["reward_high"] <= 1
    outside = summary([*rows, {**rows[0], "task_id": "d", "reward": -0.2}])  # a penalty
    assert outside["reward_low"] < 0


def test_a_steps_row_counts_the_criteria_that_teach_nothing():
    """Rewards' rule 8: saturated criteria are reported. c1 is met by all answers to its prompt, c2 by some."""
    from kit.train.monitor import summary

    row = {"task_id": "t", "text": "x", "truncated": False, "tokens": 1}
    said = [[("c1", 1.0), ("c2", c2), ("c3", None)] for c2 in (0.0, 1.0)]
    rows = [
        row | {"reward": 0.5, "verdicts": [{"id": i, "value": v, "status": "met"} for i, v in vs]}
        for vs in said
    ]
    assert summary(rows)["saturated"] == 0.5
    assert summary(rows[:1])["saturated"] is None, "one answer alone shows no spread"


def test_a_prompt_that_stands_twice_in_a_step_has_two_groups():
    """All 0 and all 1 were logged as one mixed group, where every advantage was 0."""
    from kit.train.monitor import summary

    row = {"task_id": "t", "text": "x", "truncated": False, "tokens": 1, "verdicts": []}
    s = summary([row | {"reward": float(r)} for r in (0, 0, 1, 1)], size=2)
    assert (s["groups"], s["mixed"], s["good"], s["bad"]) == (2, 0, 1, 1)
