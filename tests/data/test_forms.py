"""Rows in each documented form become the documented records."""

import json

import pytest

from kit import load
from kit.checks import applicable_verifiers
from kit.errors import DataError


def records(rows, **options):
    """(tasks, answers, labels) of rows as plain values."""
    s = load(rows, **options)
    tasks = [
        (t.prompt, [(c.id, c.text, c.weight) for c in t.criteria], t.truth or t.sources or {})
        for t in s.tasks
    ]
    answers = [(r.id, r.text) for r in s.responses]
    labels = [(v.response_id, v.criterion_id, v.judge, v.value) for v in s.verdicts]
    return s.format, tasks, answers, labels


USER, ASSISTANT = {"role": "user", "content": "u"}, {"role": "assistant", "content": "a"}
OPEN = {"messages": [USER], "dataset": "rubric"}
FORMS = {
    "kit": (
        {"record": "task", "id": "t", "prompt": "p", "criteria": [{"id": "k", "text": "x"}]},
        ("kit", [("p", [("k", "x", 1)], {})], [], []),
    ),
    "rlvr": (
        {
            "task_id": "t",
            "prompt": "p",
            "rubric - 1. criterion": "one",
            "rubric - 2. criterion": "",
            "rubric - 3. criterion": "three",
            "rubric - 3. weight": -2,
            "rubric - 3. ratingA": "🔴 No",
            "responseA": "answer",
            "gemini_completion_1": "other",
        },
        (
            "rlvr",
            [("p", [("c1", "one", 1), ("c3", "three", -2)], {})],
            [("A", "answer"), ("gemini_completion_1", "other")],
            [("A", "c3", "human", 0.0)],
        ),
    ),
    "rlvr sibling": (
        {"task_id": "t", "prompt": "p", "rubrics": ["one", "two"]},
        ("rubric", [("p", [("c1", "one", 1), ("c2", "two", 1)], {})], [], []),
    ),
    "rubric objects": (
        {"prompt": "p", "criteria": [{"id": 7, "text": "x", "weight": 2}], "response": "r"},
        ("rubric", [("p", [("7", "x", 2)], {})], [("response", "r")], []),
    ),
    "healthbench": (
        {
            "prompt_id": "h",
            "prompt": [USER],
            "rubrics": [{"criterion": "x", "points": -3, "tags": ["a"]}],
        },
        ("rubric", [("u", [("c1", "x", -3)], {})], [], []),
    ),
    "refiner": (
        {
            "prompt": "p",
            "positive_rubrics": [{"title": "T", "description": "good", "weight": 3}],
            "negative_rubrics": ["bad"],
            "tool_output": '<snippet id=S7> seven </snippet><snippet id="S8">eight</snippet>',
        },
        (
            "refiner",
            [("p", [("p1", "good", 3), ("n1", "bad", -1)], {"S7": "seven", "S8": "eight"})],
            [],
            [],
        ),
    ),
    "open-instruct": (
        {
            **OPEN,
            "ground_truth": json.dumps(
                {"query": "q", "rubrics": [{"description": "d", "weight": -1}]}
            ),
        },
        ("open-instruct", [("u", [("c1", "d", -1)], {"query": "q"})], [], []),
    ),
    "open-instruct with an answer": (
        {**OPEN, "ground_truth": "42"},
        ("open-instruct", [("u", [], {"answer": "42"})], [], []),
    ),
    "verifier": (
        {
            "prompt": "p",
            "truth": {"facts": [{"text": "f"}]},
            "verifiers": ["factual"],
            "group": "eye",
        },
        ("verifier", [("p", [], {"facts": [{"text": "f"}]})], [], []),
    ),
    "ifeval": (
        {
            "key": 5,
            "prompt": "p",
            "instruction_id_list": ["length_constraints:number_words"],
            "kwargs": [{"relation": "less than", "num_words": 30, "keywords": None}],
        },
        ("ifeval", [("p", [("i1", "Has less than 30 words.", 1)], {})], [], []),
    ),
    "table": (
        {
            "task_id": 1,
            "prompt": "p",
            "criterion_id": "k",
            "criterion": "x",
            "response_id": "r",
            "response": "a",
            "label": "yes",
            "rater": "ann",
        },
        ("table", [("p", [("k", "x", 1)], {})], [("r", "a")], [("r", "k", "human:ann", 1.0)]),
    ),
    "answers": (
        {
            "task_id": "t",
            "response_id": "r",
            "response": "a",
            "labels": {"k": {"ann": True, "bob": 0}},
        },
        ("answers", [], [("r", "a")], [("r", "k", "human:ann", 1.0), ("r", "k", "human:bob", 0.0)]),
    ),
    "labels": (
        {
            "task_id": "t",
            "response_id": "'=r",
            "criterion_id": "k",
            "label": "b",
            "levels": ["a", "b", "c"],
        },
        ("labels", [], [], [("=r", "k", "human", 0.5)]),
    ),
    "dpo": (
        {"prompt": "### Instruction:\np\n\n### Response:\n", "chosen": "c", "rejected": "r"},
        ("dpo", [("p", [], {})], [("chosen", "c"), ("rejected", "r")], []),
    ),
    "dpo chats": (
        {"chosen": [USER, ASSISTANT], "rejected": [USER, {**ASSISTANT, "content": "b"}]},
        ("dpo", [("u", [], {})], [("chosen", "a"), ("rejected", "b")], []),
    ),
    "qa": (
        {"question": "q", "expected_answer": "a", "category": "factual"},
        ("qa", [("q", [], {"answer": "a"})], [], []),
    ),
    "sft chat": (
        {"messages": [USER, ASSISTANT]},
        ("sft", [("u", [], {})], [("demonstration", "a")], []),
    ),
    "sft pair": (
        {"prompt": [USER], "completion": [ASSISTANT]},
        ("sft", [("u", [], {})], [("demonstration", "a")], []),
    ),
    "sft layout": (
        {"text": "### Instruction:\nask\n\n### Response:\ntell\nmore"},
        ("sft", [("ask", [], {})], [("demonstration", "tell\nmore")], []),
    ),
    "prompts": (
        {"prompt": [USER, ASSISTANT, {**USER, "content": "v"}]},
        ("prompts", [("v", [], {})], [], []),
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_a_row_becomes_the_documented_records(name):
    row, expected = FORMS[name]
    assert records([row]) == expected


@pytest.mark.parametrize("name", FORMS)
def test_the_second_row_must_have_the_form_of_the_first(name):
    row, _ = FORMS[name]
    other = {"instruction_only": "x"}
    with pytest.raises(DataError, match=f"row 2(.|\n)*{sorted(row)[0][:4]}|not in the form"):
        load([row, other])


def test_fields_that_change_no_score_stay_in_meta():
    row = {
        "task_id": "t",
        "prompt": "p",
        "rubric - 1. criterion": "x",
        "rubric - 1. criterion_origin": "the model missed it",
        "rubric - 1. instruction_type": "explicit",
        "failure_explanation": "long",
        "meta": {"a": 1},
    }
    s = load([row])
    assert s[0].criteria[0].meta == {
        "criterion_origin": "the model missed it",
        "instruction_type": "explicit",
    }
    assert s[0].meta == {"a": 1, "failure_explanation": "long"}
    assert [(f.code, f.field, f.rows) for f in s.findings] == [
        ("unread-field", "failure_explanation", 1)
    ]


def test_fields_of_a_task_that_all_forms_share():
    row = {"id": 3, "prompt": "p", "rubrics": ["x"], "group": "g", "split": "test", "kind": "k"}
    row |= {"system": "s", "tags": ["a"], "history": [USER, ASSISTANT], "sources": {"S": "text"}}
    t = load([row])[0]
    assert (t.id, t.group, t.split, t.kind, t.system) == ("3", "g", "test", "k", "s")
    assert (t.tags, t.history, t.sources, t.held_out) == (
        ("a",),
        (USER, ASSISTANT),
        {"S": "text"},
        True,
    )


def test_a_chat_keeps_its_system_message_and_its_turns():
    turns = [{"role": "system", "content": "s"}, USER, ASSISTANT, {**USER, "content": "v"}]
    t = load([{"prompt": turns, "rubrics": ["x"]}])[0]
    assert (t.system, t.history, t.prompt) == ("s", (USER, ASSISTANT), "v")


def test_rows_of_a_table_become_one_task():
    shared = {"task_id": "t", "prompt": "p", "group": "g"}
    s = load(
        [
            {
                **shared,
                "criterion_id": "a",
                "criterion": "x",
                "weight": 2.0,
                "check": {"name": "words", "max": 3},
            },
            {**shared, "criterion_id": "b", "criterion": "y", "levels": ["low", "high"]},
            {
                **shared,
                "criterion_id": "b",
                "criterion": "y",
                "levels": ["low", "high"],
                "response": "r",
                "label": "high",
            },
        ]
    )
    assert [(c.id, c.weight, c.by_code, c.levels) for c in s[0].criteria] == [
        ("a", 2.0, True, ()),
        ("b", 1.0, False, ("low", "high")),
    ]
    assert [v.value for v in s.verdicts] == [1.0] and len(s.answers("t")) == 1


def test_biorlhf_rows_have_a_truth_of_the_kit():
    row = {
        "prompt": "p",
        "ground_truth": json.dumps({"pathway": "HALLMARK_DNA_REPAIR", "direction": "UP"}),
        "question_type": "direction",
        "applicable_verifiers": '["V1", "V4"]',
        "tissue": "eye",
        "difficulty": "hard",
    }
    t = load([row])[0]
    assert (t.kind, t.group, t.meta["difficulty"]) == ("direction", "eye", "hard")
    assert (
        applicable_verifiers(t) == ("direction", "uncertainty")
        and t.truth["claims"][0]["direction"] == "up"
    )


IFEVAL = [  # instruction, its arguments, an answer that follows it, one that does not
    ("punctuation:no_comma", {}, "No pause here.", "Well, no."),
    ("length_constraints:number_words", {"relation": "at least", "num_words": 3}, "a b c", "a b"),
    (
        "length_constraints:number_sentences",
        {"relation": "less than", "num_sentences": 2},
        "One.",
        "One. Two.",
    ),
    ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, "a\n***\nb", "a"),
    (
        "length_constraints:nth_paragraph_first_word",
        {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "moon"},
        "sun\n\nMoon is up",
        "Moon\n\nsun",
    ),
    ("keywords:existence", {"keywords": ["ab", "cd"]}, "ab and cd", "ab"),
    ("keywords:forbidden_words", {"forbidden_words": ["ab"]}, "cd", "an ab"),
    (
        "keywords:frequency",
        {"keyword": "a.b", "frequency": 2, "relation": "at least"},
        "A.B a.b",
        "a.b axb",
    ),
    (
        "keywords:letter_frequency",
        {"letter": "q", "let_frequency": 1, "let_relation": "at least"},
        "Quiet",
        "calm",
    ),
    (
        "detectable_format:number_highlighted_sections",
        {"num_highlights": 2},
        "*a* and **b**",
        "*a* b",
    ),
    ("detectable_format:number_bullet_lists", {"num_bullets": 2}, "* a\n* b", "* a"),
    (
        "detectable_format:multiple_sections",
        {"section_spliter": "Part", "num_sections": 2},
        "Part 1 a\nPart 2 b",
        "Part 1",
    ),
    ("detectable_format:title", {}, "<<Title>>\nText", "Title"),
    ("detectable_format:json_format", {}, '{"a": 1}', "a: 1"),
    ("detectable_format:constrained_response", {}, "My answer is maybe.", "Perhaps."),
    ("detectable_content:number_placeholders", {"num_placeholders": 1}, "Dear [name]", "Dear you"),
    ("detectable_content:postscript", {"postscript_marker": "P.S."}, "Text\nP.S. more", "Text"),
    ("startend:end_checker", {"end_phrase": "The end."}, "All. The end.", "All."),
    ("startend:quotation", {}, '"All of it"', "all of it"),
    ("combination:repeat_prompt", {"prompt_to_repeat": "Say hi"}, "Say hi\nHi", "Hi"),
    ("combination:two_responses", {}, "one ****** two", "one ****** one"),
    ("change_case:english_capital", {}, "LOUD TEXT", "Loud text"),
    ("change_case:english_lowercase", {}, "quiet text", "Quiet text"),
    (
        "change_case:capital_word_frequency",
        {"capital_relation": "at least", "capital_frequency": 2},
        "TWO BIG words",
        "ONE word",
    ),
]


@pytest.mark.parametrize(("name", "arguments", "good", "bad"), IFEVAL)
def test_an_instruction_of_ifeval_is_decided_by_code(name, arguments, good, bad):
    from kit import Response
    from kit.checks import check_answer

    task = load([{"prompt": "p", "instruction_id_list": [name], "kwargs": [arguments]}])[0]
    answers = [Response(task_id=task.id, id="r", text=text) for text in (good, bad)]
    assert [check_answer(task, r, task.criteria[0]).status for r in answers] == ["met", "unmet"]


def test_an_instruction_without_a_check_is_left_to_a_judge():
    s = load(
        [{"key": 1, "prompt": "p", "instruction_id_list": ["new:thing"], "kwargs": [{"n": 3}]}]
    )
    assert s[0].criteria[0].text == "Follows the instruction 'new:thing' (n: 3)."
    assert not s.findings and not s[0].criteria[0].by_code


def test_a_chat_in_a_cell_and_a_shared_system_are_read(tmp_path):
    talk = [{"role": r, "content": r} for r in ("system", "user", "assistant")]
    s = load([{"prompt": "user", "chosen": json.dumps(talk), "rejected": talk}])
    assert (s[0].system, [r.text for r in s.responses]) == ("system", ["assistant"] * 2)


def test_rows_with_blank_labels_are_skipped():
    row = {"task_id": "t", "response_id": "r", "criterion_id": "k"}
    labels = [None, "", "met"]
    s = load([{**row, "criterion_id": str(n), "label": x} for n, x in enumerate(labels)])
    assert [v.criterion_id for v in s.verdicts] == ["2"]
