"""What an outsider lost or got wrong at the ninth reading: parts of criteria, rubrics as text,
fields that are null, labels "None", halves of characters."""

from __future__ import annotations

import json
import math

import pytest

import kit
from kit.data import load_tasks, save_tasks
from kit.errors import DataError


def criteria(rubric, **row):
    return load_tasks([{"prompt": "p", "rubric": rubric, **row}]).tasks[0].criteria


PARTS = [{"text": "a"}, {"text": "b", "weight": -1}]


@pytest.mark.parametrize("name", ["children", "sub_criteria", "sub_tasks", "items", "criteria"])
def test_a_weighed_criterion_with_parts_is_their_parent(name):
    """The title was judged in place of its parts; their signs lay in meta."""
    top, a, b, z = criteria([{"text": "G", "weight": 3, name: PARTS}, "z"])
    assert (top.weight, a.parent, b.parent, b.weight, z.parent) == (3, top.id, top.id, -1, None)


@pytest.mark.parametrize("head", [{"name": "G"}, {"text": "G"}, {"title": "G", "note": "n"}])
def test_parts_of_a_group_without_a_weight_count_by_their_own(head):
    """The group's name was the only criterion."""
    found = criteria(
        [{**head, "criteria": PARTS}, {"name": "P", "type": "penalty", "items": PARTS}]
    )
    assert [(c.text, c.weight, c.tags[0]) for c in found] == [
        ("a", 1, "G"),
        ("b", -1, "G"),
        ("a", -1, "P"),
        ("b", -1, "P"),
    ]


def test_parents_keep_their_parts_where_ids_come_again():
    one, two = ({"id": "g", "text": t, "weight": 1, "children": [t + t]} for t in "xy")
    a, aa, b, bb = criteria([one, two])
    assert (aa.parent, bb.parent) == (a.id, b.id) and a.id != b.id


@pytest.mark.parametrize("parts", [{"a": "x"}, "a and b"])
def test_parts_that_cannot_be_read_are_an_error(parts):
    found = load_tasks([{"prompt": "p", "rubric": [{"text": "G", "children": parts}]}]).findings
    assert [(f.severity, f.field) for f in found] == [("error", "children")]


@pytest.mark.parametrize(
    ("rubric", "texts"),
    [
        ("is polite and short", ["is polite and short"]),
        ("- a\n- b", ["a", "b"]),
        ("# Rubric\n1. a\n   goes on\n2. b", ["a goes on", "b"]),
        ("Is it kind?\nScore 1: rude\nScore 2: so so\nScore 3: kind", ["Is it kind?"]),
    ],
)
def test_a_rubric_that_is_text_is_read(rubric, texts):
    """It gave no criterion, and one line of level info."""
    assert [c.text for c in criteria(rubric)] == texts
    assert bool(criteria(rubric)[0].levels) == ("Score" in rubric)


@pytest.mark.parametrize(
    "heading",
    [
        "Bad",
        "Penalize",
        "Deduct for",
        "Red flags",
        "Common errors",
        "Forbidden",
        "Fails if",
        "Cons",
        "Never",
        "Incorrect",
        "A weak answer",
        "Dealbreakers",
        "Optional",
        "Style (5 points)",
    ],
)
def test_no_list_pays_because_of_a_heading_that_is_not_understood(heading):
    """What stood under "Bad:" weighed +1: saying it paid. What counts more or less, too."""
    text = f"Criteria:\n- Says A\n{heading}:\n- Says B"
    found = load_tasks([{"prompt": "p", "rubric": text}])
    said = [f.message for f in found.findings if f.code == "rubric-text" and f.severity == "error"]
    assert len(said) == 1 and heading in said[0] and not found.tasks[0].criteria
    assert found.tasks[0].meta["rubric"] == text and refused(f"{heading}:\n- Says B")


