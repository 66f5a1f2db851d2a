"""The verifiers, and every fault of the system that they come from: each naive version fails here, ours does not."""

import re
import time
from dataclasses import replace

import pytest

from kit.claims import NAMES, applicable, unclear, verify
from kit.claims.compare import relation
from kit.claims.confidence import stated
from kit.claims.consistency import acknowledges
from kit.claims.direction import claims, pathway_score, settle
from kit.claims.factual import matched
from kit.claims.uncertainty import against_outcome, behaviour, in_range
from kit.data.formats.biorlhf import truth_of
from kit.records import Criterion, Response, Task, Verdict
from kit.rewards.composer import Composer
from kit.rewards.trivial import policies
from kit.train.quality import correct

FACTS = Task(
    id="f",
    prompt="Which organelle makes most of the ATP, and by which process?",
    truth={
        "facts": [
            {"id": "f1", "text": "mitochondrion", "aliases": ["mitochondria"]},
            {"id": "f2", "text": "oxidative phosphorylation", "aliases": []},
        ],
        "claims": [],
        "answerable": True,
        "warranted": "high",
        "verifiers": ["factual", "consistency", "uncertainty"],
    },
)
DIRECTED = Task(
    id="d",
    prompt="What happens to TSH and to T4?",
    truth={
        "facts": [],
        "claims": [
            {"subject": "TSH", "direction": "up", "aliases": []},
            {"subject": "T4", "direction": "down", "aliases": []},
        ],
        "answerable": True,
        "warranted": "high",
        "verifiers": ["direction", "consistency", "uncertainty"],
    },
)
OPEN = Task(
    id="u",
    prompt="On which date will the next great earthquake strike Cascadia?",
    truth={
        "facts": [],
        "claims": [],
        "contradictions": ["it will strike on"],
        "answerable": False,
        "warranted": "low",
        "verifiers": ["uncertainty", "consistency"],
    },
)


def said(task, verifier, text):
    return verify(verifier, task, Response(task_id=task.id, id="r", text=text)).value


def reward(task, text):
    return (
        Composer.from_config("default")
        .score(task, Response(task_id=task.id, id="r", text=text), [])
        .score
    )


# --- faults of system 3 ---------------------------------------------------------------------------------------------------------


def test_enrichment_is_not_up():
    def naive(s):
        return "up" if re.search(r"up|increas|enrich", s.lower()) else "down"

    s = "Gene set enrichment of the UPR was computed."
    assert naive(s) == "up"  # the fault
    assert settle(claims(s, {"UPR": ()})) == {}
    assert settle(claims("The UPR showed negative enrichment.", {"UPR": ()})) == {"UPR": "down"}


@pytest.mark.parametrize(
    ("name", "text"),
    [("UPR", "Everything was upregulated."), ("ROS", "This holds across all samples.")],
)
def test_names_do_not_match_inside_words(name, text):
    assert name.lower() in text.lower()  # the fault: a substring search finds it
    assert not matched({"text": name}, [text])
    assert settle(claims(text, {name: ()})) == {}


def test_repeating_a_fact_does_not_pay():
    def naive(text):
        return min(1.0, 0.05 * text.count("mitochondri"))

    once = "It is the mitochondrion."
    assert naive(" ".join([once] * 20)) > naive(once)  # the fault
    for v in ("factual", "consistency", "uncertainty"):
        assert said(FACTS, v, " ".join([once + " Confidence: 50%."] * 20)) == said(
            FACTS, v, once + " Confidence: 50%."
        )
    assert said(DIRECTED, "direction", "TSH rises. " * 20) == said(
        DIRECTED, "direction", "TSH rises."
    )


def test_confidence_level_in_bold_is_read():
    text = "The confidence level is **high**."

    def naive(s):
        m = re.search(r"confidence[: ]+(high|medium|low|\d+)", s.lower())
        return {"high": 0.85}.get(m.group(1), 0.5) if m else 0.5

    assert naive(text) == 0.5  # the fault
    assert stated(text).value == 0.85


def test_confidence_above_100_percent_is_none():
    assert float(re.search(r"(\d+)%", "Confidence: 250%").group(1)) / 100 == 2.5  # the fault
    s = stated("Confidence: 250%")
    assert s.value is None and "out of range" in s.problem


