"""The exploit search: finds the holes that people found, and finds none above the bound where they were mended."""

import json
import random
import re
from dataclasses import replace
from itertools import combinations

import pytest

from kit import data, load
from kit.__main__ import main
from kit.claims import consistency, factual, known_names
from kit.claims import text as text_of
from kit.errors import DataError
from kit.records import Criterion, Task
from kit.rewards import Composer, citations, search, standing
from kit.rewards.edits import options
from kit.rewards.exploit import BOUND
from kit.rewards.forms import forms
from kit.rewards.trivial import NAMES
from kit.system import paths

needs_data = pytest.mark.skipif(
    not paths.data("facts.jsonl").is_file(), reason="the shipped data sets are not here"
)


def tasks(name, kind=None, most=None):
    found = [t for t in data.load_tasks(paths.data(name)) if kind in (None, t.kind)]
    return found[:most]


def organs():
    names = ("liver", "heart", "eye", "lung", "spleen", "thymus", "kidney", "brain")
    truth = {n: {"facts": [{"id": "f", "text": n}], "verifiers": ["factual"]} for n in names}
    asked = enumerate(names)
    return known_names(
        Task(id=n, prompt=f"Which tissue carries marker {i}?", truth=truth[n]) for i, n in asked
    )


def test_the_same_seed_finds_the_same():
    a, b = (search("verifiers", organs(), evaluations=60, seed=3) for _ in range(2))
    assert (a.policy, a.heldout, a.ways, a.evaluations) == (b.policy, b.heldout, b.ways, 60)
    assert not a.gameable and a.heldout.value <= 0.2 and a.quoted is None


def test_the_listing_is_found_where_nothing_is_said_against_it(monkeypatch):
    """Without precision (the code of the incident) a listing of all names earns everything."""
    for module in (factual, consistency):
        monkeypatch.setattr(module, "precision", lambda task, text: (1.0, []))
    monkeypatch.setattr(factual, "others", lambda *of: [])  # nor of the other tasks' answers
    found = search("verifiers", organs(), evaluations=60)
    assert found.gameable and found.heldout.value == pytest.approx(1.0)
    assert "liver" in found.example and "heart" in found.example


@needs_data
def test_the_listing_is_found_on_the_shipped_facts(monkeypatch):
    for module in (factual, consistency):
        monkeypatch.setattr(module, "precision", lambda task, text: (1.0, []))
    found = search("default", tasks("facts.jsonl", "factual"), evaluations=45)
    assert found.heldout.value >= 0.6
    assert any(name in ("glossary", "candidates") for name, _ in found.policy.parts)


def test_naming_every_answer_of_questions_of_one_shape_is_found():
    """A search of 12 seconds said "not shown to hold" where "5 days (in cats 7 days)" paid."""
    facts = [{"id": "f", "text": f"{n} days", "number": n} for n in (5, 7, 30)] * 3
    asked = [f"After how many days was mouse K{i} sampled?" for i in range(9)]
    truths = ({"facts": [f], "verifiers": ["factual"]} for f in facts)
    rows = [Task(id=p, prompt=p, truth=t) for p, t in zip(asked, truths, strict=True)]
    alone = {"name": "f", "components": [{"kind": "verifier", "verifier": "factual"}]}
    found = search(alone, rows, evaluations=1)
    assert found.gameable and found.policy.parts[0][0] == "told", str(found)


def test_one_way_for_each_tissue_of_the_prompt_is_among_the_first_tried():
    """The search said "holds" where "the liver increases, the eye decreases" at 50 % earned .41."""
    names = ["liver", "eye", "skin"]
    ways = [("UP", "DOWN", "UP"), ("UP", "DOWN", "DOWN"), ("DOWN", "DOWN", "UP")] * 4
    rows = [
        {
            "id": f"t{i}",
            "prompt": f"How does set {i} change in liver, eye and skin, and is it consistent?",
            "ground_truth": {"tissue_directions": dict(zip(names, w, strict=True))},
            "applicable_verifiers": ["V1", "V4"],
        }
        for i, w in enumerate(ways)
    ]
    found = search("verifiers", load(rows).tasks, evaluations=10)
    assert found.gameable and found.policy.parts[0][0] == "things", str(found)
    assert "liver increases. The eye decreases. The skin increases. Conf" in found.example


