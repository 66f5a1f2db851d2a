"""What a row says in a way of its own is read or named: mixed files, mistyped fields, NaN for text."""

import itertools
import json

import pytest

from kit.data import load_tasks, save_tasks
from kit.errors import DataError

NAN = float("nan")
PLAIN = {"id": "t0", "prompt": "p0", "criteria": [{"id": "c", "text": "x0"}]}
ONE = {"id": "c", "text": "x"}
OURS = {
    "id": "L",
    "prompt": "p",
    "criteria": [{"id": "c", "text": "x", "scale": "points", "points": 5.0}],
    "truth": {"answer": "A"},
    "history": [{"role": "user", "content": "before"}],
    "sources": {"S1": "s"},
    "meta": {"m": 1},
}


def errors(tasks):
    return [f for f in tasks.findings if f.severity == "error"]


@pytest.mark.parametrize("before", [0, 1, 5, 120])
def test_a_row_of_ours_is_read_as_ours_wherever_it_stands(before):
    """Behind a plain row its truth, history and sources went to meta, and its points became a weight."""
    rows = [{**PLAIN, "id": f"t{i}"} for i in range(before)]
    last = load_tasks([*rows, OURS]).tasks[-1]
    assert (last.truth, last.sources, last.meta) == ({"answer": "A"}, {"S1": "s"}, {"m": 1})
    assert last.history[0]["content"] == "before"
    assert (last.criteria[0].weight, last.criteria[0].points) == (1.0, 5.0)


def test_a_list_of_criteria_has_truth_sources_and_history_too():
    row = {"prompt": "p", "rubrics": ["x"], **{k: OURS[k] for k in ("truth", "sources", "history")}}
    one = load_tasks([row]).tasks[0]
    assert (one.truth, one.sources) == (OURS["truth"], OURS["sources"])
    assert one.history[0]["content"] == "before"


def test_a_history_that_no_reader_understands_is_an_error():
    """[question, answer] pairs beside an instruction: neither policy nor judge would see them."""
    rows = [{"instruction": "i", "output": "o", "history": [["q", "a"]]}]
    assert [f.field for f in errors(load_tasks(rows))] == ["history"]


SLIPPED = {"id": "c", "text": "x", "wieght": 2, "requried": True, "chekc": {"name": "words"}}


@pytest.mark.parametrize(
    "row",
    [
        {"record": "task", "id": "t", "prompt": "p", "criteria": [SLIPPED]},
        {"prompt": "p", "criteria": [SLIPPED]},
        {"prompt": "p", "positive_rubrics": [SLIPPED]},
        {"prompt": [{"role": "user", "content": "p"}], "rubrics": [{**SLIPPED, "points": 1}]},
        {"prompt": "p", "rubric - 1. criterion": "x"}
        | {f"rubric - 1. {k}": SLIPPED[k] for k in ("wieght", "requried", "chekc")},
    ],
)
def test_a_mistyped_field_of_a_criterion_is_an_error_in_every_reader(row):
    """`wieght` gave weight 1, `requried` a criterion that was not required, and not a word."""
    found = {f.field: f.suggestion for f in errors(load_tasks([row]))}
    assert found == {
        "wieght": "did you mean 'weight'?",
        "requried": "did you mean 'required'?",
        "chekc": "did you mean 'check'?",
    }


def test_other_unread_fields_of_a_criterion_are_a_warning_and_notes_on_it_an_info():
    found = load_tasks(
        [{"prompt": "p", "criteria": [{"text": "x", "owner": 3, "rater_note": "n"}]}]
    ).findings
    said = {(f.severity, f.field) for f in found}
    assert said == {("warning", "owner"), ("info", "rater_note")}


def test_kinds_that_are_no_known_sign_are_named_with_their_values_once_a_file():
    """`type: sanction` and `effect: malus in points` were kept in meta without a word."""
    kinds = "sanction bonheur c d e f sanction".split()
    rows = [{"prompt": "p", "criteria": [{"text": "x", "type": k, "tags": ["t"]}]} for k in kinds]
    found = {f.field: f for f in load_tasks(rows).findings}
    assert {f.severity for f in found.values()} == {"info"} and found.keys() == {"type", "tags"}
    said = "(7: 'sanction', 'bonheur', 'c', 'd', 'e' and 1 more) changes its sign or weight"
    assert said in found["type"].message
    odd = {"prompt": "p", "criteria": [{"text": "x", "effect": "sanction", "用": "负七"}]}
    told = {f.field: (f.severity, "sanction" in f.message) for f in load_tasks([odd]).findings}
    assert told == {"effect": ("warning", True), "用": ("warning", False)}


@pytest.mark.parametrize(
    ("texts", "severity"),
    [
        (["Two points for the name", "Three points for tact"], "warning"),
        (["Genauigkeit: höchstens ٣", "Ton: höchstens ٢"], "warning"),
        (["Names it (out of 5)", "Is kind (out of 3)"], "warning"),
        (["两分：指出首都", "语气礼貌"], "info"),
        (["Names 3 rivers", "Is kind"], "info"),
        (["1. Names it", "2. Is kind"], None),
        (["Names a point of view", "Is kind"], None),
    ],
)
def test_numbers_in_texts_without_weights_are_said_once_a_file(texts, severity):
    """Points said in words, or in the digits of another script, were lost without a word."""
    found = load_tasks([{"prompt": "p", "rubric": texts}] * 2)
    assert not errors(found)
    said = [f.severity for f in found.findings if f.code == "numbers-in-text"]
    assert said == [severity] * (severity is not None)
    weighed = [{"text": t, "weight": 2} for t in texts]
    assert not load_tasks([{"prompt": "p", "rubrics": weighed}]).findings


def test_what_is_not_read_of_a_criterion_is_logged_before_anything_is_judged(caplog):
    """`kit judge` and `kit train` took files with `should: false` and said nothing."""
    rows = [{"prompt": "p", "criteria": [{"text": "x", "should": False}], "owner": "ann"}] * 2
    assert load_tasks(rows).sound().tasks
    (said,) = [r.getMessage() for r in caplog.records]
    assert "'should' of a criterion (2: 'false')" in said


def test_what_judges_and_rewards_read_in_meta_is_no_unread_field():
    """Rows of another system may say more of a criterion than the kit has a use for."""
    row = {"prompt": "p", "rubric - 1. criterion": "x", "rubric - 1. embedding": {"threshold": 0.5}}
    kept = {"prompt": "p", "criteria": [{"text": "x", "pass_at": 0.8, "paraphrases": ["y"]}]}
    assert not load_tasks([row]).findings and not load_tasks([kept]).findings


