"""What an outsider saw in the rewards: each test tells one incident."""

import itertools
import json
import time
from collections import Counter
from pathlib import Path

import pytest

from kit import data
from kit.checks import check
from kit.checks.text import answered
from kit.claims import bags, confidence, consistency, factual, known_names, uncertainty
from kit.claims.base import answer, unread
from kit.claims.compare import relation
from kit.claims.direction import claims, settle
from kit.data.formats.biorlhf import truth_of
from kit.errors import DataError, KitError
from kit.records import Criterion, Response, Task, Verdict
from kit.rewards import Composer, search
from kit.rewards.aggregate import grade
from kit.system import paths

needs_data = pytest.mark.skipif(
    not paths.data("facts.jsonl").is_file(), reason="the shipped data sets are not here"
)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("TSH: rises.", "up"),
        ("- TSH: decreases", "down"),
        ("- **TSH**: increased", "up"),
        ("- The TSH level: high", "up"),
        ("TSH ↑", "up"),
        ("TSH: ↓", "down"),
        ("The TSH is low.", "down"),
        ("The TSH is not high.", "not_up"),
        ("TSH: normal", "none"),
        ("A note on TSH and more: the price rises.", None),
        ("A high dose of TSH was given.", None),
    ],
)
def test_a_line_with_a_colon_states_its_direction(text, wanted):
    """ "TSH: rises." earned less than silence, on every direction task."""
    assert settle(claims(text, {"TSH": []})).get("TSH") == wanted


@needs_data
@pytest.mark.slow  # two searches
def test_the_search_finds_the_pairs_where_nothing_is_said_against_them(monkeypatch):
    """It said "holds .216" of a reward that two names a sentence earned .909 of."""
    ts = [t for t in data.load_tasks(paths.data("facts.jsonl")) if t.truth["facts"]][:12]
    held = search("verifiers", ts, evaluations=100)
    assert not held.gameable, str(held)
    monkeypatch.setattr(factual, "surplus", lambda task, said: [])
    found = search("verifiers", ts, evaluations=100)
    assert found.gameable and "pairs" in str(found.policy), str(found)


def pay(text, truth, prompt="How many chromosomes does a cell hold?"):
    task = Task(id="t", prompt=prompt, truth=truth)
    return factual.score(task, Response(task_id="t", id="r", text=text)).value


def test_a_bag_of_numbers_pays_nothing_and_an_explanation_all():
    truth = {"facts": [{"text": "46 chromosomes", "number": 46, "tolerance": 0}]}
    bag = " ".join(f"A {i} stood near a {i + 1}." for i in range(1, 100, 2))
    assert pay(bag, truth) < 0.02
    honest = (
        "It holds 46. Of these 22 pairs are alike. A sperm holds 23. There are 30 trillion cells."
    )
    assert pay(honest, truth) == 1.0
    assert pay(honest + " It was seen in 1956.", truth) == 0.5
    assert bags.surplus(Task(id="t", prompt="", truth=truth), ["n = 2 · 3 · 5 + 7 + 9 = 46."]) == []


def test_a_bag_of_the_names_of_other_tasks_pays_nothing():
    names = "liver heart eye lung spleen thymus kidney brain colon".split()
    ts = [Task(id=n, prompt="Which organ?", truth={"facts": [{"text": n}]}) for n in names]
    known = {t.id: t for t in known_names(ts)}
    bag = "A liver met a heart. An eye led a lung. A spleen drew a thymus. A kidney sent a brain."
    for n in names:
        answer = Response(task_id=n, id="r", text=f"{bag} A colon came by.")
        assert factual.score(known[n], answer).value < 0.2
        honest = f"It is the {n}, unlike the organs beside it, which the {n} feeds."
        assert factual.score(known[n], Response(task_id=n, id="r", text=honest)).value == 1.0


def verdict(task, response="r", criterion="a", status="met"):
    return Verdict(task_id=task, response_id=response, criterion_id=criterion, status=status)


def rubric(*weights, how="mean", **config):
    rows = zip("abc", weights, strict=False)
    task = Task(
        id="t", prompt="p", criteria=tuple(Criterion(id=i, text="x", weight=w) for i, w in rows)
    )
    part = {"kind": "rubric", "name": "r", "how": how}
    return task, Composer.from_config({"components": [part], **config})


def test_the_verdicts_on_another_answer_pay_nothing():
    """Those of answer A paid answer B 1.0."""
    task, composer = rubric(1.0)
    answer = Response(task_id="t", id="B", text="x")
    for foreign in (verdict("t", "A"), verdict("other", "B")):
        paid = composer.score(task, answer, [foreign])
        assert (paid.score, paid.meta["foreign"], paid.verdicts) == (None, 1, ())
        graded = grade(task, [foreign], response_id="B")
        assert (graded.score, graded.meta["foreign"]) == (None, 1)
    assert composer.score(task, answer, [verdict("t", "B")]).score == 1.0