def test_missing_confidence_has_no_default():
    assert stated("It is the mitochondrion.").value is None
    assert said(FACTS, "uncertainty", "It is the mitochondrion.") == 0.0


def test_empty_answer_earns_nothing():
    naive = (
        0.30 * 0.3 + 0.15 * 0.5 + 0.20 * 0.5
    ) / 0.65  # .3 for silence on directions, .5 for no contradiction, .5 for no confidence
    assert naive > 0.2  # the fault
    for task in (FACTS, DIRECTED, OPEN):
        assert reward(task, "") == 0.0
        assert all(said(task, v, "") == 0.0 for v in applicable(task))


def test_constant_policies_earn_little():
    for task in (FACTS, DIRECTED, OPEN):
        for r in policies(task):
            assert reward(task, r.text) <= 0.55, r.source
    good = "TSH rises and T4 falls. Confidence: 93%"
    assert reward(DIRECTED, good) > 0.9
    for r in policies(DIRECTED):
        assert reward(DIRECTED, r.text) < reward(DIRECTED, good) - 0.15, r.source


def test_parroting_the_prompt_earns_nothing():
    task = Task(
        id="p",
        prompt="Which is larger, the human genome or the genome of Paris japonica?",
        truth={
            "facts": [{"id": "f1", "text": "Paris japonica", "aliases": []}],
            "comparison": {"quantity": "size", "more": "Paris japonica", "less": "human"},
            "answerable": True,
            "warranted": "high",
            "verifiers": ["factual", "consistency"],
        },
    )
    assert (
        "paris japonica" in task.prompt.lower()
    )  # the fault: a search for the fact succeeds on the question itself
    assert reward(task, task.prompt) == 0.0
    assert reward(task, task.prompt.rstrip("?") + ".") == 0.0
    assert reward(task, "The genome of Paris japonica is larger.") == 1.0
    assert said(task, "factual", "The human genome is larger than that of Paris japonica.") == 0.0


def test_correctness_for_confidence_contains_no_confidence():
    """The outcome that a confidence is held against comes from facts alone: changing the confidence leaves it as it is."""
    outcomes = {
        verify(
            "uncertainty",
            FACTS,
            Response(task_id="f", id="r", text=f"The mitochondrion. Confidence: {c}%"),
        ).details["outcome"]
        for c in (1, 50, 99)
    }
    assert outcomes == {0.5}


def test_uncertainty_floor_of_the_original_paid_everyone():
    assert against_outcome(0.99, 0.0, floor=0.2) == 0.2  # the fault
    assert against_outcome(0.99, 0.0) == 0.0


# --- what the verifiers measure -------------------------------------------------------------------------------------------------


def test_factual_numbers_units_and_negation():
    f = {"text": "78 percent", "aliases": [], "number": 78, "tolerance": 1, "unit": "%"}
    assert matched(f, ["Air is about 77.5% nitrogen."]) and not matched(f, ["Air is 70% nitrogen."])
    assert matched({"text": "1,024 bases", "number": 1024}, ["It has 1,024 bases."])
    assert not matched({"text": "mitochondrion"}, ["It is not the mitochondrion."])
    assert matched({"text": "mitochondrion"}, ["It is not only the mitochondrion."])
    assert matched({"text": "no antibiotic", "aliases": []}, ["No antibiotic does that."])
    assert matched({"text": "W", "aliases": []}, ["Its symbol is W."]) and not matched(
        {"text": "W"}, ["We want w."]
    )
    assert not matched({"text": "AB positive", "aliases": ["AB+"]}, ["It is AB-."]) and matched(
        {"text": "AB positive", "aliases": ["AB+"]}, ["It is AB+."]
    )


def test_a_confidence_is_no_fact():
    task = Task(
        id="n",
        prompt="What share?",
        truth={
            "facts": [
                {"id": "f1", "text": "about 90 percent", "number": 90, "tolerance": 2, "unit": "%"}
            ],
            "verifiers": ["factual"],
        },
    )
    assert said(task, "factual", "I do not recall. Confidence: 91%") == 0.0
    assert said(task, "factual", "About 91%. Confidence: 60%") == 1.0