def test_a_mistyped_field_of_a_task_is_an_error():
    row = {"record": "task", "id": "t", "prompt": "p", "criterai": [{"id": "c", "text": "x"}]}
    assert "did you mean 'criteria'?" in {f.suggestion for f in errors(load_tasks([row]))}
    plural = {"prompt": "p", "criteria": ["x"], "source": "here", "groups": 3, "test": 1}
    assert not errors(load_tasks([plural]))


@pytest.mark.parametrize(
    ("value", "wanted"), [("true", True), (1, True), ("yes", True), ("No", False), (0, False)]
)
def test_required_in_other_words_is_read(value, wanted):
    """ "true", 1 and "yes" became required=False in silence."""
    row = {"prompt": "p", "criteria": [{"text": "x", "required": value}]}
    tasks = load_tasks([row])
    assert tasks.tasks[0].criteria[0].required is wanted and not tasks.findings


def test_required_in_words_of_no_meaning_is_an_error():
    row = {"prompt": "p", "criteria": [{"text": "x", "required": "perhaps"}]}
    assert "bad-required" in {f.code for f in errors(load_tasks([row]))}


def test_nan_where_text_is_wanted_is_missing():
    """Rows of a DataFrame have NaN for what is not there: prompt, id and criterion became 'NaN'."""
    row = {"id": NAN, "prompt": NAN, "criteria": ["x", NAN, {"text": "y", "title": NAN}]}
    tasks = load_tasks([row])
    one = tasks.tasks[0]
    assert (one.id, one.prompt, [c.text for c in one.criteria]) == ("row-1", "", ["x", "y"])
    assert one.criteria[1].title is None
    assert {"missing-field", "empty-criterion"} <= {f.code for f in tasks.findings}
    answers = load_tasks([{"prompt": "p", "criteria": ["x"], "response": NAN}])
    assert not answers.responses
    wide = {"prompt": "p", "rubric - 1. criterion": "x", "rubric - 2. criterion": NAN}
    assert load_tasks([wide | {"rubric - 1. ratingA": NAN}]).criteria == 1


@pytest.mark.parametrize("cell", ["nan", "None", "null", "N/A", "-"])
def test_what_a_table_writes_into_an_empty_cell_is_no_criterion(tmp_path, cell):
    path = tmp_path / "a.csv"
    path.write_text(f"prompt,criteria\np1,Names the river.\np2,{cell}\n", encoding="utf-8")
    tasks = load_tasks(path)
    assert [len(t.criteria) for t in tasks.tasks] == [1, 0]
    assert "no-criteria" in {f.code for f in errors(tasks)}


def test_a_flat_table_reads_kind_and_group_in_every_row():
    """The second row of a task said that nothing reads `kind`, and `required` was never read."""
    rows = [
        {
            "task_id": "t",
            "prompt": "p",
            "kind": "k",
            "group": "g",
            "criterion": c,
            "required": "yes",
        }
        for c in ("one", "two")
    ]
    tasks = load_tasks(rows)
    one = tasks.tasks[0]
    assert not tasks.findings and (one.kind, one.group) == ("k", "g")
    assert all(c.required and not c.meta for c in one.criteria) and not one.meta


def test_the_order_of_rows_does_not_change_a_task():
    rows = [PLAIN, {**OURS, "id": "a"}, {**PLAIN, "id": "b", "truth": {"n": 1}}]
    seen = [
        {t.id: t for t in load_tasks(list(order)).tasks} for order in itertools.permutations(rows)
    ]
    assert all(s == seen[0] for s in seen), json.dumps([sorted(s) for s in seen])


def rows_of(tmp_path, *rows):
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(json.dumps(r) for r in rows), encoding="utf-8")
    return load_tasks(path)


def test_a_confidence_that_no_answer_can_have(tmp_path):
    """1.7 was left out without a word, and .5 too: every confidence was warranted as high."""
    truth = {"pathway": "X", "direction": "UP"}
    made = rows_of(
        tmp_path,
        *(
            {
                "prompt": f"What happens, {i}?",
                "ground_truth": json.dumps({**truth, "expected_confidence": sure}),
                "applicable_verifiers": ["V1", "V4"],
            }
            for i, sure in enumerate((1.7, 0.5, "high"))
        ),
    )
    assert [t.truth.get("warranted") for t in made.tasks] == [None, "medium", "high"]
    assert [f.code for f in made.findings if "1.7" in f.message] == ["field-type"]


def test_a_good_criterion_that_weighs_less_than_nothing(tmp_path):
    row = {"prompt": "p", "sources": {"a": "b"}, "negative_rubrics": []}
    made = rows_of(tmp_path, {**row, "positive_rubrics": [{"description": "Good.", "weight": -1}]})
    assert [(f.code, f.criterion_id) for f in made.findings] == [("polarity", "p1")]


def test_an_empty_prompt_is_an_error_when_it_is_loaded(tmp_path):
    made = rows_of(tmp_path, {"task_id": "1", "prompt": " ", "rubric - 1. criterion": "Is nice."})
    assert [(f.code, f.severity) for f in made.findings] == [("empty-prompt", "error")]


SCALED = [
    {"levels": ["bad", "ok", "good"], "weight": 2},
    {"levels": ["bad", "ok", "good"], "scale": "ordinal"},
    {"scale": "points", "points": 5, "weight": 2},
    {"scale": "points", "points": 5},
    {"points": -5},
    {"points": 5, "weight": 2},
    {"scale": "ordinal"},
    {"scale": "binary", "levels": ["bad", "good"]},
    {"scale": "points", "points": 0, "weight": 1},
]


@pytest.mark.parametrize("said", SCALED)
def test_a_criterion_is_the_same_whichever_other_keys_its_row_has(said):
    """Levels were met / unmet in the kit's own rows, 0 to 5 points a weight of 5 beside one key
    more: judge and people were on two scales."""
    row = {"id": "t", "prompt": "p", "criteria": [{"id": "c", "text": "x", **said}]}
    rows = [row, {**row, "truth": {"a": 1}}, {**row, "source": "mine"}, {**row, "response": "r"}]
    found = [load_tasks([r]) for r in rows]
    if any(map(errors, found)):
        assert all(map(errors, found))
    else:
        got = [(c.scale, c.levels, c.points, c.weight) for t in found for c in t.tasks[0].criteria]
        assert len(got) == 4 and len(set(got)) == 1
    assert bool(errors(found[0])) == (SCALED.index(said) > 4)