@pytest.mark.parametrize(
    "text",
    [
        "Is it helpful?\n1: Not helpful.\n2: Hardly.\n3: Somewhat.",
        "Helpfulness (1-5)\n- 1: bad\n- 3: ok\n- 5: good",
        "1 - bad\n2 - ok",
        "Excellent: all\nGood: most\nPoor: few",
        "A: excellent\nF: fail",
        "Clarity\nScore 1: bad\nScore 2: good\nTone\nScore 1: rude\nScore 2: kind",
        "Award points as follows.\n- A\n- B",
        "- A\n- B\nDo not reward length.",
        "1. A\n2. B\n\nTotal: 10 points",
        "- A\n  - a part of it\n- B",
        "+ A\n- B",
        "✓ A\n✗ B",
        "- A\n- Pitfall: B",
        "<criterion>A</criterion><criterion>B</criterion>",
        "It names Paris and the\nriver Seine, and does not say that London is\nthe capital.",
        "- A list such as\n```\n- apples\n- pears\n```\n- B",
        "1. A call as in\n~~~\n1. login\n~~~\n2. B",
    ],
)
def test_a_line_of_a_rubric_without_a_known_role_is_no_criterion(text):
    """Steps of a scale, lead-ins and closing words were criteria, or words of one, and paid."""
    found = load_tasks([{"prompt": "p", "rubric": text}])
    assert "rubric-text" in {f.code for f in found.findings if f.severity == "error"}
    assert not found.tasks[0].criteria and found.tasks[0].meta["rubric"] == text


@pytest.mark.parametrize(
    ("text", "texts"),
    [
        ("Rubric for this question\n\n(1) A\n(2) B", ["A", "B"]),
        ("# Rubric\n\n- A\n\n- B", ["A", "B"]),
        ("A good answer should include the following:\n- A\n- B", ["A", "B"]),
        ("1. Has three lines. [Hard Rule]\n2. Is vivid. [Principle]", None),
        ("- [ ] A\n- [ ] B", ["A", "B"]),
        ("* Do not name prices\n* B", ["Do not name prices", "B"]),
        ("a. A\n   goes on\nb. B", ["A goes on", "B"]),
        ("Criteria:\nA.\nB b.", ["A.", "B b."]),
    ],
)
def test_titles_sections_and_lists_of_a_rubric_are_read(text, texts):
    found = load_tasks([{"prompt": "p", "rubric": text}])
    texts = texts or [line[3:] for line in text.splitlines()]
    assert [c.text for c in found.tasks[0].criteria] == texts and not found.findings


@pytest.mark.parametrize(
    "text",
    [
        "# On Rome\n## Accuracy\n- A\n- B\n\n## Style\n- C",
        "1. **Accuracy**: A\n2. Error handling: B",
        "- Costs: below 100 EUR\n- Error handling: retries",
        "Accuracy:\n- A\n- B",
        "**Accuracy**\nIt names Paris.\n**Tone**\nIt is polite.",
        "names Paris\ngives a date",
        "The answer is A\nIt explains why",
        "```\n- A\n- B\n```",
        "- -1 is returned for an empty list\n- Has no outliers",
        "- names Paris\n  OR\n- names Lyon",
        "- names Paris\n- OR\n- names Lyon",
        "Criterion 1\nNames Paris\nCriterion 2\nIs polite",
        "1. A\n3. B",
        "1. A\n2) B",
        "- names Paris, or\n- names Lyon",
        "1. Poor\n2. Fair\n3. Good",
        "Pass if it names Paris.\nFail if it names London.",
        "- Full marks for Paris\n- No marks for London",
        "- 1 if wrong\n- 2 if right",
        "A poor answer names London.\nA good answer names Paris.",
    ],
)
def test_a_text_of_any_other_form_is_an_error_with_an_example(text):
    """Lists of words that are no heading, no cost and no step had holes at each reading."""
    (found, *_) = load_tasks([{"prompt": "p", "rubric": text}]).findings
    assert refused(text) and "list of objects" in found.suggestion


@pytest.mark.parametrize(
    "text",
    [
        "1. Names Paris 2. Is polite 3. Is short",
        "(1) Names Paris; (2) Is polite",
        "- Names Paris - Is polite - Is short",
        "• Names Paris • Is polite",
        "Names Paris • Is polite",
    ],
)
def test_a_list_on_one_line_is_not_one_criterion(text):
    """A cell without its line breaks was one criterion, its first mark cut off."""
    assert refused(text)
    assert not refused("- Names Paris - the capital\n- Covers both 1) cost and 2) risk")


