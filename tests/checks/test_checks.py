"""Criteria by code: what each check measures, what its form refuses, and what stays unknown."""

from pathlib import Path

import pytest

import kit
from kit.checks import check_answer, register, validate_check
from kit.errors import DataError
from kit.records import Criterion, Response, Task

DATA = Path(__file__).parents[2] / "data"
PROMPT = "Write about the red house, in the old harbour town of Bergen."


def verdict(spec, text, *, weight=1.0, criteria=(), **task):
    criterion = Criterion(id="c", text="x", weight=weight, check=spec)
    task = Task(id="t", prompt=PROMPT, criteria=(*criteria, criterion), **task)
    return check_answer(task, Response(task_id="t", id="r", text=text), criterion)


MEASURES = [
    # counts
    ({"name": "words", "max": 3}, "one two three", "met"),
    ({"name": "words", "max": 3}, "one two three four", "unmet"),
    ({"name": "words", "min": 2, "max": 2}, "state-of-the-art don't", "met"),
    ({"name": "words", "max": 2}, "cats,dogs,cows", "unmet"),
    ({"name": "words", "max": 1}, "1,000.5", "met"),
    ({"name": "words", "max": 3}, "**bold** and `code`", "met"),
    ({"name": "words", "max": 2}, "a\u200bb c", "met"),
    ({"name": "sentences", "max": 2}, "Dr. Lee paid $3.50. Was it tea?", "met"),
    ({"name": "sentences", "min": 3}, "One. Two! Three?", "met"),
    ({"name": "sentences", "max": 1}, "No end mark here\nSecond line", "unmet"),
    ({"name": "sentences", "max": 1}, "Ask Prof. Lee, e.g. Ann.", "met"),
    ({"name": "paragraphs", "min": 2, "max": 2}, "One.\n\nTwo.", "met"),
    ({"name": "lines", "max": 2}, "a\n\nb\n", "met"),
    ({"name": "chars", "max": 3}, " abc ", "met"),
    ({"name": "bullets", "min": 2}, "- one\n* two", "met"),
    ({"name": "bullets"}, "no list", "unmet"),
    ({"name": "numbered", "min": 2}, "1. one\n2) two", "met"),
    # contains
    ({"name": "contains", "any": ["cat", "dog"]}, "My Dog.", "met"),
    ({"name": "contains", "any": "cat"}, "Concatenate.", "unmet"),
    ({"name": "contains", "any": "cat", "whole": False}, "Concatenate.", "met"),
    ({"name": "contains", "all": ["a b", "c"]}, "c and a  b", "met"),
    ({"name": "contains", "all": ["a", "z"]}, "a", "unmet"),
    ({"name": "contains", "none": ["cat"]}, "A dog.", "met"),
    ({"name": "contains", "none": ["cat"]}, "A CAT.", "unmet"),
    ({"name": "contains", "any": "Cat", "case": True}, "cat", "unmet"),
    ({"name": "contains", "any": "it's"}, "It’s late.", "met"),
    ({"name": "contains", "any": "**"}, "**bold**", "met"),
    ({"name": "contains", "any": "naïve"}, "nai\u0308ve", "met"),
    # regex
    ({"name": "regex", "pattern": r"^\d{3}$"}, "123", "met"),
    ({"name": "regex", "pattern": r"^\d{3}$"}, "x\n123", "unmet"),
    ({"name": "regex", "pattern": r"^\d{3}$", "multiline": True}, "x\n123", "met"),
    ({"name": "regex", "pattern": "a", "min": 2, "max": 2}, "a b a", "met"),
    ({"name": "regex", "pattern": ",", "max": 0}, "no comma", "met"),
    ({"name": "regex", "pattern": "A.B", "case": False, "dotall": True}, "a\nb", "met"),
    # edges and letters
    ({"name": "starts", "text": "Dear"}, "**Dear** Ann", "met"),
    ({"name": "starts", "text": ["Hi", "Hello"]}, "hello!", "met"),
    ({"name": "ends", "text": "?"}, "Really?\n", "met"),
    ({"name": "ends", "text": "End", "case": True}, "the end", "unmet"),
    ({"name": "no_char", "chars": ",;"}, "a, b", "unmet"),
    ({"name": "no_char", "chars": "E"}, "there", "unmet"),
    ({"name": "no_char", "chars": "E", "case": True}, "there", "met"),
    ({"name": "lowercase"}, "all small", "met"),
    ({"name": "uppercase"}, "NOT all", "unmet"),
    ({"name": "uppercase"}, "123", "unmet"),
    # JSON
    ({"name": "json"}, '{"a": 1}', "met"),
    ({"name": "json"}, '```json\n{"a": 1}\n```', "met"),
    ({"name": "json"}, "{'a': 1}", "unmet"),
    ({"name": "json"}, "NaN", "unmet"),
    ({"name": "json"}, "{}", "met"),
    ({"name": "json", "schema": {"type": "object", "required": ["a"]}}, '{"b": 1}', "unmet"),
    ({"name": "json", "schema": {"type": "array", "minItems": 2}}, "[1, 2]", "met"),
    # exact
    ({"name": "exact", "answers": ["16", "sixteen"]}, "16.", "met"),
    ({"name": "exact", "answers": "16"}, "16. Confidence: 80%", "met"),
    ({"name": "exact", "answers": "16"}, "Well: <answer>16</answer>", "met"),
    ({"name": "exact", "answers": "16"}, "16 or 17", "unmet"),
    ({"name": "exact", "answers": "Ab", "case": True}, "ab", "unmet"),
    # numbers, with a literal unit
    ({"name": "number", "value": 42}, "It is 42.", "met"),
    ({"name": "number", "value": 42}, "It is 420.", "unmet"),
    ({"name": "number", "value": 1234}, "1,234 in all", "met"),
    ({"name": "number", "value": -5}, "minus: −5 degrees", "met"),
    ({"name": "number", "value": 9.8, "tolerance": 0.05, "unit": "m/s"}, "9.81 m/s", "met"),
    ({"name": "number", "value": 5, "unit": "km"}, "5 m", "unmet"),
    ({"name": "number", "value": 5, "unit": "km"}, "5 km.", "met"),
    ({"name": "number", "value": 3}, "1, 2, 3, 4, 5, 6, 7", "unmet"),
    # the prompt's words
    ({"name": "own_words", "min": 2}, "The red house sleeps quietly", "met"),
    ({"name": "own_words", "min": 2}, "The red old house", "unmet"),
    ({"name": "no_copy", "words": 4}, "It is the old harbour town of Oslo", "unmet"),
    ({"name": "no_copy", "words": 6}, "It is the old harbour town of Oslo", "met"),
    ({"name": "unique_words", "min_share": 0.7}, "fish fish fish", "unmet"),
    ({"name": "unique_words", "min_share": 0.7}, "fish swim far", "met"),
    # citations
    ({"name": "cites"}, "<snippet id=S1>It rains.</snippet>", "met"),
    ({"name": "cites", "min": 2}, '<snippet id="S1, S2">It rains.</snippet>', "met"),
    ({"name": "cites"}, "<snippet id=S1,S9>It rains.</snippet>", "unmet"),
    ({"name": "cites", "only_known": False}, "<snippet id=S9>It rains.</snippet>", "met"),
    ({"name": "cites", "min": 0, "not": True}, "<snippet id=S9>It rains.</snippet>", "met"),
    # turned round, and thoughts
    ({"name": "words", "max": 2, "not": True}, "one two three", "met"),
    ({"name": "words", "max": 2}, "<think>a b c d e</think>one two", "met"),
    ({"name": "contains", "any": "plan"}, "<think>my plan is never closed", "unmet"),
    ({"name": "contains", "any": "plan"}, "my plan\n</think>\n\nDone.", "unmet"),
]


