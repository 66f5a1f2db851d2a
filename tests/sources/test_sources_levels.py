"""Levels, labels by levels, signs and lists in the forms that people write: an outsider found them read wrongly, or not at all."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kit
from kit.data import iter_tasks, load_tasks, save_tasks
from kit.errors import DataError
from kit.rubrics import lint

WORDS = ["bad", "ok", "top"]


def one(criterion):
    found = load_tasks([{"prompt": "p", "criteria": [{"text": "c", **criterion}]}])
    return found.tasks[0].criteria[0], {f.code for f in found.findings if f.severity == "error"}


@pytest.mark.parametrize(
    ("levels", "more"),
    [
        ({"0": "bad", "1": "ok", "2": "top"}, {}),
        ({"2": "top", "0": "bad", "1": "ok"}, {}),
        ([{"score": i, "description": w} for i, w in enumerate(WORDS)], {}),
        (json.dumps({"0": "bad", "1": "ok", "2": "top"}), {}),
        (WORDS, {"points": [0, 1, 2]}),
    ],
)
def test_levels_are_read_in_every_form(levels, more):
    """A five-point criterion was judged met or unmet; objects were shown to the judge as JSON."""
    made, errors = one({"levels": levels, **more})
    assert made.levels == ("0: bad", "1: ok", "2: top") and made.scale == "ordinal"
    assert not errors and made.weight == 1 and not made.meta


@pytest.mark.parametrize(
    "levels",
    [
        {"0": "bad", "1": "ok", "5": "top"},  # ok is worth .2, and would be paid .5
        {"low": "bad", "high": "top"},
        ["only one"],
        [{"score": 1}, {"score": 2}],
        7,
    ],
)
def test_levels_that_cannot_be_paid_in_equal_steps_are_an_error_and_stay_in_meta(levels):
    made, errors = one({"levels": levels})
    assert errors == {"bad-levels"} and made.meta["levels"] == levels and made.scale == "binary"


@pytest.mark.parametrize(
    "levels", [["poor", "fair", "poor"], ["Poor", "fair", "poor "], [1, 1, 2], "1. a / 1. a / 2. b"]
)
def test_a_level_that_stands_twice_is_an_error(levels):
    """The label "poor" was worth 0 in silence, though it named the worst level and the best."""
    made, errors = one({"levels": levels})
    assert errors == {"bad-levels"} and made.levels == () and made.meta["levels"] == levels


def test_words_that_two_levels_begin_with_name_neither():
    levels = ["Weak: no source", "Weak: a wrong source", "Good: its source", "Good"]
    row = {"id": "t", "prompt": "p", "criteria": [{"id": "c", "text": "c", "levels": levels}]}
    each = [{**row, "response": x, "labels": {"c": x}} for x in ("Weak", "weak: no source", "good")]
    found = load_tasks(each)
    assert [v.value for v in found.verdicts] == [None, 0.0, 1.0]
    assert [f.code for f in found.findings if f.severity == "error"] == ["unreadable-label"]


@pytest.mark.parametrize(
    "levels", [[5, 4, 3], [3.0, 5.0, 4.0], [1.0, 0.5, 0.0], ["4", "3", "5"], ["3", "2", "1"]]
)
def test_levels_that_are_numbers_and_do_not_rise_are_an_error(levels):
    """Numbers were sorted upward in silence. Of German marks, 6 to 1, the 1 is the best, and was
    worth 0; and levels are said to be given worst first. The same as texts was an error already."""
    row = {"prompt": "p", "criteria": [{"id": "b", "text": "c", "levels": levels}]}
    with pytest.raises(DataError, match="which is the best"):
        load_tasks([row]).sound()
    made, errors = one({"levels": levels})
    assert made.levels == () and made.meta["levels"] == levels and errors == {"bad-levels"}
    for rising in (sorted(levels), {str(x): "w" for x in levels}):
        made, errors = one({"levels": rising})
        assert len(made.levels) == 3 and not errors


@pytest.mark.parametrize(
    ("levels", "codes"),
    [
        (["Excellent", "Good", "Poor"], ["levels-order"]),
        (["pass", "fail"], ["levels-order"]),  # "met", "unmet" was seen, this one not
        (["Passed", "Failed"], ["levels-order"]),
        (["fail", "pass"], []),
        (WORDS, []),
        (["1", "2", "10"], []),
    ],
)
def test_levels_that_begin_with_the_best_are_told(levels, codes):
    """ "Excellent" was worth 0, without a word of load or lint."""
    criterion = {"id": "b", "text": "Names the dose", "weight": 1, "levels": levels}
    found = lint(load_tasks([{"id": "t", "prompt": "p", "criteria": [criterion]}])).findings
    assert [f.code for f in found if f.code == "levels-order"] == codes


def labelled(*labels, levels=WORDS):
    task = {"id": "t", "prompt": "p", "criteria": [{"id": "b", "text": "c", "levels": levels}]}
    answers = [
        {"task_id": "t", "response_id": f"r{i}", "response": "r", "labels": {"b": x}}
        for i, x in enumerate(labels)
    ]
    found = load_tasks([task]).joined(load_tasks(answers))
    return [v.value for v in found.verdicts], {f.code for f in found.sound(skip_bad=True).findings}


@pytest.mark.parametrize(
    ("labels", "values"),
    [
        (["bad", "OK", "top"], [0, 0.5, 1]),
        ([0, 1, 2], [0, 0.5, 1]),
        ([1, 2, 3], [0, 0.5, 1]),
        (["3", "1"], [1, 0]),
        (["2/3", "n/a", 3], [0.5, None, 1]),
    ],
)
def test_labels_on_levels_are_read_by_the_levels(labels, values):
    """The best of three levels scored .5, and the level's own words were not understood."""
    assert labelled(*labels) == (values, set()) or labelled(*labels)[1] == {"label-scale"}
    assert labelled(*labels)[0] == values


