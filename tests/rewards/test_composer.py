"""Composers: configs, composition, gates, forms, and grades of many answers."""

import json
import math

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reward_cases import BAD, CITED, CLAIMS, GOOD, PLAIN, STATIC, TASK, answer, verdict

import kit
from kit.errors import DataError
from kit.records import Criterion, Task, unknown
from kit.rewards import Composer, grade, reward_presets, score_rubric


def verdicts(p1=1.0, n1=0.0, static=0.0, claims=1.0):
    values = {"p1": p1, "n1": n1, **dict.fromkeys(STATIC, static), **dict.fromkeys(CLAIMS, claims)}
    return [verdict(name, value) for name, value in values.items()]


def score(config, vs, text=CITED, task=TASK):
    return Composer.from_config(config).grade(task, answer(text), vs).score


GATE = {"component": "citations", "below": 0.5, "to": 0.1}
GATED = {"components": [{"kind": "rubric"}, {"kind": "citations", "weight": 0}], "gates": [GATE]}
BONUS = {"mode": "bonus", "answer_block": True, "bonus": 0.5}
FORMULAS = [
    (GATED, verdicts(), 1.0),
    (GATED, verdicts(claims=0.0), 0.1),
    (GATED, verdicts(claims=None), None),
    ({**GATED, "format": BONUS}, verdicts(claims=0.0), 0.1),
    ("rubric", verdicts(), 1.0),
    ("rubric", verdicts(n1=1.0), 0.0),
    ("rlvr", verdicts(n1=1.0), 0.5),
    ("refiner", verdicts(), 10 * (0.8 * 1 + 0.2 * 1)),
    ("refiner", verdicts(claims=0.0), 10 * 0.8),
    ("refiner", verdicts(n1=1.0), 10 * (0.8 * (1 + len(STATIC)) / (2 + len(STATIC)) + 0.2)),
    ("refiner", verdicts(p1=0.0, n1=1.0, static=1.0, claims=0.0), 0.0),
    ("refiner_additive", verdicts(), 10.0),
    ("refiner_additive", verdicts(static=1.0), 10 * (2 / (2 + len(STATIC)) + 0.2)),
    ("refiner_published", verdicts(), 10 * (1 + 0.2)),
    ("refiner_published", verdicts(p1=0.0, claims=0.0), 10 * (1 - 1 / (2 + len(STATIC)))),
    ("refiner_published", verdicts(p1=0.0, n1=1.0, static=1.0), 10 * 0.2),
    ({"preset": "refiner", "weights": {"citations": 0.8}}, verdicts(claims=0.0), 5.0),
    ({"preset": "refiner", "scale": 1.0}, verdicts(), 1.0),
    ({"preset": "refiner", "cap": 0.5}, verdicts(), 5.0),
    (
        {"preset": "refiner_published", "instance_rubrics_only": True},
        verdicts(p1=0.0, claims=0.0),
        10 * 0.5,
    ),
]


@pytest.mark.parametrize(("config", "vs", "wanted"), FORMULAS)
def test_formulas_of_the_systems(config, vs, wanted):
    assert score(config, vs) == pytest.approx(wanted)


def test_the_verifiers_that_apply_are_averaged():
    truth = {"claims": [{"subject": "ros", "direction": "up"}], "facts": [{"text": "liver"}]}
    task = Task(id="t", prompt="p", truth=truth)
    g = Composer.from_config("verifiers").grade(task, answer("Answer: up\nConfidence: 50%"), ())
    parts = {"factual": 0.0, "direction": 0.9, "consistency": None, "uncertainty": 0.5}
    assert g.parts == pytest.approx(parts)
    assert g.score == pytest.approx((0.3 * 0.9 + 0.2 * 0.5) / 0.85)
    none = Composer.from_config("verifiers").grade(PLAIN, answer(), ())
    assert (none.score, none.meta["excluded"]) == (None, "no component applies")


def test_rewards_of_the_five_published_files(shared_data):
    """sum w s / sum w over the stored verifier scores gives the stored rewards to 1e-12."""
    weights = {"V1": 0.35, "V2": 0.30, "V3": 0.15, "V4": 0.20}
    files = sorted((shared_data / "biorlhf").glob("grpo_*eval*.json"))
    assert len(files) == 5
    for path in files:
        for row in json.loads(path.read_text("utf-8"))["per_sample"]:
            stored = row["verifier_scores"]
            criteria = [Criterion(id=v, text=v, weight=weights[v]) for v in stored]
            vs = [verdict(v, s) for v, s in stored.items()]
            assert score_rubric(criteria, vs).value == pytest.approx(row["total_reward"], abs=1e-12)


