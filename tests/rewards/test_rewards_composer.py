"""The composer: config, composition, gates, format, one function each, and unknown verdicts."""

import dataclasses
import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kit.errors import KitError
from kit.records import Criterion, Response, Task, Verdict, unknown
from kit.rewards.citations import claim_criteria
from kit.rewards.composer import Composer
from kit.rewards.presets import PRESETS
from kit.tables import table

CITED = Task(
    id="t",
    prompt="How far?",
    sources={"S1": "85 km.", "S2": "50 km."},
    criteria=(
        Criterion(id="p1", text="a"),
        Criterion(id="p2", text="b", weight=2),
        Criterion(id="n1", text="c", weight=-1),
    ),
)
ANSWER = "<answer><snippet id=S1>It goes 85 km</snippet>. <snippet id=S2>Loaded it goes 50 km</snippet>. Charging takes a few hours.</answer>"


def response(text=ANSWER, **more):
    return Response(task_id="t", id="r", text=text, **more)


def v(cid, value):
    if value is None:
        return unknown("t", "r", cid, "transport")
    return Verdict(
        task_id="t", response_id="r", criterion_id=cid, status="level", value=float(value)
    )


def all_verdicts(task=CITED, r=None, p1=1, p2=1, n1=0, cite=1, needs=0):
    r = r or response()
    return [v("p1", p1), v("p2", p2), v("n1", n1)] + [
        v(c.id, needs if c.meta["kind"] == "needs" else cite) for c in claim_criteria(task, r)
    ]


def make(**config):
    config.setdefault(
        "components",
        [{"kind": "rubric", "how": "flip", "weight": 0.8}, {"kind": "citations", "weight": 0.2}],
    )
    return Composer.from_config(config)


def test_convex_and_additive_composition():
    vs = all_verdicts(p2=0)  # S = (1 + 0 + 1) / 4
    assert make().score(CITED, response(), vs).score == pytest.approx(0.8 * 0.5 + 0.2 * 1.0)
    additive = make(
        combine="sum",
        components=[{"kind": "rubric", "how": "flip"}, {"kind": "citations", "weight": 0.2}],
    )
    assert additive.score(CITED, response(), vs).score == pytest.approx(0.5 + 0.2)
    assert make(scale=10.0).score(CITED, response(), vs).score == pytest.approx(6.0)


def test_format_gate_and_bonus_are_visible():
    bare = response("It goes 85 km.")
    vs = [v("p1", 1), v("p2", 1), v("n1", 0)]
    gated = make(format={"mode": "gate", "answer_block": True}).score(CITED, bare, vs)
    assert (
        gated.score == 0.0
        and gated.parts["format"] == 0.0
        and gated.parts["rubric"] is None
        and gated.meta["flags"]["format_problems"] == ("no <answer> block",)
    )
    bonus = make(format={"mode": "bonus", "answer_block": True, "bonus": 0.3})
    assert bonus.score(CITED, response(), all_verdicts()).parts["format"] == 0.3
    assert bonus.score(CITED, bare, vs).parts["format"] == 0.0


def test_a_shut_format_gate_pays_what_silence_pays():
    """Every such answer was judged, for a reward that form alone decides; and 0, as published, was
    the best answer of whoever has more faults than virtues: -13.33 in its block, 0 without one.
    """
    rubric = [{"kind": "rubric", "how": "signed_unclipped"}]
    form = {"mode": "gate", "answer_block": True}
    c = make(components=rubric, format=form)
    worst = [v("p1", 0), v("p2", 0), v("n1", 1)]
    for text, verdicts in (("no block", worst), ("no block", ()), ("", ())):
        assert c.score(CITED, response(text), verdicts).score == c.limits(CITED)[0] == -0.25
    mean = make(components=[{"kind": "rubric", "how": "flip"}], format=form)
    assert mean.score(CITED, response("no block"), worst).score == mean.limits(CITED)[0] == 0.0
    assert c.criteria(CITED, response("no block")) == ()
    assert len(c.criteria(CITED, response())) == 3
    some = make(components=rubric, format={**form, "gate_to": 0.3})
    assert some.score(CITED, response("no block"), worst).score == -0.25
    assert len(some.criteria(CITED, response("no block"))) == 3