@pytest.mark.parametrize("labels", [[1], [1, 2], [0, 3], [7], ["great"]])
def test_labels_that_may_be_counted_from_either_end_are_unknown_and_an_error(labels):
    values, codes = labelled(*labels)
    assert None in values and "unreadable-label" in codes


def test_a_label_read_by_levels_stays_when_its_set_is_saved_and_cut(tmp_path):
    task = {"id": "t", "prompt": "p", "criteria": [{"id": "b", "text": "c", "levels": WORDS}]}
    rows = [
        {"task_id": "t", "response_id": f"r{i}", "response": f"r{i}", "labels": {"b": i}}
        for i in range(3)
    ]
    found = load_tasks([task]).joined(load_tasks(rows))
    save_tasks(tmp_path / "a.jsonl", found.tasks, verdicts=found.verdicts[1:2])
    assert [v.value for v in load_tasks(tmp_path / "a.jsonl").verdicts] == [0.5]


def test_a_number_names_the_level_that_begins_with_it():
    values, _ = labelled(3, 9, levels={"1-2": "bad", "3-4": "ok", "5-6": "good", "7-8": "top"})
    assert values == [1 / 3, None]


@pytest.mark.parametrize(
    "mark", [{"type": "NEG"}, {"type": "must_not"}, {"type": "negativ"}, {"is_positive": False}]
)
def test_a_criterion_that_says_it_is_negative_costs(mark):
    """Its weight was +1, without a word."""
    made, errors = one(mark)
    assert made.weight == -1 and not errors and not made.meta


def test_a_pitfall_that_pays_is_an_error():
    assert one({"category": "Pitfall"})[1] == {"polarity"}
    assert one({"type": "pitfall", "weight": -2})[1] == set()


def test_a_second_list_of_criteria_is_said():
    found = load_tasks([{"prompt": "p", "criteria": ["a"], "rubrics": ["b"]}])
    said = [f.field for f in found.findings if f.severity == "error"]
    assert said == ["criteria"] and len(found.tasks[0].criteria) == 1


def test_lists_of_criteria_by_group_are_read():
    """The task had no criterion, and the lint nothing to say."""
    rubric = {"content": [{"criterion": "a"}, "b"], "style": [{"criterion": "c", "weight": 2}]}
    made = load_tasks([{"prompt": "p", "rubric": rubric}]).tasks[0].criteria
    assert [(c.text, c.weight, c.tags) for c in made] == [
        ("a", 1, ("content",)),
        ("b", 1, ("content",)),
        ("c", 2, ("style",)),
    ]
    named = load_tasks([{"prompt": "p", "rubric": {"accuracy": "is right"}}]).tasks[0].criteria
    assert [(c.text, c.title) for c in named] == [("is right", "accuracy")]


