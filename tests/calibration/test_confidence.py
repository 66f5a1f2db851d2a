"""Stated confidence against a hand-labelled table, and the scores read from tokens and agreement."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kit import confidence as k
from kit.system import paths

TABLE = [
    line.split("\t")
    for line in (Path(__file__).parent / "confidence_phrasings.tsv")
    .read_text(encoding="utf-8")
    .splitlines()
    if not line.startswith("# text")
]

NEGATIVES = [
    line
    for line in (Path(__file__).parent / "confidence_negatives.tsv")
    .read_text(encoding="utf-8")
    .splitlines()
    if not line.startswith("#")
]


def test_the_table_is_large_and_varied() -> None:
    assert len(TABLE) >= 200 and len({t for t, _ in TABLE}) == len(TABLE)
    assert {"high", "medium", "low", "ambiguous", "invalid", "missing"} <= {e for _, e in TABLE}


@pytest.mark.parametrize("text,expected", TABLE)
def test_phrasing(text, expected) -> None:
    got = k.extract(text.replace("\\n", "\n"))
    if expected[0].isdigit():
        assert got.status == "value" and got.value == pytest.approx(float(expected))
    else:
        assert (got.level if got.status == "level" else got.status) == expected
        assert got.value is None


@pytest.mark.parametrize("text", NEGATIVES)
def test_no_statement(text) -> None:
    """Numbers and levels that are not the answer's own confidence; the two readers that this one replaced read 18 and 42 of them."""
    got = k.extract(text.replace("\\n", "\n"))
    assert (got.status, got.value, got.level) == ("missing", None, None)
    assert k.without(text) == text


def test_every_answer_of_the_fact_set_is_read() -> None:
    """26 of these 177 answers were missed or misread while rewards and calibration had a reader each."""
    rows = [
        json.loads(line)
        for line in paths.data("fact_answers.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    wrong = []
    for row in rows:
        got, want = k.extract(row["response"]), row["stated_confidence"]
        if (
            got.level != want
            if isinstance(want, str)
            else got.value is None or abs(got.value - want) > 1e-9
        ):
            wrong.append((want, got, row["response"][-80:]))
    assert len(rows) >= 177 and not wrong


def test_statements_are_taken_out_and_facts_stay() -> None:
    """ "It is about 90%" was taken for a confidence and lost as a fact."""
    assert "91%" in k.without("It is about 91% nitrogen. I am 60% sure.") and "60" not in k.without(
        "It is about 91% nitrogen. I am 60% sure."
    )
    assert "35" not in k.without(
        "Perhaps axions. I would say 35%, no more."
    ) and "axions" in k.without("Perhaps axions. I would say 35%, no more.")
    assert [s.text for s in k.extract_each("I am 90% sure. On reflection, confidence: 40%")] == [
        "90%",
        "40%",
    ]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.integers(0, 100),
    st.sampled_from(
        ["Confidence: {}%", "I am {}% sure.", "**Confidence:** {} %", "my confidence is {}/100"]
    ),
    st.text(max_size=40),
)
def test_last_statement_wins_whatever_comes_before(n, form, noise) -> None:
    assert k.extract(noise + ".\n\n" + form.format(n)).value == pytest.approx(n / 100)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.text(max_size=200))
def test_any_text_gives_a_valid_answer(text) -> None:
    got = k.extract(text)
    assert got.status in k.STATUSES and (got.value is None or 0 <= got.value <= 1)


def test_scale() -> None:
    for text, scale, want in (
        ("Confidence: 7", 10, 0.7),
        ("Confidence: 1", 100, 0.01),
        ("Confidence: 1", 1, 1.0),
        ("Confidence: 0.95%", 1, 0.95),
        ("Confidence: 0.95%", 100, 0.0095),
    ):
        assert k.extract(text, scale=scale).value == pytest.approx(want)
    assert (
        k.extract("Confidence: 12", scale=10).status == "invalid"
        and "scale" in k.extract("Confidence: 7").note
    )


def test_long_text_is_fast() -> None:
    import time

    start = time.perf_counter()
    k.extract("the confidence of ( 1 - " * 1000 + " " * 5000)
    assert time.perf_counter() - start < 3


def test_parse_rate_has_no_defaults() -> None:
    out = k.extract_all(
        ["Confidence: 80%", "B", None, "Confidence: high", "Confidence: 7", "Confidence: 250%"]
    )
    assert out.counts == {"value": 1, "level": 1, "ambiguous": 1, "invalid": 1, "missing": 2}
    assert (
        np.isnan(out.values).sum() == 5
        and out.parse_rate.value == pytest.approx(1 / 3)
        and out.parse_rate.n == 6
    )


def test_levels_are_fitted() -> None:
    fitted = k.fit_levels(["high"] * 10 + ["low"] * 4, [1] * 6 + [0] * 4 + [1] + [0] * 3)
    assert (
        fitted["high"].value == 0.6
        and fitted["low"].value == 0.25
        and math.isnan(fitted["medium"].value)
    )


def test_judge_score_reads_the_last_position() -> None:
    first, last = {"1": 0.0}, {"5": math.log(0.5), "4": math.log(0.25), "x": math.log(0.25)}
    out = k.judge_score([("1", first), ("of", {}), (" 5", last), (".", {})])
    assert out == pytest.approx({5.0: 2 / 3, 4.0: 1 / 3})
    assert k.judge_score([("ok", {"ok": 0.0})]) == {}
    of_five = [("4", {"4": -0.1, "2": -3.0}), ("/", {}), ("5", {"5": -0.01})]
    assert set(k.judge_score(of_five)) == {4.0, 2.0}
    assert k.judge_score([("4", {"x": -0.1})]) == {}


@pytest.mark.parametrize(
    "text",
    [
        "I am 90% sure that this is wrong.",
        "I am 90% certain that I'm mistaken.",
        "I doubt it 90%.",
        "I'm far from 90% sure.",
        "Confidence: 90% would be too much; 20% is closer.",
    ],
)
def test_being_sure_to_be_wrong_is_no_confidence(text) -> None:
    """Each was read as .9."""
    got = k.extract(text)
    assert got.status == "ambiguous" and "right" in got.note


@pytest.mark.parametrize("text", ["Probability that I am right: 0.8", r"Confidence: \boxed{80\%}"])
def test_a_probability_to_be_right_and_a_box(text) -> None:
    assert k.extract(text).value == 0.8