def test_naming_every_number_joined_by_commas_alone_is_found(monkeypatch):
    """The search said "holds" where "2015,2017,2019,2021" earned .999: it wrote ", " only."""
    monkeypatch.setattr(text_of, "_JOINED", re.compile(r"\Z.", re.S))  # the code of the incident
    facts = [{"id": "f", "text": f"{n}", "number": n} for n in (2031, 2033, 2037, 2039)] * 3
    asked = [f"In which year was sample K{i} taken?" for i in range(12)]
    truths = ({"facts": [f], "verifiers": ["factual"]} for f in facts)
    rows = [Task(id=p, prompt=p, truth=t) for p, t in zip(asked, truths, strict=True)]
    alone = {"name": "f", "components": [{"kind": "verifier", "verifier": "factual"}]}
    found = search(alone, known_names(rows), evaluations=1)
    assert found.gameable and "2033,2037" in found.example, str(found)


def guarded():
    bad = [Criterion(id=f"n{i}", text="Bad.", weight=-1.0) for i in range(3)]
    good = Criterion(id="p", text="Good.")
    text = "The {} bridge was opened in 19{}4 by the mayor of the town and is 90 metres long."
    sources = [
        {"S1": text.format(n, i), "S2": "Tickets cost 4 euros."} for i, n in enumerate("ABCD")
    ]
    return [
        Task(id=f"t{i}", prompt="When was the bridge opened?", sources=s, criteria=(good, *bad))
        for i, s in enumerate(sources)
    ]


def test_the_minimal_block_is_found_in_the_published_form():
    found = search("refiner_published", guarded(), evaluations=60)
    ways = {name: earned for name, _, earned in found.ways}
    assert found.gameable and ways["say"] >= 0.4  # `<answer>It is so.</answer>` and the like
    rows = {r["policy"]: r for r in standing(Composer.from_config("refiner_published"), guarded())}
    assert rows["constant"]["above"]
    held = search("refiner_additive", guarded(), evaluations=60)
    assert not held.gameable, str(held)


@needs_data
def test_the_copied_snippet_stands_in_the_table():
    """Citations alone paid .6 to .8 for the first words of every snippet, and no row said so."""
    cited = Composer.from_config({"name": "cited", "components": [{"kind": "citations"}]})
    asked = tasks("citations.jsonl", most=8)
    rows = {r["policy"]: r for r in standing(cited, asked)}
    assert rows["cited_prefix"]["above"] and rows["cited_copy"]["above"]
    rows = {r["policy"]: r for r in standing(Composer.from_config("refiner"), asked)}
    assert not rows["cited_prefix"]["above"] and not rows["cited_copy"]["above"]


def test_the_diluted_citation_is_found_where_dilution_is_free(monkeypatch):
    composer = Composer.from_config({"name": "cited", "components": [{"kind": "citations"}]})
    now = {n: x for n, _, x in search(composer, guarded(), evaluations=300).ways}
    monkeypatch.setattr(citations, "CAP", 1.0)
    monkeypatch.setattr(citations, "MIN_WORDS", 1)
    then = {n: x for n, _, x in search(composer, guarded(), evaluations=300).ways}
    assert then["a false claim"] > 0.55 > now["a false claim"]


@needs_data
@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("default", "facts.jsonl"),
        ("verifiers", "facts.jsonl"),
        ("default", "citations.jsonl"),
        ("refiner", "citations.jsonl"),
        ("refiner_additive", "citations.jsonl"),
        ("rubric", "citations.jsonl"),
    ],
)
def test_shipped_rewards_hold(name, file):
    found = search(name, tasks(file, most=16), evaluations=25)
    assert found.heldout.value <= BOUND, str(found)


@needs_data
@pytest.mark.slow  # two minutes of one core in all: more policies than a minute's search tries
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("default", "facts.jsonl"),
        ("default", "citations.jsonl"),
        ("refiner", "citations.jsonl"),
        ("refiner_additive", "citations.jsonl"),
        ("default", "rubrics.json"),
        ("rubric", "rubrics.json"),
    ],
)
def test_shipped_rewards_hold_against_a_long_search(name, file, seed):
    most = 150 if file == "facts.jsonl" else 400  # four verifiers read every answer there
    found = search(name, tasks(file), evaluations=most, seed=seed)
    if file == "rubrics.json" and found.heldout.value > BOUND:
        # 304 of its 785 criteria need a judge: the other ones alone can be had, and it says so
        assert found.heldout.value <= 0.45 and "GAMEABLE" in str(found), str(found)
        return
    assert found.heldout.value <= BOUND, str(found)


def test_the_search_stands_among_the_trivial_policies():
    ts = organs()
    found = search("verifiers", ts, evaluations=40)
    composer = Composer.from_config("verifiers")
    assert {r["policy"] for r in standing(composer, ts, found)} == {*NAMES, "search"}


def test_too_few_tasks():
    with pytest.raises(DataError, match="applies to 0 of these tasks"):
        search("rubric", organs(), evaluations=5)