@pytest.mark.parametrize(
    "labels",
    [
        {"verdicts": [{"criterion": "c1", "verdict": "met", "reason": "x"}]},
        {"ratings": [{"id": "c1", "rating": "yes"}]},
        {"ratings": {"c1": "met"}},
    ],
)
def test_labels_under_other_names_and_in_lists_are_read(labels):
    alone = load_tasks([{"task_id": "t", "response": "r", **labels}])
    both = load_tasks(
        [
            {
                "id": "t",
                "prompt": "p",
                "criteria": [{"id": "c1", "text": "x"}],
                "response": "r",
                **labels,
            }
        ]
    )
    for found in (alone, both):
        assert [(v.criterion_id, v.value) for v in found.verdicts] == [("c1", 1.0)], found
    if "verdicts" in labels:
        assert "reason" in json.dumps(dict(alone.responses[0].meta))


def test_labels_that_cannot_be_read_are_an_error():
    found = load_tasks([{"task_id": "t", "response": "r", "verdicts": [{"c": "d"}]}])
    assert [f.field for f in found.findings if f.severity == "error"] == ["verdicts"]


def test_a_system_text_beside_the_chats_own_is_a_conflict():
    chat = [{"role": "system", "content": "s1"}, {"role": "user", "content": "u"}]
    found = load_tasks([{"system": "SS", "messages": chat, "rubrics": ["c"]}])
    assert [f.severity for f in found.findings if f.code == "field-conflict"] == ["warning"]
    assert found.tasks[0].system == "s1" and found.tasks[0].meta["system"] == "SS"


@pytest.mark.parametrize("prompt", [np.float64(2), np.int64(2), np.str_("2")])
def test_a_numpy_scalar_is_a_value(prompt):
    """A DataFrame's row raised 'The truth value of an empty array is ambiguous'."""
    assert load_tasks([{"id": "t", "prompt": prompt, "rubrics": ["c"]}]).tasks[0].prompt == "2"


def test_keys_that_are_no_text_become_text_and_are_said(tmp_path):
    found = kit.load(
        [
            {
                "id": "t",
                "prompt": "p",
                "rubrics": ["c"],
                "x": {(1, 2): "t", 1: "a", "1": "b"},
                "y": {1, 2},
            }
        ]
    )
    assert [f.field for f in found.findings if f.code == "value-type"][:1] == ["x"]
    meta = dict(found.tasks[0].meta)
    assert meta["x"] == {"(1, 2)": "t", "1 (int)": "a", "1": "b"} and meta["y"] == [1, 2]
    save_tasks(tmp_path / "a.jsonl", found)
    assert dict(kit.load(tmp_path / "a.jsonl").tasks[0].meta) == meta


def test_two_leaves_of_one_id_keep_their_own_scores():
    """Both verdicts named the first: the grade was unknown where .75 stands in the file."""
    leaf = {"id": "x", "requirements": "A", "weight": 1, "sub_tasks": [], "score": 0}
    both = [leaf, {**leaf, "requirements": "B", "weight": 3, "score": 1}]
    root = {"id": "r", "requirements": "R", "prompt": "p", "weight": 1, "sub_tasks": both}
    found = load_tasks([root])
    assert {v.criterion_id: v.value for v in found.verdicts} == {"x": 0, "x#2": 1}
    odd = load_tasks([{**root, "sub_tasks": [{**leaf, "score": 2}]}])
    assert "unreadable-label" in {f.code for f in odd.findings}


@pytest.mark.parametrize(("stated", "read"), [("80%", 0.8), ("8/10", 0.8), ("0.8", 0.8)])
def test_a_stated_confidence_is_read(stated, read):
    found = load_tasks([{"task_id": "t", "response": "r", "confidence": stated}])
    assert found.responses[0].confidence == read and not found.findings


@pytest.mark.parametrize("stated", ["high", True, 80, "12/10"])
def test_a_confidence_that_is_none_is_said(stated):
    found = load_tasks([{"task_id": "t", "response": "r", "confidence": stated}])
    assert found.responses[0].confidence is None
    assert [f.code for f in found.findings] == ["bad-confidence"]