def test_an_answer_beside_its_criteria_is_labelled_on_their_points():
    """3 of 5 points were .5, and 1 of 1 was 0."""
    rubric = [{"id": "c", "text": "x", "scale": "points", "points": 5}, {"id": "d", "text": "y"}]
    row = {"id": "t", "prompt": "p", "criteria": rubric, "response": "r"}
    found = load_tasks([{**row, "labels": {"c": 3, "d": 1}}])
    assert [v.value for v in found.verdicts] == [0.6, 1.0] and not errors(found)


@pytest.mark.parametrize("levels", [{"0": "bad", "1": "ok", "2": "good"}, [1, 2, 3]])
def test_levels_are_read_alike_in_a_file_of_our_own_rows(levels):
    """The row alone was read; beside rows of the kit's own it was refused."""
    row = {"id": "t", "prompt": "p", "criteria": [ONE | {"levels": levels}]}
    alone, among = load_tasks([row]), load_tasks([OURS, OURS | {"id": "M"}, row])
    assert alone.format == "checklist" and among.format == "kit" and not errors(among)
    assert among.tasks[-1].criteria == alone.tasks[0].criteria


@pytest.mark.parametrize("said", ["", "yes/no", "Binary", "met/unmet"])
@pytest.mark.parametrize("more", [{"truth": {}}, {"source": "mine"}])
def test_a_binary_scale_in_other_words_is_read(said, more):
    row = {"id": "t", "prompt": "p", "criteria": [ONE | {"scale": said}], **more}
    found = load_tasks([row])
    assert [c.scale for c in found.tasks[0].criteria] == ["binary"]
    assert not [f for f in found.findings if f.severity != "info"]


def test_a_scale_of_points_without_their_number_says_so():
    """ "does not fit a criterion with 0 levels" was not the reason."""
    row = {"prompt": "p", "criteria": [{"text": "x", "scale": "points", "max_points": 4}]}
    assert "lacks its number of points" in errors(load_tasks([row]))[0].message


def test_of_four_formats_in_one_file_none_is_called_most_of_it():
    """One row of four was "most of the first 50"."""
    rows = [
        {"prompt": "p", "chosen": "a", "rejected": "b"},
        {"question": "q", "answer": "a"},
        {"prompt": "p", "completion": "c"},
        {"prompt": "p", "criteria": ["x"]},
    ]
    said = [f.message for f in load_tasks(rows).findings if f.code == "mixed-formats"]
    assert said and all("no other outnumbers" in x for x in said)


def test_utf_16_without_a_mark_is_not_to_be_read_as_windows_1252(tmp_path):
    """The message knew of the NUL bytes, and its remedy kept them."""
    (tmp_path / "a.jsonl").write_bytes('{"prompt": "p"}'.encode("utf-16-le"))
    with pytest.raises(DataError, match="-f UTF-16LE"):
        load_tasks(tmp_path / "a.jsonl")


@pytest.mark.parametrize(
    "own",
    [
        {"importance": 3},
        {"penalty": 5},
        {"value": -2},
        {"options": ["bad", "ok", "good"]},
        {"rating_scale": {"1": "bad", "2": "good"}},
    ],
)
def test_weights_and_levels_of_a_criterion_under_other_names_are_errors(own):
    """They were a warning: all weighed +1, and `inspect --lint` ended with 0."""
    out = load_tasks([{"prompt": "p", "criteria": [{"text": "x"} | own]}])
    assert [f.field for f in errors(out)] == list(own)


@pytest.mark.parametrize(
    "own",
    [{"importance": "high"}, {"priority": "must"}, {"type": "Essential"}, {"weight": "low"}],
)
def test_how_much_a_criterion_counts_in_words_is_an_error_without_a_weight(own):
    """ "high" and "low" counted alike, and a warning said that nothing read them."""
    rows = [
        {"prompt": "p", "criteria": [{"text": "x"} | own]},
        {"id": "t", "prompt": "p", "truth": {}, "meta": {}} | {"criteria": [ONE | own]},
        {"prompt": "p"} | {f"rubric - 1. {k}": v for k, v in {"criterion": "x", **own}.items()},
    ]
    for row in rows:
        found = errors(load_tasks([row]))
        assert any("weight" in f"{f.message} {f.suggestion}" for f in found)
    if "weight" not in own:
        weighed = load_tasks([{"prompt": "p", "criteria": [{"text": "x", "weight": 2} | own]}])
        assert not errors(weighed) and weighed.tasks[0].criteria[0].weight == 2


HARMLESS = [{"order": 3}, {"page": "4"}, {"max_tokens": 90}, {"scored_on_date": 2024}]
HARMLESS += [{"difficulty_level": "hard"}, {"score_type": "binary"}, {"isNegative": False}]


@pytest.mark.parametrize(
    "own", [{"category": "clarity"}, {"level": "high"}, {"type": "positive"}, *HARMLESS], ids=str
)
def test_other_words_on_a_criterion_are_no_weight(own):
    assert not errors(load_tasks([{"prompt": "p", "criteria": [{"text": "x"} | own]}]))


def test_the_importance_of_a_criterion_in_a_flat_table_is_an_error():
    """It was an info of the row: the weights of a sheet with one criterion a row were all 1."""
    for said in (3, "high"):
        row = {"prompt": "p", "criterion": "x", "importance": said}
        assert {f.field for f in errors(load_tasks([row]))} == {"importance"}


@pytest.mark.parametrize(
    "rubric",
    [
        "+3 pts States A\n-2 pts Insults the reader",
        "- **+3** States A\n- **-2** Insults the reader",
        '```json\n[{"text": "States A", "weight": 3}, '
        '{"text": "Insults the reader", "weight": -2}]\n```',
        'Here is the rubric:\n[{"text": "States A", "weight": 3}, '
        '{"text": "Insults the reader", "weight": -2}]',
        "- [+3] States A\n- [-2] Insults the reader",
        "1. (+3) States A\n2. (\u22122 points) Insults the reader",
        ["[+3] States A", "[-2] Insults the reader"],
    ],
)
def test_points_before_each_line_of_a_rubric_are_its_weights(rubric):
    """Both weighed +1: insulting paid."""
    found = load_tasks([{"prompt": "p", "rubric": rubric}])
    got = [(c.text, c.weight) for c in found.tasks[0].criteria]
    assert got == [("States A", 3), ("Insults the reader", -2)] and not found.findings


