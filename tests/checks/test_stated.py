"""The stated form and its verifiers: each fault of the published system is a test here."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kit
from kit.checks import (
    CONFIDENCE_MODES,
    AnswerForm,
    answer_outcome,
    applicable_verifiers,
    stated_confidence,
    truth_of,
    verify_answer,
)
from kit.checks import verifiers_of as names_of
from kit.errors import DataError
from kit.records import Task
from kit.rewards import Composer

DATA = Path(__file__).parents[2] / "data"
LIVER = {"subject": "liver", "direction": "up", "aliases": ["hepatic tissue"]}
EYE = {"subject": "eye", "direction": "down"}
CELL = {"text": "mitochondrion", "aliases": ["mitochondria"]}
NUMBER = {"text": "46 chromosomes", "number": 46}
UP = Task(id="up", prompt="Up?", truth={"claims": [{"subject": "ros", "direction": "up"}]})
TWO = Task(id="two", prompt="Liver and eye?", truth={"claims": [LIVER, EYE]})
FACTS = Task(id="facts", prompt="Which organelle, how many?", truth={"facts": [CELL, NUMBER]})
HALF = Task(id="half", prompt="Liver?", truth={"claims": [LIVER, {"subject": "eye"}]})
OPEN = Task(id="open", prompt="When?", truth={"answerable": False})
DEPENDS = Task(id="depends", prompt="Up?", truth={"answerable": False, "depends": True})


def stated(answer, confidence="80%"):
    return f"Because of this.\nAnswer: {answer}\nConfidence: {confidence}"


FORMS = [
    ("So.\nAnswer: up\nConfidence: 80%", "up", 0.8),
    ("**Answer:** up\n\n**Confidence:** 80 %.\n", "up", 0.8),
    ("answer: up\nCONFIDENCE: 12.5%", "up", 0.125),
    ("<think>Answer: down</think>Answer: up\nConfidence: 0%", "up", 0.0),
    ("Answer: up\nAnswer: down\nConfidence: 80%", None, 0.8),
    ("Answer: up\nSo it is.\nConfidence: 80%", None, 0.8),
    ("Answer: up\nConfidence: 80%\nConfidence: 20%", None, None),
    ("Answer: up\nConfidence: 80%\nBye.", None, None),
    ("Answer: up\nConfidence: 250%", "up", None),
    ("Answer: up\nConfidence: 0.8", "up", None),
    ("Answer: up\nConfidence: 7/10", "up", None),
    ("Answer: up\nThe confidence level is **high**.", "up", None),
    ("Answer: up\nConfidence: high", "up", None),
    ("Answer: up\nConfidence: -5%", "up", None),
    ("Answer:\nConfidence: 80%", None, 0.8),
    ("It is up, 80% sure.", None, None),
    ("Confidence: 80%", None, 0.8),
    ("", None, None),
]


@pytest.mark.parametrize(("text", "answer", "confidence"), FORMS)
def test_the_form_is_read_or_says_what_is_wrong(text, answer, confidence):
    s = AnswerForm().read_answer(text)
    assert (s.answer, s.confidence) == (answer, confidence)
    assert bool(s.problem) == (answer is None or confidence is None)


ASKS = [
    (UP, 'one of up, down, unchanged, or "it depends"'),
    (TWO, 'liver: up, down or unchanged, eye: up, down or unchanged; or "it depends"'),
    (FACTS, 'or "unknown"'),
]


@pytest.mark.parametrize(("task", "words"), ASKS)
def test_the_question_names_the_words_that_are_read(task, words):
    assert words in AnswerForm().instructions(task)
    assert AnswerForm().instructions(task).endswith("Confidence: 0% to 100%")
    assert "Confidence" not in AnswerForm(confidence="").instructions(task)
    assert AnswerForm(answer="Result", confidence="").read_answer("So.\nResult: 7").answer == "7"


CONFIDENCES = [
    ("12. Confidence: 75%", 0.75),
    ("12\n**Confidence: 75%**", 0.75),
    ("Confidence: 100%", 1.0),
    ("Confidence: 250%", None),
    ("Confidence: 7/10", None),
    ("Confidence: high", None),
    ("I am 80% sure.", None),
    ("Confidence: 90% ... no. Confidence: 10%", None),
    ("Confidence: 75% or so", None),
    ("overconfidence: 75%", None),
    ("<think>Confidence: 50%?</think>12. Confidence: 75%", 0.75),
]


def test_stated_confidence_reads_one_form_and_counts_the_rest():
    values, rate = stated_confidence([text for text, _ in CONFIDENCES])
    expected = [np.nan if c is None else c for _, c in CONFIDENCES]
    np.testing.assert_array_equal(values, expected)
    assert rate.value == pytest.approx(4 / 11) and rate.n == len(CONFIDENCES)
    assert rate.low < 4 / 11 < rate.high


def test_the_stored_answers_state_a_confidence_as_before():
    runs = json.loads((DATA / "ladder_runs.json").read_text("utf-8"))
    stages = [s for seeds in runs.values() for seed in seeds.values() for s in seed.values()]
    texts = [a[1] for s in stages if isinstance(s, dict) for a in s.get("answers", ())]
    values, _ = stated_confidence(texts)
    assert len(texts) == 7120
    # As many as the first edition read, and the same ones: those that end in the form.
    assert np.isfinite(values).sum() == 2100
    for text, value in zip(texts, values, strict=True):
        assert text.endswith(f". Confidence: {100 * value:.0f}%") == np.isfinite(value), text


SCORES = [
    # direction: bands of BioRLHF times the share of subjects
    (UP, "up", "direction", 0.9),
    (UP, "ros: up", "direction", 0.9),
    (UP, "down", "direction", 0.0),
    (UP, "up or down", "direction", 0.0),
    (UP, "not up", "direction", 0.0),
    (UP, "enrichment", "direction", 0.0),
    (UP, "across: up", "direction", 0.0),
    (TWO, "liver: up, eye: down", "direction", 0.8 + 0.2 * 2 / 3),
    (TWO, "the hepatic tissue: upregulated; eye: down", "direction", 0.8 + 0.2 * 2 / 3),
    (TWO, "liver: up", "direction", 0.45),
    (TWO, "liver: up, eye: up", "direction", 0.25),
    (TWO, "liver: up, liver: down, eye: down", "direction", 0.25),
    (TWO, "up", "direction", 0.0),
    (HALF, "up", "direction", 0.9),
    # factual: recall x precision
    (FACTS, "the mitochondria; 46", "factual", 1.0),
    (FACTS, "mitochondrion; 46.0 chromosomes", "factual", 1.0),
    (FACTS, "mitochondrion", "factual", 0.5),
    (FACTS, "mitochondrion; 48", "factual", 0.25),
    (FACTS, "46 or 48", "factual", 0.0),
    (FACTS, "46 genes", "factual", 0.0),
    (FACTS, "unknown", "factual", 0.0),
    # consistency: coverage and relation, times what is right
    (TWO, "liver: up, eye: down", "consistency", 1.0),
    (TWO, "liver: down, eye: up", "consistency", 0.0),
    (TWO, "liver: up", "consistency", 0.125),
    (DEPENDS, "it depends", "consistency", 1.0),
    (DEPENDS, "up", "consistency", 0.0),
    # uncertainty: t - (c - t)^2 with c = .8
    (UP, "up", "uncertainty", 0.96),
    (UP, "down", "uncertainty", -0.64),
    (UP, "it depends", "uncertainty", -0.64),
    (OPEN, "unknown", "uncertainty", 0.6),
    (OPEN, "next May", "uncertainty", -0.64),
    # the published confidence scores
    (UP, "up", "outcome", 0.6),
    (UP, "down", "outcome", 0.0),
    (TWO, "up", "range", 1.0),
    (OPEN, "up", "range", 0.0),
    (UP, "up", "behaviour", 0.92),
    (UP, "down", "behaviour", 0.0),
]


@pytest.mark.parametrize(("task", "answer", "verifier", "score"), SCORES)
def test_scores(task, answer, verifier, score):
    mode = {"mode": verifier} if verifier in CONFIDENCE_MODES else {}
    part = verify_answer(task, stated(answer), "uncertainty" if mode else verifier, **mode)
    assert part.value == pytest.approx(score)
    assert part.range[0] <= part.value <= part.range[1]


@given(p=st.floats(0.02, 0.98), c=st.integers(0, 100))
def test_the_default_confidence_score_is_proper(p, c):
    """No stated confidence earns more, on average, than the chance of being right (to a percent)."""

    def mean(confidence):
        right, wrong = (
            verify_answer(UP, stated(a, f"{confidence}%"), "uncertainty").value
            for a in ("up", "down")
        )
        return p * right + (1 - p) * wrong

    assert mean(c) <= mean(round(100 * p)) + 1e-4


WITHOUT_FORM = ["", "Up?", "It is up. Confidence: 99%", "Answer: up\nAnswer: up\nConfidence: 9%"]


@pytest.mark.parametrize("text", WITHOUT_FORM)
@pytest.mark.parametrize("task", [UP, TWO, FACTS, OPEN, DEPENDS])
def test_without_the_form_the_least_of_the_range_and_no_outcome(task, text):
    assert answer_outcome(task, AnswerForm().read_answer(text)) is None
    for name in applicable_verifiers(task):
        part = verify_answer(task, text, name)
        assert part.value == part.range[0]


APPLICABLE = [
    ({}, ()),
    ({"claims": [{"subject": "a", "direction": "up"}]}, ("direction", "uncertainty")),
    ({"claims": [{"subject": "a"}, {"subject": "b", "direction": None}]}, ()),
    ({"facts": [{"text": "a"}], "verifiers": ["factual"]}, ("factual",)),
    ({"facts": [], "verifiers": ["factual"]}, ()),
    ({"answerable": False}, ("uncertainty",)),
    ({"depends": True, "answerable": False}, ("consistency", "uncertainty")),
]


@pytest.mark.parametrize(("truth", "names"), APPLICABLE)
def test_the_row_alone_decides_which_verifiers_apply(truth, names):
    task = Task(id="t", prompt="p", truth=truth)
    assert applicable_verifiers(task) == names
    assert not verify_answer(task, "", "direction").applies or "direction" in names


@pytest.mark.parametrize("arguments", [{"verifier": "V1"}, {"verifier": "factual", "mode": "x"}])
def test_unknown_names_are_errors(arguments):
    with pytest.raises(DataError):
        verify_answer(FACTS, "", **arguments)


PARTS = ["mitochondrion", "46", "48", "ribosome", "kinesin; 9"]


@given(st.lists(st.sampled_from(PARTS), min_size=1, max_size=4), st.integers(2, 20))
def test_repetition_never_raises_a_score(parts, n):
    once, often = "; ".join(parts), "; ".join(parts * n)
    for name in applicable_verifiers(FACTS):
        assert (
            verify_answer(FACTS, stated(often), name).value
            <= verify_answer(FACTS, stated(once), name).value
        )
    line = stated(once)
    assert verify_answer(FACTS, "\n".join([line] * n), "factual").value == 0.0


def test_prose_is_never_read():
    """ "upr" in "upregulated", "ros" in "across", "enrichment" as up: no sentence counts."""
    texts = [f"{s}\n{stated('down')}" for s in ("ros is upregulated", "enrichment across", "")]
    for name in applicable_verifiers(UP):
        assert len({verify_answer(UP, text, name).value for text in texts}) == 1


TRUTHS = [
    ({"pathway": "HALLMARK_DNA_REPAIR", "direction": "UP"}, {"claims": [("dna repair", "up")]}),
    ({"tissue_directions": {"the_eye": "DOWN", "x": "?"}}, {"claims": [("the eye", "down")]}),
    ({"pathway": "P", "direction": "mixed"}, {}),
    ({"pathway": "P", "direction": None}, {}),
    ({"pathway": "P", "missions_up": ["a"]}, {}),
    ({"tissue_directions": {"eye": None, "ear": "none"}}, {"claims": [("ear", "unchanged")]}),
    ({"key_facts": ["5,477 genes", "liver"]}, {"facts": [("5,477 genes", 5477), ("liver", None)]}),
    ({"expected_answer": "liver"}, {"facts": [("liver", None)]}),
    ({"correct_behavior": "context_dependent"}, {"answerable": False, "depends": True}),
    ({"expected_confidence": "high"}, {"warranted": "high"}),
]


@pytest.mark.parametrize(("raw", "wanted"), TRUTHS)
def test_truths_of_biorlhf_rows(raw, wanted):
    truth = truth_of(raw)
    assert truth.items() >= raw.items()
    brief = {k: v for k, v in truth.items() if k not in raw}
    if "claims" in brief:
        brief["claims"] = [(c["subject"], c["direction"]) for c in brief["claims"]]
    if "facts" in brief:
        brief["facts"] = [(f["text"], f.get("number")) for f in brief["facts"]]
    assert brief == wanted
    by_content = {"claims": "direction", "facts": "factual"}
    names = [v for key, v in by_content.items() if key in truth]
    truth["verifiers"] = names_of(["V1", "V2"])
    assert list(applicable_verifiers(Task(id="t", prompt="p", truth=truth))) == names
    assert names_of(["V4", "V3", "own"]) == ["uncertainty", "consistency", "own"]


def test_the_shipped_fact_answers_keep_the_form_and_their_labels():
    tasks = {t.id: t for t in kit.load(DATA / "facts.jsonl").tasks}
    rows = [json.loads(x) for x in (DATA / "fact_answers.jsonl").read_text("utf-8").splitlines()]
    values, rate = stated_confidence([r["response"] for r in rows])
    assert len(rows) == 177 and rate.value == pytest.approx(1)
    np.testing.assert_allclose(values, [r["stated_confidence"] for r in rows])
    for r in rows:
        task = tasks[r["task_id"]]
        parts = [verify_answer(task, r["response"], name) for name in applicable_verifiers(task)]
        wrong = [p for p in parts if p.details.get("beside") or p.details.get("contradicting")]
        right = bool(answer_outcome(task, AnswerForm().read_answer(r["response"]))) and not wrong
        assert right == r["correct"], r["response_id"]


# 82 rows made like BioRLHF's: 48 directions, 10 facts, 12 comparisons, 12 that depend on the mission
PATHWAYS = "ADIPOGENESIS DNA_REPAIR RIBOSOME MYOGENESIS HYPOXIA MTORC1 GLYCOLYSIS P53".split()
TISSUES = "liver kidney thymus eye soleus heart".split()
KEY_FACTS = "5477 genes,hippocampus,kaempferol,radiation,low,1555 genes,5510,soleus,2x2x2,12.5%"


def made_rows():
    for i, pathway in enumerate(PATHWAYS):
        for j, _ in enumerate(TISSUES):
            way = "DOWN" if (5 * i + 3 * j) % 5 < 3 else "UP"
            yield {"pathway": f"HALLMARK_{pathway}", "direction": way}, ["V1", "V4"]
    yield from (({"key_facts": [fact]}, ["V2", "V4"]) for fact in KEY_FACTS.split(","))
    for i in range(12):
        tissues = TISSUES[i % 3 : i % 3 + 3]
        ways = {t: "UP" if (i + j) % 2 else "DOWN" for j, t in enumerate(tissues)}
        yield {"tissue_directions": ways}, ["V1", "V3", "V4"]
    yield from [({"correct_behavior": "context_dependent"}, ["V3", "V4"])] * 12


def made_tasks():
    for n, (raw, names) in enumerate(made_rows()):
        truth = truth_of(raw)
        truth["verifiers"] = names_of(names)
        yield Task(id=f"row-{n}", prompt="Is it up or down in this tissue?", truth=truth)


TURN = {"up": "down", "down": "up"}


def subjects(task, way):
    return ", ".join(f"{c['subject']}: {way(c)}" for c in task.truth.get("claims", ()))


def right(task):
    facts = "; ".join(f["text"] for f in task.truth.get("facts", ()))
    return subjects(task, lambda c: c["direction"]) or facts or "it depends"


def wrong(task):
    return subjects(task, lambda c: TURN[c["direction"]]) or "up"


def everything(task):
    both = ", ".join(f"{c['subject']}: {w}" for c in task.truth.get("claims", ()) for w in TURN)
    return both or f"{right(task)}; up; down; liver; kidney"


# what each way of answering earns on average, with the preset `verifiers`
POLICIES = {
    "right": (lambda t: stated(right(t), "10%" if t.truth.get("depends") else "95%"), 0.93, 0.98),
    "wrong at 95 %": (lambda t: stated(wrong(t), "95%"), -0.45, -0.28),
    "empty": (lambda t: "", -0.45, -0.38),
    "parrot": (lambda t: t.prompt, -0.45, -0.38),
    "free text": (lambda t: f"It is {right(t)}. I am 95% sure.", -0.45, -0.38),
    "two answers": (lambda t: f"Answer: {right(t)}\n{stated('up')}", -0.45, -0.38),
    "list of everything": (lambda t: stated(everything(t), "50%"), -0.12, 0.0),
    "right and three guesses": (lambda t: stated(f"{right(t)}; a; b: up; c", "95%"), -0.3, 0.2),
    "it depends": (lambda t: stated("it depends", "50%"), -0.1, 0.1),
    "always down": (lambda t: stated(subjects(t, lambda c: "down") or "down", "50%"), 0.2, 0.45),
}


def test_what_ways_of_answering_earn_on_rows_like_biorlhf():
    tasks = list(made_tasks())
    composer = Composer.from_config("verifiers")
    assert len(tasks) == 82
    means = {}
    for name, (write, low, high) in POLICIES.items():
        answers = [kit.Response(task_id=t.id, id=name, text=write(t)) for t in tasks]
        scores = [composer.grade(t, a, ()).score for t, a in zip(tasks, answers, strict=True)]
        means[name] = sum(scores) / len(scores)
        assert low <= means[name] <= high, (name, means[name])
    least = {name for name, mean in means.items() if mean == min(means.values())}
    assert least == {"empty", "parrot", "free text", "two answers"}