WRONG = [
    ("refinr", "did you mean 'refiner'"),
    ("no/such/file.yaml", "no preset or file"),
    (7, "not a reward"),
    ({}, "needs components"),
    ({"preset": "rubric", "scal": 2}, "did you mean 'scale'"),
    ({"preset": "rubric", "scale": 0}, "scale"),
    ({"preset": "rubric", "max_width": -1}, "max_width"),
    ({"components": [{"kind": "rubrics"}]}, "did you mean 'rubric'"),
    ({"components": [{"kind": "rubric", "hwo": "net"}]}, "did you mean 'how'"),
    ({"components": [{"kind": "rubric", "how": "max"}]}, "max"),
    ({"components": [{"kind": "rubric", "static": "padding"}]}, "did you mean 'off_query_padding'"),
    ({"components": [{"kind": "rubric"}, {"kind": "rubric"}]}, "share a name"),
    ({"components": [{"kind": "verifier", "verifier": "V1"}]}, "V1"),
    ({"preset": "rubric", "weights": {"citation": 1}}, "citation"),
    ({"preset": "rubric", "gates": [{"component": "rubrik", "below": 1}]}, "did you mean 'rubric'"),
    ({"preset": "rubric", "gates": [{"component": "rubric", "under": 1}]}, "under"),
    ({"preset": "rubric", "format": {"mode": "gated"}}, "gated"),
]


@pytest.mark.parametrize(("config", "words"), WRONG)
def test_a_wrong_config_is_an_error_that_names_the_field(config, words):
    with pytest.raises(DataError) as e:
        Composer.from_config(config)
    assert words in str(e.value)