@pytest.mark.parametrize(
    ("rubric", "severities"),
    [
        (["States A", "[-2] Insults"], ["error"]),
        (["States A (3 points)", "Insults (-2 points)"], ["error", "warning", "warning"]),
        (["(-2) is a root", "(+3) is a root"], ["error"] * 3),  # numbers of mathematics?
        ([{"text": "[+3] States A", "weight": 2}], ["warning"]),
        (["Is kind", "The rating rises (+3 points)"], ["warning"]),
        (["The result is (-2)."], ["warning"]),
    ],
)
def test_points_in_a_text_that_are_not_its_weight_are_an_error_where_none_is_given(
    rubric, severities
):
    found = load_tasks([{"prompt": "p", "rubric": rubric}]).findings
    assert [(f.code, f.severity) for f in found] == [("points-in-text", s) for s in severities]


@pytest.mark.parametrize(
    "said",
    [
        {"judgments": {"c": "met"}},
        {"human_labels": [{"criterion_id": "c", "label": 1}]},
        {"verdict": "met"},
        {"met": True},
        {"labels": ["met"]},
        {"responses": [{"id": "a", "text": "A", "labels": {"c": 1}}]},
        {"levels": ["bad", "good"]},
        {"grade": "pass"},
        {"human_label": "met"},
        {"scores": [1]},
        {"verdicts": ["met"]},
        {"marks": {"x": "yes"}},
    ],
)
def test_labels_and_levels_beside_a_list_of_criteria_under_other_names_are_errors(said):
    """They were an info: no verdict, and `inspect --lint` ended with 0; of `met` it was asked
    whether meta was meant."""
    row = {"prompt": "p", "criteria": [{"id": "c", "text": "x"}], "response": "R"}
    found = errors(load_tasks([row | said]))
    assert [f.field for f in found] == list(said)
    assert not any("did you mean" in f.suggestion for f in found)


def test_labels_of_which_the_first_rows_have_none_are_errors():
    """A field was looked at once, in its first row: null there, the labels below were an info."""
    row = {"prompt": "p", "criteria": ["x"], "response": "R"}
    rows = [row | {"verdict": said, "prompt": f"p{i}"} for i, said in enumerate((None, "", "met"))]
    found = errors(load_tasks(rows))
    assert [(f.field, f.where) for f in found] == [("verdict", "rows, row 3")]
    assert "3 of 3 rows" in found[0].message


@pytest.mark.parametrize("name", ["responses", "completions", "outputs", "candidates"])
def test_answers_by_name_are_read_and_one_text_is_an_error(name):
    """{"m1": "Nile", "m2": "Po"}, or one text, was left out with an info: no answer, exit code 0,
    where a list of texts gave two answers, and one of objects an error."""
    row = {"id": "a", "prompt": "p?", "criteria": [{"id": "c", "text": "Names the river"}]}
    found = load_tasks([{**row, name: {"m1": "Nile", "m2": "Po", "m3": None}}])
    assert [(r.id, r.source, r.text) for r in found.responses] == [
        ("m1", "m1", "Nile"),
        ("m2", "m2", "Po"),
    ]
    assert not found.findings and not found.tasks[0].meta
    assert [r.text for r in load_tasks([{**row, name: "['Nile', 'Po']"}]).responses] == [
        "Nile",
        "Po",
    ]
    # one text, one answer, labels by criterion, several answers a name
    for odd in ("Nile", {"text": "Nile", "model": "m"}, {"c": "Nile"}, {"m1": ["Nile", "Po"]}):
        found = load_tasks([{**row, name: odd}])
        assert not found.responses and found.tasks[0].meta == {name: odd}
        said = [(f.code, f.severity, f.field) for f in found.findings]
        assert said == [("unread-field", "error", name)]
    assert not [f for f in load_tasks([{**row, name: 3}]).findings if f.severity == "error"]


@pytest.mark.parametrize("name", ["responses", "completions", "outputs", "candidates"])
def test_a_list_of_answers_beside_its_criteria_is_read(name):
    """It was an info, and the task had no answer; objects there are an error."""
    row = {"id": "t", "prompt": "p", "criteria": ["x"], name: ["R0", "R1"]}
    found = load_tasks([row])
    assert [(r.id, r.text) for r in found.responses] == [("r0", "R0"), ("r1", "R1")]
    assert not found.findings and not found.tasks[0].meta
    held = load_tasks([row | {name: [{"text": "R0"}, {"text": "R1"}]}])
    assert [f.field for f in errors(held)] == [name] and "a row for each" in held.findings[
        0
    ].suggestion


def test_labels_come_in_the_order_of_their_answers():
    """They stood in an order that each process drew anew."""
    letters = "ABCDEFGH"
    row = {"prompt": "p", "rubric - 1. criterion": "x"}
    row |= {f"response{x}": x for x in letters} | {f"rubric - 1. rating{x}": "yes" for x in letters}
    assert "".join(v.response_id for v in load_tasks([row]).verdicts) == letters


def test_what_is_said_of_a_whole_row_is_no_label_of_a_criterion():
    row = {"prompt": "p", "criteria": ["x", "y"], "response": "R", "score": 0.7}
    more = {"final_score": 1.0, "quality": "good", "results": "see below", "annotations": ["a"]}
    assert not errors(load_tasks([row | more]))


def test_lists_of_numbers_that_weigh_nothing_are_no_errors():
    """Years and people's numbers, as many as there are criteria, were errors of the file."""
    row = {"prompt": "p", "criteria": ["x", "y"], "annotator_ids": [1, 2], "years": [1999, 2001]}
    assert not errors(load_tasks([row | {"scale": "7B", "options": ["a", "b"]}]))
    assert [f.field for f in errors(load_tasks([row | {"worth": [3, -2]}]))] == ["worth"]


def test_the_mark_of_a_split_in_verls_extra_info_is_read():
    """Test rows were trained on: the mark stands one object deeper there."""
    row = {"prompt": [{"role": "user", "content": "Q"}], "extra_info": {"split": "test"}}
    task = load_tasks([row | {"data_source": "d", "reward_model": {"ground_truth": "7"}}]).tasks[0]
    assert task.held_out and task.meta["extra_info"] == {"split": "test"}


@pytest.mark.parametrize(
    "mark",
    [
        *({"split": x} for x in ("testset", "valset", "testdata", "testA", "validate")),
        *({x: True} for x in ("heldout", "held_out", "is_test")),
        *({x: "test"} for x in ("dataset_split", "data_split", "subset", "partition", "fold")),
        *({x: {"split": "test"}} for x in ("meta", "metadata", "info")),
        {"info": '{"split": "test"}'},
    ],
    ids=str,
)
def test_rows_whose_mark_stands_under_another_usual_name_are_not_trained_on(mark):
    """They were trained on, and an info of an unread field was all that was said."""
    assert load_tasks([{"prompt": "p", "criteria": ["x"], **mark}]).tasks[0].held_out