@pytest.mark.parametrize(
    ("weights", "config"),
    [
        ((1.0,), {"gates": [{"component": "r", "below": 0.5, "to": -0.5}]}),
        ((0.5, -2.0), {"how": "signed", "gates": [{"component": "r", "below": 0.5, "to": 0.0}]}),
        ((1.0,), {"format": {"mode": "gate", "pattern": "never", "gate_to": -1.0}}),
    ],
)
def test_the_limits_are_those_that_answers_reach(weights, config):
    """A gate and a format gate paid outside of what `limits` said."""
    task, composer = rubric(*weights, **config)
    low, high = composer.limits(task)
    answer = Response(task_id="t", id="r", text="x")
    patterns = itertools.product(("met", "unmet"), repeat=len(weights))
    given = [[verdict("t", "r", i, s) for i, s in zip("abc", p, strict=False)] for p in patterns]
    paid = [composer.score(task, answer, vs).score for vs in given]
    assert low == pytest.approx(min(paid))
    assert high >= max(paid) - 1e-12
    assert "format" in config or high == pytest.approx(max(paid))


@pytest.mark.parametrize(
    "config",
    [
        {"cap": -0.1},
        {"format": {"mode": "bonus", "bonus": -1}},
    ],
)
def test_a_config_that_pays_faults_is_refused(config):
    with pytest.raises(KitError, match="cap is|bonus is"):
        rubric(1.0, **config)


def test_no_traceback_for_huge_weights_and_empty_searches():
    with pytest.raises(DataError, match="no finite sum"):
        grade(rubric(1e308, 1e308)[0], [])
    wrongs = ({"seconds": -1}, {"seconds": float("nan")}, {"evaluations": -5})
    # "5" was a TypeError of Python's; 1.5 and true were taken for counts
    wrongs += ({"seconds": "5"}, {"evaluations": 1.5}, {"evaluations": True}, {"evaluations": 0})
    for wrong in wrongs:
        with pytest.raises(KitError, match="search"):
            search("verifiers", [], **wrong)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("It is the liver.", 1.0),
        ("It is the liver. This is false.", 0.0),
        ("It is the liver. The opposite is correct.", 0.0),
        ("It is the liver. It is large. None of this is true.", 0.0),
        ("Some say the heart. That is wrong. It is the liver.", 1.0),
        ("The heart does it, and the liver helps.", 0.5),
        ("It is not so that the heart does it. It is the liver.", 1.0),
    ],
)
def test_what_is_taken_back_or_known_to_be_wrong(text, value):
    """A retracted answer earned 1.0, one that says what the truth calls wrong .89."""
    truth = {"facts": [{"text": "liver"}], "contradictions": ["the heart does it"]}
    assert pay(text, truth, "Which organ does it?") == value


@pytest.mark.parametrize(
    "text",
    (
        "The liver plays no role.|Nobody believes it is the liver.|It would be a mistake to say "
        "liver.|Liver - no.|Liver (no).|Liver, never.|It is far from being the liver.|Excluding the "
        "liver.|The liver has nothing to do with it.|The liver does nothing of the kind.|Those who "
        "say liver err.|False. The liver shrank.|Wrong! It is the liver.|No way it is the liver.|"
        "The liver was spared.|To say liver would be absurd.|It is the liver. Just kidding.|It is "
        "the liver. I lied.|It is the liver. Not.|It is everything but the liver.|The liver is not "
        "the organ that shrank."
    ).split("|"),
)
def test_a_fact_denied_in_other_words_is_not_asserted(text):
    """Each of them was paid as if it named the liver."""
    assert pay(text, {"facts": [{"text": "liver"}]}, "Which organ shrank?") == 0.0


def test_what_only_sounds_like_a_denial_is_paid():
    truth = {"facts": [{"text": "liver"}]}
    for text in ("It is none other than the liver.", "It is the liver. Is it the eye? No."):
        assert pay(text, truth, "Which organ does it?") == 1.0
    for said in ("False. It was the liver.", "No. It was the liver."):
        assert pay(said, truth, "True or false: the eye did it. Or who did?") == 1.0


def test_what_is_denied_is_no_claim():
    assert settle(claims("I deny that TSH rises.", {"TSH": []})) == {"TSH": "not_up"}


@pytest.mark.parametrize(
    ("prompt", "text"),
    [
        (
            "What is the one cause of Alzheimer's disease?",
            "There is no single known cause of Alzheimer's disease.",
        ),
        ("How many ants are alive?", "It is impossible to say exactly how many ants are alive."),
        ("On which date will the quake come?", "It's not possible to predict the date."),
    ],
)
def test_not_knowing_in_other_words(prompt, text):
    """These honest answers earned 0."""
    assert consistency.acknowledges(Task(id="t", prompt=prompt), text) == 1.0
    assert consistency.acknowledges(Task(id="t", prompt=prompt), "It is possible to say.") < 1.0