def test_a_row_that_is_nested_too_deeply_is_an_unreadable_row():
    deep = {"a": 1}
    for _ in range(5000):
        deep = {"k": deep}
    rows = [{"prompt": "p", "rubrics": ["c"]}, {"prompt": "p", "rubrics": ["c"], "deep": deep}]
    found = load_tasks(rows)
    assert len(found.tasks) == 1 and found.skipped == 1


@pytest.mark.parametrize(
    ("field", "row"),
    [
        ("rubrics", {"rubrics": ["a"], "negative_rubrics": ["b"]}),
        ("points", {"rubrics": ["a", "b"], "points": [1, -2]}),
        ("weights", {"rubrics": {"a": "A", "b": "B"}, "weights": {"a": 1, "b": -2}}),
        ("reward_model", {"reward_model": {"style": "rubric", "rubric": [{"criterion": "c"}]}}),
        ("score_rubric", {"score_rubric": {"1": "bad", "2": "good"}}),
        ("points", {"rubric": "Says x", "points": -5}),  # weight +1
    ],
)
def test_criteria_and_weights_in_a_second_field_are_an_error(field, row):
    """Every positive criterion of such a row was lost, at level info."""
    found = load_tasks([{"prompt": "p", **row}]).findings
    assert [f.field for f in found if f.severity == "error"] == [field]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[-5] Says y", ["error"]),  # as HealthBench's grader prints it: it was worth +1 in silence
        ("Says y (\u22125 points)", ["warning"]),
        ("-5 points: Says y", ["error"]),
        ("Says y [points: -5]", ["warning"]),
        # told, and not taken as its weight
        ("Reports the change in satisfaction (+3 points)", ["warning"]),
        ("[1] Says y", []),
        ("Says y in 3 points", []),
        ("Has (5) items", []),
    ],
)
def test_points_that_stand_in_the_text_are_told(text, told):
    found = load_tasks([{"prompt": "p", "rubric": [text, "b"]}])
    assert [(c.text, c.weight) for c in found.tasks[0].criteria] == [(text, 1), ("b", 1)]
    assert [f.severity for f in found.findings if f.code == "points-in-text"] == told


@pytest.mark.parametrize(
    ("levels", "label", "read"),
    [
        (["0: bad", "1: ok", "2: great"], 2, 1),
        (["3 - bad", "4 - ok", "5 - great"], 3, 0),
        (["1 star", "2 stars", "3 stars"], "3 stars", 1),
        (["0%", "50%", "100%"], "100%", 1),
        (["[0] bad", "[1] good"], 1, 1),
        ([{"label": str(i), "description": w} for i, w in ((5, "a"), (4, "b"), (3, "c"))], 3, 0),
        (["Score 3", "Score 4", "Score 5"], 3, 0),
    ],
)
def test_a_number_in_a_levels_words_is_its_number(levels, label, read):
    """The list's own order was taken: label 2 of "2: great" was 0, and a lone 3 was the third."""
    values, codes = labelled(label, levels=levels)
    assert values == [read] and not codes


@pytest.mark.parametrize(
    "levels",
    [
        ["1", "2", "N/A"],
        ["bad", "", "top"],
        ["1", "1"],
        ["2: great", "1: ok", "0: bad"],
        ["3. many errors", "2. some errors", "1. no errors"],
        ["6", "5", "4", "3", "2", "1"],  # German marks, worst first as the README asks
    ],
)
def test_levels_that_are_worth_nothing_or_fall_are_an_error(levels):
    """ "N/A" was the top of the scale; numbers that fall may be places or marks."""
    assert one({"levels": levels})[1] == {"bad-levels"}


@pytest.mark.parametrize(
    "more",
    [
        {"labels": None},
        {"negative_rubrics": []},
        {"checklist": []},
        {"signs": ["fever"]},
        {"labels": ["math", "easy"]},
        {"metadata": {"criteria": "inclusion of adults"}},
    ],
)
def test_empty_or_unlike_fields_beside_criteria_are_no_error(more):
    """A column that Parquet fills with [] took the place of the criteria: the row had none."""
    found = load_tasks([{"prompt": "p", "rubrics": ["a", "b"], **more}])
    assert len(found.tasks[0].criteria) == 2
    assert not [f for f in found.findings if f.severity == "error"]