@pytest.mark.parametrize(
    "fields",
    [
        {"is_test": False, "is_valid": True, "test": "assert f(1) == 2", "stage": "development"},
        {"subset": "web development", "category": "testing", "metadata": {"split": "train"}},
        {"subset": "alpaca-eval"},
        {"split": "validated", "usage": "evaluation of drugs"},
    ],
    ids=str,
)
def test_what_only_sounds_like_a_mark_of_a_split_holds_nothing_out(fields):
    """Whole subjects of a file would be left out of training."""
    assert not load_tasks([{"prompt": "p", "criteria": ["x"], **fields}]).tasks[0].held_out


def test_a_row_of_the_training_split_that_is_called_a_test_is_an_error():
    """One of two marks was passed over."""
    row = {"prompt": "p", "criteria": ["x"], "split": "train", "is_test": True}
    assert [f.field for f in errors(load_tasks([row]))] == ["is_test"]


@pytest.mark.parametrize("column", ["label_c", "human_c", "c"])
def test_a_column_of_labels_that_is_called_as_a_criterion_is_an_error(column):
    """A sheet with one column a criterion was joined without a label, and only an info said so."""
    tasks = load_tasks([{"id": "t", "prompt": "p", "criteria": [{"id": "c", "text": "x"}]}])
    row = {"task_id": "t", "response_id": "r", "response": "R", "author": "n", column: "met"}
    assert [f.field for f in errors(tasks.joined(load_tasks([row])))] == [column]


@pytest.mark.parametrize("name", ["a.yaml", "a.html", "a.parquet.gz", "a.docx"])
def test_nothing_is_saved_under_a_name_that_cannot_be_loaded(tmp_path, name):
    """It wrote JSONL there, gave the count, and kit.load refused the file."""
    tasks = load_tasks([PLAIN])
    with pytest.raises(DataError, match="the name says"):
        save_tasks(tmp_path / name, tasks)


LISTED = [{"criterion": "States A", "weight": 3}, {"criterion": "Insults", "weight": -2}]


@pytest.mark.parametrize("value", [LISTED, json.dumps(LISTED), str(LISTED), "- States A\n- Kind"])
@pytest.mark.parametrize(
    "name", ["rubric_list", "grading_rubric", "rubricItems", "expectations", "mark_scheme"]
)
def test_criteria_under_a_usual_name_are_an_error_in_any_form(name, value):
    """As the text of a table's cell they were an info: no criterion, and `inspect --lint` ended
    with 0; under many names as a list, too."""
    for row in ({name: value}, {"info": {name: value}}, {"info": json.dumps({name: value})}):
        found = load_tasks([{"prompt": "p", **row}])
        assert [f.field for f in errors(found)] == list(row) and not found.tasks[0].criteria
        beside = load_tasks([{"prompt": "p", "criteria": ["x"], **row}]).findings
        assert beside[0].severity in ("warning", "error")


def test_criteria_that_stand_only_in_later_rows_are_an_error():
    rows = [{"prompt": "p", "rubric_text": "none yet"}, {"prompt": "q", "rubric_text": "- a\n- b"}]
    assert [f.where for f in errors(load_tasks(rows))] == ["rows, row 2"]


@pytest.mark.parametrize(
    "more",
    [
        {"rubric_type": "binary", "grading": "strict", "rubric_id": "r1", "criteria_ids": ["a"]},
        {"constraints": "1 <= n\nn <= 9", "tests": [{"weight": 1, "input": "x"}]},
        {"expected": ["a"], "options": ["a", "b"], "notes": "one\ntwo", "steps": ["x", "y"]},
    ],
)
def test_fields_that_hold_no_criteria_are_no_errors(more):
    assert not errors(load_tasks([{"prompt": "p", **more}]))


@pytest.mark.parametrize(
    ("rubric", "field"),
    [
        ({"criteria": ["A", "B"], "weights": {"c1": 3}}, "weights"),
        ({"title": "T", "criteria": ["A"], "max_score": 10}, "max_score"),
        ({"title": "T", "criteria": ["A"], "scale": "1-5"}, "scale"),
        ({"title": "T", "criteria": ["A"], "negative_points": [1]}, "negative_points"),
        ([{"name": "G", "weight": 0.7, "rubrics": [{"text": "A"}]}], "rubrics"),
        ([{"name": "G", "weight": 0.7, "checklist": ["A"]}], "checklist"),
        ([{"name": "G", "weight": 0.7, "parts": [{"text": "A", "weight": 1}]}], "parts"),
        ({"Accuracy": "3", "Style": "-2"}, "criterion"),
    ],
)
def test_weights_scales_and_parts_inside_a_rubric_are_read_or_an_error(rubric, field):
    """They went to meta without a finding, or the group's name was judged and a warning said so;
    criteria were called 3 and -2."""
    assert field in [f.field for f in errors(load_tasks([{"prompt": "p", "rubric": rubric}]))]


def test_what_describes_a_rubric_is_no_error():
    rubric = {"title": "T", "description": "D", "version": 2, "criteria": ["A", "B"]}
    found = load_tasks([{"prompt": "p", "rubric": rubric}])
    assert not errors(found) and [c.text for c in found.tasks[0].criteria] == ["A", "B"]


TURNS = [{"role": "user", "content": "Hot?"}, {"role": "assistant", "content": "Yes."}]
BOTH = [{"name": "a", "requirement": "States A"}, {"name": "b", "requirement": "States B"}]


@pytest.mark.parametrize(
    ("fields", "severity"),
    [
        ({"chat_history": TURNS}, "error"),
        ({"context": TURNS}, "error"),
        ({"context": "Rome lies on the Tiber."}, "warning"),
        ({"documents": ["a", "b"]}, "warning"),
        ({"response_A": "a"}, "error"),
        ({"prompt_response": [{"role": "user", "content": "p"}, TURNS[1]]}, "error"),
        ({"completion": "R"}, "error"),
        ({"responses": "[{'points': 1, 'more': {'criteria_met': True}}]"}, "error"),
        ({"response": "R", "ground_truth": ["MET", "UNMET"]}, "error"),
        ({"response": "R", "human_labels": {"a": "MET"}}, "error"),
        ({"response": "R", "annotations": [{"criterion": "States A", "met": True}]}, "error"),
        ({"items": [{"submission": "R", "ground_truth": ["MET", "UNMET"]}]}, "error"),
    ],
    ids=str,
)
def test_turns_sources_answers_and_labels_under_other_names_are_said(fields, severity):
    """Judge and policy saw none of them, and an info of an unread field was all that was said."""
    found = load_tasks([{"prompt": "p", "rubric": BOTH, **fields}])
    name = list(fields)[-1]
    assert severity in {f.severity for f in found.findings if f.field == name}


