"""The direction verifier against a table of our own, and against the naive matcher that it replaces."""

import csv
from collections import Counter
from pathlib import Path

import pytest

from kit import Composer
from kit.claims import verify
from kit.claims.direction import claims, settle
from kit.records import Response, Task
from kit.train.quality import correct

WAYS = ("up", "down", "none", "not_up", "not_down", "unstated", "unread")
TABLE = Path(__file__).with_name("direction_sentences.tsv")


def rows():
    with TABLE.open(encoding="utf-8") as f:
        return list(csv.DictReader(f, delimiter="\t"))


def said(row):
    others = dict.fromkeys((o for o in row["others"].split("|") if o), ())
    found = settle(claims(row["sentence"], {row["subject"]: (), **others}))
    return found.get(row["subject"], "unstated")


def test_table_of_sentences(capsys):
    table = rows()
    pairs = Counter((r["label"], said(r)) for r in table)
    right = sum(n for (a, b), n in pairs.items() if a == b)
    with capsys.disabled():
        print(f"\ndirection verifier: {right}/{len(table)} = {right / len(table):.3f}")
        print("label \\ said".ljust(14) + "".join(d.rjust(10) for d in WAYS))
        for a in WAYS:
            print(a.ljust(14) + "".join(str(pairs[a, b]).rjust(10) for b in WAYS))
        for r in table:
            if said(r) != r["label"]:
                print("  ", r["label"], "read as", said(r), ":", r["subject"], "|", r["sentence"])
    assert len(table) >= 150 and {r["kind"] for r in table} >= {
        "negation",
        "comparison",
        "enrichment",
        "double",
        "hedge",
        "two",
    }
    assert right / len(table) >= 0.95


@pytest.mark.parametrize(
    "text",
    [
        "Insulin: ↑; glucagon: ↓",
        "insulin: up; glucagon: down.",
        "insulin: increased; glucagon: decreased",
        "Insulin +, glucagon -",
        "Insulin: +; glucagon: −",
        "Up: insulin. Down: glucagon.",
        "Increased: insulin; decreased: glucagon",
        "Insulin was stimulated and glucagon suppressed.",
        "Insulin is enriched positively; glucagon is enriched negatively.",
    ],
)
def test_the_plainest_forms_are_read(text):
    """ "Insulin: up; glucagon: down" on one line earned 0, with line breaks the maximum."""
    found = settle(claims(text, {"insulin": [], "glucagon": []}))
    assert found == {"insulin": "up", "glucagon": "down"}


INSULIN = {"insulin": (), "glucagon": ()}


@pytest.mark.parametrize(
    "text",
    [
        "Insulin stops rising, glucagon stops falling.",
        "Insulin rises and glucagon falls; the opposite is true.",
        "Insulin rises by 0%. Glucagon falls by 0%.",
        "Insulin used to rise; glucagon used to fall.",
        "Insulin rarely rises and glucagon rarely falls.",
        "Insulin's rise is reversed, glucagon's fall is reversed.",
        "Insulin rises and glucagon falls, which is false.",
        "Insulin pretends to rise; glucagon pretends to fall.",
        "Insulin resists increases, glucagon resists decreases.",
        "A rise of insulin is prevented, and a fall of glucagon is blocked.",
        "It is a myth: insulin rises and glucagon falls.",
    ],
)
def test_only_words_that_are_understood_make_a_direction(text):
    """Each earned the whole reward: what stands between a subject and "rises" was not read."""
    found = settle(claims(text, INSULIN))
    assert found.get("insulin") != "up" and found.get("glucagon") != "down"


@pytest.mark.parametrize(
    "text",
    [
        "After the meal insulin rises sharply, and glucagon is suppressed.",
        "Insulin tends to increase and glucagon tends to decrease.",
        "Insulin in the blood plasma rises; the level of glucagon falls.",
        "Glucose stimulates insulin release and suppresses glucagon release.",
    ],
)
def test_what_is_understood(text):
    """ "After the meal" was read as a condition: .48."""
    assert settle(claims(text, INSULIN)) == {"insulin": "up", "glucagon": "down"}