def test_a_described_scale_is_one_criterion_with_levels():
    """Each description was a criterion of its own: an answer was paid for meeting "bad"."""
    rubric = {"criteria": "Is it kind?", **{f"score{i}_description": f"d{i}" for i in (1, 2, 3)}}
    (made,) = load_tasks([{"instruction": "p", "rubric": rubric}]).tasks[0].criteria
    assert made.text == "Is it kind?" and made.levels == ("1: d1", "2: d2", "3: d3")


@pytest.mark.parametrize(
    ("labels", "read", "codes"),
    [
        ({"zz": 1, "a": 0}, [1, 0], ["unknown-criterion"]),
        ({"Says A": 1}, [1], ["unknown-criterion"]),
        ({"a": {"label": "unmet", "confidence": 0.9}}, [0], []),
        ({"a": {"criteria_met": True, "explanation": "no"}}, [1], []),
        ({"a": {"score": 4, "max": 5}}, [None], ["unreadable-label"]),
        ({"a": {"ann": "yes", "bob": "no"}}, [1, 0], []),
        ({"a": {"Label": "unmet", "Confidence": 0.9}}, [0], []),
        ({"a": {"correct": 1, "confidence": 0}}, [1], []),
        ({"a": {"yes": 3, "no": 1}}, [None], ["unreadable-label"]),
        ({"a": {"label": 1, "annotator": "bob", "id": 7}}, [1], []),
        ({"a": {"met": True, "ann2": 0}}, [None], ["unreadable-label"]),
    ],
)
def test_labels_beside_their_criteria_are_held_against_them(labels, read, codes):
    """They named criteria that no task has, or "confidence" was a rater, without a word."""
    row = {"prompt": "p", "rubrics": [{"id": "a", "text": "Says A"}], "response": "x"}
    found = load_tasks([{**row, "labels": labels}])
    assert [v.value for v in found.verdicts] == read
    assert [f.code for f in found.findings if f.severity != "info"] == codes


@pytest.mark.parametrize(
    ("labels", "values"),
    [
        ([0, 5, 3], [0, 1, 0.6]),
        (["4/5", 2, True], [0.8, 0.4, 1]),
        ([0.5, 1, 0], [0.5, 1, 0]),
        (["met", 5, 6], [1, 1, None]),
        ([1, 0], [None, 0]),
        ([0, 0.1, 0.5], [0, 0.2, 1, 0.5]),  # of half a point: all of it was the half
        ([0, 0.8, 0.5], [0, 0.8, 0.5, 0.5]),
    ],
)
def test_labels_on_points_are_read_by_the_points(labels, values):
    """4 of 5 points was .75, or not understood as soon as somebody gave a 0."""
    worth = 5 if len(values) == len(labels) else values[-1]
    values = values[: len(labels)]
    scale = {"scale": "points", "points": worth}
    task = {"id": "t", "prompt": "p", "criteria": [{"id": "b", "text": "c", **scale}]}
    answers = [
        {"task_id": "t", "response_id": f"r{i}", "response": "r", "labels": {"b": x}}
        for i, x in enumerate(labels)
    ]
    found = load_tasks([task]).joined(load_tasks(answers))
    assert [v.value for v in found.verdicts] == values
    assert ("unreadable-label" in {f.code for f in found.findings}) == (None in values)


def test_a_one_beside_numbered_levels_is_met():
    """Beside labels 1 to 3 of three levels a 1 for "met" was read as the worst of 1 to 5."""
    rubric = [{"id": "b", "text": "c", "levels": WORDS}, {"id": "d", "text": "e"}]
    answers = [
        {"task_id": "t", "response_id": f"r{i}", "response": "r", "labels": {"b": x, "d": y}}
        for i, (x, y) in enumerate([(1, 1), (2, 1), (3, 0)])
    ]
    task = {"id": "t", "prompt": "p", "criteria": rubric}
    for given in (answers, answers[:2]):
        found = load_tasks([task]).joined(load_tasks(given))
        values = [v.value for v in found.verdicts if v.criterion_id == "d"]
        assert "label-scale" not in {f.code for f in found.findings}
        assert values == [1, 1, 0][: len(given)]