@pytest.mark.parametrize("label", [1, True, "met"])
def test_a_label_of_an_answer_without_a_criterion_is_an_error(label):
    row = {"prompt": "p", "response": "R", "score": 4, "rating": 3}
    assert not errors(load_tasks([row])) and not errors(load_tasks([{**row, "label": "sports"}]))
    assert [f.field for f in errors(load_tasks([{**row, "label": label}]))] == ["label"]


def test_turns_that_stand_elsewhere_in_the_row_are_no_error():
    """UltraFeedback's rows repeat prompt and chosen answer as messages."""
    row = {"prompt": "Hot?", "chosen": "Yes.", "rejected": "No.", "messages": TURNS}
    assert not errors(load_tasks([row]))


@pytest.mark.parametrize("text", [str, json.dumps, lambda x: [str(x)]])
def test_ifevals_rows_in_open_instructs_form_have_their_criteria(text):
    """The instructions stood in the truth, and there was no criterion."""
    asked = [{"instruction_id": ["punctuation:no_comma"], "kwargs": [None]}]
    row = {"messages": TURNS[:1], "dataset": "ifeval", "ground_truth": text(asked)}
    made = load_tasks([row]).tasks[0].criteria
    assert [c.check["name"] for c in made] == ["regex"]


@pytest.mark.parametrize(
    "said",
    [
        *({x: "negative"} for x in ("criterion_type", "rubricType", "rule_type", "item_sign")),
        *(
            {x: True}
            for x in ("must_not", "isForbidden", "avoid", "undesirable", "criteria_negative")
        ),
        *({x: False} for x in ("isPositive", "desirable")),
        {"negative": "yes"},
    ],
    ids=str,
)
def test_a_sign_is_read_however_its_field_is_spelled(said):
    """Insulting the reader paid +3, and nothing was said, or a warning."""
    rubric = [{"criterion": "Insults the reader.", "points": 3, **said}]
    found = load_tasks([{"prompt": "p", "criteria": rubric}])
    assert [c.weight for c in found.tasks[0].criteria] == [-3] and not found.findings
    ours = {"id": "t", "prompt": "p", "truth": {}, "criteria": [ONE | {"weight": 3} | said]}
    found = load_tasks([ours])
    assert found.tasks[0].criteria[0].weight == -3 and not found.findings


@pytest.mark.parametrize(
    "said",
    [
        *({x: "negative"} for x in ("nature", "origin", "polarity_type", "note", "mode")),
        {"is_pitfall": True},
    ],
    ids=str,
)
def test_a_word_of_sign_in_any_field_is_an_error_where_the_criterion_pays(said):
    """Notes, categories and types were passed over, whatever stood there."""
    for row in (
        {"prompt": "p", "criteria": [{"text": "x", "points": 3, **said}]},
        {"id": "t", "prompt": "p", "truth": {}, "criteria": [ONE | said]},
    ):
        assert {f.code for f in errors(load_tasks([row]))} == {"polarity"}
    less = load_tasks([{"prompt": "p", "criteria": [{"text": "x", "points": -3, **said}]}])
    assert not errors(less)


@pytest.mark.parametrize(
    "said",
    [
        *(
            {"type": x}
            for x in ("deduct", "malus", "négatif", "扣分项", "減点", "감점", "Must-Not")
        ),
        {"polarity": "负面"},
        {"effect": "malus"},
    ],
    ids=str,
)
def test_a_sign_is_read_in_other_words_and_languages(said):
    """A deduction paid, and nothing was said."""
    found = load_tasks([{"prompt": "p", "criteria": [{"text": "x", "weight": 3, **said}]}])
    assert found.tasks[0].criteria[0].weight == -3 and not found.findings


COSTLY = ("deduction", "con", "subtract", "violation", "red flag", "Hard Fail")


@pytest.mark.parametrize(
    "said",
    [
        *({"type": x} for x in COSTLY),
        *({"category": x} for x in ("must not", "should not", "扣分", "禁止")),
        {"tags": ["do not"]},
        {"score_type": "subtract"},
        {"is_violation": True},
    ],
    ids=str,
)
def test_a_word_that_may_be_a_sign_is_an_error_where_the_criterion_pays(said):
    """It was passed over: an insult paid."""
    rubric = [{"text": "x", "weight": 3, **said}]
    assert {f.code for f in errors(load_tasks([{"prompt": "p", "criteria": rubric}]))} == {
        "polarity"
    }


@pytest.mark.parametrize(
    "said",
    [
        *({"category": x} for x in ("penalty kicks", "negative externalities")),
        {"group": "negative control"},
        *({x: "negative"} for x in ("gold", "answer", "tone", "expected_sentiment", "test_result")),
        {"keyword": "avoid"},
    ],
    ids=str,
)
def test_a_word_of_sign_in_what_an_answer_is_about_is_no_sign(said):
    """A file of football was refused: "a pitfall weighs 2"."""
    found = load_tasks([{"prompt": "p", "criteria": [{"text": "x", "weight": 2, **said}]}])
    assert not errors(found)


@pytest.mark.parametrize("kind", [*COSTLY, "deductive", "context", "negative"])
def test_a_topic_is_no_sign(kind):
    """Deduction is a topic of logic, red flags one of medicine."""
    topic = {"text": "x", "weight": 3, "category": "red flags"}
    found = load_tasks([{"prompt": "p", "category": kind, "criteria": [topic]}])
    assert found.tasks[0].criteria[0].weight == 3 and not errors(found)
    flat = load_tasks([{"prompt": "p", "criterion": "x", "type": "deduction"}])
    assert flat.tasks[0].criteria[0].weight == 1 and not errors(flat)


def test_the_type_of_an_open_instruct_rubric_item_is_its_sign():
    """It became a tag: giving a dose paid +2."""
    items = [{"rubric_item": x, "weight": 2, "type": x} for x in ("positive", "negative")]
    made = load_tasks([{"question": "Q?", "rubric": items}])
    assert [c.weight for c in made.tasks[0].criteria] == [2, -2] and not errors(made)


@pytest.mark.parametrize(
    "own",
    [
        *({x: 4} for x in ("marks", "max_marks", "maxPoints", "pts", "weightage", "priority")),
        *(
            {x: 4}
            for x in (
                "coefficient",
                "poids",
                "权重",
                "deduction",
                "criterionWeightage",
                "human_score",
            )
        ),
        *({"weight_share": x} for x in ("40%", "3 pts", "1/3")),
        {"annotator_1": True},
    ],
    ids=str,
)
def test_a_weight_or_a_label_of_a_criterion_under_any_usual_name_is_an_error(own):
    """They were a warning: 90 and 10 weighed the same, and the file was sound."""
    for rubric in ([{"criterion": "x"} | own], [{"criterion": "y"}, {"criterion": "x"} | own]):
        out = load_tasks([{"prompt": "p", "criteria": rubric}])
        assert [f.field for f in errors(out)] == list(own)