ASKED = "In mouse thymus, is the DNA Repair pathway upregulated or downregulated in flight?"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("In mouse thymus, the DNA Repair pathway is {} in flight.", True),
        ("The DNA Repair pathway is {} in mouse thymus in flight.", True),
        ("DNA Repair pathway {} in flight", True),
        (ASKED, False),
        ("In mouse thymus, is the DNA Repair pathway {} in flight", False),
    ],
)
def test_a_question_turned_into_a_statement_says_which_of_the_two(text, wanted):
    """The commonest answer was an echo: right and wrong earned the same, less than nothing."""
    for word, way in (("upregulated", "up"), ("downregulated", "down")):
        found = claims(text.format(word), {"DNA Repair": []}, prompt=ASKED)
        assert settle(found) == ({"DNA Repair": way} if wanted else {})


@pytest.mark.parametrize(
    "lead", ["When we eat", "If sugar is drunk", "Once a meal is over", "If so"]
)
def test_the_first_claim_behind_a_condition_is_read(lead):
    """It was lost with the condition: a right answer earned what one wrong in it did."""
    for word, way in (("rises", "up"), ("falls", "down")):
        text = f"{lead}, insulin {word}, glucagon falls and GLP-1 stays the same."
        found = settle(claims(text, {**INSULIN, "GLP-1": ()}))
        assert found == {"insulin": way, "glucagon": "down", "GLP-1": "none"}
    assert not claims("If a hormone, insulin, rises, we wait.", INSULIN)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("At first glance insulin seems to fall, but it rises.", "up"),
        ("One might expect insulin to fall, but the data show that it rises.", "up"),
        ("Insulin rises, suggesting a lower demand and a smaller supply of energy.", "up"),
        ("The expected fall of insulin did not occur; it rose.", "up"),
        ("Insulin is lower in control mice compared to flight mice.", "up"),
        ("Insulin is lower in flight mice compared to control mice.", "down"),
        ("I would expect insulin to rise in flight.", "up"),
        ("I would expect insulin to rise, but the data show a fall of it.", "unstated"),
        ("Insulin was hypothesized to fall. In fact, it rises.", "up"),
        ("A fall of insulin is unlikely.", "unstated"),
        ("Insulin was said to fall; we found the opposite.", "unstated"),
        ("The fall of insulin was expected but did not occur.", "unstated"),
        ("The fall of insulin failed to materialise.", "unstated"),
    ],
)
def test_what_was_only_expected_is_no_claim_and_what_it_suggests_is_another(text, wanted):
    """Right ones earned less than nothing, the last two and the turned comparison the maximum."""
    assert settle(claims(text, {"insulin": ()})).get("insulin", "unstated") == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("The answer is {}.", True),
        ("My final answer: insulin is {} because of increased appetite.", True),
        ("Insulin is {} because of lower demand, reduced flow and higher supply.", True),
        ("Insulin is {} in the face of elevated cortisol.", True),
        ("Insulin is {} because increased stress slows other genes.", True),
        ("Insulin is {} because it is increased and because it is decreased.", False),
        ("The receptor is {}.", False),
    ],
)
def test_the_answer_and_its_cause_are_no_other_subject_and_no_second_direction(text, wanted):
    """ "The answer is downregulated." said nothing, "because of increased stress" took it back."""
    for word, way in (("upregulated", "up"), ("downregulated", "down")):
        found = settle(claims(text.format(word), {"insulin": ()}))
        assert (found.get("insulin") == way) is wanted


