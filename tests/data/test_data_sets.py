"""The shipped teaching sets keep their promises: format, ids, labels, splits, deliberate faults, counts of the data card."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from kit import checks
from kit.records import Criterion, Response, Task

DATA = Path(__file__).resolve().parents[2] / "data"
CARD = DATA / "README.md"
FIELD = re.compile(r"rubric - (\d+)\. criterion")
RATINGS = {"🟢 Yes", "🟡 Partially", "🔴 No"}
SOURCES = {"good", "middling", "bad", "attack"}
CHECKS = set(
    "words sentences paragraphs lines chars contains regex starts ends no_char json bullets numbered lowercase "
    "uppercase language number cites exact repeats mentions_prompt unique_words".split()
)


@cache
def jsonl(name: str) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for line in (DATA / name).read_text(encoding="utf-8").splitlines()
        if line.strip()
    ]


@cache
def rubrics() -> dict[str, dict[str, Any]]:
    rows = json.loads((DATA / "rubrics.json").read_text(encoding="utf-8"), strict=False)
    assert len({r["task_id"] for r in rows}) == len(rows)
    return {r["task_id"]: r for r in rows}


@cache
def task(task_id: str) -> Task:
    row = rubrics()[task_id]
    criteria = [
        Criterion(
            id=f"c{n}",
            text=row[f"rubric - {n}. criterion"],
            weight=row.get(f"rubric - {n}. weight", 1.0),
            check=row.get(f"rubric - {n}. check"),
            required=row.get(f"rubric - {n}. required", False),
        )
        for n in numbers(row)
    ]
    return Task(
        id=task_id,
        prompt=row["prompt"],
        criteria=tuple(criteria),
        group=row["group"],
        split=row["split"],
        kind=row["kind"],
    )


def numbers(row: dict[str, Any]) -> list[int]:
    return [int(m[1]) for k in row if (m := FIELD.fullmatch(k))]


def score(t: Task, labels: dict[str, str]) -> float:
    good = sum(abs(c.weight) for c in t.criteria if (labels[c.id] == "met") == (c.weight >= 0))
    return good / sum(abs(c.weight) for c in t.criteria)


# ------------------------------------------------------------------------------------------------ rubrics and their answers
def test_rubrics_need_a_tolerant_reader() -> None:
    text = (DATA / "rubrics.json").read_text(encoding="utf-8")
    assert re.search(r'"prompt": "[^"\n]*\t', text), "no raw TAB inside a string"
    with pytest.raises(json.JSONDecodeError, match="control character"):
        json.loads(text)


def test_rubric_rows() -> None:
    for row in rubrics().values():
        ns = numbers(row)
        assert ns == list(range(1, len(ns) + 1)) and 4 <= len(ns) <= 12, row["task_id"]
        assert (
            row["prompt"].strip()
            and row["kind"]
            and row["group"]
            and row["split"] in ("train", "heldout")
        )
        weights = [row.get(f"rubric - {n}. weight", 1.0) for n in ns]
        assert any(w > 0 for w in weights) and any(w < 0 for w in weights), (
            f"{row['task_id']}: one polarity only"
        )
        ok = re.compile(r"rubric - \d+\. (criterion|weight|check|required|ratingA|ratingB)")
        assert all(ok.fullmatch(k) for k in row if k.startswith("rubric")), row["task_id"]


def test_rubric_checks_are_well_formed() -> None:
    for task_id in rubrics():
        for c in task(task_id).criteria:
            if c.check is not None:
                assert c.check["name"] in CHECKS
                answer = Response(task_id=task_id, id="", text="x")
                checks.check(task(task_id), answer, c)


def test_human_ratings() -> None:
    rated = [r for r in rubrics().values() if "responseA" in r]
    assert len(rated) >= 20
    seen: Counter[str] = Counter()
    for r in rated:
        for n in numbers(r):
            for side in "AB":
                assert r[f"rubric - {n}. rating{side}"] in RATINGS, (r["task_id"], n, side)
                seen[r[f"rubric - {n}. rating{side}"]] += 1
    assert set(seen) == RATINGS


def test_splits_do_not_leak() -> None:
    by_split: dict[str, set[str]] = defaultdict(set)
    prompts: Counter[str] = Counter()
    kinds: dict[str, set[str]] = defaultdict(set)
    for r in rubrics().values():
        by_split[r["split"]].add(r["group"])
        kinds[r["split"]].add(r["kind"])
        prompts[re.sub(r"\W+", " ", r["prompt"]).lower()] += 1
    assert not by_split["train"] & by_split["heldout"], "a group lies in both splits"
    assert max(prompts.values()) == 1, "a prompt occurs twice"
    assert kinds["train"] == kinds["heldout"] and len(kinds["train"]) == 16
    share = sum(r["split"] == "heldout" for r in rubrics().values()) / len(rubrics())
    assert 0.25 < share < 0.35


def test_answers_have_a_label_for_every_criterion() -> None:
    ids = [a["response_id"] for a in jsonl("answers.jsonl")]
    assert len(set(ids)) == len(ids)
    for a in jsonl("answers.jsonl"):
        assert a["source"] in SOURCES and a["response"].strip()
        assert list(a["labels"]) == [c.id for c in task(a["task_id"]).criteria], a["response_id"]
        assert set(a["labels"].values()) <= {"met", "unmet", "unknown"}
        assert ("attack" in a) == (a["source"] == "attack")
    statuses = Counter(s for a in jsonl("answers.jsonl") for s in a["labels"].values())
    assert statuses["met"] > 500 and statuses["unmet"] > 500 and statuses["unknown"]


def test_labels_agree_with_the_checks() -> None:
    wrong = []
    for a in jsonl("answers.jsonl"):
        t = task(a["task_id"])
        for c in t.criteria:
            if c.check is not None:
                v = checks.check(
                    t, Response(task_id=t.id, id=a["response_id"], text=a["response"]), c
                )
                if v.status != a["labels"][c.id]:
                    wrong.append(
                        f"{a['response_id']} {c.id}: label {a['labels'][c.id]}, code {v.status} ({v.reason})"
                    )
    assert not wrong, "\n".join(wrong)


def test_answers_are_ordered_as_their_names_say() -> None:
    of: dict[str, dict[str, float]] = defaultdict(dict)
    for a in jsonl("answers.jsonl"):
        of[a["task_id"]][a["source"]] = score(task(a["task_id"]), a["labels"])
    games = set()
    for task_id, s in of.items():
        assert set(s) == SOURCES and s["good"] == 1.0 > s["middling"] >= s["bad"], task_id
        if s["attack"] > s["middling"] + 0.05:
            games.add(task_id)
    assert games == set(section("Rubrics that can be gamed"))


# ------------------------------------------------------------------------------------------------ citations
def test_citation_tasks() -> None:
    rows = jsonl("citations.jsonl")
    assert len({r["task_id"] for r in rows}) == len(rows) >= 40
    for r in rows:
        assert set(r) == {"task_id", "prompt", "sources", "positive_rubrics", "negative_rubrics"}
        assert 4 <= len(r["sources"]) <= 8 and all(t.strip() for t in r["sources"].values()), r[
            "task_id"
        ]
        for c in r["positive_rubrics"] + r["negative_rubrics"]:
            assert c["title"].strip() and c["description"].strip() and c.get("weight", 1.0) > 0
        assert r["positive_rubrics"] and r["negative_rubrics"]


def test_citation_answers() -> None:
    tasks = {r["task_id"]: r for r in jsonl("citations.jsonl")}
    answers = jsonl("citation_answers.jsonl")
    assert len({a["response_id"] for a in answers}) == len(answers)
    unknown_ids = 0
    for a in answers:
        t = tasks[a["task_id"]]
        p, n = len(t["positive_rubrics"]), len(t["negative_rubrics"])
        assert list(a["labels"]) == [f"p{i + 1}" for i in range(p)] + [
            f"n{i + 1}" for i in range(n)
        ], a["response_id"]
        assert set(a["labels"].values()) <= {"met", "unmet"} and a["source"] in SOURCES
        for c in a["claims"]:
            assert (
                c["text"] in a["response"]
                and c["support"] in ("full", "partial", "none")
                and isinstance(c["relevant"], bool)
            )
            strange = [i for i in c["ids"] if i not in t["sources"]]
            unknown_ids += len(strange)
            assert c["ids"] and (not strange or a["source"] == "attack"), a["response_id"]
            if len(strange) == len(c["ids"]):
                assert c["support"] == "none" and c["relevant"] is False
        assert all(u["text"] in a["response"] for u in a["uncited"])
        if a["source"] == "good":
            assert all(c["support"] == "full" and c["relevant"] for c in a["claims"])
            assert all(s == ("met" if k[0] == "p" else "unmet") for k, s in a["labels"].items()), a[
                "response_id"
            ]
    assert unknown_ids, "no answer cites an id that does not exist"


def test_injections_are_where_the_card_says() -> None:
    tasks = {r["task_id"]: r for r in jsonl("citations.jsonl")}
    listed = section("Snippets with a prompt injection")
    assert len(listed) >= 5
    for task_id, snippet in listed.items():
        assert snippet[0] in tasks[task_id]["sources"], task_id


# ------------------------------------------------------------------------------------------------ facts
def test_fact_questions() -> None:
    rows = jsonl("facts.jsonl")
    assert len({r["task_id"] for r in rows}) == len(rows) >= 60
    assert len({r["prompt"] for r in rows}) == len(rows)
    splits: dict[str, set[str]] = defaultdict(set)
    directions: Counter[str] = Counter()
    for r in rows:
        truth, kind = r["truth"], r["question_type"]
        assert kind in ("factual", "direction", "comparison", "uncertainty", "trick")
        assert set(r["verifiers"]) <= {"factual", "direction", "consistency", "uncertainty"}
        assert truth["warranted"] in ("high", "medium", "low")
        assert truth["answerable"] is (kind != "uncertainty"), r["task_id"]
        assert bool(truth["claims"]) == (kind == "direction") and (
            truth["facts"] or kind in ("direction", "uncertainty")
        ), r["task_id"]
        assert ("factual" in r["verifiers"]) == bool(truth["facts"]) and (
            "direction" in r["verifiers"]
        ) == bool(truth["claims"])
        assert ("comparison" in truth) == (kind == "comparison")
        assert [f["id"] for f in truth["facts"]] == [
            f"f{i + 1}" for i in range(len(truth["facts"]))
        ]
        assert all(
            isinstance(f.get("number", 0), (int, float)) and f.get("tolerance", 0) >= 0
            for f in truth["facts"]
        )
        directions.update(c["direction"] for c in truth["claims"])
        splits[r["split"]].add(r["group"])
        if kind == "uncertainty":
            assert truth["warranted"] == "low"
    assert not splits["train"] & splits["heldout"]
    assert set(directions) == {"up", "down", "none"}
    assert max(directions.values()) < 0.5 * directions.total(), "a constant direction would win"


def names_fact(fact: dict[str, Any], text: str) -> bool:
    flat = " " + re.sub(r"[^\w%/^+-]+", " ", text.lower()) + " "
    if any(
        " " + re.sub(r"[^\w%/^+-]+", " ", n.lower()).strip() + " " in flat
        for n in (fact["text"], *fact["aliases"])
    ):
        return True
    found = [
        float(m.replace(",", ""))
        for m in re.findall(r"(?<![\w.])\d[\d,]*(?:\.\d+)?", re.split(r"(?i)confiden", text)[0])
    ]
    return "number" in fact and any(
        abs(x - fact["number"]) <= fact["tolerance"] + 1e-9 for x in found
    )


def test_fact_answers() -> None:
    tasks = {r["task_id"]: r for r in jsonl("facts.jsonl")}
    answers = jsonl("fact_answers.jsonl")
    assert (
        len({a["response_id"] for a in answers}) == len(answers)
        and len({a["task_id"] for a in answers}) >= 40
    )
    for a in answers:
        facts = tasks[a["task_id"]]["truth"]["facts"]
        share = sum(names_fact(f, a["response"]) for f in facts) / len(facts) if facts else None
        assert a["source"] in ("good", "middling", "bad") and isinstance(a["correct"], bool)
        assert (
            a["stated_confidence"] in ("high", "medium", "low") or 0 <= a["stated_confidence"] <= 1
        )
        against = tasks[a["task_id"]]["truth"].get("contradictions", [])
        assert a["source"] == "bad" or not any(
            c.lower() in a["response"].lower() for c in against
        ), a["response_id"]
        if a["source"] == "good":
            assert a["correct"] and share in (1.0, None), a["response_id"]
        if a["source"] == "bad":
            assert not a["correct"] and (share is None or share <= 0.5), a["response_id"]
    styles = {
        re.sub(r"\d+(\.\d+)?", "9", re.split(r"(?<=[.?!])\s", a["response"])[-1]) for a in answers
    }
    assert len(styles) >= 20, "confidence is always worded the same"


# ------------------------------------------------------------------------------------------------ the data card
def section(title: str) -> dict[str, list[str]]:
    """Rows `| task id | ids | ...` of the card's table under a heading."""
    body = re.split(rf"(?m)^#+ {re.escape(title)}\s*$", CARD.read_text(encoding="utf-8"))[1]
    body = re.split(r"(?m)^#+ ", body)[0]
    rows = [
        [x.strip() for x in line.strip("| ").split("|")]
        for line in body.splitlines()
        if line.startswith("| ")
    ]
    return {r[0]: [x.strip() for x in r[1].split(",")] for r in rows[1:] if not set(r[0]) <= {"-"}}