CELLS = [
    {"text": "46 chromosomes", "number": 46, "about": ["body cell"]},
    {"text": "23 chromosomes", "number": 23, "about": ["egg"]},
]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("A body cell holds 46 and an egg cell holds 23.", 1.0),
        ("A body cell and an egg cell hold 46 and 23, respectively.", 1.0),
        ("46 and 23 in body cells and egg cells.", 1.0),
        ("46 in body cells, 23 in eggs.", 1.0),
        ("An egg holds 23, half of the 46 in a body cell.", 1.0),
        ("The body cell: 46; the egg, 23.", 1.0),
        ("46 and 23.", 1.0),
        ("A body cell holds 23 and an egg cell holds 46.", 0.0),
        ("A body cell and an egg cell hold 23 and 46.", 0.0),
        ("Egg: 46. Body cell: 23.", 0.0),
        ("A body cell holds 46, and so does an egg: 46.", 0.5),
    ],
)
def test_the_right_numbers_in_the_wrong_slots(text, value):
    """ "A body cell holds 23 and an egg cell holds 46." earned the maximum."""
    assert pay(text, {"facts": CELLS}) == value


@needs_data
@pytest.mark.parametrize(
    ("task_id", "text", "least", "most"),
    [
        ("phy-01", "299,792,458 m/s, c", 1, 1),
        ("phy-01", "3×10⁸ m/s; c", 1, 1),
        ("phy-03", "v = gt = 9.8 × 3 = 29.4 m/s. s = ½gt² = 0.5 × 9.8 × 9 = 44.1 m.", 1, 1),
        ("phy-04", "(1/2)^3 = 1/8 = 12.5%", 1, 1),
        ("phy-04", "6 = 7 = 8 = 12.5%, or 3 = 50%, or 25%, or 33%, or 99%", 0, 0.4),
        ("phy-10", "Water needs more: 4.18 J g⁻¹ K⁻¹ against 0.385 J g⁻¹ K⁻¹.", 1, 1),
        ("med-04", "Universal donor: O−. Universal recipient: AB+.", 1, 1),
        ("med-03", "A right ventricle stood near a left atrium. A left ventricle stood near a right atrium.", 0, 0.5),
        ("bio-01", "The mitochondrion does not. Oxidative phosphorylation is not used.", 0, 0),
        ("bio-01", "The mitochondrion does not only that; oxidative phosphorylation is not idle.", 1, 1),
    ],
)  # fmt: skip
def test_right_answers_in_short_forms_and_denials(task_id, text, least, most):
    """Units and shown arithmetic were read as listings (.04 to .44); a denial earned .89."""
    task = {t.id: t for t in data.load_tasks(paths.data("facts.jsonl"))}[task_id]
    value = factual.score(task, Response(task_id=task_id, id="r", text=text)).value
    assert least <= value <= most


@needs_data
def test_the_good_answers_that_ship_are_right_and_the_bad_ones_are_not():
    tasks = {t.id: t for t in data.load_tasks(paths.data("facts.jsonl")) if t.truth.get("facts")}
    lines = paths.data("fact_answers.jsonl").read_text("utf-8").splitlines()
    paid = {}
    for row in map(json.loads, lines):
        if task := tasks.get(row["task_id"]):
            r = Response(task_id=task.id, id="r", text=row["response"])
            paid[row["source"], task.id] = factual.score(task, r).value
    assert len(paid) > 100
    assert not {k: v for k, v in paid.items() if k[0] == "good" and v < 1}
    assert not {k: v for k, v in paid.items() if k[0] == "bad" and v > 0.4}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("Water acts through hydrogen sulfide.", None),  # was right: .37 on comparisons
        ("It is water and hydrogen sulfide.", None),
        ("Water.", "right"),
        ("Water, because hydrogen sulfide has no hydrogen bonds.", "right"),
        ("Water rather than hydrogen sulfide.", "right"),
        ("100 degrees for water and -60 for hydrogen sulfide.", "right"),
        ("Hydrogen sulfide, not water.", "wrong"),
    ],
)
def test_naming_both_things_is_no_choice(text, says):
    assert relation([text], {"more": "water", "less": "hydrogen sulfide"}) == says


SPEED = {"id": "v", "text": "343 m/s", "number": 343, "tolerance": 0, "unit": "m/s"}
HORMONES = (
    {"subject": "cortisol", "direction": "down"},
    {"subject": "melatonin", "direction": "up"},
)