@pytest.mark.parametrize(
    "text",
    [
        "In heart failure, insulin is {}.",
        "Without oxygen, insulin is {}.",
        "After failed therapy, insulin is {} compared to controls.",
        "Insulin is {} by elevated cortisol.",
        "Insulin is {} as the dose increases.",
        "Insulin is {} in patients with loss of appetite.",
        "Insulin is {} in the case of breach of contract.",
        "In adults with heart failure insulin is {}.",
        "In start-up companies, insulin is {}.",
    ],
)
def test_what_stands_around_a_claim_turns_no_direction(text):
    """ "Failure" and "without" in the lead-in denied it, the cause took it back."""
    for word, way in (("upregulated", "up"), ("downregulated", "down")):
        assert settle(claims(text.format(word), {"insulin": ()})) == {"insulin": way}


def test_a_failure_to_rise_is_no_rise():
    """Beside the failure of a heart, which is no negation, that of a thing to rise is one."""
    for text in ("We saw the failure of insulin to rise.", "There is a failure to raise insulin."):
        assert settle(claims(text, {"insulin": ()})).get("insulin") != "up"


def test_what_acts_on_one_thing_and_then_on_another():
    """The second verb, or the one before, was of the first thing, too: right answers said both."""
    texts = ["The drug lowers insulin and raises appetite.", "Raising the dose lowers insulin."]
    for text in (*texts, "Increased stress suppresses insulin.", "A larger dose lowers insulin."):
        assert settle(claims(text, {"insulin": ()})) == {"insulin": "down"}


def test_a_cause_that_is_asked_for_keeps_its_direction():
    found = settle(claims("TSH rises because of reduced T4.", {"TSH": (), "T4": ()}))
    assert found == {"TSH": "up", "T4": "down"}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Insulin is up on the ground and down in flight.", "unread"),
        ("In flight, insulin fell, whereas it was stable in controls.", "unread"),
        ("Insulin should rise, but the data show a fall.", "unread"),
        ("Insulin would normally rise, but in flight it falls.", "unread"),
        ("Insulin was up on the ground and down in flight. So insulin falls.", "down"),
        ("It is unlikely that the hormone of the islets, insulin, rises.", "not_up"),
        ("Insulin is up or down.", "unstated"),
        ("It goes up, it goes down.", "unstated"),
        ("It may go up in some and may go down in others.", "unstated"),
        ("The direction of change of insulin is increase.", "up"),
        ("The insulin of the blood leaving the legs falls.", "down"),
    ],
)
def test_two_directions_of_one_thing_in_words_of_their_own_are_not_read(text, wanted):
    """One of the two was taken, or the answer earned what a wrong one did; a hedge still costs."""
    assert settle(claims(text, {"insulin": ()})).get("insulin", "unstated") == wanted


def test_an_answer_that_is_not_read_is_neither_right_nor_wrong():
    """Both directions earned the minimum; by what is unknown nothing is paid, nor lost."""
    truth = {"claims": [{"subject": "insulin", "direction": "up"}]}
    prompt = "Does the hormone insulin rise or fall in flight?"
    task = Task(id="t", prompt=prompt, truth={**truth, "verifiers": ["direction", "uncertainty"]})
    text = "Insulin is down on the ground and up in flight. Confidence: 90%"
    said = Response(task_id="t", id="r", text=text)
    grade = Composer.from_config("verifiers").score(task, said, [])
    assert grade.score is None and grade.score_low < 0 < grade.score_high
    assert "insulin" in grade.meta["details"]["direction"]["unread"]
    assert correct(task, said) is None
    task = Task(id="t", prompt="When insulin is given, does sugar rise or fall?", truth=truth)
    assert claims("When insulin is given, sugar falls.", {"sugar": ()}, prompt=task.prompt)