def counts() -> dict[str, int]:
    tasks = [task(i) for i in rubrics()]
    criteria = [c for t in tasks for c in t.criteria]
    cited, facts = jsonl("citation_answers.jsonl"), jsonl("facts.jsonl")
    return {
        "rubric prompts": len(tasks),
        "rubric prompts, train": sum(t.split == "train" for t in tasks),
        "rubric prompts, held out": sum(t.split == "heldout" for t in tasks),
        "criteria": len(criteria),
        "criteria checked by code": sum(c.by_code for c in criteria),
        "criteria to be judged": sum(not c.by_code for c in criteria),
        "negative criteria": sum(c.weight < 0 for c in criteria),
        "required criteria": sum(c.required for c in criteria),
        "prompts with ratings of two responses": sum("responseA" in r for r in rubrics().values()),
        "answers": len(jsonl("answers.jsonl")),
        "prompts with answers": len({a["task_id"] for a in jsonl("answers.jsonl")}),
        "labels": sum(len(a["labels"]) for a in jsonl("answers.jsonl")),
        "citation tasks": len(jsonl("citations.jsonl")),
        "snippets": sum(len(r["sources"]) for r in jsonl("citations.jsonl")),
        "citation answers": len(cited),
        "labelled claims": sum(len(a["claims"]) for a in cited),
        "science questions": len(facts),
        "science questions, held out": sum(r["split"] == "heldout" for r in facts),
        "science answers": len(jsonl("fact_answers.jsonl")),
        "judge labels": len(jsonl("judge_labels.jsonl")),
    }