@pytest.mark.parametrize(("spec", "text", "status"), MEASURES)
def test_what_a_check_measures(spec, text, status):
    v = verdict(spec, text, sources={"S1": "Rain.", "S2": "Snow."})
    assert (v.status, v.p) == (status, float(status == "met"))
    assert v.judge == "code" and v.reason and v.key


@pytest.mark.parametrize("text", ["", "  \n", "\u200b", "...", "**", "🙂"])
@pytest.mark.parametrize(
    "spec",
    [
        {"name": "words", "max": 5},
        {"name": "contains", "none": ["x"]},
        {"name": "no_char", "chars": ","},
    ],
)
def test_an_answer_without_a_word_meets_no_good_criterion(spec, text):
    assert verdict(spec, text).status == "unmet"


def test_a_bad_thing_is_absent_from_an_empty_answer():
    assert verdict({"name": "contains", "any": "x"}, "", weight=-1).status == "unmet"
    assert verdict({"name": "words", "max": 0}, "", weight=-1).status == "met"


REFUSED = [
    ({"name": "word", "max": 3}, "did you mean 'words'"),
    ({}, "there is no check"),
    ({"name": "words", "mx": 3}, "mx"),
    ({"name": "words", "max": "3"}, "str"),
    ({"name": "words", "max": -1}, ">= 0"),
    ({"name": "words", "min": 5, "max": 3}, "min 5 is above max 3"),
    ({"name": "words", "max": 3, "not": "yes"}, "bool"),
    ({"name": "contains"}, "none of any, all and none"),
    ({"name": "contains", "any": []}, "length >= 1"),
    ({"name": "contains", "any": [""]}, "length >= 1"),
    ({"name": "regex", "pattern": "("}, "missing )"),
    ({"name": "json", "schema": {"type": "objct"}}, "objct"),
    ({"name": "unique_words", "min_share": 70}, "<= 1"),
    ({"name": "number"}, "value"),
    ({"name": "exact"}, "answers"),
    ({"name": "all_met", "of": ["d"]}, "no other criterion 'd'"),
]