def test_the_command(tmp_path, capsys):
    rows = [
        {"id": t.id, "prompt": t.prompt, "rubrics": [{"description": "Good.", "weight": 1}]}
        for t in organs()
    ]
    path = tmp_path / "tasks.jsonl"
    path.write_text("\n".join(json.dumps(r) for r in rows), encoding="utf-8")
    assert main(["rewards", "rubric", str(path), "--evaluations", "20", "--json", "--strict"]) == 0
    out = json.loads(capsys.readouterr().out)
    assert out["search"]["assumed_unmet"] == 8 and not out["search"]["gameable"]
    assert main(["rewards", "rubric", str(path)]) == 0
    assert "minimal_block" in capsys.readouterr().out


@needs_data
def test_a_short_search_finds_no_less_than_the_trivial_policies_that_are_named():
    """On one page: citation_stuffing .750, above the bound, and "search: holds: without skill .000"."""
    found = search("refiner_published", tasks("facts.jsonl"), evaluations=5)
    assert found.gameable and "citation_stuffing" in str(found.policy)


def test_a_reward_holds_only_where_the_interval_says_so():
    """The lesson in reward hacking printed "holds: without skill .292 [.14, .51]"."""
    found = search("verifiers", tasks("facts.jsonl"), evaluations=5)
    for low, value, high, says in (
        (0.14, 0.292, 0.51, "not shown to hold (below 35%): "),
        (0.0, 0.0, 0.1, "holds: "),
        (0.3, 0.4, 0.5, "GAMEABLE: "),
    ):
        heldout = replace(found.heldout, value=value, low=low, high=high)
        assert str(replace(found, heldout=heldout)).startswith(says)


SENTIMENT = {
    "type": "object",
    "required": ["label", "score"],
    "properties": {"label": {"enum": ["good", "bad"]}, "score": {"type": "number"}},
    "additionalProperties": False,
}
FORMED = {
    "json": (
        {"name": "json", "schema": SENTIMENT},
        lambda i: {"name": "regex", "pattern": f'"label": *"{("good", "bad")[i % 2]}"'},
    ),
    "last line": (
        {"name": "regex", "pattern": r"(?m)^#### -?[\d.,]+\s*\Z"},
        lambda i: {"name": "regex", "pattern": rf"#### {i + 500}\b"},
    ),
    "tags": (
        {"name": "regex", "pattern": r"(?s)\A<why>[^<]+?</why>\s*<is>.+</is>\Z"},
        lambda i: {"name": "contains", "any": [f"result {i + 500}"]},
    ),
    "items": ({"name": "numbered", "min": 4}, lambda i: {"name": "exact", "answers": [f"w{i}"]}),
}


@pytest.mark.parametrize("kind", FORMED)
def test_a_constant_text_of_the_demanded_form_is_found(kind):
    """An outsider's: '#### 0' on each row earned half of the maximum, and the search said "holds:
    without skill .000"."""
    form, truth = FORMED[kind]
    made = [
        Task(
            id=str(i),
            prompt=f"What of case {i}?",
            criteria=(
                Criterion(id="form", text="Has the form.", check=form),
                Criterion(id="truth", text=f"Is right about {i}.", check=truth(i)),
            ),
        )
        for i in range(16)
    ]
    found = search("rubric", made, evaluations=60)
    assert found.gameable and found.policy.parts[0][0] == "forms"
    assert found.heldout.value >= 0.49


def test_a_form_that_no_text_is_known_for_is_no_writer():
    odd = {"name": "regex", "pattern": r"(?=never)(?!n)x"}
    rows = [
        Task(id=str(i), prompt="?", criteria=(Criterion(id="c", text="x", check=odd),))
        for i in range(4)
    ]
    assert forms(rows) == () and forms([]) == ()


@pytest.mark.parametrize(
    ("kind", "text"),
    [(["string", "null"], '{"a": "x"}'), (["array"], '{"a": ["x"]}'), ("number", '{"a": 1}')],
)
def test_a_schema_of_several_types_has_a_smallest_text(kind, text):
    """`"type": ["string", "null"]` was a raw TypeError of `kit rewards`."""
    inner = {"type": kind, "items": {"type": "string"}}
    schema = {"type": "object", "required": ["a"], "properties": {"a": inner}}
    form = Criterion(id="c", text="Is JSON.", check={"name": "json", "schema": schema})
    assert forms([Task(id=str(i), prompt="?", criteria=(form,)) for i in range(2)]) == (text,)