@pytest.mark.parametrize(
    ("truth", "text", "earns"),
    [
        ({"facts": [SPEED]}, "It travels 343 meters each second.", 1.0),
        ({"facts": [SPEED]}, "Sound covers 343 metres in a second.", 1.0),
        ({"facts": [SPEED]}, "Sound covers 343 metres in an hour.", 0.0),
        ({"facts": [{**SPEED, "unit": "m", "text": "343 m"}]}, "343 m each second", 0.0),
        ({"claims": HORMONES}, "Cortisol ⬇️, melatonin ⬆️", 14 / 15),
        ({"claims": HORMONES}, "Cortisol 📈, melatonin 📉", 0.0),
        ({"claims": [{"subject": "DNA repair", "direction": "none"}]}, "DNA repair: none", 0.9),
        ({"claims": [{"subject": "DNA repair", "direction": "up"}]}, "DNA repair: none", 0.0),
    ],
)
def test_good_answers_in_other_signs_are_read(truth, text, earns):
    """An outsider's list of honest answers that earned 0, each beside a wrong one in the same form."""
    from kit.claims import verify

    kind = "factual" if "facts" in truth else "direction"
    task = Task(id="t", prompt="What happens?", truth={**truth, "verifiers": [kind]})
    part = verify(kind, task, Response(task_id="t", id="r", text=text))
    assert part.value == pytest.approx(earns)


@pytest.mark.parametrize("tag", ["think", "thinking", "reasoning"])
def test_thoughts_before_the_answer_block_are_no_part_of_it(tag):
    """`<thinking>` and `<reasoning>` shut the refiner's format gate: an honest answer earned 0."""
    from kit.rewards.citations import parse_answer

    block = "<answer><snippet id=a>It goes 85 km</snippet></answer>"
    for text in (f"<{tag}>It may be 90.</{tag}>{block}", f"It may be 90.</{tag}>\n{block}"):
        parsed = parse_answer(text)
        assert parsed.block_problem is None and len(parsed.claims) == 1
    assert parse_answer(f"It is 90. {block}").block_problem == "text before <answer>"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("X1 declines by 20%.", "down"),  # "declinNES by 20" was read as an enrichment score: up
        ("X1 is 30% lower.", "down"),
        ("X1 is two times higher.", "up"),
        ("X1 shows a 20% decrease.", "down"),
        ("X1 shows a two-fold increase.", "up"),
        ("X1 is impaired.", "down"),
        ("X1, rather than being suppressed, is enhanced.", "up"),
        ("It isn't false that X1 rises.", "up"),
        ("The solute level and the X1 inside increase.", "up"),
        ("Ground controls have lower X1 than flight animals.", "up"),
        ("X1 rises to 20% and falls to 30% of it.", "unstated"),
    ],
)
def test_amounts_and_double_negations_turn_no_direction(text, wanted):
    """Right answers at the floor, and wrong ones at the top: an amount before the word hid it."""
    assert settle(claims(text, {"X1": []})).get("X1") == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Upregulated", "up"),
        ("It is upregulated.", "up"),
        ("The pathway is upregulated.", "up"),
        ("Direction: not upregulated", "not_up"),
        ("Insulin is upregulated.", None),
        ("The upregulated set says nothing here, and the UPR is a pathway.", None),
    ],
)
def test_where_one_thing_is_asked_for_it_need_not_be_named(text, wanted):
    """BioRLHF's rows ask for one pathway: "The pathway is upregulated." earned what a wrong one did."""
    assert settle(claims(text, {"UPR": []})).get("UPR") == wanted


@needs_data
@pytest.mark.parametrize(
    ("task", "right", "wrong"),
    [
        (
            "med-04",
            "O negative is the universal donor; AB positive is the universal recipient.",
            "",
        ),
        ("bio-01", "Oxidative phosphorylation in the mitochondria is responsible.", ""),
        ("bio-01", "There's no doubt that mitochondria do, via oxidative phosphorylation.", ""),
        ("bio-13", "That is a myth: the whole brain is used.", "The whole brain is used: a myth."),
        ("bio-09", "The human genome is about 50 times smaller than that of Paris japonica.", ""),
        ("che-03", "Nitrogen (78%) and oxygen (21%).", "Oxygen (78%) and nitrogen (21%)."),
        ("bio-02", "Body cell: 46; egg: 23.", "Body: 23; egg: 46."),
        ("bio-04", "CO2 in, oxygen out.", "Oxygen in, CO2 out."),
        ("phy-10", "Water: 4.184 J/g·K, copper: 0.385 J/gK", "Water: 4.184 J/g, copper: 0.385 J/g"),
        ("bio-03", "Thymine with adenine (2 H-bonds), cytosine with guanine (3 H-bonds).", ""),
        ("bio-02", "46 (diploid) and 23 (haploid).", ""),
        (
            "bio-01",
            "Not the nucleus: mitochondria, by oxidative phosphorylation.",
            "The nucleus, by glycolysis. (Mitochondria: oxidative phosphorylation makes heat.)",
        ),
        (
            "med-13",
            "None: amoxicillin kills bacteria and leaves the virus alone.",
            "None of them is slow: amoxicillin kills bacteria and the virus fastest.",
        ),
        ("med-13", "None, Oseltamivir is no antibiotic; bacteria.", "Oseltamivir, none; bacteria."),
    ],
)
def test_what_an_outsider_answered(task, right, wrong):
    """Right answers lay at the floor, and what stands in brackets was of nothing."""
    asked = next(t for t in data.load_tasks(paths.data("facts.jsonl")) if t.id == task)
    answers = (Response(task_id=task, id="r", text=text) for text in (right, wrong))
    found = [factual.score(asked, a).value for a in answers]
    assert found[0] == 1.0 and found[1] < 0.7


