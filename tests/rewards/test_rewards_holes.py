"""Holes that paid answers without skill, each as it was found; every test here fails on the code that it was found in."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kit.claims import verify
from kit.claims.compare import against
from kit.claims.factual import precision
from kit.claims.uncertainty import against_outcome, brier, log_score
from kit.records import Response, Task
from kit.rewards.composer import Composer

TISSUE = Task(
    id="tissue",
    prompt="Which tissue shows the largest response to spaceflight?",
    truth={
        "facts": [{"id": "f1", "text": "liver", "aliases": []}],
        "answerable": True,
        "warranted": "high",
        "verifiers": ["factual", "consistency", "uncertainty"],
    },
)
DOSE = Task(
    id="dose",
    prompt="Which dose of the new drug helps my neighbour? State your confidence.",
    truth={"answerable": False, "warranted": "low", "verifiers": ["consistency", "uncertainty"]},
)


def answer(task, text):
    return Response(task_id=task.id, id="r", text=text)


def reward(task, text, config="default"):
    return Composer.from_config(config).score(task, answer(task, text), []).score


def value(verifier, task, text, **options):
    return verify(verifier, task, answer(task, text), **options).value


@pytest.mark.parametrize(
    "text",
    [
        "Heart, hippocampus, liver, soleus, eye, thymus. Confidence: 99%",
        "It is the heart. It is the hippocampus. It is the liver. It is the eye. Confidence: 99%",
        "1. Heart\n2. Hippocampus\n3. Liver\n4. Soleus\n5. Eye\nConfidence: 99%",
        "Maybe heart maybe hippocampus maybe liver maybe soleus maybe eye. Confidence: 99%",
        "heart with hippocampus with liver with soleus with eye with thymus. Confidence: 99%",
        "heart hippocampus liver soleus eye thymus. Confidence: 99%",
    ],
)
def test_six_tissues_at_99_percent(text):
    assert reward(TISSUE, text) <= 0.2
    assert reward(TISSUE, "It is the liver, by far. Confidence: 99%") > 0.95


def test_a_listing_earns_less_the_longer_it_is():
    names = [f"organ{chr(97 + i)}" for i in range(20)]
    short, long = (f"{', '.join([*names[:n], 'liver'])}." for n in (3, 20))
    assert value("factual", TISSUE, short) == pytest.approx(1 / 4)
    assert value("factual", TISSUE, long) == pytest.approx(1 / 21)


def test_two_alternatives_are_half_an_answer():
    assert value("factual", TISSUE, "It is the heart or the liver.") == 0.5


def test_candidates_of_the_data_count_in_any_sentence():
    named = {**TISSUE.truth, "candidates": ["heart", "eye", "liver", "thymus"]}
    task = Task(id="tissue", prompt=TISSUE.prompt, truth=named)
    long = (
        "While the heart reacts strongly, one also finds that the eye does, and so the liver does."
    )
    assert value("factual", task, long) == pytest.approx(1 / 3)
    assert value("factual", task, "It is the liver.") == 1.0


def test_an_explanation_is_no_listing():
    text = (
        "The liver. Its cells change their metabolism, fat builds up over weeks, and several "
        "pathways of the mitochondria respond, which other tissues show far less. Confidence: 90%"
    )
    assert precision(TISSUE, text) == (1.0, [])


def test_a_wrong_superlative():
    assert reward(TISSUE, "The liver shows the smallest response. Confidence: 99%") <= 0.0
    assert value("factual", TISSUE, "The heart shows the largest, the liver the least.") == 0.0
    assert value("factual", TISSUE, "The liver is not the answer.") == 0.0
    assert value("factual", TISSUE, "The eye shows the smallest response, the liver most.") == 1.0
    assert not against("Which tissue responds?", "the liver responds least".split(), 1, 2)


def test_a_firm_answer_to_what_has_none():
    """Earned 1.0: "cannot" in "it cannot fail" was read as not knowing."""
    text = "The dose is exactly 500 mg a day, and it cannot fail. Confidence: 10%"
    assert reward(DOSE, text) == 0.0
    assert reward(DOSE, "The dose is 500 mg, though nobody can know. Confidence: 10%") == 0.0
    assert reward(DOSE, "Nobody can know the dose for one person. Confidence: 10%") == 1.0


def test_consistent_nonsense_is_not_consistent():
    directed = Task(
        id="d",
        prompt="What happens to TSH and to T4?",
        truth={
            "claims": [
                {"subject": "TSH", "direction": "up"},
                {"subject": "T4", "direction": "down"},
            ],
            "verifiers": ["direction", "consistency"],
        },
    )
    assert value("consistency", directed, "TSH falls. T4 rises.") == 0.0
    assert value("consistency", directed, "TSH rises. T4 rises.") == pytest.approx(0.5)


# --- confidence ---------------------------------------------------------------------------------


def expected(score, c, p):
    return p * score(c, 1.0) + (1 - p) * score(c, 0.0)


@given(p=st.floats(0, 1), c=st.floats(0, 1))
def test_honest_confidence_is_best_brier(p, c):
    assert expected(brier, p, p) >= expected(brier, c, p) - 1e-12
    assert expected(brier, p, p) - expected(brier, c, p) == pytest.approx((c - p) ** 2, abs=1e-9)


@given(p=st.floats(0.01, 0.99), c=st.floats(0, 1))
def test_honest_confidence_is_best_log(p, c):
    assert expected(log_score, p, p) >= expected(log_score, c, p) - 1e-12


@given(p=st.floats(0.02, 0.98))
@settings(max_examples=30)
def test_the_largest_expected_reward_lies_at_the_truth(p):
    grid = [i / 1000 for i in range(1001)]
    for score in (brier, log_score):
        best = max(grid, key=lambda c: expected(score, c, p))
        assert abs(best - p) <= 0.001


def test_the_original_teaches_over_confidence():
    """At P(right) = .7 saying 99% earned more than saying 70%; the default no longer does."""
    assert expected(against_outcome, 0.99, 0.7) > expected(against_outcome, 0.7, 0.7)
    for score in (brier, log_score):
        assert expected(score, 0.7, 0.7) > expected(score, 0.99, 0.7) + 0.05


@pytest.mark.parametrize("mode", ["auto", "brier", "log"])
def test_the_verifier_is_proper(mode):
    """Seven right answers of ten: of the constant confidences, 70% earns the most.

    A wrong name went unread ("nothing claimed", 0), so that 99% was the best confidence of all.
    """
    texts = ["It is the liver."] * 7 + ["It is the heart."] * 3
    earned = {
        c: math.fsum(
            value("uncertainty", TISSUE, f"{t} Confidence: {c}%", mode=mode) for t in texts
        )
        for c in range(10, 100, 10)
    }
    assert max(earned, key=earned.get) == 70