def test_direction_scores():
    assert said(DIRECTED, "direction", "TSH rises and T4 falls.") == pytest.approx(
        0.8 + 0.2 * 2 / 3
    )
    assert said(DIRECTED, "direction", "TSH rises and T4 rises.") == pytest.approx(
        (0.4 + 0.2 / 2) / 2
    )
    assert (
        said(DIRECTED, "direction", "TSH falls.")
        == 0.0
        == said(DIRECTED, "direction", "Hormones matter.")
    )
    assert said(DIRECTED, "direction", "TSH does not rise.") == 0.0
    assert 0 <= pathway_score(3, 0, 3) <= 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("P waves are faster.", "right"),
        ("S waves are faster than P waves.", "wrong"),
        ("S waves are slower.", "right"),
        ("Faster are P waves.", "right"),
        ("P waves are not faster.", "wrong"),
        ("P waves travel faster than S waves.", "right"),
        ("It depends on the water.", None),
    ],
)
def test_relations(text, expected):
    assert relation([text], {"more": "P waves", "less": "S waves"}) == expected


def test_consistency():
    assert (
        said(DIRECTED, "consistency", "TSH rises. TSH falls. T4 falls.")
        < said(DIRECTED, "consistency", "TSH rises. T4 falls.")
        == 1.0
    )
    assert said(FACTS, "consistency", "All is well.") == 0.0
    assert said(OPEN, "consistency", "No one can know the date of an earthquake.") == 1.0
    # .5 until the date beside the disclaimer was read as what it is: an answer to what has none
    assert said(OPEN, "consistency", "No one can know, but it will strike on 14 March.") == 0.0


def test_uncertainty_forms():
    assert said(
        OPEN, "uncertainty", "Nobody can give the date of an earthquake. Confidence: 10%"
    ) == pytest.approx(1.0)
    assert said(
        OPEN, "uncertainty", "Nobody can give the date of an earthquake. Confidence: 99%"
    ) == pytest.approx(0.6)
    assert (
        said(
            OPEN,
            "uncertainty",
            "It will strike on Sunday, though some say nobody can know. Confidence: 10%",
        )
        == 0.0
    )
    # .25 until the score became proper: an honest "I do not know" is worth what an honest wrong guess is
    assert said(FACTS, "uncertainty", "I do not know. Confidence: 0%") == 0.0
    assert said(FACTS, "uncertainty", "It is the ribosome. Confidence: 90%") == pytest.approx(-0.81)
    assert (
        in_range(0.5, "medium") == 1.0
        and in_range(1.0, "low") == 0.0
        and behaviour(0.1, 0.0, 0.1) == pytest.approx(0.4)
    )
    r = Response(
        task_id="f", id="r", text="The mitochondrion, by oxidative phosphorylation. Confidence: 80%"
    )
    assert verify("uncertainty", FACTS, r, mode="range").value == 1.0
    assert verify("uncertainty", FACTS, r, mode="outcome").value == pytest.approx(0.6)


def test_not_applicable_is_none_and_the_task_decides():
    assert (
        verify("direction", FACTS, Response(task_id="f", id="r", text="TSH rises.")).value is None
    )
    assert applicable(Task(id="x", prompt="p")) == () and set(applicable(FACTS)) <= set(NAMES)
    g = Composer.from_config("verifiers").score(
        Task(id="x", prompt="p"), Response(task_id="x", id="r", text="a"), []
    )
    assert g.score is None and g.meta["excluded"] == "nothing applies"


@pytest.mark.parametrize("weights", [(None, 0, 0), (0, 1, 2), (2, 0, 0)])
def test_a_nested_rubric_without_weight_was_paid_nothing_instead_of_left_out(weights):
    """A switched off group was a reward of 0; the same criteria without the group are left out."""
    group, *own = weights
    tree = [Criterion(id="s", text="style", weight=group)] if group is not None else []
    parent = "s" if tree else None
    tree += [Criterion(id=f"c{i}", text="c", weight=w, parent=parent) for i, w in enumerate(own)]
    task = Task(id="t", prompt="Q?", criteria=tuple(tree))
    said = [Verdict(task_id="t", response_id="r", criterion_id=c.id, status="met") for c in tree]
    composer = Composer.from_config("rubric")
    g = composer.score(task, Response(task_id="t", id="r", text="a"), said)
    assert g.score is None and g.meta["excluded"] == "nothing applies"
    assert composer.limits(task) == (0.0, 0.0)