def test_the_card_states_the_true_counts() -> None:
    stated = {k: int(v[0]) for k, v in section("Counts").items()}
    assert stated == counts()


def test_deliberate_faults_are_real_and_listed() -> None:
    listed = section("Faults put in on purpose")
    text = {(i, c.id): c.text for i in rubrics() for c in task(i).criteria}
    assert {i for i in rubrics() if i.startswith("fault-")} == set(listed)
    assert all((i, c) in text for i, cs in listed.items() for c in cs)
    assert "checker" in text["fault-01", "c3"] and "RATERS" in text["fault-09", "c3"]
    assert text["fault-02", "c1"] == text["fault-02", "c3"] != text["fault-02", "c4"]
    assert task("fault-03").criteria[0].check["max"] < task("fault-03").criteria[1].check["min"]
    assert text["fault-07", "c2"] == "" and "Ã" in text["fault-08", "c4"]
    empty = [k for k, t in text.items() if not t.strip()]
    assert empty == [("fault-07", "c2")], "an empty criterion that is not on purpose"
    twice = [i for i in rubrics() if max(Counter(c.text for c in task(i).criteria).values()) > 1]
    assert twice == ["fault-02"], "a duplicate that is not on purpose"
    assert not any(
        "Ã" in json.dumps(r, ensure_ascii=False) for i, r in rubrics().items() if i != "fault-08"
    )


def test_answers_avoid_the_faulty_rows() -> None:
    assert not any(a["task_id"].startswith("fault-") for a in jsonl("answers.jsonl"))


def test_the_judge_labels_are_read_whole_balanced_and_in_three_slices() -> None:
    from kit.tuning.search import labelled_rows

    rows = labelled_rows(DATA / "judge_labels.jsonl")
    assert len(rows) == 288 and 0.4 < sum(r.human for r in rows) / 288 < 0.6
    by_slice = Counter(r.task.kind for r in rows)
    assert by_slice == {"facts": 96, "instructions": 96, "advice": 96}
    assert len({(r.task.id, r.response.text) for r in rows}) == 144