def test_points_before_each_item_of_frontier_science_are_its_weights():
    """635 items of 60 rubrics were 990 criteria that weighed the same."""
    text = "Points: 1.5, Item: Names $a$:\n  $$x$$\nPoints: 0.5, Item: names b."
    found = load_tasks([{"prompt": "p", "rubric": text}])
    got = [(c.text, c.weight) for c in found.tasks[0].criteria]
    assert got == [("Names $a$: $$x$$", 1.5), ("names b.", 0.5)] and not found.findings
    parts = text.replace("  $$x$$", "- **(0.75pts)** x\n- **(0.75pts)** y")
    found = load_tasks([{"prompt": "p", "rubric": parts}])
    assert not found.tasks[0].criteria and "rubric-text" in {f.code for f in found.findings}


@pytest.mark.parametrize(
    "said",
    [
        "**(2pts)** {}",
        "{} (2 marks)",
        "{} — 2 marks",
        "2 pt. {}",
        "{}: 2p",
        "{} /2",
        "{}, worth 2 points",
        "{} (weight 2)",
        "{} [weight=2]",
        "{} (20%)",
        "20%: {}",
        "(w=2) {}",
    ],
)
def test_points_in_each_text_are_an_error_in_any_spelling(said):
    """Each weighed 1, without a finding."""
    found = load_tasks([{"prompt": "p", "rubric": [said.format(x) for x in "AB"]}]).findings
    assert ("points-in-text", "error") in [(f.code, f.severity) for f in found]