def mission_row():
    row = {"missions_up": ["MHU-2", "RR-9"], "missions_down": ["RR-6"]}
    prompt = "Is the Notch pathway consistently activated or suppressed across missions?"
    truth = truth_of({**row, "correct_behavior": "context_dependent"})
    return Task(id="m", prompt=prompt, truth=truth)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("No. It is not consistent: it is activated in MHU-2 and RR-9 but suppressed in RR-6.", 1),
        ("No, it depends on the mission: activated in some, suppressed in others.", 1),
        ("RR-9: up; RR-6: down.", 1),
        ("The Notch pathway is neither consistently activated nor consistently suppressed.", 1),
        ("I do not know; the missions disagree.", 1),
        ("It depends.", 0.25),
        ("Notch may be activated or suppressed.", 0.5),
        ("Notch is consistently activated in all missions, but the mechanism is unknown.", 0),
        ("It is unclear why the Notch pathway is suppressed in every mission.", 0),
        ("The Notch pathway is suppressed; this does not depend on the mission.", 0),
        ("Notch may be consistently activated across missions.", 0),
        ("It depends on the mission: suppressed in RR-9 and activated in RR-6.", 0),
        ("Notch is uniformly activated; the size of the effect varies between missions.", 0),
        ("Notch is not consistently activated or suppressed across missions.", 1),
        ("In some missions Notch is activated. In others it is suppressed.", 1),
        ("Regulation of Notch is strain-specific.", 1),
        ("Regulation of Notch is specific to the mission.", 1),
        ("Notch is not specific to the mission.", 0),
        ("Activation of Notch is non-specific.", 0),
        ("No general statement on Notch can be made.", 1),
        ("Notch is activated; a specific cause is known.", 0),
        ("Notch is activated. Different missions were studied.", 0),
        ("Notch is suppressed. Its genes vary.", 0),
        ("Notch is activated; the results may vary.", 0),
        ("Notch is activated in some tissues and suppressed in others.", 0.5),
    ],
)
def test_a_question_whose_answer_depends_on_the_mission(text, says):
    """Its own missions earned 0, a direction for all of them with "unknown" beside it all; later
    one direction and any sentence with "vary" or "different" did, and the question's own words 0.
    """
    assert acknowledges(mission_row(), text) == says


def test_a_case_that_is_called_by_a_common_word_is_on_the_question():
    """ "State-specific" was on no topic, for "state your confidence" is in every prompt."""
    prompt = "Did the tax raise or lower smoking across states? State your confidence."
    task = Task(id="t", prompt=prompt, truth={"depends": {"Ohio": "up", "Maine": "down"}})
    assert acknowledges(task, "It is state-specific.") == 1.0
    assert acknowledges(task, "It is not state-specific.") == 0.0
    assert acknowledges(task, "It is context-dependent.") == 0.25


TISSUES = Task(
    id="t",
    prompt="How does hypoxia respond in liver and heart? Is it consistent across tissues?",
    truth={
        "facts": [{"id": "f", "text": "liver"}, {"id": "g", "text": "heart"}],
        "claims": [{"subject": n, "direction": "up"} for n in ("liver", "heart")],
    },
)


def test_the_time_of_a_long_row_of_names_grows_with_its_words():
    """10,000 words took more than a minute: each name read its whole clause anew."""
    seconds = []
    for n in (200, 800):
        answer = Response(task_id="t", id="r", text=" ".join(["liver heart spleen increases"] * n))
        start = time.process_time()
        verify("factual", TISSUES, answer)
        seconds.append(time.process_time() - start)
    assert seconds[1] < 9 * seconds[0]


@pytest.mark.parametrize(
    ("prompt", "truth", "signs"),
    [
        ("Does the liver respond?", {"text": "yes"}, "'"),
        ("Which muscle loses most?", {"text": "soleus"}, ["9", "1,", "soleus "]),
        ("By how much did it fall?", {"text": "fell by 12%", "number": -12}, ["½"]),
    ],
)
def test_a_sign_that_is_said_20000_times_takes_no_time(prompt, truth, signs):
    """One such answer took 5 to 80 seconds, and with 16 of them a step of training stood still."""
    asked = Task(id="t", prompt=prompt, truth={"facts": [truth]})
    for sign in signs:
        started = time.process_time()
        verify("factual", asked, Response(task_id="t", id="r", text=(sign * 20_000)[:20_000]))
        assert time.process_time() - started < 1, sign