def test_pattern_format_matches_over_lines_and_two_answers():
    c = make(format={"mode": "gate", "pattern": "<answer>.+</answer>"})
    assert c.score(
        CITED, response("<answer>line one\nline two</answer>"), [v("p1", 1), v("p2", 1), v("n1", 0)]
    ).score == pytest.approx(0.8)
    two = make(format={"mode": "gate", "answer_block": True}).score(
        CITED,
        response("<answer>a b c</answer><answer>d</answer>"),
        [v("p1", 1), v("p2", 1), v("n1", 0)],
    )
    assert two.score == 0.0 and "2 <answer> tags" in two.meta["flags"]["format_problems"][0]


def test_gate_and_cap():
    gated = make(gates=[{"component": "citations", "below": 0.5, "to": 0.1}])
    assert gated.score(CITED, response(), all_verdicts(cite=0)).score == 0.1
    assert gated.score(CITED, response(), all_verdicts()).score == pytest.approx(1.0)
    assert make(cap=0.6).score(CITED, response(), all_verdicts()).score == 0.6


def test_absent_components():
    c = make(
        components=[
            {"kind": "rubric", "how": "flip"},
            {"kind": "verifier", "verifier": "factual"},
        ]
    )
    g = c.score(CITED, response(), all_verdicts())
    assert g.score == 1.0 and g.parts["factual"] is None


def test_judge_down_pays_nothing():
    for preset in PRESETS:
        c = Composer.from_config(preset)
        lost = [unknown("t", "r", x.id, "transport") for x in c.criteria(CITED, response())]
        g = c.score(CITED, response(), lost)
        assert g.score is None, preset
    half = [v("p1", 1), v("p2", 1), v("n1", 0)] + [
        v(c.id, None) for c in claim_criteria(CITED, response())
    ]
    assert make().score(CITED, response(), half).score is None  # only the citations' judge is down


def test_static_rubrics_concatenated_or_not():
    with_static = make(components=[{"kind": "rubric", "static": "all"}])
    ids = [c.id for c in with_static.criteria(CITED, response())]
    assert ids[:3] == ["p1", "p2", "n1"] and any(i.startswith("static:off_query") for i in ids)
    assert (
        len(
            make(
                components=[{"kind": "rubric", "static": "all", "instance_rubrics_only": True}]
            ).criteria(CITED, response())
        )
        == 3
    )
    with pytest.raises(KitError, match="no static rubric set"):
        make(components=[{"kind": "rubric", "static": ["nope"]}]).criteria(CITED, response())


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"components": []}, "at least one"),
        ({"components": [{"kind": "magic"}]}, "no kind 'magic'"),
        ({"components": [{"kind": "rubric", "weight": "1e-2"}]}, "is not a number"),
        ({"components": [{"kind": "rubric", "hov": "mean"}]}, "no option of rubric 'hov'"),
        ({"components": [{"kind": "rubric"}], "scal": 2}, "no field 'scal'"),
        ({"components": [{"kind": "rubric"}, {"kind": "rubric"}]}, "share a name"),
        (
            {"components": [{"kind": "rubric"}], "gates": [{"component": "x", "below": 1}]},
            "no component 'x'",
        ),
        (
            {"components": [{"kind": "rubric"}], "format": {"mode": "soft"}},
            "'soft' is not a choice",
        ),
        ({"components": [{"kind": "verifier", "verifier": "luck"}]}, "no verifier 'luck'"),
        ({"components": [{"kind": "rubric"}], "combine": "max"}, "'max' is not a choice"),
        ({"components": [{"kind": "rubric", "how": "avg"}]}, "no how 'avg'"),
        ({"components": [{"kind": "rubric"}], "scale": -1}, "a number above 0"),
        ({"preset": "none"}, "neither a file nor a preset"),
    ],
)
def test_config_errors_say_where(config, message):
    with pytest.raises(KitError, match=message):
        Composer.from_config(config)