@pytest.mark.parametrize(
    ("levels", "labels", "read"),
    [
        ([1, 2, 3, 4, 5], [0, 1, 2, 5], [None, 0, 0.25, 1]),
        ({"1": "bad", "2": "ok", "3": "good"}, [0, 1, 2], [None, 0, 0.5]),
        ([0, 1, 2, 3, 4], [0, 4, 5], [0, 1, None]),
        (["0.0", "0.5", "1.0"], [0, 0.5, 1], [0, 0.5, 1]),
        ([1, 2, 3, 4, 5], ["3.0", 3.0, "3/5", "80/100"], [0.5, 0.5, 0.5, None]),
        ([0, 1, 2, 3, 4], ["1/4", "0/4"], [0.25, 0]),
        (WORDS, ["1/2", "2/3", "5/10"], [None, 0.5, None]),
        (WORDS, ["0/2", "1/2", "2/2"], [0, 0.5, 1]),
        ((), ["0/4", "2/4", "4/4", "5/4", "0/0"], [0, 0.5, 1, None, None]),
        ((), ["1/3", "3/3"], [1 / 3, 1]),
        ((), ["0/4", 2, 3], [0, None, None]),
    ],
)
def test_labels_are_numbers_of_their_own_levels_or_unknown(levels, labels, read):
    """A 0 beside levels 1 to 5 was the worst, "1/4" of 0 to 4 was 0, and "1.0" was .5, in silence.

    Without levels "0/4" was not understood, and "2/4" then was one of 1 to 4: kappa .704 for .367.
    """
    values, codes = labelled(*labels, levels=levels)
    assert values == read and ("unreadable-label" in codes) == (None in read)


def test_answers_that_are_joined_twice_count_once_and_others_of_one_id_are_refused():
    """A notebook cell that ran again doubled answers, labels and grades."""
    task = load_tasks([{"id": "t", "prompt": "p", "criteria": [{"id": "b", "text": "c"}]}])
    row = {"task_id": "t", "response_id": "r", "response": "x", "labels": {"b": 1}}
    once = task.joined(load_tasks([row]))
    again = once.joined(load_tasks([row]))
    assert len(again.responses) == len(again.verdicts) == 1 and again.findings == once.findings
    other = load_tasks([{"id": "u", "prompt": "p", "criteria": [{"id": "b", "text": "c"}]}])
    late = load_tasks([{**row, "task_id": "u"}])
    assert not task.joined(late).joined(other).findings  # "the task 'u' is not there" stayed
    with pytest.raises(DataError, match="another answer 'r'"):
        once.joined(load_tasks([{**row, "response": "y"}]))


def test_a_set_without_a_half_says_so():
    """Notebook 3 ended in a raw TypeError or IndexError, cells later."""
    row = {"id": "t", "prompt": "p", "split": "train", "criteria": [{"id": "c", "text": "c"}]}
    with pytest.raises(DataError, match="no task held out"):
        load_tasks([row]).halves()
    with pytest.raises(DataError, match="no task in it"):
        load_tasks([])[0]


@pytest.mark.parametrize(
    ("levels", "labels", "read"),
    [
        ([1, 2, 3], [1, 2, 3], [0, 0.5, 1]),
        (WORDS, ["bad", "ok", "top"], [0, 0.5, 1]),
        ([0, 0.5, 1], [0, 0.5, 1], [0, 0.5, 1]),
        (WORDS, [2, 1], [None, None]),  # counted from 0 or 1: the whole file would tell
    ],
)
def test_a_stream_reads_labels_by_their_levels_too(levels, labels, read):
    """2 of [1, 2, 3] was .25 in a stream, and .5 in a file read whole."""
    criterion = {"id": "a", "text": "c", "levels": levels}
    rows = [
        {"id": f"t{i}", "prompt": "p", "rubrics": [criterion], "response": "r", "labels": {"a": x}}
        for i, x in enumerate(labels)
    ]
    assert [v.value for p in iter_tasks(rows) for v in p.verdicts] == read


def test_what_parquet_adds_is_no_label_and_no_criterion(tmp_path):
    """A null for each key that another row has: labels of criteria that no task has, and a task
    without criteria. And of two columns of one name the first was gone."""
    frame = pd.DataFrame(
        {
            "prompt": ["p", "q"],
            "rubrics": [{"a": "Is A", "b": "Is B"}, {"a": "Is C"}],
            "response": ["x", "y"],
        }
    )
    frame.to_parquet(tmp_path / "t.parquet")
    found = load_tasks(tmp_path / "t.parquet")
    assert [len(t.criteria) for t in found] == [2, 1] and not found.findings
    rows = [{"prompt": "p", "rubrics": [{"id": "a", "text": "A"}], "response": "x"}]
    found = load_tasks([{**r, "labels": {"a": 1, "b": None}} for r in rows])
    assert [v.criterion_id for v in found.verdicts] == ["a"] and not found.findings
    twice = pa.table([pa.array(["p"]), pa.array(["q"])], names=["prompt", "prompt"])
    pq.write_table(twice, tmp_path / "d.parquet")
    with pytest.raises(DataError, match="'prompt' twice"):
        load_tasks(tmp_path / "d.parquet")