@pytest.mark.parametrize(
    "lead", ["In flight", "Compared to ground control", "During spaceflight", "Yes", "In general"]
)
def test_the_pathway_behind_a_lead_in_is_the_one_that_was_asked_for(lead):
    """Right, it earned what the wrong one did; "it" and "this pathway" were read."""
    for word, way in (("upregulated", "up"), ("downregulated", "down")):
        found = claims(f"{lead}, the pathway is {word}.", {"Peroxisome": []})
        assert settle(found) == {"Peroxisome": way}
        said = claims(f"I think that the pathway is {word}.", {"Peroxisome": []})
        assert settle(said) == {"Peroxisome": way}
    both = f"{lead}, the pathway is upregulated. {lead}, the pathway is downregulated."
    assert settle(claims(both, {"Peroxisome": []})) == {"Peroxisome": "unstated"}
    assert not claims("For glycolysis, the pathway is upregulated.", {"Peroxisome": []})


@pytest.mark.parametrize(
    "lead",
    [
        "Based on the GSEA results, ",
        "According to the data, ",
        "From the GSEA, ",
        "Given the results, ",
        "GSEA shows that ",
        "The GSEA results indicate that ",
    ],
)
def test_what_a_direction_rests_on_may_stand_before_it(lead):
    """As BioRLHF's own models begin: right, it earned what the wrong one did."""
    for word, way in (("upregulated", "up"), ("downregulated", "down")):
        found = claims(f"{lead}the pathway is {word}.", {"Peroxisome": []})
        assert settle(found) == {"Peroxisome": way}
    assert not claims(f"{lead}the other pathway is upregulated.", {"Peroxisome": []})


@pytest.mark.parametrize("subject", ["the pathway", "this pathway", "peroxisome"])
def test_no_data_that_show_a_rise_are_no_rise(subject):
    for lead in ("No data show that", "No evidence indicates that", "Nothing shows that"):
        said = settle(claims(f"{lead} {subject} is upregulated.", {"Peroxisome": []}))
        assert said.get("Peroxisome", "unstated") in ("not_up", "unstated")


def read(prompt, way, text, **more):
    task = Task(id="t", prompt=prompt, truth={"facts": [{"text": way}], **more})
    part = verify("factual", task, Response(task_id="t", id="r", text=text))
    return part.details["unread"] or part.low


PARTED = (
    "It increased in males and decreased in females.",
    "It decreased in females but increased in males.",
    "Increase in males, decrease in females.",
    "In males it rose, whereas in females it fell.",
    "FOXO3 went up in males. In contrast, it was significantly reduced in females.",
)


@pytest.mark.parametrize("sisters", [{}, {"sisters": ["increase", "decrease"]}])
@pytest.mark.parametrize("text", PARTED)
def test_of_two_groups_the_one_that_is_asked_about_decides(text, sisters):
    """Both directions for two groups were paid on either truth ("Increase in males, decrease in
    females"), or wrong on the right one; where no group is asked about they are not read."""
    told = {
        (group, way): read(f"How did FOXO3 change in {group}?", way, text, **sisters)
        for group in ("males", "females")
        for way in ("increase", "decrease")
    }
    assert told == {
        ("males", "increase"): 1.0,
        ("males", "decrease"): 0.0,
        ("females", "increase"): 0.0,
        ("females", "decrease"): 1.0,
    }
    for group in ("exercise", "male mice", "young males"):
        left = read(f"How did FOXO3 change in {group}?", "increase", text, **sisters)
        assert left == "which of the groups is the one asked about is not said", group


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("MSTN increased in males and FOXO3 decreased in females.", 0.0),
        ("It increased in males or decreased in females.", 0.0),
        ("It increased in males and decreased in males.", 0.0),
        ("It increased in males but not in females.", 1.0),
        ("FOXO3 increased in males because Akt activity decreased in fibers.", 1.0),
    ],
)
def test_what_is_more_than_two_groups_is_read_as_ever(text, value):
    assert read("How did FOXO3 change in males?", "increase", text) == value


def test_both_groups_asked_about_want_one_direction():
    text = "Increase in males, decrease in females."
    assert read("How did FOXO3 change in males and females?", "increase", text) == 0.0