def test_config_from_yaml_and_table(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(
        "preset: refiner\nscale: 1.0\ncomponents:\n  - {kind: rubric, how: flip, weight: 0.8}\n  - {kind: citations, weight: 0.2}\n"
    )
    c = Composer.from_config(path)
    assert c.scale == 1.0 and c.format.mode == "gate"
    assert [r["share"] for r in c.table() if r["kind"] != "step"] == [0.8, 0.2]
    assert "<script>" not in dataclasses.replace(c, name="<script>")._repr_html_()
    with pytest.raises(KitError, match="neither a file nor a preset"):
        Composer.from_config(tmp_path / "absent.yaml")
    (tmp_path / "bad.yaml").write_text("a: [1")
    with pytest.raises(KitError, match="cannot be read"):
        Composer.from_config(tmp_path / "bad.yaml")


value = st.sampled_from([None, 0.0, 0.5, 1.0])


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(value, min_size=8, max_size=8), st.data())
def test_unknown_never_raises_the_composed_reward(values, data):
    ids = ["p1", "p2", "n1", *[c.id for c in claim_criteria(CITED, response())]]
    vs = [v(i, x) for i, x in zip(ids, values, strict=True)]
    lost = data.draw(st.sets(st.sampled_from(range(len(vs)))))
    worse = [v(x.criterion_id, None) if i in lost else x for i, x in enumerate(vs)]
    config = {
        "combine": data.draw(st.sampled_from(["mean", "sum"])),
        "max_width": data.draw(st.sampled_from([0.1, 0.5, 3.0])),
        "scale": 10.0,
        "cap": data.draw(st.sampled_from([None, 0.5])),
        "gates": data.draw(
            st.sampled_from(
                [
                    [],
                    [{"component": "citations", "below": 0.5}],
                    [{"component": "rubric", "below": 0.2, "to": -0.2}],
                ]
            )
        ),
        "components": [
            {
                "kind": "rubric",
                "how": data.draw(
                    st.sampled_from(["flip", "signed_unclipped", "positive_normalised"])
                ),
                "weight": 0.8,
            },
            {
                "kind": "citations",
                "weight": data.draw(st.sampled_from([0.2, -0.2])),
            },
        ],
    }
    c = make(**config)
    a, b = c.score(CITED, response(), vs), c.score(CITED, response(), worse)
    assert b.score_low <= a.score_low + 1e-9 and b.score_high >= a.score_high - 1e-9
    assert b.score is None if a.score is None else b.score is None or b.score <= a.score + 1e-9
    for g in (a, b):
        if g.score is not None:
            assert math.fsum(x for x in g.parts.values() if x is not None) == pytest.approx(
                g.score, abs=1e-9
            )


def test_shuffled_verdicts_change_nothing():
    vs = all_verdicts(p1=0.5)
    scores = {
        make().score(CITED, response(), list(order)).score
        for order in itertools.islice(itertools.permutations(vs), 0, 40320, 997)
    }
    assert len(scores) == 1


def test_a_criterion_both_met_and_unmet_is_counted_as_unknown():
    """It made the interval as wide as the criterion, beside "unknown 0"."""
    both = [v("p1", 1), v("p1", 0), v("p2", 1), v("n1", 0)]
    g = Composer.from_config("default").score(CITED, response(), both)
    assert g.score_low < g.score_high and g.meta["unknown"] == 1
    assert table([g])["unknown"].tolist() == [1]


def test_an_answer_without_its_form_passes_no_gate():
    """With a gate below 0 it earned 0, more than any answer with the form, and outside the limits."""
    gates = [{"component": "rubric", "below": 0.9, "to": -0.3}]
    c = make(gates=gates, format={"mode": "gate", "answer_block": True}, scale=10)
    bare = c.score(CITED, response("no block"), [])
    assert bare.score == pytest.approx(-3.0) and c.limits(CITED)[0] == pytest.approx(-3.0)


def test_weights_without_a_finite_sum_are_refused():
    parts = [{"kind": "rubric", "name": n, "weight": 1e308} for n in "ab"]
    with pytest.raises(KitError, match="weights is inf"):
        make(components=parts)