@pytest.mark.parametrize(
    "own",
    [
        {"rating": 4},
        {"score_range": [1, 5]},
        {"scoring_guide": "5 is the best"},
        {"proficient": "Names it."},
        {"labels": {"ann": True}},
    ],
    ids=str,
)
def test_what_else_a_criterion_says_is_a_warning_with_its_value(own):
    found = load_tasks([{"prompt": "p", "criteria": [{"criterion": "x"} | own]}])
    assert [(f.severity, f.field) for f in found.findings] == [("warning", *own)]
    assert found.tasks[0].criteria[0].meta == own


@pytest.mark.parametrize(
    "name", ["must_not_have", "shouldHave", "red_flags", "must_avoid", "bonusCriteria", "checklist"]
)
def test_a_second_list_of_criteria_under_any_usual_name_is_an_error(name):
    """It was an info or a warning, and its criteria were lost."""
    found = load_tasks([{"prompt": "p", "criteria": ["A"], name: ["B"]}])
    assert len(errors(found)) == 1


def test_a_list_of_signs_beside_the_criteria_is_an_error():
    row = {"prompt": "p", "criteria": ["A", "B"]}
    for name in ("polarity", "types"):
        found = load_tasks([row | {name: ["positive", "negative"]}])
        assert [f.field for f in errors(found)] == [name]


@pytest.mark.parametrize(
    "mark",
    [
        *({x: True} for x in ("isTest", "testOnly", "isHeldOut", "isHoldout", "istest", "forTest")),
        *({x: False} for x in ("is_train", "isTraining", "use_for_training")),
        *({x: "test"} for x in ("split_name", "split_type", "splits", "__split__", "datasetSplit")),
        {"split": "testmini"},
        {"eval_only": 1},
    ],
    ids=str,
)
def test_a_mark_is_read_however_it_is_spelled_and_nothing_else_is_said_of_it(mark):
    """`isTest` became the split "isTest", which is no held-out one, and "nothing reads" it."""
    rows = [{"prompt": p, "criteria": ["x"]} for p in ("one", "two")]
    found = load_tasks([rows[0] | mark, rows[1] | dict.fromkeys(mark)])
    assert [t.held_out for t in found.tasks] == [True, False] and not found.findings
    assert found.tasks[0].meta == ({} if "split" in mark else mark)


@pytest.mark.parametrize(
    "lines",
    [
        ("Award 2 points if it names A.", "Deduct 1 point if it insults."),
        ("+1 if it names A", "-1 for insulting"),
        ("Names A -> +3", "Insults -> -2"),
        ("Names A.", "Subtract 2 if it insults."),
        ("Good: names A.", "Bad: insults."),
        ("Loses 2 points for insults.", "Gets 1 point for A."),
        ("提到莱茵河，得3分", "编造湖泊，扣2分"),
        ("Names A (2p)", "Names B (1p)"),
        ("Accuracy (60%): A", "Style (40%): B"),
        ("(3) A", "(2) B"),
        ("Up to 3 points for A.", "1 point for B"),
    ],
)
def test_points_in_any_usual_form_are_no_equal_weights(lines):
    """All weighed +1: inventing a lake paid, and nothing was said."""
    for rubric in (list(lines), "\n".join(f"- {x}" for x in lines)):
        assert errors(load_tasks([{"prompt": "p", "rubric": rubric}]))


@pytest.mark.parametrize(
    "lines",
    [
        ("-5 degrees is stated", "Names the river"),
        ("Names 3 rivers", "Says that he gains 3 kg", "Adds 2 and 3"),
        ("(1) A", "(2) B"),
        ("1.1: A", "1.2: B"),
    ],
)
def test_numbers_that_a_criterion_speaks_of_are_no_points(lines):
    found = load_tasks([{"prompt": "p", "rubric": list(lines)}])
    assert len(found.tasks[0].criteria) == len(lines)
    assert {f.code for f in found.findings} <= {"numbers-in-text"}


def test_a_cut_list_of_criteria_in_a_code_fence_is_an_error():
    """The fence and the JSON's text were criteria."""
    for text in ('```json\n[{"text": "A", "wei\n```', 'Rubric:\n[{"text": "A", "wei'):
        assert errors(load_tasks([{"prompt": "p", "rubric": text}]))


@pytest.mark.parametrize("name", ["human_labels", "grades", "raters", "annotator_1", "goldLabels"])
@pytest.mark.parametrize(
    "said",
    [
        {"c1": "met", "c2": "unmet"},
        {"ann": {"c1": "met"}},
        [{"criterion_id": "c1", "met": True}],
        [{"name": "ann", "labels": {"c1": "met"}}],
        "met",
    ],
    ids=str,
)
def test_labels_of_an_answer_under_other_names_are_an_error_in_a_file_of_answers(name, said):
    """They were an info: no verdict, and the file was sound."""
    found = load_tasks([{"task_id": "t", "response_id": "r", "response": "x", name: said}])
    assert name in [f.field for f in errors(found)]


@pytest.mark.parametrize("who", ["rater", "annotator", "grader", "labeled_by", "annotatorId"])
def test_who_gave_each_label_of_a_list_is_read(who):
    """Two raters were one "human", and one of two labels was to be deleted."""
    labels = [{"criterion_id": "c", "label": x, who: y} for x, y in (("met", "ann"), ("unmet", 7))]
    row = {"prompt": "p", "criteria": [ONE], "response": "R", "labels": labels}
    found = load_tasks([row])
    assert [(v.judge, v.status) for v in found.verdicts] == [
        ("human:ann", "met"),
        ("human:7", "unmet"),
    ]
    assert not found.findings


@pytest.mark.parametrize("name", ["criterion", "name"])
@pytest.mark.parametrize("worded", ["description", "details", "definition", "explanation"])
def test_the_wording_of_a_criterion_that_is_only_named_is_what_the_judge_is_asked(name, worded):
    """It was asked for "Accuracy" alone."""
    made = load_tasks(
        [{"prompt": "p", "criteria": [{name: "Accuracy", worded: "Names the Rhine."}]}]
    )
    one = made.tasks[0].criteria[0]
    assert (one.text, one.title) == ("Names the Rhine.", "Accuracy") and not made.findings


