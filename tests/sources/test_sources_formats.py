"""Every format: what a reader takes, keeps and reports."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from roles import demonstrations, pairs

from kit.data import load_tasks, save_tasks
from kit.errors import DataError
from kit.records import Criterion, Response, Task, Verdict

REAL = Path(__file__).resolve().parents[2] / "../shared/data"
real = pytest.mark.skipif(
    not REAL.is_dir(), reason="the real files are not beside the repository (../shared/data)"
)


def codes(taskset):
    return [f.code for f in taskset.findings]


def test_rlvr_takes_criterion_fields_only_and_keeps_labels():
    row = {
        "task_id": "t1",
        "prompt": "Write.",
        "rubric - 1. criterion": "Has a title.",
        "rubric - 1. criterion_origin": "Gemini missed it",
        "rubric - 1. ratingA": "🟢 Green",
        "rubric - 1. ratingB": "🔴",
        "rubric - 2. criterion": "Is short.",
        "rubric - 2. weight": -2,
        "rubric - 2. ratingA": "🟡",
        "rubric - 2. ratingB": "N/A",
        "rubric - 10. criterion": "Ends.",
        "rubric - 10. instruction_type": "format",
        "responseA": "a",
        "responseB": "b",
        "responseA_failure": "none",
        "failure_explanation": "x",
        "gemini_completion_1": "g",
    }
    t = load_tasks([row])
    assert t.format == "rlvr" and [c.id for c in t.tasks[0].criteria] == ["c1", "c2", "c10"]
    assert [c.text for c in t.tasks[0].criteria] == ["Has a title.", "Is short.", "Ends."]
    c1, c2, c10 = t.tasks[0].criteria
    assert c1.meta == {"criterion_origin": "Gemini missed it"} and c10.meta == {
        "instruction_type": "format"
    }
    assert c2.weight == -2 and c2.polarity == "negative"
    told = {(v.response_id, v.criterion_id): (v.status, v.value) for v in t.verdicts}
    assert told == {
        ("A", "c1"): ("met", 1.0),
        ("B", "c1"): ("unmet", 0.0),
        ("A", "c2"): ("level", 0.5),
        ("B", "c2"): ("unknown", None),
    }
    assert {r.id: r.source for r in t.responses} == {
        "A": "responseA",
        "B": "responseB",
        "gemini_completion_1": "gemini",
    }
    assert next(r for r in t.responses if r.id == "A").meta == {"responseA_failure": "none"}
    assert t.tasks[0].meta["failure_explanation"] == "x"


def test_rlvr_raw_control_characters_and_tab_indentation(tmp_path):
    path = tmp_path / "r.json"
    path.write_bytes(
        b'[\n\t{\n\t\t"task_id": "a",\n\t\t"prompt": "x\ty\x01z\r\n",\n\t\t"rubric - 1. criterion": "uses\ta tab"\n\t}\n]\n'
    )
    with pytest.raises(json.JSONDecodeError):
        json.loads(path.read_text())
    t = load_tasks(path)
    assert (
        t.tasks[0].prompt == "x\ty\x01z\r\n"
        and t.tasks[0].criteria[0].text == "uses\ta tab"
        and not t.findings
    )


def test_rlvr_rubric_without_criterion_and_bad_weight_are_reported():
    t = load_tasks(
        [
            {
                "task_id": "a",
                "prompt": "p",
                "rubric - 1. ratingA": "yes",
                "rubric - 2. criterion": "c",
                "rubric - 2. weight": "heavy",
                "rubric - 3. criterion": "d",
                "rubric - 3. check": "words",
            }
        ]
    )
    assert {"missing-field", "bad-weight", "bad-check"} <= set(codes(t))
    assert (
        t.tasks[0].meta["rubric - 1"] == {"ratingA": "yes"} and t.tasks[0].criteria[0].weight == 0
    )
    assert t.tasks[0].criteria[1].meta == {"check": "words"}


def test_numeric_labels_of_several_raters():
    t = load_tasks(
        [
            {
                "task_id": "a",
                "prompt": "p",
                "responseA": "x",
                "rubric - 1. criterion": "c",
                "rubric - 1. ratingA": [5, 1, None, "what"],
            }
        ]
    )
    assert [(v.judge, v.status, v.value) for v in t.verdicts] == [
        ("human:r1", "level", 1.0),
        ("human:r2", "level", 0.0),
        ("human:r3", "unknown", None),
        ("human:r4", "unknown", None),
    ]
    assert "unreadable-label" in codes(t) and [v.failure for v in t.verdicts[2:]] == [
        "abstain",
        "parse",
    ]


def test_list_sibling():
    t = load_tasks([{"task_id": "a", "prompt": "p", "rubrics": ["one", "two"]}])
    assert [c.text for c in t.tasks[0].criteria] == ["one", "two"]


def test_open_instruct_and_its_legacy_forms():
    truth = {
        "query": "q",
        "rubrics": [
            {"description": "d1", "title": "t1", "weight": 2},
            {"description": "d2", "title": "t2", "weight": -1},
        ],
        "rubrics_types": ["general", "specific"],
    }
    t = load_tasks(
        [
            {
                "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}],
                "dataset": "rubric",
                "ground_truth": json.dumps(truth),
            },
            {
                "messages": [{"role": "user", "content": "u"}],
                "dataset": "rubric",
                "ground_truth": json.dumps(
                    {"Question": "q", "Answer Critical": [{"Ingredient": "i", "Handle": "h"}]}
                ),
            },
            {
                "messages": [{"role": "user", "content": "u"}],
                "dataset": "gsm8k",
                "ground_truth": "42",
            },
        ]
    )
    a, b, c = t.tasks
    assert t.format == "open-instruct" and (a.system, a.prompt) == ("s", "u")
    assert [(x.text, x.weight, x.title, x.tags) for x in a.criteria] == [
        ("d1", 2.0, "t1", ("general",)),
        ("d2", -1.0, "t2", ("specific",)),
    ]
    assert (
        b.criteria[0].text == "i"
        and b.criteria[0].title == "h"
        and b.criteria[0].tags == ("Answer Critical",)
    )
    assert c.truth == {"ground_truth": "42"} and c.meta["verifier"] == "gsm8k"
    top = load_tasks([{"Question": "q", "Answer Critical": [{"Ingredient": "i", "Handle": "h"}]}])
    assert top.tasks[0].prompt == "q" and top.tasks[0].criteria[0].text == "i"
    legacy = load_tasks([{"query": "q", "rubric": [{"type": "hard", "rubric_item": "r"}]}])
    assert legacy.tasks[0].criteria[0].text == "r" and legacy.tasks[0].criteria[0].tags == ("hard",)


def test_positive_negative_rows_with_snippets():
    t = load_tasks(
        [
            {
                "task_id": "a",
                "prompt": "p",
                "sources": {"S1": "x"},
                "positive_rubrics": [{"title": "T", "description": "D", "weight": 3}],
                "negative_rubrics": [{"description": "bad"}, "worse"],
            },
            {
                "task_id": "b",
                "prompt": "p",
                "tool_output": "<snippet id=S7>seven</snippet>",
                "positive_rubrics": ["y"],
            },
        ]
    )
    assert [(c.id, c.weight) for c in t.tasks[0].criteria] == [
        ("p1", 3.0),
        ("n1", -1.0),
        ("n2", -1.0),
    ]
    assert (
        t.tasks[0].sources == {"S1": "x"}
        and t.tasks[1].sources == {"S7": "seven"}
        and "S7" in t.tasks[1].meta["tool_output"]
    )


def test_verifier_rows():
    t = load_tasks(
        [
            {
                "prompt": "p",
                "ground_truth": '{"facts": [1]}',
                "question_type": "factual",
                "applicable_verifiers": '["V1", "V4"]',
                "tissue": "eye",
                "difficulty": "hard",
                "source": "s",
            },
            {"prompt": "q", "question_type": "x", "applicable_verifiers": "[]"},
        ]
    )
    a, _b = t.tasks
    assert (a.truth, a.kind, a.group, a.meta["verifiers"]) == (
        {"facts": [1]},
        "factual",
        "eye",
        ["factual", "uncertainty"],
    )
    assert a.meta["difficulty"] == "hard" and {"no-verifier", "missing-field"} <= set(codes(t))


def test_sft_dpo_qa():
    s = load_tasks(
        [{"text": "### Instruction:\nAsk\n\n### Response:\nTell\nmore"}, {"text": "loose"}]
    )
    assert [(t.prompt, r.text) for t, r in demonstrations(s)] == [
        ("Ask", "Tell\nmore"),
        ("", "loose"),
    ] and "unreadable-layout" in codes(s)
    d = load_tasks(
        [
            {"prompt": "### Instruction:\nAsk\n\n### Response:\n", "chosen": "c", "rejected": "r"},
            {"prompt": "x", "chosen": "s", "rejected": "s"},
            {
                "chosen": [
                    {"role": "user", "content": "u"},
                    {"role": "assistant", "content": "yes"},
                ],
                "rejected": None,
            },
        ]
    )
    assert [(t.prompt, a.text, b.text) for t, a, b in pairs(d)] == [
        ("Ask", "c", "r"),
        ("x", "s", "s"),
    ]
    assert d.tasks[2].prompt == "u" and {"same-pair", "missing-field"} <= set(codes(d))
    q = load_tasks([{"question": "q", "answer": "a", "type": "t"}])
    assert (q.tasks[0].truth, q.tasks[0].kind) == ({"answer": "a"}, "t")
    assert sorted(f.field for f in q.findings if f.code == "field-mismatch") == [
        "category",
        "expected_answer",
    ]


def test_healthbench_and_infobench_and_checklists():
    h = load_tasks(
        [
            {
                "prompt": [
                    {"role": "user", "content": "u1"},
                    {"role": "assistant", "content": "x"},
                    {"role": "user", "content": "u2"},
                ],
                "prompt_id": "h",
                "rubrics": [
                    {"criterion": "c", "points": -10, "tags": ["axis:safety"]},
                    {"criterion": "d", "points": 12, "tags": []},
                ],
                "example_tags": ["theme"],
                "ideal_completions_data": {
                    "ideal_completion": "i",
                    "ideal_completions_ref_completions": ["r"],
                },
            }
        ]
    )
    assert (
        h.format == "healthbench"
        and h.tasks[0].prompt == "u2"
        and [t["role"] for t in h.tasks[0].history] == ["user", "assistant"]
    )
    assert [(c.weight, c.tags) for c in h.tasks[0].criteria] == [
        (-10.0, ("axis:safety",)),
        (12.0, ()),
    ] and "points-range" in codes(h)
    assert {r.id for r in h.responses} == {"ideal", "reference-1"}
    i = load_tasks(
        [
            {
                "id": "x",
                "input": "in",
                "instruction": "do",
                "decomposed_questions": ["a?", "b?"],
                "output": "o",
                "eval": [True, None],
                "question_label": [["Format"], ["Style", "Content"]],
            },
            {
                "id": "y",
                "instruction": "do",
                "decomposed_questions": ["a?"],
                "output": "o",
                "eval": [True, True],
            },
        ]
    )
    assert [(v.status, v.judge) for v in i.verdicts] == [
        ("met", "recorded"),
        ("unknown", "recorded"),
    ]
    assert (
        i.tasks[0].prompt == "do\n\nin"
        and i.tasks[0].criteria[1].tags == ("Style", "Content")
        and "field-mismatch" in codes(i)
    )
    w = load_tasks(
        [
            {
                "session_id": "w",
                "conversation_input": [{"role": "user", "content": "u"}],
                "checklist": ["x?"],
                "references": {"gpt": "g"},
            }
        ]
    )
    assert w.tasks[0].prompt == "u" and w.responses[0].source == "gpt"
    b = load_tasks(
        [
            {
                "index": 3,
                "query": "q",
                "checklist": [
                    {"name": "N", "criteria_description": "D", "9-10": "top", "1-2": "poor"}
                ],
            }
        ]
    )
    assert (
        b.tasks[0].id == "3"
        and b.tasks[0].criteria[0].levels == ("1-2: poor", "9-10: top")
        and b.tasks[0].criteria[0].title == "N"
    )


def test_tree_weights_multiply_down_and_roots_are_recomputed():
    row = {
        "id": "root",
        "requirements": "all",
        "weight": 1,
        "sub_tasks": [
            {
                "id": "a",
                "requirements": "A",
                "weight": 3,
                "sub_tasks": [
                    {"id": "a1", "requirements": "A1", "weight": 1, "sub_tasks": []},
                    {"id": "a2", "requirements": "A2", "weight": 2, "sub_tasks": []},
                ],
            },
            {"id": "b", "requirements": "B", "weight": 1, "sub_tasks": []},
        ],
    }
    t = load_tasks([row]).tasks[0]
    assert {c.id: round(c.weight, 9) for c in t.criteria} == {
        "a1": 0.25,
        "a2": 0.5,
        "b": 0.25,
    } and t.prompt == "all"


def test_flat_table_groups_rows_and_labels(tmp_path):
    path = tmp_path / "f.csv"
    path.write_text(
        "task_id,prompt,criterion,weight,response,label,rater\nt,p,one,1,r,yes,ann\nt,p,one,1,r,no,bob\nt,p,two,-2,r,4,ann\nu,q,x,1,,,\n"
    )
    t = load_tasks(path)
    assert (
        t.format == "flat"
        and t.rows == 4
        and [len(x.criteria) for x in t.tasks] == [2, 1]
        and len(t.responses) == 1
    )
    assert [(v.judge, v.criterion_id, v.status, v.value) for v in t.verdicts] == [
        ("human:ann", "c1", "met", 1.0),
        ("human:bob", "c1", "unmet", 0.0),
        ("human:ann", "c2", "level", 0.75),
    ]


def test_parquet_and_a_dataset(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"prompt": ["p"], "rubrics": [["a", "b"]]}), tmp_path / "x.parquet")
    assert [c.text for c in load_tasks(tmp_path / "x.parquet").tasks[0].criteria] == ["a", "b"]
    datasets = pytest.importorskip("datasets")
    d = datasets.Dataset.from_list([{"prompt": "p", "rubrics": ["a"]}])
    assert load_tasks(d).criteria == 1
    with pytest.raises(DataError, match="this is a folder"):
        load_tasks(tmp_path)


@pytest.mark.parametrize("split", ["test", "validation[:10%]", "train", None])
def test_a_data_set_that_is_held_out_as_a_whole_marks_its_rows(split):
    """`load_dataset(..., split="test")` was trained on: only a column of that name was read."""
    datasets = pytest.importorskip("datasets")
    rows = [{"prompt": "p", "rubrics": ["a"]}, {"prompt": "q", "rubrics": ["b"]}]
    d = datasets.Dataset.from_list(rows, split=split)
    held = split in ("test", "validation[:10%]")
    stream = datasets.IterableDataset.from_generator(lambda: iter(rows), split=split or "train")
    for source in (d, stream):
        found = load_tasks(source)
        assert [t.held_out for t in found.tasks] == [held] * 2
        assert not [f for f in found.findings if f.severity == "error"]
    own = d.add_column("split", ["train", "test"])
    assert [t.held_out for t in load_tasks(own).tasks] == [False, True]


def test_several_pairs_of_a_prompt_are_no_error():
    """Preference files name the prompt of each pair: `sound()` refused all with several a prompt."""
    rows = [{"prompt_id": "p", "prompt": "q", "chosen": a, "rejected": "no"} for a in "ab"]
    found = load_tasks(rows).sound()
    assert [t.id for t in found.tasks] == ["p", "p#2"] and len(found.responses) == 4
    with pytest.raises(DataError, match="occurs again"):
        load_tasks([{**r, "id": "x"} for r in rows]).sound()


def test_duplicate_ids_are_made_unique_and_reported():
    t = load_tasks(
        [
            {"task_id": "a", "prompt": "p", "rubrics": ["x"]},
            {"task_id": "a", "prompt": "q", "rubrics": ["y"]},
        ]
    )
    assert [x.id for x in t.tasks] == ["a", "a#2"] and "duplicate-id" in codes(t)


def test_unknown_format_names_the_nearest_field_and_formats():
    with pytest.raises(DataError, match="promt") as e:
        load_tasks([{"promt": "p", "critera": ["x"]}])
    assert "'prompt'" in str(e.value) and "rlvr" in str(e.value)
    with pytest.raises(DataError, match="did you mean 'rlvr'"):
        load_tasks([{}], format="rlvrr")


def test_strict_raises_and_lenient_counts(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text(
        '{"prompt": "p", "rubrics": ["a"]}\n{oops}\n[1]\n{"prompt": "q", "rubrics": ["b"]}\n'
    )
    t = load_tasks(path)
    assert (t.rows, t.skipped, len(t.tasks)) == (4, 2, 2)
    assert [f.where for f in t.findings if f.code == "unreadable-row"] == [
        "x.jsonl, line 2",
        "x.jsonl, line 3",
    ]
    with pytest.raises(DataError, match="line 2"):
        load_tasks(path).sound()


def test_own_jsonl_round_trip_and_writers(tmp_path):
    task = Task(
        id="t",
        prompt="p\u2028",
        criteria=(
            Criterion(id="c1", text="x", weight=-2, check={"name": "words", "min": 1}, tags=("a",)),
            Criterion(
                id="c2",
                text="y",
                scale="ordinal",
                levels=("bad", "good"),
                required=True,
                meta={"k": [1, {"z": None}]},
            ),
        ),
        truth={"a": 1.5},
        sources={"S": "s"},
        system="sys",
        group="g",
        split="train",
        kind="k",
        tags=("t",),
        meta={"m": True},
    )
    responses = [Response(task_id="t", id="r", text="\u2028", confidence=0.5)]
    verdicts = [
        Verdict(
            task_id="t",
            response_id="r",
            criterion_id="c2",
            status="level",
            value=0.5,
            p=0.25,
            judge="human:x",
        )
    ]
    assert save_tasks(tmp_path / "o.jsonl", [task], responses=responses, verdicts=verdicts) == 3
    back = load_tasks(tmp_path / "o.jsonl")
    assert (back.tasks, back.responses, back.verdicts, back.findings) == (
        [task],
        responses,
        verdicts,
        [],
    )


def test_answers_join_their_tasks():
    tasks = load_tasks([{"task_id": "a", "prompt": "p", "rubrics": ["x"]}])
    answers = load_tasks(
        [
            {
                "task_id": "a",
                "response_id": "r",
                "response": "t",
                "labels": {"c1": "met"},
                "stated_confidence": 0.5,
            },
            {"task_id": "zzz", "response_id": "q", "response": "t", "labels": {}},
        ]
    )
    both = tasks.joined(answers)
    assert both.answers("a")[0].confidence == 0.5 and both.labels("a")[0].status == "met"
    assert [f.task_id for f in both.findings if f.code == "unknown-task"] == ["zzz"]


@real
def test_real_infobench():
    t = load_tasks(REAL / "infobench/gpt4_outputs_gpt4_judge.jsonl")
    n = sorted(len(x.criteria) for x in t.tasks)
    assert (len(t.tasks), sum(n), n[0], n[len(n) // 2], n[-1]) == (
        500,
        2250,
        1,
        4,
        15,
    )
    assert [f.code for f in t.findings] == ["numbers-in-text"]
    assert sum(v.status == "met" for v in t.verdicts) / len(t.verdicts) == pytest.approx(
        0.876, abs=0.0005
    )


@real
def test_real_biorlhf():
    sft = demonstrations(load_tasks(REAL / "biorlhf/kmp_sft_final.json"))
    assert (
        len(sft) == 363
        and len({t.meta["layout"] for t, _ in sft}) == 267
        and all(t.prompt and r.text for t, r in sft)
    )
    assert len(pairs(load_tasks(REAL / "biorlhf/kmp_dpo_preferences.json"))) == 61
    test = load_tasks(REAL / "biorlhf/kmp_test_set.json")
    assert len(test.tasks) == 8 and all(t.truth["answer"] and t.kind for t in test.tasks)
    assert sum(f.code == "field-mismatch" for f in test.findings) == 2