@needs_data
@pytest.mark.parametrize(
    "text",
    ["There is no single known mutation.", "No single mutation has been shown to do that."],
)
def test_an_answer_that_says_it_is_not_known(text):
    """They earned 0.0 on an unanswerable question, as a made-up answer did."""
    asked = next(t for t in data.load_tasks(paths.data("facts.jsonl")) if t.id == "bio-12")
    assert consistency.acknowledges(asked, text) == 1.0
    assert consistency.acknowledges(asked, "There is no doubt that the mutation is known.") < 1.0


@pytest.mark.parametrize(
    "text", ["I'm less than 70% sure.", "I'm 30% unsure.", "Confidence: 30% wrong"]
)
def test_a_bound_and_a_chance_of_being_wrong_are_no_confidence(text):
    """They were read as .7, .2 and .3."""
    assert confidence.stated(text).value is None
    assert confidence.stated("I'm 70% sure.").value == 0.7


@needs_data
def test_how_often_the_words_are_read_wrong():
    """The README's figures: 80 answers in an author's own words, written before they were read."""
    tasks = {t.id: t for t in data.load_tasks(paths.data("facts.jsonl"))}
    read = Counter()
    for line in Path(__file__).with_name("own_answers.tsv").read_text("utf-8").splitlines():
        kind, task, text = line.split("\t")
        paid = uncertainty.outcome(tasks[task], Response(task_id=task, id="r", text=text)) > 0.99
        read[kind, "unknown" if unread(tasks[task], text) else "paid" if paid else "lost"] += 1
    assert read["right", "lost"] <= 1 and read["right", "unknown"] <= 8
    assert read["wrong", "paid"] <= 1


@pytest.mark.parametrize(
    "text",
    [
        "Km goes up, while Vmax stays where it was.",
        "Km goes up, and so does Vmax.",
        "Km goes up and Vmax does not.",
        "Km goes up, Vmax likewise.",
    ],
)
def test_what_a_sentence_names_beside_its_claims_in_no_known_form_is_unread(text):
    """The right answer "... while Vmax stays where it was" earned half: Vmax was taken for silent.
    Idioms that had rules of their own ("so does Vmax") are unread, too."""
    found = settle(claims(text, {"Km": [], "Vmax": []}))
    assert found == {"Km": "up", "Vmax": "unread"}


@pytest.mark.parametrize(
    "text",
    [
        "OXPHOS is up in liver and eye, down in kidney.",
        "Up in liver and eye, down in kidney.",
        "OXPHOS is up in liver and in eye and down in kidney.",
        "The drug raises liver and eye, lowers kidney.",
        "It is up in the liver and the eye but down in the kidney.",
    ],
)
def test_a_list_behind_its_word_takes_no_part_in_what_follows(text):
    """The right answer earned what its reverse did: "eye" went with the next word of direction."""
    found = settle(claims(text, {"liver": [], "eye": [], "kidney": []}))
    assert found == {"liver": "up", "eye": "up", "kidney": "down"}


@pytest.mark.parametrize(
    ("fact", "right", "wrong"),
    [
        ("decreased by 12.5%", ["It fell by 12.5%", "-12.5%", "12.5% lower"], ["It rose 12.5%."]),
        ("increased 2.4-fold", ["a 2.4-fold rise", "+2.4-fold"], ["ALT decreased 2.4-fold."]),
        ("2-fold increase", ["It increased 2-fold."], ["2-fold decrease", "2-fold"]),
        ("upper limit 50 mSv", ["The limit is 50 mSv."], ["500 mSv"]),
        ("10–15%", ["10–15%", "10 to 15%", "between 10 and 15%", "10-15%"], ["10%", "15-20%"]),
        (">50%", ["It is >50%.", ">50%", "more than 50%", "over 50%"], ["50%", "under 50%"]),
        ("p < 0.05", ["p < 0.05", "p under 0.05"], ["p > 0.05", "p over 0.05", "p = 0.05"]),
        ("10-15%", ["10–15%", "10% to 15%", "between 10% and 15%"], ["10%", "15-20%"]),
        ("3:1", ["3 to 1"], ["1 to 3"]),
        ("no change", ["It did not change.", "unchanged"], ["It changed.", "It rose."]),
        ("U.S.A.", ["the USA"], ["the UK"]),
    ],
)
def test_a_fact_with_a_direction_or_a_range_is_more_than_its_number(fact, right, wrong):
    """BioRLHF's key_facts: "It increased by 12.5%." was right for "decreased by 12.5%"."""
    asked = Task(id="t", prompt="What happened?", truth=truth_of({"key_facts": [fact]}))
    said = [Response(task_id="t", id="r", text=text) for text in right + wrong]
    found = [factual.score(asked, r).value for r in said]
    assert found == [1.0] * len(right) + [0.0] * len(wrong)