@pytest.mark.parametrize(("spec", "words"), REFUSED)
def test_a_check_that_is_not_in_its_form_is_an_error_that_names_the_place(spec, words):
    criterion = Criterion(id="c7", text="x", check=spec)
    task = Task(id="t9", prompt="p", criteria=(criterion,))
    with pytest.raises(DataError) as e:
        validate_check(criterion, task)
    assert words in str(e.value)
    assert "task 't9', criterion 'c7', field check" in str(e.value)
    with pytest.raises(DataError):
        check_answer(task, Response(task_id="t9", id="r", text="x"), criterion)


def test_a_pattern_that_runs_too_long_is_unknown():
    v = verdict({"name": "regex", "pattern": r"(a|aa|a.)+\Z"}, "a" * 200 + "\nx")
    assert (v.status, v.failure) == ("unknown", "error")
    assert "Timeout" in v.reason


def test_a_schema_never_fetches_an_address():
    schema = {"$ref": "http://127.0.0.1:9/schema.json"}
    with pytest.raises(DataError, match="127.0.0.1"):
        verdict({"name": "json", "schema": schema}, "{}")


RESULTS = [(True, "met"), (False, "unmet"), ((True, "why"), "met"), (None, "abstain")]
RESULTS += [(0.5, "error"), ("yes", "error"), (ValueError("no luck"), "error")]


@pytest.mark.parametrize(("result", "status"), RESULTS)
def test_a_check_of_your_own(result, status):
    @register("mine")
    def mine(task, answer, *, limit: int = 3):
        if isinstance(result, Exception):
            raise result
        return result

    v = verdict({"name": "mine", "limit": 2}, "text")
    assert (v.failure or v.status) == status
    with pytest.raises(DataError, match="limit"):
        verdict({"name": "mine", "limit": "2"}, "text")
    with pytest.raises(DataError, match="built-in"):
        register("words")


CODE = Criterion(id="short", text="short", check={"name": "words", "max": 3})
FAULT = Criterion(id="bad", text="bad", weight=-1, check={"name": "contains", "any": "awful"})
JUDGED = Criterion(id="nice", text="It is nice.")
ALL = [
    ((CODE, FAULT), None, "so be it", "met"),
    ((CODE, FAULT), None, "an awful day", "unmet"),
    ((CODE, FAULT), ["short"], "an awful day", "met"),
    ((CODE, JUDGED), None, "so be it", "unknown"),
    ((CODE, JUDGED), None, "one two three four", "unmet"),
    ((), None, "so be it", "unknown"),
]


@pytest.mark.parametrize(("criteria", "of", "text", "status"), ALL)
def test_all_met(criteria, of, text, status):
    assert verdict({"name": "all_met", "of": of}, text, criteria=criteria).status == status


def test_the_key_changes_with_whatever_a_check_can_see():
    rows = [
        (3, "a", {}),
        (4, "a", {}),
        (3, "b", {}),
        (3, "a", {"sources": {"S": "x"}}),
        (3, "a", {}),
    ]
    keys = [verdict({"name": "words", "max": n}, text, **more).key for n, text, more in rows]
    assert len(set(keys)) == 4 and keys[0] == keys[-1]


def test_labels_of_checked_criteria_are_what_the_code_finds():
    tasks = kit.load(DATA / "rubrics.json").joined(kit.load(DATA / "answers.jsonl"))
    by_id = {t.id: t for t in tasks.tasks}
    answers = {r.ids: r for r in tasks.responses}
    labels = {v.ids: v for v in kit.load(DATA / "answers.jsonl").verdicts}
    compared = 0
    for (task, answer, criterion), label in labels.items():
        c = next(c for c in by_id[task].criteria if c.id == criterion)
        if c.check and label.is_known:
            v = check_answer(by_id[task], answers[task, answer], c)
            assert v.status == label.status, (task, answer, criterion, v.reason)
            compared += 1
    assert compared > 1000
