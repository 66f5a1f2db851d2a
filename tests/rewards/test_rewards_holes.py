"""Holes that paid answers without skill, each as it was found; every test here fails on the code that it was found in."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kit.claims import verify
from kit.claims.factual import precision
from kit.claims.uncertainty import against_outcome, brier, log_score
from kit.records import Criterion, Response, Task, Verdict
from kit.rewards.citations import citation_part, claim_criteria
from kit.rewards.composer import Composer

TISSUE = Task(
    id="tissue",
    prompt="Which tissue shows the largest response to spaceflight?",
    truth={
        "facts": [{"id": "f1", "text": "liver", "aliases": []}],
        "answerable": True,
        "warranted": "high",
        "verifiers": ["factual", "consistency", "uncertainty"],
    },
)
DOSE = Task(
    id="dose",
    prompt="Which dose of the new drug helps my neighbour? State your confidence.",
    truth={"answerable": False, "warranted": "low", "verifiers": ["consistency", "uncertainty"]},
)


def answer(task, text):
    return Response(task_id=task.id, id="r", text=text)


def reward(task, text, config="default"):
    return Composer.from_config(config).score(task, answer(task, text), []).score


def value(verifier, task, text, **options):
    return verify(verifier, task, answer(task, text), **options).value


@pytest.mark.parametrize(
    "text",
    [
        "Heart, hippocampus, liver, soleus, eye, thymus. Confidence: 99%",
        "It is the heart. It is the hippocampus. It is the liver. It is the eye. Confidence: 99%",
        "1. Heart\n2. Hippocampus\n3. Liver\n4. Soleus\n5. Eye\nConfidence: 99%",
        "Maybe heart maybe hippocampus maybe liver maybe soleus maybe eye. Confidence: 99%",
        "heart with hippocampus with liver with soleus with eye with thymus. Confidence: 99%",
        "heart hippocampus liver soleus eye thymus. Confidence: 99%",
    ],
)
def test_six_tissues_at_99_percent(text):
    assert reward(TISSUE, text) <= 0.2
    assert reward(TISSUE, "It is the liver, by far. Confidence: 99%") > 0.95


def test_a_listing_earns_less_the_longer_it_is():
    names = [f"organ{chr(97 + i)}" for i in range(20)]
    short, long = (f"{', '.join([*names[:n], 'liver'])}." for n in (3, 20))
    assert value("factual", TISSUE, short) == pytest.approx(1 / 4)
    assert value("factual", TISSUE, long) == pytest.approx(1 / 21)


def test_two_alternatives_are_half_an_answer():
    assert value("factual", TISSUE, "It is the heart or the liver.") == 0.5


def test_candidates_of_the_data_count_in_any_sentence():
    named = {**TISSUE.truth, "candidates": ["heart", "eye", "liver", "thymus"]}
    task = Task(id="tissue", prompt=TISSUE.prompt, truth=named)
    long = (
        "While the heart reacts strongly, one also finds that the eye does, and so the liver does."
    )
    assert value("factual", task, long) == pytest.approx(1 / 3)
    assert value("factual", task, "It is the liver.") == 1.0


def test_an_explanation_is_no_listing():
    text = (
        "The liver. Its cells change their metabolism, fat builds up over weeks, and several "
        "pathways of the mitochondria respond, which other tissues show far less. Confidence: 90%"
    )
    assert precision(TISSUE, text) == (1.0, [])


@pytest.mark.parametrize(
    "layout",
    [
        "**Answer:** {}\n\n**Reason:** It follows from the data.",
        "Answer: {}\nReason: common knowledge\nSource: Britannica",
        "### Answer\n{}\n\n### Explanation\nThis follows from the data.",
        "It is {}. I checked it twice. Thank you.",
        "It is {}. This is well known. See the textbook.",
    ],
)
def test_what_a_chat_model_says_of_its_answer_is_no_listing(layout):
    """Each read "reason" and "checked twice" as wrong names beside the right one: .22 for .996."""
    order = Task(id="o", prompt="How long?", truth={"facts": [{"id": "f", "text": "O(log n)"}]})
    for task in (TISSUE, order):
        right = task.truth["facts"][0]["text"]
        assert precision(task, layout.format(right)) == (1.0, [])
        assert value("factual", task, layout.format("the heart")) == 0.0


def test_what_labels_of_sources_hide_is_still_a_listing():
    """The label of a source parts one thing from the answer, not a list of guesses."""
    for text in (
        "Answer: liver\nReason: heart, eye, thymus",
        "Answer: liver\nSource: heart\nNote: eye\nReason: thymus",
        "See the liver. See the heart. See the eye.",
    ):
        assert value("factual", TISSUE, text) <= 1 / 3


def test_a_wrong_superlative():
    """It is paid to nobody: whether the smallest is the one asked for is not read."""
    assert reward(TISSUE, "The liver shows the smallest response. Confidence: 99%") is None
    assert value("factual", TISSUE, "The heart shows the largest, the liver the least.") is None
    assert value("factual", TISSUE, "The liver is not the answer.") == 0.0
    assert value("factual", TISSUE, "The eye shows the smallest response, the liver most.") == 1.0


def test_a_firm_answer_to_what_has_none():
    """Earned 1.0: "cannot" in "it cannot fail" was read as not knowing."""
    text = "The dose is exactly 500 mg a day, and it cannot fail. Confidence: 10%"
    assert reward(DOSE, text) == 0.0
    assert reward(DOSE, "The dose is 500 mg, though nobody can know. Confidence: 10%") == 0.0
    assert reward(DOSE, "Nobody can know the dose for one person. Confidence: 10%") == 1.0


def test_consistent_nonsense_is_not_consistent():
    directed = Task(
        id="d",
        prompt="What happens to TSH and to T4?",
        truth={
            "claims": [
                {"subject": "TSH", "direction": "up"},
                {"subject": "T4", "direction": "down"},
            ],
            "verifiers": ["direction", "consistency"],
        },
    )
    assert value("consistency", directed, "TSH falls. T4 rises.") == 0.0
    assert value("consistency", directed, "TSH rises. T4 rises.") == pytest.approx(0.5)


GAS = Task(
    id="gas",
    prompt="Which gas do plants take in?",
    truth={"facts": [{"text": "carbon dioxide"}], "verifiers": ["factual"]},
)
SOUND = Task(
    id="sound",
    prompt="How fast is sound in air?",
    truth={
        "facts": [{"text": "343 m/s", "number": 343, "tolerance": 3, "unit": "m/s"}],
        "verifiers": ["factual"],
    },
)


@pytest.mark.parametrize(
    "text",
    """Carbon dioxide is absent.|~~carbon dioxide~~ oxygen|Carbon dioxide: false|Carbon dioxide ✗
    |Carbon dioxide is a myth.|Anything but carbon dioxide.|Plants reject carbon dioxide.
    |Some people say carbon dioxide, but it is oxygen.|Carbon dioxide has been ruled out.
    |If it were carbon dioxide, plants would die.|Not true: carbon dioxide|Carbon dioxide (false)
    |I used to think carbon dioxide, but it is oxygen.|Carbon dioxide is unlikely.""".split("|"),
)
def test_a_fact_that_is_named_to_be_denied(text):
    """Each earned 1.0: only the words right around a name were looked at, for a few negations."""
    assert value("factual", GAS, text) == 0.0


@pytest.mark.parametrize(
    "text",
    """343 m/s is the speed of light.|343 m/s is a myth|~~343 m/s~~ 1500 m/s|343 m/s (wrong)
    |Some people say 343 m/s, but it is really 1500 m/s.""".split("|"),
)
def test_a_number_that_is_said_of_something_else(text):
    assert value("factual", SOUND, text) == 0.0


@pytest.mark.parametrize(
    "text",
    """Carbon dioxide is fixed by rubisco.|Carbon dioxide, not oxygen.|That would be carbon dioxide.
    |Carbon dioxide is the gas that plants take in.|Not oxygen but carbon dioxide.
    |The gas that is used to build sugar is carbon dioxide.""".split("|"),
)
def test_a_fact_that_is_said_in_free_words(text):
    assert value("factual", GAS, text) == 1.0


# --- confidence ---------------------------------------------------------------------------------


def expected(score, c, p):
    return p * score(c, 1.0) + (1 - p) * score(c, 0.0)


@given(p=st.floats(0, 1), c=st.floats(0, 1))
def test_honest_confidence_is_best_brier(p, c):
    assert expected(brier, p, p) >= expected(brier, c, p) - 1e-12
    assert expected(brier, p, p) - expected(brier, c, p) == pytest.approx((c - p) ** 2, abs=1e-9)


@given(p=st.floats(0.01, 0.99), c=st.floats(0, 1))
def test_honest_confidence_is_best_log(p, c):
    assert expected(log_score, p, p) >= expected(log_score, c, p) - 1e-12


@given(p=st.floats(0.02, 0.98))
@settings(max_examples=30)
def test_the_largest_expected_reward_lies_at_the_truth(p):
    grid = [i / 1000 for i in range(1001)]
    for score in (brier, log_score):
        best = max(grid, key=lambda c: expected(score, c, p))
        assert abs(best - p) <= 0.001


def test_the_original_teaches_over_confidence():
    """At P(right) = .7 saying 99% earned more than saying 70%; the default no longer does."""
    assert expected(against_outcome, 0.99, 0.7) > expected(against_outcome, 0.7, 0.7)
    for score in (brier, log_score):
        assert expected(score, 0.7, 0.7) > expected(score, 0.99, 0.7) + 0.05


@pytest.mark.parametrize("mode", ["auto", "brier", "log"])
def test_the_verifier_is_proper(mode):
    """Seven right answers of ten: of the constant confidences, 70% earns the most.

    A wrong name went unread ("nothing claimed", 0), so that 99% was the best confidence of all.
    """
    texts = ["It is the liver."] * 7 + ["It is the heart."] * 3
    earned = {
        c: math.fsum(
            value("uncertainty", TISSUE, f"{t} Confidence: {c}%", mode=mode) for t in texts
        )
        for c in range(10, 100, 10)
    }
    assert max(earned, key=earned.get) == 70


# --- citations ----------------------------------------------------------------------------------

CITED = Task(
    id="cited",
    prompt="How far does the Larkspur 3 go on one charge?",
    sources={
        "S1": "Larkspur 3: about 85 km in eco mode when unloaded.",
        "S2": "Larkspur 3S: range up to 160 km.",
        "S3": "The workshop in Dunmere employs 34 people.",
        "S4": "Tyres of 20 inch in front, 26 inch behind.",
        "S5": "Charging takes 4.5 hours.",
    },
)
HONEST = "<answer><snippet id=S1>It goes about 85 km in eco mode when unloaded.</snippet></answer>"


def judged(text, false=()):
    """The citation score by a judge that sees every claim as right but those that hold one of `false`."""
    r = answer(CITED, text)
    vs = []
    for c in claim_criteria(CITED, r):
        wrong = any(f in c.meta["claim"] for f in false)
        good = wrong if c.meta["kind"] == "needs" else not wrong
        vs.append(
            Verdict(
                task_id="cited",
                response_id="r",
                criterion_id=c.id,
                status="level",
                value=float(good),
            )
        )
    return citation_part(CITED, r, vs).value


def test_the_honest_citation_earns_everything():
    assert judged(HONEST) == pytest.approx(1.0)
    assert judged("<think>Plan: it is 900 km.</think>" + HONEST, ["900"]) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ("<answer><snippet id=S1>Larkspur</snippet></answer>", 0.0),  # one cited word
        ("<answer><snippet id=S1>85 km</snippet></answer>", 0.0),  # a fragment
        (HONEST.replace("</answer>", " Never fails. Flies too. Is free.</answer>"), 0.75),
        ("It goes 900 km. " + HONEST, 0.75),  # said before the block
        (HONEST + " It goes 900 km.", 0.75),
        ("<answer><snippet id=S1,S2,S3,S4,S5>It goes about 85 km.</snippet></answer>", 0.5),
    ],
)
def test_what_earned_1_in_citations(text, most):
    assert judged(text, false=("900", "Never")) <= most


def test_a_false_claim_is_not_diluted():
    tiny = " ".join(f"<snippet id=S1>it goes 85 km ({w})</snippet>." for w in range(30))
    false = "<snippet id=S2>The Larkspur 3 goes 900 km on one charge</snippet>."
    assert judged(f"<answer>{tiny} {false}</answer>", ["900"]) <= 0.6
    assert judged(f"<answer>{tiny} It goes 900 km, in fact.</answer>", ["900"]) <= 0.75


# --- rubrics --------------------------------------------------------------------------------------

GUARDED = Task(
    id="guarded",
    prompt="How far?",
    sources={"S1": "85 km."},
    criteria=(
        Criterion(id="p1", text="States the range."),
        *(Criterion(id=f"n{i}", text="Bad.", weight=-1.0) for i in range(4)),
    ),
)


def verdicts(task, composer, text, met):
    r = answer(task, text)
    return r, [
        Verdict(
            task_id=task.id,
            response_id="r",
            criterion_id=c.id,
            status="met" if c.id in met or c.id.endswith((":support", ":relevant")) else "unmet",
        )
        for c in composer.criteria(task, r)
    ]


@pytest.mark.parametrize("name", ["default", "refiner", "refiner_additive"])
def test_the_minimal_block_earns_nothing_and_a_perfect_answer_everything(name):
    """`<answer>.</answer>` earned 7.1 of 12, and a perfect answer .8 of 1."""
    composer = Composer.from_config(name)
    for text in ("<answer>.</answer>", "<answer>It is so.</answer>"):
        assert composer.score(GUARDED, *verdicts(GUARDED, composer, text, ())).score <= 0.0
    perfect = "<answer><snippet id=S1>It goes for 85 km</snippet></answer>"
    grade = composer.score(GUARDED, *verdicts(GUARDED, composer, perfect, ("p1",)))
    assert grade.score == pytest.approx(composer.limits(GUARDED)[1]) == grade.meta["range"][1]
    assert composer.limits(GUARDED)[1] == pytest.approx(
        {"refiner_additive": 12.0, "refiner": 10.0}.get(name, 1.0)
    )


def test_the_published_forms_stay_by_name_and_say_what_they_pay():
    composer = Composer.from_config("refiner_published")
    silent = composer.score(GUARDED, *verdicts(GUARDED, composer, "<answer>x</answer>", ()))
    assert silent.score > 0.5 * silent.meta["range"][1]  # the fault, kept for reproduction
    signed = Composer.from_config({"components": [{"kind": "rubric", "how": "signed"}]})
    assert signed.limits(GUARDED)[1] == pytest.approx(1 / 5)


@given(weights=st.lists(st.sampled_from([-2.0, -1.0, 0.5, 1.0, 3.0]), min_size=1, max_size=7))
def test_net_pays_1_for_perfect_0_for_silence(weights):
    criteria = tuple(Criterion(id=f"c{i}", text="x", weight=w) for i, w in enumerate(weights))
    task = Task(id="t", prompt="p", criteria=criteria)
    composer = Composer.from_config({"components": [{"kind": "rubric", "how": "net"}]})
    perfect = [c.id for c in criteria if c.weight > 0]
    earned = composer.score(task, *verdicts(task, composer, "x", perfect)).score
    assert earned == pytest.approx(1.0 if perfect else 0.0) == composer.limits(task)[1]
    assert composer.score(task, *verdicts(task, composer, "x", ())).score == pytest.approx(0.0)


ORGANS = "heart eye lung spleen thymus kidney brain skin bone muscle stomach colon bladder tongue".split()


@pytest.mark.parametrize(
    ("frame", "most"),
    [
        ("One thing that matters in such cases is the {}, as the books say.", 0.1),
        ("When one looks closely, the {} plays a role here, too.", 0.1),
        ("The {} with", 0.1),
    ],
)
def test_a_listing_in_sentences_of_one_frame(frame, most):
    """Earned .415 on the shipped facts: sentences were too long to be items of a list."""
    text = " ".join(frame.format(n) for n in [*ORGANS, "liver"])
    assert value("factual", TISSUE, text) <= most


def test_an_answer_that_goes_on_and_on():
    names = [
        f"{a}{b}"
        for a in ORGANS
        for b in "ase in oid gen kine phage cyte some lin tase ol ide one ate yl ine".split()
    ]
    pairs = zip(names[::2], names[1::2], strict=True)
    text = " ".join(f"{a.capitalize()} acts through {b}." for a, b in pairs) + " So does the liver."
    assert value("factual", TISSUE, text) <= 0.25


SAMPLED = ("heart", "liver", "kidney")


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize(
    ("texts", "pays"),
    [
        ("lung, heart, liver and kidney|The lung, heart, liver and kidney.", False),
        ("heart, liver and kidney, as well as lung|Heart, liver and kidney. Also lung.", False),
        ("- lung\n- heart\n- liver\n- kidney|skeletal muscle, heart, liver and kidney", False),
        ("heart, liver, lung and kidney|The heart, the liver, the lung and the kidney.", False),
        ("heart, liver and kidney|There were three: heart, liver and kidney.", True),
        ("Heart, liver and kidney, three organs.|Heart, liver and kidney. High confidence.", True),
        ("OK, the heart, liver and kidney.|Heart, liver and kidney, not lung.", True),
        (
            "The heart, liver and kidney; the lung was spared.|In mice, the heart, liver and kidney.",
            True,
        ),
    ],
)
def test_one_more_in_a_list_of_right_things_costs(whole, texts, pays):
    """ "lung, heart, liver and kidney" was paid in full for heart, liver and kidney: of what stands
    in a list beside the facts, one was free."""
    facts = [{"text": "heart, liver and kidney"}] if whole else [{"text": o} for o in SAMPLED]
    asked = Task(id="t", prompt="Which organs were sampled?", truth={"facts": facts})
    got = {
        t: verify("factual", asked, Response(task_id="t", id="r", text=t)).low
        for t in texts.split("|")
    }
    assert {t: v for t, v in got.items() if (v == 1.0) != pays} == {}


STUDIED = Task(
    id="studied",
    prompt="Which tissue was studied?",
    truth={"facts": [{"id": "f1", "text": "liver"}], "verifiers": ["factual"]},
)


@pytest.mark.parametrize("link", [" ", ", ", "; ", " - ", " — ", " 🙂 ", " | ", "\n", ". "])
@pytest.mark.parametrize(
    "frames",
    [
        ["One thing that matters here is the {}"],
        ["One thing that matters here is the {}", "Another point to be made is the {}"],
        ["One thing that matters here is the {}", "A part that matters here is the {}"],
        ["The {} matters here most of all"],
    ],
)
def test_a_frame_that_comes_again_without_full_stops(frames, link):
    """ "One thing that matters here is X One thing that matters here is Y ..." earned .59 on 23 rows
    of a user, and .06 with full stops: only whole sentences were seen to be built alike."""
    named = [*ORGANS[:7], "liver", *ORGANS[7:]]
    text = link.join(frames[i % len(frames)].format(n) for i, n in enumerate(named))
    assert value("factual", STUDIED, text) <= 0.15


@pytest.mark.parametrize(
    "text",
    [
        "What matters is the liver what matters is the eye what matters is the heart",
        "The liver: the loss of fat in week one, the loss of fibre in week two and the loss of "
        "enzymes in week three were large.",
    ],
)
def test_a_short_row_in_one_frame_lists_or_explains(text):
    """Three guesses in one frame were paid in full; an explanation may be built so, too: unread."""
    part = verify("factual", STUDIED, answer(STUDIED, text))
    assert part.details["unread"] and (part.low, part.high) == (0.0, 1.0)