@pytest.mark.parametrize("form", ["{}", "{}.", "It is {}.", "The answer is {}."])
@pytest.mark.parametrize(
    "fact",
    [
        "3:1",
        "12:30",
        "10–15%",
        "(2, 3)",
        "[1, 2]",
        "1.2 (95% CI 1.1–1.3)",
        "U.S.A.",
        "node.js",
        "https://a.org/x_1",
        "a@b.org",
    ],
)
def test_a_fact_in_its_own_words_is_found(fact, form):
    """Marks inside of a fact were lost on one side: every answer earned 0, and nothing was learned."""
    asked = Task(id="t", prompt="What is it?", truth=truth_of({"key_facts": [fact]}))
    said = Response(task_id="t", id="r", text=form.format(fact))
    assert factual.score(asked, said).value == 1.0


def test_a_number_is_an_expected_answer_too():
    assert truth_of({"expected_answer": 112})["facts"][0]["number"] == 112


RIGHT, WRONG = "The mitochondrion, by oxidative phosphorylation.", "The nucleus, by glycolysis."


@needs_data
@pytest.mark.parametrize(
    ("text", "pays"),
    [
        (f"<think>{WRONG}</think><answer>{RIGHT}</answer>", True),
        (f"{WRONG}</think>{RIGHT}", True),
        (f"<answer>{WRONG}</answer><answer>{RIGHT}</answer>", True),
        (f"<think>{RIGHT}</think><answer>{WRONG}</answer>", False),
        (f"<think>{RIGHT}</think>", False),
        (f"<think>{RIGHT}", False),
        (f"<answer>{RIGHT}</answer><answer>{WRONG}</answer>", False),
    ],
)
def test_thoughts_are_no_answer(text, pays):
    """A right thought before a wrong answer earned the maximum, a thought of both ways the floor."""
    asked = next(t for t in data.load_tasks(paths.data("facts.jsonl")) if t.id == "bio-01")
    said = Response(task_id="bio-01", id="r", text=f"{text} Confidence: 95%")
    found = Composer.from_config("verifiers").score(asked, said, []).score
    assert found > 0.9 if pays else found <= 0


@needs_data
@pytest.mark.parametrize("joint", ["{} {} {} {}", "1. {}\n2. {}\n3. {}\n4. {}"])
def test_several_answers_are_a_list_whatever_they_name(joint):
    """Four short answers, one of them right, earned the maximum: "by ..." hid that they are a list."""
    asked = next(t for t in data.load_tasks(paths.data("facts.jsonl")) if t.id == "bio-01")
    more = "The ribosome, by fermentation.", "The chloroplast, by photosynthesis."
    said = Response(task_id="bio-01", id="r", text=joint.format(WRONG, *more, RIGHT))
    assert factual.score(asked, said).value < 0.5


@pytest.mark.parametrize("text", ["<answer>16</answer>", "<b>16</b>", "<think>17</think>16"])
@pytest.mark.parametrize(
    "rule", [{"name": "number", "value": 16}, {"name": "exact", "answers": ["16"]}]
)
def test_tags_and_thoughts_are_no_part_of_what_a_check_reads(text, rule):
    """ "<answer>16</answer>" was "more than 16", and "<think>It is 16.</think>17" was right."""
    c = Criterion(id="c", text="16", check=rule)
    t = Task(id="t", prompt="?", criteria=(c,))
    other = text.replace("17", "0").replace("16", "17").replace("0", "16")
    found = [check(t, Response(task_id="t", id="r", text=x), c).status for x in (text, other)]
    assert found == ["met", "unmet"]


def test_tags_without_an_end_take_no_time():
    """A pattern tried every opening tag up to the end: 100,000 of them took minutes."""
    for tag in ("<think>", "</think>", "<answer>", "<think></think>"):
        started = time.process_time()
        text = answered(
            answer(
                Task(id="t", prompt="p"), Response(task_id="t", id="r", text=f"x {tag * 50_000} y")
            ).text
        )
        assert time.process_time() - started < 1 and text.endswith("y")
    assert answered("<think>a <think>b</think> c") == " c", "a template opened it once more"
    assert answered("so <think>a</think> b <think>c</think> d").split() == ["so", "b", "d"]