def test_levels_as_objects_keep_all_their_words():
    """Of name, text and example only the text was left, and the label "great" was none of them."""
    levels = [
        {"label": "bad", "description": "x"},
        {"label": "great", "description": "y", "example": "EX"},
    ]
    made, errors = one({"levels": levels})
    assert made.levels == ("bad: x", "great: y (example: EX)") and not errors
    assert labelled("great", "bad", levels=list(made.levels))[0] == [1, 0]
    numbered = [{"value": i, "label": w, "description": "d"} for i, w in enumerate(("no", "yes"))]
    assert one({"levels": numbered})[0].levels == ("0: no: d", "1: yes: d")


def test_given_ids_win_over_automatic_ones():
    """The criterion without an id was called c1, and got the label of the one that has this id."""
    rubrics = [{"text": "A"}, {"id": "c1", "text": "B"}]
    (task,) = load_tasks([{"prompt": "p", "rubrics": rubrics}])
    assert [(c.id, c.text) for c in task.criteria] == [("item-1", "A"), ("c1", "B")]


@pytest.mark.parametrize(
    "text",
    [
        "Must have:\n- Says a\nMust not have:\n- Says b",
        "| criterion | weight |\n|---|---|\n| Says a | 2 |",
    ],
)
def test_a_text_that_turns_its_items_is_an_error(text):
    """What stood under "Must not have:" was paid, and a table's header was a criterion."""
    found = load_tasks([{"prompt": "p", "rubric": text}])
    assert "rubric-text" in {f.code for f in found.findings if f.severity == "error"}
    plain = load_tasks([{"prompt": "p", "rubric": "Must do:\n- Says a\n- Does not say b"}])
    assert not plain.findings


@pytest.mark.parametrize(
    ("own", "label", "value"),
    [
        ({"scale": "points", "points": 5, "weight": 2}, 3, 0.6),
        ({"levels": ["bad", "ok", "good"], "weight": 2}, "ok", 0.5),
        ({"levels": '["bad", "ok", "good"]', "weight": 2}, 3, 1.0),
    ],
)
def test_a_row_with_one_criterion_has_levels_scale_and_points_too(own, label, value):
    """They were dropped with an info: the criterion was binary, a 3 of 5 points was .5, and a 1 for
    "met" beside it became 0.0."""
    row = {"id": "t", "prompt": "Q", "response": "R"}
    two = [
        row | {"criterion": "Clarity", "label": label} | own,
        row | {"criterion": "Names Rome", "label": 1},
    ]
    out = load_tasks(two)
    assert [v.value for v in out.verdicts] == [value, 1.0]
    assert out.tasks[0].criteria[0].weight == 2
    assert not [f for f in out.findings if f.severity != "info"]


def test_levels_of_one_criterion_that_differ_between_rows_are_an_error():
    row = {"id": "t", "prompt": "Q", "criterion": "Clarity"}
    out = load_tasks([row | {"levels": ["a", "b"]}, row | {"levels": ["b", "a"]}])
    assert ("error", "levels") in [(f.severity, f.field) for f in out.findings]
    top = load_tasks([row | {"max_points": 4}])
    assert [(f.severity, f.field) for f in top.findings] == [("error", "max_points")]


@pytest.mark.parametrize(
    ("words", "read"),
    [
        (("Satisfied", "Partially Satisfied", "Not Satisfied"), [1.0, 0.5, 0.0]),
        (("meets", "does not meet", "partly met"), [1.0, 0.0, 0.5]),
        (("Fulfilled", "fully fulfilled", "doesn't meet"), [1.0, 1.0, 0.0]),
        (("fully met", "not fully met", "partially met"), [1.0, 0.0, 0.5]),
        (("Fully satisfied", "does not fully meet"), [1.0, 0.0]),
    ],
)
def test_words_of_both_sides_are_read(words, read):
    """Satisfied was met, its two fellows were unknown: a share met of 1 where it is a third."""
    rows = [{"prompt": "p", "criterion": w, "response": "R", "label": w} for w in words]
    told = {v.meta["label"]: v.value for v in load_tasks(rows).verdicts}
    assert [told[w] for w in words] == read