def test_a_yaml_file_is_a_reward(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("preset: refiner\nweights: {citations: 0.3}\nscale: 1.5\n")
    composer = Composer.from_config(path)
    assert composer == Composer.from_config(str(path)) == Composer.from_config(composer)
    assert (composer.weights, composer.scale) == ({"rubric": 0.8, "citations": 0.3}, 1.5)
    assert list(composer.weights) == ["rubric", "citations"]


@pytest.mark.parametrize("name", reward_presets())
def test_every_preset_has_limits_that_hold(name):
    composer = Composer.from_config(name)
    low, high = composer.grade(TASK, answer(), []).meta["range"]
    assert low <= high
    for rows in (verdicts(), verdicts(0.0, 1.0, 1.0, 0.0), verdicts(0.5)):
        g = composer.grade(TASK, answer(), rows)
        assert low - 1e-9 <= g.score_low <= g.score_high <= high + 1e-9


def test_the_refiners_rewards_lie_between_0_and_10():
    for preset in ("refiner", "refiner_additive"):
        limits = Composer.from_config(preset).grade(TASK, answer(), []).meta["range"]
        assert limits == pytest.approx((0.0, 10.0))


FORMLESS = ["", "It rains.", f"{CITED} And so on.", "<answer>.</answer>"]


@pytest.mark.parametrize("preset", ["refiner", "refiner_additive", "refiner_published"])
@pytest.mark.parametrize("text", FORMLESS)
def test_without_its_form_an_answer_earns_no_more_than_the_lowest(preset, text):
    composer = Composer.from_config(preset)
    g = composer.grade(TASK, answer(text), verdicts())
    worst = composer.grade(TASK, answer(), verdicts(0.0, 1.0, 1.0, 0.0))
    assert g.score == worst.meta["range"][0] <= worst.score
    assert all(g.parts[n] <= worst.parts[n] for n in composer.weights)
    # so no judge is asked
    assert (
        composer.fails_format_gate(answer(text))
        and composer.criteria_to_judge(TASK, answer(text)) == ()
    )


def test_what_must_be_judged():
    composer = Composer.from_config("refiner")
    assert [c.id for c in composer.criteria_to_judge(TASK, answer())] == [
        "p1",
        "n1",
        *STATIC,
        *CLAIMS,
    ]
    rubric_alone = Composer.from_config("rubric").criteria_to_judge(TASK, answer())
    assert [c.id for c in rubric_alone] == ["p1", "n1"]
    # a task that holds the questions already (as a trainer passes it) is graded alike
    augmented = msgspec.structs.replace(TASK, criteria=composer.criteria_to_judge(TASK, answer()))
    assert score("refiner", verdicts(), task=augmented) == score("refiner", verdicts())


FORMATS = [
    (BONUS, CITED, 1.5),
    (BONUS, "It rains.", 1.0),
    ({**BONUS, "pattern": "rains"}, "It rains.", 1.25),
    ({"mode": "gate", "pattern": r"rains\.$"}, "It rains.", 1.0),
    ({"mode": "gate", "pattern": r"rains\.$"}, "It snows.", -1.0),
    ({"mode": "gate", "pattern": "rains"}, "<think>It rains.</think>It snows.", -1.0),
    ({"mode": "gate", "pattern": "^It rains"}, "<think>Hm.</think>\nIt rains.", 1.0),
    ({"mode": "gate", "pattern": "^It rains"}, "Hm.\n</think>\n\nIt rains.", 1.0),
    ({"mode": "off", "answer_block": True}, "It rains.", 1.0),
]


@pytest.mark.parametrize(("form", "text", "wanted"), FORMATS)
def test_format_bonus_and_pattern(form, text, wanted):
    assert score({"preset": "rubric", "format": form}, verdicts(), text) == pytest.approx(wanted)


def test_unknown_is_excluded_or_paid_at_its_low_end():
    wide = Composer.from_config("rubric").grade(PLAIN, answer(), verdicts(p1=None))
    assert (wide.score, wide.score_low, wide.score_high) == (None, 0.0, 1.0)
    assert wide.parts == {"rubric": None}
    assert wide.meta["excluded"] == "too much is unknown"
    config = {"preset": "rubric", "max_width": 1.0, "scale": 10}
    assert score(config, verdicts(p1=None), task=PLAIN) == 0.0
    # the part, too, pays the end that is worst for the reward
    config = {"components": [{"kind": "rubric", "weight": -1}], "max_width": 1.0}
    negative = Composer.from_config(config).grade(PLAIN, answer(), verdicts(p1=None))
    assert (negative.score, negative.parts) == (-1.0, {"rubric": 1.0})


@pytest.mark.parametrize("more", [{"gates": GATED["gates"]}, {"cap": 1}, {"format": BONUS}])
def test_gdpo_refuses_what_is_in_no_part(more):
    composer = Composer.from_config({**GATED, "gates": [], **more})
    with pytest.raises(DataError, match="format bonus are in no part(.|\n)*--set gdpo=false"):
        composer.gdpo_weights()
    refiner = Composer.from_config("refiner")
    assert refiner.gdpo_weights() == refiner.weights


def test_a_grade_counts_its_own_verdicts_and_what_was_paid_for_them():
    other = verdict("p1", response_id="other", tokens_in=9)
    vs = [verdict("n1", 0.0, tokens_in=5, cost=0.1), verdict("x", tokens_in=7, cached=True)]
    g = Composer.from_config("rubric").grade(PLAIN, answer(), [other, *vs])
    assert (g.score, g.verdicts, g.cost) == (None, tuple(vs), 0.1)
    assert g.usage == {"tokens_in": 5, "tokens_out": 0}


CONFIGS = [
    *reward_presets(),
    {"preset": "default", "combine": "sum", "cap": 0.4},
    {"preset": "refiner", "gates": [{"component": "citations", "below": 0.3, "to": -0.5}]},
    {"preset": "refiner", "weights": {"citations": -0.3}, "format": {"mode": "bonus"}},
]
NAMES = ["p1", "n1", *STATIC, *CLAIMS]
levels = st.sampled_from([0.0, 0.5, 1.0, None])


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(CONFIGS),
    st.lists(levels, min_size=len(NAMES), max_size=len(NAMES)),
    st.sampled_from(NAMES),
    st.sampled_from([0.0, 0.1, 1.0, 2.0]),
    st.booleans(),
)
def test_a_verdict_that_becomes_unknown_never_raises_a_reward(config, found, lost, width, gate):
    preset = {"preset": config} if isinstance(config, str) else config
    composer = Composer.from_config({**preset, "max_width": width})
    must = kit.Criterion(id="p1", text="good", required=gate)
    task = Task(id="t", prompt="Why?", criteria=(must, BAD), sources=TASK.sources)
    vs = [verdict(n, v) for n, v in zip(NAMES, found, strict=True)]
    before = composer.grade(task, answer(), vs)
    vs[NAMES.index(lost)] = verdict(lost, None)
    after = composer.grade(task, answer(), vs)
    assert after.score_low <= before.score_low <= before.score_high <= after.score_high + 1e-9
    if after.score is not None:
        assert after.score <= before.score
    assert math.isfinite(after.score_low)


def test_grades_of_many_answers():
    tasks = [PLAIN, kit.Task(id="u", prompt="p", criteria=(GOOD,))]
    vs = [verdict("p1"), verdict("n1", 0.0), unknown("u", "r", "p1", "parse")]
    grades = grade(tasks, vs)
    assert [g.answer_ids for g in grades] == [("t", "r"), ("u", "r")]
    table = grades.table()
    assert table["score"].tolist()[0] == 1.0 and table["score"].isna().tolist() == [False, True]
    assert (grades.estimate.value, grades.estimate.missing) == (1.0, 1)
    assert "2 grades" in repr(grades) and "<table" in grades._repr_html_()
    # answers without a verdict are unknown
    assert [g.score for g in grade(tasks, [], responses=[answer()])] == [None]
    assert grade(tasks, vs, responses=[]) == []


def test_grade_needs_the_tasks_and_for_some_rewards_the_answers():
    with pytest.raises(DataError, match="without their task"):
        grade([], verdicts())
    with pytest.raises(DataError, match="give responses="):
        grade([TASK], verdicts(), reward="refiner")
    assert grade([TASK], verdicts(), reward="refiner", responses=[answer()])[0].score == 10.0