@pytest.mark.parametrize(
    "joint", ["1. {}\n2. {}", "1) {} 2) {}", "Part 1: {}\nPart 2: {}", "{} / {}"]
)
@pytest.mark.parametrize(
    "said", [("46", "23"), ("A body cell has 46.", "An egg cell has 23."), ("Body: 46", "Egg: 23")]
)
def test_the_numbers_of_a_list_are_no_part_of_its_items(joint, said):
    """A numbered list of right numbers earned 0: the 2 of "2. 23" was a guess beside 46 and 23."""
    asked = Task(id="t", prompt="How many?", truth=truth_of({"key_facts": ["46", "23"]}))
    for items, pays in ((said, 1.0), (("48", *said[1:]), 0.0)):
        text = joint.format(*items)
        paid = factual.score(asked, Response(task_id="t", id="r", text=text)).value
        assert paid == 1.0 if pays else paid <= 0.5


@pytest.mark.parametrize(
    "text",
    [
        "It is up in two tissues: liver and eye, and down in one: kidney.",
        "It is up in two tissues (liver and eye) and down in one (kidney).",
        "Increased in:\n- liver\n- eye\nDecreased in:\n- kidney",
        "Up everywhere else: in liver and in eye. Down in: kidney.",
    ],
)
def test_a_list_that_a_word_of_direction_introduces_has_it(text):
    """A colon, a bracket or bullets cut the list off its word: nothing was read, right or wrong."""
    found = settle(claims(text, {"liver": [], "eye": [], "kidney": []}))
    assert found == {"liver": "up", "eye": "up", "kidney": "down"}


def test_not_significant_is_no_change():
    assert settle(claims("Thymus: n.s.", {"thymus": []})) == {"thymus": "none"}


@pytest.mark.parametrize(
    "joint",
    [
        "{}\n{}",
        "1. {}\n2. {}",
        "| 1 | {} |\n| 2 | {} |",
        "Option A: {} Option B: {}",
        "{} Alternatively: {}",
        "{} / {}",
        "It is {}; it is {}",
    ],
)
def test_a_wrong_answer_beside_a_right_one_of_the_same_build_costs(joint):
    """Two answers earned the maximum, whatever their labels; a list was three items or more."""
    facts = ["mitochondrion", "oxidative phosphorylation"]
    asked = Task(id="t", prompt="Where is ATP made, and how?", truth=truth_of({"key_facts": facts}))
    both = "the mitochondrion.", "the process is oxidative phosphorylation."
    for said, least, most in (((WRONG, RIGHT), 0, 0.5), ((RIGHT, WRONG), 0, 0.5), (both, 1, 1)):
        r = Response(task_id="t", id="r", text=joint.format(*said))
        assert least <= factual.score(asked, r).value <= most


@pytest.mark.parametrize(
    "more",
    ["The nucleus holds DNA.", "Not the nucleus, by glycolysis.", "It is a gradient's work."],
)
def test_an_explanation_or_a_denial_costs_nothing(more):
    facts = ["mitochondrion", "oxidative phosphorylation"]
    asked = Task(id="t", prompt="Where is ATP made, and how?", truth=truth_of({"key_facts": facts}))
    assert factual.score(asked, Response(task_id="t", id="r", text=f"{RIGHT} {more}")).value == 1


@pytest.mark.parametrize(("expected", "right"), [(True, "Yes"), (False, "No"), ("yes", "Yes")])
def test_yes_and_no_are_the_answers_to_a_question_that_expects_true_or_false(expected, right):
    """Only "True" earned, a natural "Yes." nothing; "Yes and no" earned all for "yes"."""
    truth = truth_of({"expected_answer": expected})
    asked = Task(id="t", prompt="Does it protect?", truth=truth)
    wrong = {"Yes": "No", "No": "Yes"}[right]
    said = f"{right}.", f"{right}, that is known.", f"{wrong}.", "Yes and no.", "Yes or no", ""
    found = [factual.score(asked, Response(task_id="t", id="r", text=x)).value for x in said]
    assert found == [1, 1, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("text", "met"),
    [
        ("<answer id='1'>16</answer>", True),
        ("I add 8 and 8: 16. <answer>17</answer>", False),
        ("<answer>17</answer><answer>16</answer>", True),
        ("Is it 17? <answer>16", True),
    ],
)
def test_a_number_is_read_where_the_answer_stands(text, met):
    """`exact` read the last block, `number` the whole text; a tag's attribute was a number."""
    c = Criterion(id="c", text="16", check={"name": "number", "value": 16, "tolerance": 0})
    found = check(
        Task(id="t", prompt="?", criteria=(c,)), Response(task_id="t", id="r", text=text), c
    )
    assert (found.status == "met") is met