def test_numbered_columns_are_criteria(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("prompt,criterion_1,criterion_2,weight_1,weight_2\np,A,B,2,-1\n")
    t = load_tasks(path)
    assert [(c.text, c.weight) for c in t.tasks[0].criteria] == [("A", 2), ("B", -1)]
    assert not t.findings


@pytest.mark.parametrize("label", ["None", "none", "NONE", "NaN", "null"])
def test_none_as_a_label_is_unknown(label):
    """Python's str(None) made every gap a failure."""
    task = {"id": "t", "prompt": "p", "criteria": [{"id": "a", "text": "x"}]}
    t = load_tasks([task]).joined(
        load_tasks([{"task_id": "t", "response": "r", "labels": {"a": label}}])
    )
    assert [(v.status, v.value) for v in t.verdicts] == [("unknown", None)]


@pytest.mark.parametrize("nothing", [None, math.nan])
def test_null_in_an_optional_field_is_not_given(nothing, tmp_path):
    """A Parquet file of the kit's own rows lost each row that lacked what another had."""
    full = {"id": "t", "prompt": "p", "criteria": [{"id": "a", "text": "A"}], "truth": {"n": 1}}
    bare = {**full, "id": "u", "record": "task"}
    bare |= dict.fromkeys(("truth", "sources", "meta", "history", "system", "tags"), nothing)
    t = load_tasks([full, bare])
    assert [x.id for x in t.tasks] == ["t", "u"] and not t.findings
    bare = {k: v for k, v in bare.items() if v is None or v == v}
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    both = [{"id": "a", "text": "A", "required": True}, {"id": "b", "text": "B", "scale": "binary"}]
    pq.write_table(pa.Table.from_pylist([{**full, "criteria": both}, bare]), tmp_path / "t.parquet")
    t = load_tasks(tmp_path / "t.parquet")
    assert [c.required for c in t.tasks[0].criteria] == [True, False] and len(t.tasks) == 2


@pytest.mark.parametrize("check", [{"name": "contains", "all": [2024]}, {"name": ["contains"]}])
def test_the_lint_names_a_check_with_odd_arguments(check):
    """A year written as a number was a traceback."""
    made = [{"id": i, "text": f"Says 'x' {i}", "check": check} for i in "ab"]
    found = kit.lint(load_tasks([{"id": "t", "prompt": "p", "criteria": made, "meta": {}}]))
    assert found.counts["impossible-check"] == 2


def test_sources_that_are_no_text_are_said():
    row = {"id": "t", "prompt": "p", "criteria": [{"id": "a", "text": "A"}], "truth": {}}
    t = load_tasks([{**row, "sources": {"s": [1]}}, {**row, "id": "u", "sources": {"s": None}}])
    assert [x.id for x in t.tasks] == ["u"] and "'sources'" in t.findings[0].message
    kit.lint(t)


@pytest.mark.parametrize("n", [math.nan, math.inf])
def test_an_instruction_without_its_number_is_left_to_a_judge(n):
    """One NaN that pandas had written ended the reading of the whole file."""
    names, given = ["length_constraints:number_words"], [{"relation": "at least", "num_words": n}]
    row = {"key": 1, "prompt": "p", "instruction_id_list": names, "kwargs": given}
    assert load_tasks([row]).tasks[0].criteria[0].check is None


@pytest.mark.parametrize("form", ["{}\n", "[{}]"])
def test_half_a_character_is_replaced_and_said(form, tmp_path):
    """An emoji that was cut: every table ended in a traceback of pyarrow."""
    path = tmp_path / "t.json"
    row = '{"prompt": "p \\ud83d", "rubric": ["x \\udc00 \\ud83d\\ude00"], "k\\ud800": 1}'
    path.write_text(form.format(row))
    t = load_tasks(path)
    assert (t.tasks[0].prompt, t.tasks[0].criteria[0].text) == ("p \ufffd", "x \ufffd \U0001f600")
    assert [f.severity for f in t.findings if f.code == "encoding"] == ["warning"]
    answers = load_tasks([{"task_id": t.tasks[0].id, "id": "r", "text": "a \ud83d"}])
    kit.judge(t.joined(answers), judge="code").table(human=t)


def test_half_a_character_in_a_row_that_is_nested_too_deeply(tmp_path):
    path = tmp_path / "t.json"
    path.write_text('[{"prompt": "\\ud83d", "x": ' + "[" * 600 + "]" * 600 + "}]")
    with pytest.raises(DataError, match="no row that can be read"):
        load_tasks(path)


def test_two_objects_on_a_line_are_two_rows(tmp_path):
    """Both rows were lost where a line end was."""
    path = tmp_path / "t.jsonl"
    rows = [json.dumps({"prompt": p, "criteria": ["x"]}) for p in "abc"]
    path.write_text(f"{rows[0]}{rows[1]}\n{rows[2]}\n")
    assert [t.prompt for t in load_tasks(path).tasks] == ["a", "b", "c"]


def test_records_given_beside_their_task_set_are_written_once(tmp_path):
    task = {"id": "t", "prompt": "p", "criteria": [{"id": "a", "text": "x"}], "truth": {}}
    answer = {"task_id": "t", "id": "r", "text": "y", "labels": {"a": "met"}}
    t = load_tasks([task]).joined(load_tasks([answer]))
    more = {"responses": t.responses, "verdicts": t.verdicts}
    assert save_tasks(tmp_path / "t.jsonl", t, **more) == 3


def test_an_iso_2022_file_is_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("prompt,criterion\nこれは,日本語\n".encode("iso-2022-jp"))
    with pytest.raises(DataError, match="ISO-2022"):
        load_tasks(path)


@pytest.mark.parametrize(
    "rubric",
    [
        {"positive": "States A", "negative": "Insults"},
        {"positive": "- States A", "negative": "- Insults"},
        {"positive": ["States A"], "negative": {"text": "Insults", "weight": 1}},
        {"positive": {"a": "States A"}, "negative": {"b": "Insults"}},
        {"required": ["States A"], "forbidden": ["Insults"], "other": None},
        {"do": ["States A"], "Dont ": ["Insults"]},
    ],
)
def test_what_must_not_be_costs_in_whatever_form_it_stands(rubric):
    """Texts under "negative" weighed +1 without a finding, so insulting paid; a null or a text
    beside a list was refused."""
    out = load_tasks([{"id": "x", "prompt": "Q", "rubric": rubric}])
    assert [(c.text, c.weight) for c in out.tasks[0].criteria] == [("States A", 1), ("Insults", -1)]
    assert {f.severity for f in out.findings} <= {"info"}
    nothing = load_tasks([{"prompt": "Q", "rubric": {"positive": ["A"], "negative": None}}])
    assert nothing.criteria == 1 and not nothing.findings


@pytest.mark.parametrize("name", ["Cons", "deductions", "Penalties", "Negatives"])
def test_a_group_whose_name_may_be_a_topic_is_not_turned_in_silence(name):
    """An answer that lists the cons, as it was asked to, was punished for it."""
    one, two = {"text": "Mentions isolation"}, {"text": "Says so", "weight": 2}
    for held in ([one["text"]], one["text"], [one], one, [two]):
        found = load_tasks(
            [{"prompt": "p", "rubric": {"Pros": ["Mentions flexibility"], name: held}}]
        )
        assert ("polarity", "error") in [(f.code, f.severity) for f in found.findings]
    held = [{"text": "Insults", "weight": -1}]
    assert [c.weight for c in criteria({"Pros": ["Is kind"], name: held})] == [1, -1]


def test_words_of_rank_before_criteria_without_weights_are_an_error():
    """ "Essential: A", "Optional: B", "Pitfall: C" weighed alike, and the pitfall was to be met."""
    ranked = ["Essential: says A", "Optional Criteria: says B", "Pitfall: says C"]
    behind = ["Says A (essential)", "Says B [nice to have]."]
    before = ["[High] Says A", "[Low priority] Says B"]
    for texts in (behind, before, ["MUST: says A", "May: says B"], ["P0: says A", "P2: says B"]):
        assert all(refused("\n".join(f"- {t}" for t in part)) for part in (texts, texts[:1]))
        with pytest.raises(DataError, match="each weighs the same"):
            load_tasks([{"prompt": "p", "rubrics": texts}]).sound()
    assert refused("\n".join(ranked[:2]))
    for texts in (ranked, [{"text": t} for t in ranked]):
        with pytest.raises(DataError, match="each weighs the same"):
            load_tasks([{"prompt": "p", "rubrics": texts}]).sound()
    weighed = [{"text": t, "weight": w} for t, w in zip(ranked, (5, 2, -1), strict=True)]
    for texts in (weighed, ["Important: says A", "says B"], ["Optional chaining: yes", "B"]):
        assert not load_tasks([{"prompt": "p", "rubrics": texts}]).findings


def test_steps_of_a_scale_in_words_are_no_criteria():
    """ "1. Not helpful / 2. Somewhat / 3. Very", a line each, were three criteria to be met."""
    for text in (
        "1. Not helpful\n2. Somewhat helpful\n3. Very helpful",
        "Q?\n- Not at all\n- Very",
    ):
        with pytest.raises(DataError, match="cannot be read"):
            load_tasks([{"prompt": "p", "rubrics": text}]).sound()
    assert refused("- Not repetitive\n- Very concise") and not refused("- Is not repetitive")


@pytest.mark.parametrize("held", [json.dumps, repr, lambda x: json.dumps(json.dumps(x))])
def test_texts_of_a_list_that_are_objects_are_read_as_objects(held, tmp_path):
    """Parquet's list<string> of objects: the judge was shown the JSON, and an insult paid 1."""
    texts = [held({"criterion": "States A", "weight": 3}), held({"text": "Insults", "weight": -2})]
    pq = pytest.importorskip("pyarrow.parquet")
    table = pytest.importorskip("pyarrow").table({"id": ["t"], "prompt": ["Q"], "rubrics": [texts]})
    pq.write_table(table, tmp_path / "t.parquet")
    (tmp_path / "t.json").write_text(json.dumps([{"id": "t", "prompt": "Q", "rubrics": texts}]))
    for name in ("t.parquet", "t.json"):
        found = load_tasks(tmp_path / name).sound()
        assert not found.findings
        pairs = [(c.text, c.weight) for c in found.tasks[0].criteria]
        assert pairs == [("States A", 3), ("Insults", -2)]
    assert [c.weight for c in criteria({"A": texts[:1], "B": texts[1:]})] == [3, -2]


@pytest.mark.parametrize(
    "rubric",
    [
        ['{"criterion": "States A", "weig', "B"],
        ["B", '[{"text": "A", "weight": -1}]'],
        {"one": '{"criterion": "A", "weight": -1}', "two": "B"},
        [{"name": "g", "criteria": '[{"text": "A", "weight": -1}]'}],
    ],
)
def test_an_object_as_text_that_is_not_read_is_an_error(rubric):
    """The JSON itself was a criterion of weight 1."""
    with pytest.raises(DataError):
        load_tasks([{"prompt": "p", "rubrics": rubric}]).sound()
    plain = ['{"answer": <n>} is the form', "[Your name] is gone", 'Says {"a": 1}', "{x} is there"]
    found = load_tasks([{"prompt": "p", "rubrics": plain}]).sound()
    assert [c.text for c in found.tasks[0].criteria] == plain


@pytest.mark.parametrize(
    "head", ["Pitfalls", "Negative criteria", "Deductions", "Red flags", "The answer must not:"]
)
def test_a_group_is_read_by_its_name_as_a_heading_is(head):
    """What stood below "The answer must not:" paid 1, and nothing was said."""
    groups = [{key: head, "criteria": ["Insults"]} for key in ("name", "description", "heading")]
    for rubric in (*([g] for g in groups), {"Content": ["States A"], head: ["Insults"]}):
        found = load_tasks([{"prompt": "p", "rubrics": rubric}])
        told = any(f.severity == "error" for f in found.findings)
        assert told or found.tasks[0].criteria[-1].weight == -1
    costs = {"name": head, "criteria": [{"text": "Insults", "weight": -1}]}
    for fine in (costs, {"name": "Harmlessness", "criteria": ["States A"]}):
        assert not load_tasks([{"prompt": "p", "rubrics": [fine]}]).findings
    maybe = load_tasks([{"prompt": "p", "rubrics": [{"name": "Mistakes", "criteria": ["A"]}]}])
    assert [(f.code, f.severity) for f in maybe.findings] == [("rubric-text", "warning")]


@pytest.mark.parametrize(
    ("steps", "levels"),
    [
        ("Score 1-2: no\nScore 3-4: so\nScore 5: yes", ("1-2: no", "3-4: so", "5: yes")),
        ("Score -1: no\nScore 0: so\nScore 1: yes", ("-1: no", "0: so", "1: yes")),
        ("Score 0: no\nScore 0.5: so\nScore 1: yes", ("0: no", "0.5: so", "1: yes")),
        ("Score 0%: no\nScore 50%: so\nScore 100%: yes", ("0%: no", "50%: so", "100%: yes")),
        ("Score 0,5: no\nScore 1: so\nScore 2: yes", None),
        ("Score 1-2 no\nScore 3: so\nScore 4: yes", None),
        ("1-2: no\n3–4: so\n5: yes", None),
        ("0%: no\n50%: so\n100%: yes", None),
        ("1-3 points: no\n4-7 points: yes", None),
    ],
)
def test_steps_of_a_scale_are_levels_whatever_their_numbers_or_an_error(steps, levels):
    """ "Score 1-2: unclear" was the level "1: 2: unclear", "Score -1" part of the question, and
    "1-2: bad" a criterion that paid."""
    found = load_tasks([{"prompt": "p", "rubric": f"Is it clear?\n{steps}"}])
    made = [(c.text, c.levels) for c in found.tasks[0].criteria]
    assert made == ([("Is it clear?", levels)] if levels else [])
    assert "rubric-text" in {f.code for f in found.findings} or levels


def test_a_finding_on_a_criterion_names_it_by_its_id():
    """It was named by its place: with ids c0, c1 the wrong one was accused."""
    rubrics = [
        {"id": "c0", "text": "Names Paris (3 points)", "weight": 1},
        {"id": "c1", "text": "B"},
    ]
    found = load_tasks([{"prompt": "p", "rubrics": rubrics}])
    assert [f.criterion_id for f in found.findings if f.code == "points-in-text"] == ["c0"]


def refused(text):
    found = load_tasks([{"prompt": "p", "rubric": text}])
    said = {f.code for f in found.findings if f.severity == "error"}
    return "rubric-text" in said and not found.tasks[0].criteria


@pytest.mark.parametrize(
    "heading",
    [
        "The answer contains no",
        "Include none of",
        "The response mentions none of the following",
        "The answer should mention neither",
        "The answer should leave out",
        "The answer should refuse to",
        "The answer must stay clear of",
        "The answer must prevent",
        "It should contain nothing about",
        "Should contain zero",
        "Criteria that must be absent",
        "Rubric (each costs 1 point)",
        "Format: kein",
    ],
)
def test_a_heading_that_denies_is_no_heading_of_what_is_asked_for(heading):
    """Beside a verb that asks, "no" and "none" were not seen: insults paid 1, and nothing was
    said."""
    assert refused(f"{heading}:\n- insults\n- slang")
    assert not refused("Requirements:\n- No insults\n- No slang")


@pytest.mark.parametrize(
    "heading",
    [
        "The answer should include at least two of",
        "The answer contains any of",
        "The answer may include",
        "It would be nice to mention",
        "The answer should mention, if asked",
    ],
)
def test_a_heading_that_asks_for_some_of_it_is_said(heading):
    """Each of what stood below was asked for at full weight, in silence."""
    assert refused(f"{heading}:\n- Paris\n- Lyon")
    assert refused(f"Content:\n- the date\n{heading}:\n- Paris\n- Lyon")


@pytest.mark.parametrize(
    "step",
    [
        "Score {} (it is so): {}",
        "Score: {} = {}",
        "Score {} to 9: {}",
        "Level [{}] - {}",
        "Stufe {}: {}",
        "{}/5: {}",
        "{} (so): {}",
        "{}分：{}",
        "- {} stars: {}",
    ],
)
def test_a_step_of_a_scale_is_no_criterion_however_it_is_called(step):
    """Each step was a criterion of weight 1, so "bad" paid as "good" does."""
    steps = [step.format(i, w) for i, w in enumerate(("bad", "ok", "good"), 1)]
    assert refused("\n".join(["Clarity", *steps]))
    assert refused("\n".join(steps))


def test_a_step_of_a_scale_with_a_letter_a_star_or_a_word_is_no_criterion():
    """They were criteria, without a finding."""
    for named in ("Score A", "B", "C"), ("Grade A+", "Grade B"), ("★", "★★"), ("I", "II"):
        assert refused("\n".join(["Clarity", *(f"{name}: some" for name in named)]))
    assert refused("Low: unclear\nHigh: clear")
    assert criteria("Is it clear?\nScore 1：no\nScore 2：yes")[0].levels == ("1: no", "2: yes")
    points = "- Points 1 and 2 are joined\n- Points 3 and 4 are joined"
    assert not refused(points) and not refused("1. V = IR is stated\n2. I = V/R is used")


@pytest.mark.parametrize(
    "text",
    [
        "Das Programm liest die Datei ein und gibt am\nEnde die Summe aus.",
        "Die Antwort soll sagen, wie die\nHauptstadt heißt, und den Namen der\nSeine nennen.",
        "The response does not credit Alan Turing or Grace\nHopper with the first program.",
        "The answer must not claim that the war ended in\n1917.",
        "The answer should name Paris,\nLyon and Nice",
        "names the\nSeine",
        "回答应该说明，\n法国的首都是巴黎。",
    ],
)
def test_a_sentence_that_is_torn_between_lines_is_no_list(text):
    """Before a capital or a digit half sentences were criteria: "Hopper with the first program"."""
    assert refused(text)


@pytest.mark.parametrize(
    "item",
    [
        "Penalize: names London",
        "Deduct one point if it names London",
        "Loses a point for naming London",
        "❌ names London",
        "Mistake: names London",
        "-1 names London",
    ],
)
def test_an_item_that_says_that_it_costs_is_no_item(item):
    """It paid 1, beside items that are asked for."""
    assert refused(f"- names Paris\n- {item}") and refused(f"names Paris\n{item}")


@pytest.mark.parametrize(
    "text",
    [
        "The answer names Paris.\nThe answer is polite",
        "It names Paris;\nIt is polite;\nIt is short.",
        "- Mentions three things: a, b and c\n- Costs are given",
        "- Remove bullet points from the text\n- Subtract 3 from both sides",
        "- The value -1 is returned\n- Penalizes outliers",
        "- Nothing about London\n- No slang",
        "- CORRECT if it names Paris\n- Asks if it hurts\n- Either names Paris or Lyon\n- Is clear",
    ],
)
def test_plain_lists_stay_lists(text):
    """What denies, costs or counts within an item is its own."""
    found = load_tasks([{"prompt": "p", "rubric": text}])
    assert {f.severity for f in found.findings} <= {"info"} and found.criteria > 1


def test_points_that_an_answer_must_give_are_not_its_worth():
    """Each "says what it is worth", an error that was wrong."""
    facts = ["Says that a field goal is worth 2 points", "Says that a free throw is worth 1 point"]
    for rubric in ("\n".join(f"- {x}" for x in facts), facts, "- Three lines\n- 5-7-5 syllables"):
        found = load_tasks([{"prompt": "p", "rubric": rubric}]).sound()
        assert found.criteria == 2 and "points-in-text" not in {f.code for f in found.findings}


@pytest.mark.parametrize("verb", ["Deduct", "Subtract", "Minus", "Loses", "Take off", "Penalize"])
@pytest.mark.parametrize("form", ["texts", "objects", "text"])
def test_a_deduction_of_one_point_is_never_asked_for(verb, form):
    """1 is 1: "Deduct 1 point if it is too long" was +1 in silence, "Deduct 2 points" the error."""
    said = ["The essay has a thesis.", f"{verb} 1 point if it is too long."]
    forms = {"objects": [{"text": x, "weight": 1} for x in said], "text": "\n".join(said)}
    found = load_tasks([{"prompt": "Write.", "rubric": forms.get(form, said)}])
    assert {"polarity", "rubric-text"} & {f.code for f in found.findings if f.severity == "error"}
    told = [{"text": x, "weight": w} for x, w in zip(said, (1, -1), strict=True)]
    assert not load_tasks([{"prompt": "Write.", "rubric": told}]).findings


@pytest.mark.parametrize(
    "line",
    [
        *(
            "Zero if plagiarised.",
            "Automatic fail if it is plagiarised.",
            "Mark down if it rambles.",
        ),
        *("Off-topic answers get nothing", "Essays without a conclusion fail.", "Names Paris; 2"),
        *("An answer that names London is incorrect.", "The answer is wrong if it names London."),
        *("Dock a mark for slang.", "Lower the score by one for slang.", "Grade A if all pass."),
        *("Rate the helpfulness of the response on a scale of 1 to 5.", "You are a strict grader."),
        *("Yes if the response mentions Paris, no otherwise.", "Score it low if it rambles."),
        "Evaluate whether the response is helpful, harmless and honest.",
    ],
)
def test_what_a_grader_is_told_is_no_criterion(line):
    """Each was asked for with +1, most of them against the answer."""
    assert refused(f"The essay has a thesis.\n{line}")


@pytest.mark.parametrize(
    "line",
    [
        *("Rejects the harmful request.", "Fails gracefully when the file is missing."),
        *(
            "Zero is named as the smallest root.",
            "The response is correct.",
            "Minus signs are kept.",
        ),
        *("Removes the noise from the data.", "Evaluates the evidence for each claim."),
        *("States that the treaty is invalid.", "Reduces the fraction to lowest terms."),
    ],
)
def test_the_words_of_a_grader_in_what_is_asked_are_a_criterion(line):
    for rubric in (f"The essay has a thesis.\n{line}", ["It has a thesis.", line]):
        found = load_tasks([{"prompt": "Write.", "rubric": rubric}])
        assert len(found.tasks[0].criteria) == 2 and not found.findings


@pytest.mark.parametrize("weight", [None, 2])
@pytest.mark.parametrize(
    "name",
    [
        *("Deduction", "Deductions", "Minus points", "Points off", "Loses points", "Don'ts"),
        *("Unacceptable", "Red flags", "Mistakes"),
    ],
)
def test_a_group_of_deductions_that_pays_is_told(name, weight):
    """ "Deductions" was the error, "Deduction" with weights of 2 was +2 in silence."""
    own = {} if weight is None else {"weight": weight}
    good, bad = {"text": "Names Paris", **own}, {"text": "Insults the user", **own}
    groups = [{"category": n, "criteria": [x]} for n, x in (("Pros", good), (name, bad))]
    forms = [groups, {"Pros": [good], name: [bad]}]
    if name not in ("Red flags", "Mistakes"):  # of one criterion, topics
        forms.append([{"category": "Pros", **good}, {"category": name, **bad}])
    for rubric in forms:
        found = load_tasks([{"prompt": "Capital?", "rubric": rubric}])
        assert {"polarity", "rubric-text"} & {f.code for f in found.findings}
    fair = {"category": name, "criteria": [{**bad, "weight": -2}]}
    found = load_tasks([{"prompt": "Capital?", "rubric": [*groups[:1], fair]}])
    assert not {"polarity", "rubric-text"} & {f.code for f in found.findings}
