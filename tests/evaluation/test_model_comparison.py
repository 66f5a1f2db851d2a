"""`kit.compare`: models by their answers to the same prompts; `kit.answer`: answers that are paid once."""

import pytest

import kit
from kit import Criterion, DataError, Response, Task
from kit.data import TaskSet, load
from kit.system import paths


def task(n, kind=None):
    check = {"name": "contains", "any": ["yes"]}
    bad = {"name": "contains", "any": ["never"]}
    criteria = (
        Criterion(id="good", text="says yes", check=check),
        Criterion(id="bad", text="says never", weight=-1, check=bad),
    )
    return Task(id=f"t{n}", prompt=f"Question {n}?", kind=kind, criteria=criteria)


TASKS = [task(n, "odd" if n % 2 else "even") for n in range(12)]


def answers(texts, **meta):
    return [
        Response(task_id=t.id, id=f"r{n}", text=x, meta=meta)
        for n, (t, x) in enumerate(zip(TASKS, texts, strict=False))
    ]


MODELS = {
    "base": answers(["no"] * 12, cost=0.5, seconds=2.0),
    "good": answers(["yes"] * 11 + ["yes never"], cost=None),
    "same": answers(["no"] * 12),
}


def test_a_row_a_model_with_paired_differences_to_the_first():
    c = kit.compare(TASKS, MODELS)
    assert c.models == ["base", "good", "same"]
    assert c.rewards_by_prompt["good"].mean() == pytest.approx(11 / 12)
    assert c.differences["good"].excludes(0) and not c.differences["same"].excludes(0)
    rows = c.table().set_index("model")
    assert rows.loc["good", ["wins", "losses"]].tolist() == [11, 0]
    assert rows.loc["base", "cost of answers"] == "$6.0000"
    assert rows.loc["good", "cost of answers"] == "price unknown"
    assert rows.loc["base", "seconds an answer"] == 2.0
    assert "good is better (" in c.sentence and "same is not shown to differ" in c.sentence


def test_kinds_and_criteria_say_where_models_differ():
    c = kit.compare(TASKS, MODELS)
    kinds = c.by_kind().set_index("kind")
    assert kinds.loc["odd", "good"] == pytest.approx(5 / 6) and kinds.loc["even", "good"] == 1
    first = c.by_criterion().iloc[0]
    assert first["criterion"] == "good" and first["good"] == 1 and first["base"] == 0
    faults = c.by_criterion().set_index(["task", "criterion"])["good"]
    # A fault counts as fulfilled where it is absent.
    assert faults["t11", "bad"] == 0 and faults["t0", "bad"] == 1


def test_an_unknown_reward_is_counted_and_never_zero():
    hard = Task(id="h", prompt="p", criteria=(Criterion(id="c", text="needs a judge"),))
    rows = {m: [Response(task_id="h", id="r", text="x")] for m in ("a", "b")}
    c = kit.compare([hard], rows)
    assert c.table()["unknown"].tolist() == [1, 1]
    assert c.answers["score"].isna().all()
    assert "Unknown: 2 verdicts (abstain: no check" in c.sentence


@pytest.mark.parametrize(
    ("models", "message"),
    [
        ({"a": MODELS["base"]}, "answers of 1 model,"),
        (
            {"a": MODELS["base"], "b": MODELS["good"][:-1]},
            "'a' answered task 't11', and 'b' did not",
        ),
        ({"a": MODELS["base"][1:], "b": MODELS["good"]}, "'b' answered task 't0', and 'a' did not"),
        (None, "answers of 0 models"),
    ],
)
def test_models_with_other_prompts_are_refused(models, message):
    with pytest.raises(DataError, match=message):
        kit.compare(TASKS, models)


def test_prompts_that_not_all_answered_may_be_left_out_and_are_counted():
    c = kit.compare(TASKS, {"a": MODELS["base"], "b": MODELS["good"][1:]}, on_missing="skip")
    assert "on 11 prompts (without 1 that not all models answered)" in c.sentence


def test_the_models_of_a_data_set_are_the_sources_of_its_answers():
    both = [
        Response(task_id=t.id, id=f"{t.id}-{m}", text=text, source=m)
        for t in TASKS
        for m, text in (("x", "yes"), ("y", "no"))
    ]
    assert kit.compare(TaskSet(tasks=TASKS, responses=both)).models == ["x", "y"]


def test_a_comparison_has_a_figure():
    figure = kit.plot(kit.compare(TASKS, MODELS))
    assert "good" in figure.to_json()


def test_the_table_of_biorlhf_has_a_row_a_kind_and_a_column_a_model():
    """Three sets of written answers stand in for models; good ones earn more than bad ones, whatever the kind."""
    facts = load(paths.data("facts.jsonl")).joined(load(paths.data("fact_answers.jsonl")))
    c = kit.compare(facts, reward="biorlhf_published", progress=False)
    kinds = c.by_kind().set_index("kind")
    assert c.models == ["good", "middling", "bad"]
    assert {"factual", "direction", "uncertainty"} <= set(kinds.index)
    # 11 of the 70 questions have no written answers
    assert kinds["prompts"].sum() == len({r.task_id for r in facts.responses}) == 59
    assert (kinds["good"] > kinds["middling"]).all() and (kinds["middling"] > kinds["bad"]).all()
    assert (
        c.differences["middling"].high < 0
        and c.differences["bad"].high < c.differences["middling"].low
    )
    gap = c.rewards_by_prompt["bad"] - c.rewards_by_prompt["good"]
    assert c.differences["bad"].value == pytest.approx(gap.mean())