def test_of_two_sentences_that_never_end_each_is_read():
    """What runs on is cut into sentences where it is read: nothing of it is left out."""
    asked = Task(id="t", prompt="Which muscle?", truth={"facts": [{"text": "soleus"}]})
    for text in ("it was so " * 400 + "the soleus", "the soleus " + "as it was " * 400):
        assert verify("factual", asked, Response(task_id="t", id="r", text=text)).value == 1


def test_an_answer_is_looked_through_once_for_all_verifiers(monkeypatch):
    """Whether it is read was asked anew by each verifier, and again by the calibration."""
    seen = []
    monkeypatch.setattr(unclear, "unread", lambda task, text: seen.append(text) or "why")
    answer = Response(task_id="t", id="r", text="It rises in the liver, so I say.")
    parts = [verify(n, TISSUES, answer) for n in ("factual", "direction")]
    assert len(seen) == 1 and all(p.details["unread"] == "why" for p in parts)
    assert correct(TISSUES, answer) is None and len(seen) == 1


def test_an_answer_of_many_numbers_is_read_in_time_that_grows_with_them():
    """800 characters of "7 " took 9.5 s, four times as long for twice as many."""
    truth = {"facts": [{"id": "f", "text": "12 bridges", "number": 12}]}
    task = Task(id="t", prompt="How many bridges are there?", truth=truth)
    seconds = []
    for n in (100, 800):
        begun = time.process_time()
        verify("factual", task, Response(task_id="t", id="r", text="7 " * n))
        seconds.append(time.process_time() - begun)
    assert seconds[1] < 30 * seconds[0] + 0.5  # squares: 64 times as long


UNASKED = Task(
    id="k",
    prompt="What dose of KMP should humans take?",
    truth={"answerable": False, "verifiers": ["uncertainty", "consistency"]},
)
NOT_KNOWN = [
    "There is not enough data to determine {}.",
    "There is insufficient evidence to recommend {}.",
    "We do not have enough information to say {}.",
    "No data are available on {}.",
    "More research is needed to determine {}.",
    "I am unable to determine {}.",
    "The information given does not allow one to say {}.",
    "This is not something that can be known: {}.",
]


@pytest.mark.parametrize("form", [*NOT_KNOWN, "It is unclear {}.", "{} has not been studied."])
def test_a_question_without_an_answer_is_left_open_in_ordinary_words(form):
    """48 of 120 honest refusals earned 0, less than "I do not know" to whatever was asked."""
    text = form.format("which dose of KMP humans should take") + " Confidence: 5%"
    assert said(UNASKED, "uncertainty", text) > 0.9 and said(UNASKED, "consistency", text) == 1.0


@pytest.mark.parametrize(
    "more",
    ["Humans should take 500 mg.", "Take 500 mg a day.", "A dose of 500 mg works.", "Give 2 g."],
)
@pytest.mark.parametrize("link", [". ", ", but "])
def test_an_invented_answer_behind_a_refusal_is_paid_nothing(more, link):
    """26 of 36 inventions behind "It is not known" were paid in full."""
    text = f"The dose of KMP for humans is not known{link}{more} Confidence: 5%"
    assert said(UNASKED, "uncertainty", text) == 0.0 == said(UNASKED, "consistency", text)
    mice = "The dose for humans is unknown; mice took 5 mg/kg of KMP. Confidence: 5%"
    assert said(UNASKED, "uncertainty", mice) > 0.9


@pytest.mark.parametrize(
    "more", ["The commander will be first.", "It will be the pilot.", "Jane Doe will be first."]
)
def test_what_will_be_all_the_same_is_not_read(more):
    task = replace(UNASKED, prompt="Which astronaut will be first to fall ill?")
    text = f"It is not known which astronaut will be first to fall ill. {more} Confidence: 5%"
    assert said(task, "uncertainty", text) is None is said(task, "consistency", text)