def test_levels_that_fields_of_a_criterion_describe_are_read_in_a_list_too():
    """Prometheus' criteria of five levels were binary, and a warning said so."""
    told = {f"score{i}_description": x for i, x in enumerate(("bad", "fair", "good"), 1)}
    for text in ("criterion", "criteria", "criteria_description"):
        made = load_tasks([{"prompt": "p", "rubrics": [{text: "Is it clear?", **told}]}])
        one = made.tasks[0].criteria[0]
        assert (one.text, one.scale) == ("Is it clear?", "ordinal") and not made.findings
        assert one.levels == ("1: bad", "2: fair", "3: good")


@pytest.mark.parametrize(
    "held",
    [
        {"test": [PLAIN]},
        {"split": "test", "data": [PLAIN]},
        {"meta": {"split": "dev"}, "rows": [PLAIN]},
    ],
)
def test_rows_of_a_file_that_is_held_out_as_a_whole_are_held_out(tmp_path, held):
    """They were trained on: the mark stands beside the rows, or is their list's name."""
    (tmp_path / "a.json").write_text(json.dumps(held))
    assert [t.held_out for t in load_tasks(tmp_path / "a.json").tasks] == [True]


def test_one_rubric_beside_all_rows_of_a_file_is_an_error(tmp_path):
    """A warning, and the tasks had no criterion."""
    (tmp_path / "a.json").write_text(json.dumps({"criteria": ["A"], "tasks": [PLAIN]}))
    assert [f.code for f in errors(load_tasks(tmp_path / "a.json"))] == ["unread-field"]


@pytest.mark.parametrize("off", [{"weight": 0}, {"train": False}])
def test_an_answer_that_is_marked_as_not_to_be_learned_is_not(off):
    """OpenAI's `weight: 0` was passed over."""
    made = load_tasks([{"messages": [TURNS[0], TURNS[1] | off]}])
    assert not made.responses and errors(made)
    goes_on = [TURNS[0], TURNS[1] | off, TURNS[0], TURNS[1] | {"weight": 1}]
    assert [r.text for r in load_tasks([{"messages": goes_on}]).responses] == ["Yes."]


def test_what_a_turn_holds_beside_its_text_is_said():
    """The reasoning of an answer was gone without a word."""
    made = load_tasks([{"messages": [TURNS[0], TURNS[1] | {"reasoning_content": "It is."}]}])
    assert [f.field for f in made.findings] == ["messages: reasoning_content"]


@pytest.mark.parametrize(
    "texts",
    [
        ["指出首都（2分）", "语气不礼貌（-1分）"],
        ["首都を挙げている（2点）", "失礼である（-1点）"],
        ["수도를 말한다 (2점)", "무례하다 (-1점)"],
        ["2 Punkte, wenn es stimmt", "-1 Punkt, wenn nicht"],
        ["2 puntos: nombra la capital", "-1 punto: insulta"],
        ["Names the capital (plus 2)", "Insults (minus 2)"],
        ["Names the capital. 2 pts.", "Insults. −2 pts."],
        ["Names the capital (2 points)", "Insults (penalty: 2 points)"],
        {"Names the capital": "2 points", "Insults": "-2 points"},
    ],
)
def test_points_of_a_text_in_other_languages_are_no_equal_weights(texts):
    """Each weighed 1, and the insult paid."""
    found = load_tasks([{"prompt": "Capital?", "rubric": texts}])
    assert [c.weight for t in found.tasks for c in t.criteria] != [1.0, 1.0] or [
        f for f in found.findings if f.severity == "error"
    ]


@pytest.mark.parametrize(
    "split", "测试集 テスト 검증 тест prueba validación not_for_training".split()
)
def test_rows_that_are_held_out_in_other_words_are_not_trained_on(split):
    row = {"prompt": "p?", "criteria": ["x"]}
    marked = {"not_for_training": True} if split.startswith("not") else {"split": split}
    (task,) = load_tasks([{**row, **marked}]).tasks
    assert task.held_out


def test_numbers_in_texts_of_groups_whose_criteria_have_weights_are_not_taken_for_theirs():
    """ "Every criterion weighs 1" was said of criteria that weigh 3 and 2."""
    groups = [{"category": str(w), "criteria": [{"text": f"Has {w}", "weight": w}]} for w in (3, 2)]
    found = load_tasks([{"prompt": "p", "rubric": groups}])
    assert [c.weight for c in found.tasks[0].criteria] == [3, 2]
    assert "numbers-in-text" not in {f.code for f in found.findings}


def test_the_source_of_a_label_by_ids_is_named():
    """It was read as the source of an answer that is not there: nowhere, and in no finding."""
    row = {
        "task_id": "t",
        "response_id": "m",
        "criterion_id": "x",
        "label": "met",
        "source": "MARK",
    }
    assert [f.field for f in load_tasks([row]).findings] == ["source"]


@pytest.mark.parametrize(
    "said",
    [
        {"is_positive": True},
        {"polarity": "positive"},
        {"type": "positive"},
        {"desired": "yes"},
        {"negative": False},
    ],
)
@pytest.mark.parametrize("own", [{}, {"id": "c1"}])
def test_a_criterion_to_be_met_that_costs_is_said(said, own):
    """ "is_positive": true beside the weight -3 was neither in meta nor in a finding."""
    item = {**own, "text": "Mentions clouds and wind", **said}
    found = load_tasks([{"id": "t", "prompt": "p", "criteria": [{**item, "weight": -3}]}])
    assert found.tasks[0].criteria[0].weight == -3
    told = [(f.code, f.severity, f.field) for f in found.findings]
    assert told == [("polarity", "warning", *said)]
    for weight in ({"weight": 3}, {}):
        found = load_tasks([{"id": "t", "prompt": "p", "criteria": [{**item, **weight}]}])
        assert found.tasks[0].criteria[0].weight > 0 and not found.findings
    both = {**item, "penalty": True, "weight": -3}
    assert not load_tasks([{"id": "t", "prompt": "p", "criteria": [both]}]).findings


def test_the_role_ai_is_an_assistant():
    """LangChain's: it stayed "ai" in a history, and at the end of a chat to imitate was an error."""
    turns = [{"role": "human", "content": "Q"}, {"role": "ai", "content": "A"}]
    asked = [*turns, {"role": "human", "content": "Q2"}]
    found = load_tasks([{"messages": asked, "criteria": [{"text": "Names the river"}]}])
    assert [t["role"] for t in found.tasks[0].history] == ["user", "assistant"]
    made = load_tasks([{"messages": turns}])
    assert [r.text for r in made.responses] == ["A"] and not made.findings