def test_labels_of_a_binary_criterion_that_are_not_understood_are_an_error():
    """A warning: [-1, 0, 1] had an unknown, an unmet and a met one."""
    row = {"prompt": "p", "criteria": ["x"], "response": "R"}
    rows = [{**row, "id": str(x), "labels": {"c1": x}} for x in (-1, 0, 1)]
    found = load_tasks(rows)
    assert {v.status for v in found.verdicts} == {"unknown"}
    assert {f.severity for f in found.findings if f.code == "unreadable-label"} == {"error"}


@pytest.mark.parametrize("kind", ["list", "stream", "jsonl"])
def test_the_first_labels_may_stand_late_in_a_file(tmp_path, kind):
    """Behind fifty rows without any, a 1 of 1 to 5, the worst, was met."""
    task = {"prompt": "p", "criteria": [{"id": "a", "text": "x"}], "response": "R"}
    rows = [{**task, "task_id": f"t{i}"} for i in range(60)]
    rows += [{**task, "task_id": f"l{i}", "labels": {"a": i}} for i in (1, 3, 5)]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    source = {"list": rows, "stream": iter(rows), "jsonl": tmp_path / "a.jsonl"}[kind]
    read = [v.value for p in iter_tasks(source) for v in p.verdicts]
    assert read == [0.0, 0.5, 1.0]


@pytest.mark.parametrize("between", [" / ", "\n", "; ", " | "])
def test_levels_in_one_cell_are_levels_and_labels_may_leave_their_numbers_out(between):
    """ "1. Not helpful / 2. Somewhat / 3. Very" in a cell was an error: no criterion had levels."""
    words = ("Not helpful", "Somewhat", "Very")
    levels = between.join(f"{i}. {w}" for i, w in enumerate(words, 1))
    task = {"prompt": "p", "criteria": [{"id": "h", "text": "Helpful", "levels": levels}]}
    rows = [{**task, "response": f"r {w}", "labels": {"h": w}} for w in words]
    assert [v.value for v in load_tasks(rows).sound().verdicts] == [0.0, 0.5, 1.0]
    with pytest.raises(DataError, match="levels cannot be read"):
        load_tasks([{"prompt": "p", "criteria": [{"text": "x", "levels": "bad / good"}]}]).sound()


def test_two_raters_of_one_answer_are_no_two_answers():
    """Each row of labels became an answer of its own: the pair of raters was lost, n was doubled."""
    row = {"task_id": "t", "response": "x", "labels": {"c": "met"}}
    rows = [{**row, "rater": r, "mood": r} for r in ("ann", "bob")]
    for own in ({}, {"response_id": "r"}):
        found = load_tasks([{**x, **own} for x in rows])
        assert len(found.responses) == 1 and {f.severity for f in found.findings} == {"info"}
        assert [v.judge for v in found.verdicts] == ["human:ann", "human:bob"]
        assert found.verdicts[1].meta["mood"] == "bob"
    apart = (
        [row] * 2,
        [{**x, "rater": "ann"} for x in rows],
        [{**x, "model": x["rater"]} for x in rows],
    )
    assert [len(load_tasks(x).responses) for x in apart] == [2, 2, 2]


@pytest.mark.parametrize(
    ("said", "judge"),
    [
        ({"is_human": False}, "model"),
        ({"is_human": True}, "human"),
        ({"annotator_type": "model"}, "model"),
        ({"annotator_type": "expert"}, "human"),
        ({"label_source": "gpt-4o"}, "gpt-4o"),
        ({"rating_type": "binary"}, "human"),
    ],
    ids=str,
)
def test_who_labelled_is_told_by_kinds_of_raters_too(said, judge):
    """Labels of a model counted as people's."""
    row = {"prompt": "p", "criterion": "x", "response": "r", "label": "met", **said}
    assert [v.judge for v in load_tasks([row]).verdicts] == [judge]