ITEM = {"type": "object", "required": ["n"], "properties": {"n": {"type": "string"}}}
DEMANDED = [
    ({"name": "regex", "pattern": r"^## \w+", "min": 3, "multiline": True}, "## x\n## x\n## x"),
    ({"name": "regex", "pattern": r"^(?=.*Pros:)(?=.*Cons:)"}, "Pros:Cons:"),
    (
        {
            "name": "json",
            "schema": {
                "type": "array",
                "minItems": 2,
                "items": {"$ref": "#/$defs/item"},
                "$defs": {"item": ITEM},
            },
        },
        '[{"n": "x"}, {"n": "x"}]',
    ),
    (
        {
            "name": "json",
            "schema": {
                "type": "object",
                "required": ["id", "day", "n"],
                "properties": {
                    "id": {"type": "string", "pattern": r"^[A-Z]{2}-\d{3}$"},
                    "day": {"type": "string", "format": "date", "minLength": 10},
                    "n": {"anyOf": [{"type": "integer", "exclusiveMinimum": 0}, {"type": "null"}]},
                },
            },
        },
        '{"id": "AA-000", "day": "2000-01-01", "n": 1}',
    ),
]


@pytest.mark.parametrize(("check", "text"), DEMANDED)
def test_the_smallest_text_of_a_demanded_form_is_known(check, text):
    """Each was a constant text that earned half on every row, and the search said "holds"."""
    form = Criterion(id="c", text="Has the form.", check=check)
    assert forms([Task(id=str(i), prompt="?", criteria=(form,)) for i in range(2)]) == (text,)


@pytest.mark.parametrize("schema", [True, False, {"$ref": "#"}, {"$ref": "#/none"}, {"anyOf": []}])
def test_a_schema_of_which_no_text_is_known_stops_no_search(schema):
    form = Criterion(id="c", text="Is JSON.", check={"name": "json", "schema": schema})
    forms([Task(id=str(i), prompt="?", criteria=(form,)) for i in range(2)])


def test_a_text_in_the_language_that_is_asked_for_is_a_form():
    form = Criterion(id="c", text="In German.", check={"name": "language", "code": "de"})
    assert forms([Task(id=str(i), prompt="?", criteria=(form,)) for i in range(2)])


def test_a_pick_among_two_options_that_each_row_names_anew_is_found():
    """On 60 rows, each with a pair of its own, the option named first earned .409 at 50 %, whatever
    the truth, and the search said "holds: without skill .038 [-.12, .34]": it knew shared pairs only.
    """
    names = "liver kidney spleen eye skin lung heart bone thymus brain".split()
    pairs = [p if i % 3 else p[::-1] for i, p in enumerate(combinations(names, 2))]
    rows = [
        {
            "task_id": f"two-{i}",
            "prompt": f"Which organ responded more in mission {i}, the {a} or the {b}?",
            "ground_truth": json.dumps(
                {"key_facts": [(a, b)[i % 2]], "expected_confidence": "high"}
            ),
            "question_type": "two",
            "applicable_verifiers": '["V2", "V4"]',
        }
        for i, (a, b) in enumerate(pairs)
    ]
    found = search("verifiers", load(rows).tasks, evaluations=1)
    assert "_option" in str(found.policy) and found.chosen_at > BOUND
    assert not str(found).startswith("holds")


@pytest.mark.parametrize(
    ("prompt", "said"),
    [
        ("In mission 1, was the effect stronger in kidney or in lung?", ["kidney", "lung"]),
        ("Was it the eye, the liver or the spleen?", ["eye", "liver", "spleen"]),
        ("Which organ in flight 3, the heart or the skin, lost more?", ["heart", "skin"]),
        ("Which is right? (A) x (B) y (C) z", ["A", "B", "C"]),
        ("What is it?", []),
    ],
)
def test_the_options_that_a_prompt_joins_by_or(prompt, said):
    assert options(Task(id="t", prompt=prompt)) == said


def test_a_reward_does_not_hold_where_a_constant_earns_more_on_all_prompts():
    """One half chose "No", the other denied it: "holds", .076, where "Yes" earns .509 on all."""
    rng = random.Random(0)
    rows = [
        {
            "task_id": f"yn-{i}",
            "prompt": f"Does gene set {i} respond to flight?",
            "ground_truth": json.dumps(
                {"expected_answer": rng.choice(["Yes", "Yes", "Yes", "No"])}
            ),
            "question_type": "yn",
            "applicable_verifiers": '["V2", "V4"]',
        }
        for i in range(50)
    ]
    tasks = load(rows).tasks
    found = search("verifiers", tasks, evaluations=20)
    assert found.known > BOUND
    denied = replace(found.heldout, value=0.08, low=-0.09, high=0.34)
    found = replace(found, heldout=denied)
    assert not str(found).startswith("holds") and "on all prompts" in str(found)
    assert str(replace(found, known=0.2)).startswith("holds")