@pytest.mark.parametrize(
    "text", ["; ; liver", ";  / ", "/ liver", " or ", "• ; ", "1.\n2.\n", ": ; :"]
)
def test_marks_without_words_between_them_break_nothing(text):
    """An empty part of an answer ended the grading with an IndexError."""
    asked = Task(id="t", prompt="?", truth={"facts": [{"id": "f", "text": "liver"}]})
    value = factual.score(asked, Response(task_id="t", id="r", text=text)).value
    assert value == ("liver" in text)


ROME = Task(
    id="r",
    prompt="In which year did the Western Roman Empire fall?",
    truth={"facts": [{"id": "f", "text": "476", "number": 476}]},
)
OSLO = Task(id="o", prompt="What is the capital of Norway?", truth={"facts": [{"text": "Oslo"}]})


@pytest.mark.parametrize(
    "form",
    [
        "It is not {w} but {a}.",
        "It is {a}, not {w}.",
        "Not {w}. {a}.",
        "It is {a}, not {w} or 12.",
        "It is not {w}, nor 123, but {a}.",
        "- {a}",
        "{a}[1][2]",
        "It is {a} [3].",
        "- **{a}**",
        "According to Smith (2004), it is {a}.",
        "Lee et al. (2019) report {a}.",
        "**Answer:** {a}\n\n**Reason:** It follows from the data.",
        "| Question | Answer |\n|---|---|\n| This one | {a} |",
        "Field | Value\n--- | ---\nAnswer | {a}",
    ],
)
def test_a_number_beside_a_denied_one_a_bullet_a_mark_and_a_heading(form):
    """All earned what a wrong one does: the denied number, the reference's and the column's name
    were other answers, the bullet a minus."""
    for task, right, wrong in ((ROME, "476", "410"), (OSLO, "Oslo", "Bergen")):
        for said, other, value in ((right, wrong, 1.0), (wrong, right, 0.0)):
            text = form.format(a=said, w=other)
            assert factual.score(task, Response(task_id="t", id="r", text=text)).value == value


def test_a_number_in_brackets_behind_is_is_the_answer():
    """A mark of a citation was taken out wherever it stood: "the year is [476]" said nothing."""
    for text in ("The year is [476].", "[476]", "Answer: [476]"):
        assert factual.score(ROME, Response(task_id="t", id="r", text=text)).value == 1.0


def test_a_heading_with_the_answer_in_it_is_a_row_like_any_other():
    text = "| Bergen | Stavanger | Oslo |\n|---|---|---|\n| a | b | c |"
    assert factual.score(OSLO, Response(task_id="t", id="r", text=text)).value <= 0.5


def test_what_only_sounds_denied_is_listed():
    for text in (
        "No doubt Oslo, no doubt Bergen, no doubt Skien.",
        "Not only Oslo, Bergen, Skien.",
    ):
        assert factual.score(OSLO, Response(task_id="t", id="r", text=text)).value <= 0.5


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("<think>a <think>17</think> 17</think>16", "16"),
        ("<think>a<think>17</think>16", "16"),
        ("<think>17</think><think>17</think>16", "16"),
        ("<think>17</think>16</think>", "16</think>"),
    ],
)
def test_a_thought_inside_a_thought_is_no_answer(text, left):
    """What stood between the two closing tags was read as the answer."""
    assert answered(text).strip() == left


@pytest.mark.parametrize("key", ["thymus", "5 mg", "Cdkn1a", "7"])
@pytest.mark.parametrize("cited", ["J. Doe, 2019", "Doe et al., 2019", "Mori and J. B. Lee, 2020a"])
def test_a_citation_in_brackets_behind_the_answer_is_no_second_one(key, cited):
    """ "It was thymus (J. Doe, 2019)." was read as wrong: the author was listed beside it."""
    asked = Task(id="t", prompt="What was found?", truth=truth_of({"key_facts": [key]}))

    def paid(text):
        return factual.score(asked, Response(task_id="t", id="r", text=text)).value

    assert paid(f"It was {key} ({cited}).") == 1.0
    assert paid(f"It was the eye ({key}, says {cited}).") == 0.0
    assert paid(f"Heart, {key}, eye, skin and lung ({cited}).") < 0.5


@pytest.mark.parametrize(
    "text", ["Same", "**Same**", "- same", "Up\n\nSame", "Same\nConfidence: 70%"]
)
def test_a_single_word_is_read_without_an_error(text):
    """ "Same" without a full stop was an IndexError: a short answer ended the training."""
    claims = [{"subject": "mass", "direction": "none"}]
    task = Task(id="t", prompt="How did the mass change?", truth={"claims": claims})
    grade = Composer.from_config("verifiers").score(
        task, Response(task_id="t", id="r", text=text), []
    )
    assert grade.score is None or grade.score <= 1.0
