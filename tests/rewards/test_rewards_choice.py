"""Naming several of the alternatives is no answer: each test tells one incident. Offline."""

from itertools import permutations

import pytest

from kit.claims import factual, known_names, verify
from kit.claims.choice import offered
from kit.claims.direction import claims, settle
from kit.claims.listing import in_order
from kit.data.formats.biorlhf import truth_of
from kit.records import Response, Task

TISSUES = ("Which tissue lost the most mass: eye, liver, thymus or soleus?", {"text": "liver"})
ION = ("Is the membrane potential set by sodium or by potassium?", {"text": "potassium"})
PLANET = ("Which is larger, Mars or Venus?", {"text": "Venus"})
GAS = ("Choose one: A) helium B) argon C) neon. Which is used in balloons?", {"text": "helium"})
MOONS = ("How many moons does it have?", {"text": "27 moons", "number": 27, "tolerance": 0})
SOUND = ("How fast is sound?", {"text": "343 m/s", "number": 343, "tolerance": 2, "unit": "m/s"})


def pay(asked, text):
    prompt, fact = asked
    truth = fact if "facts" in fact else {"facts": [fact]}
    task = Task(id="t", prompt=prompt, truth=truth)
    return factual.score(task, Response(task_id="t", id="r", text=text)).value


@pytest.mark.parametrize(
    ("asked", "texts"),
    [
        (TISSUES, "eye, liver, thymus, soleus|eye liver thymus soleus|liver or eye|Liver. Eye."),
        (TISSUES, "The eye, liver, thymus or soleus lost the most mass.|The liver and the eye."),
        (ION, "Sodium and potassium.|By sodium or by potassium.|sodium. potassium."),
        (ION, "It depends on sodium. It depends on potassium."),
        (PLANET, "Mars and Venus|Both Mars and Venus.|Mars is larger, and Venus is larger."),
        (GAS, "helium, argon, neon|A) helium B) argon C) neon"),
        (MOONS, "26 27 28|26, 27|26 moons. 27 moons.|1 2 27|There are 27 moons or 28."),
        (SOUND, "343 m/s, 1500 m/s|343 m/s. 1500 m/s.|343 m/s and 1500 m/s"),
    ],
)
def test_naming_more_than_one_alternative_pays_nothing(asked, texts):
    """Each earned 1.0, on every truth: words of the question were free, and three numbers."""
    assert {t: v for t in texts.split("|") if (v := pay(asked, t))} == {}


@pytest.mark.parametrize(
    ("asked", "texts"),
    [
        (TISSUES, "The liver, not the thymus, lost more.|Compared with eye, the liver lost most."),
        (TISSUES, "The liver lost more than eye, thymus and soleus.|Liver (the eye kept its own)"),
        (TISSUES, "The eye and thymus lost little. So it is the liver.|Not the eye. The liver."),
        (TISSUES, "Of the eye, liver, thymus and soleus, the liver lost the most.|Answer: liver"),
        (TISSUES, "The liver lost the most. Then come the soleus and the eye."),
        (ION, "Potassium, because sodium channels are closed.|Unlike sodium, potassium leaks out."),
        (PLANET, "Venus is larger than Mars.|Of Mars and Venus, Venus is larger."),
        (GAS, "(A) helium, because argon is heavier than air"),
        (MOONS, "1. 27 moons|27 moons, of which 5 are large|It is one of those with 27 moons."),
        (SOUND, "343 m/s, about 1235 km/h|343 m/s, against 1500 m/s in water"),
    ],
)
def test_an_honest_sentence_about_the_alternatives_pays(asked, texts):
    assert {t: v for t in texts.split("|") if (v := pay(asked, t)) < 1} == {}


@pytest.mark.parametrize("consistent", [True, False])
def test_both_poles_are_a_contradiction(consistent):
    """ "consistent, inconsistent" and "It is uniform and it varies" earned 1.0 on both truths."""
    truth = truth_of({"is_consistent": consistent, "expected_confidence": "high"})
    asked = ("Does it respond alike in all tissues?", truth)
    texts = ("consistent, inconsistent", "It is uniform and it varies.", "It is not consistent.")
    assert [pay(asked, t) for t in texts] == [0.0, 0.0, float(not consistent)]


ALIKE = (
    "Yes.|Yes, it is.|Yes, all four tissues respond alike.|It is the same in every tissue.|No. No tissue"
    " differs.|The tissues agree.|There is no difference between the tissues.|Consistent."
    "|Every tissue moves the same way, though the size differs.|It does not depend on the tissue."
).replace("No. No", "No")
APART = (
    "No.|No, the tissues differ.|It isn't consistent.|Not all tissues respond alike.|It is mixed."
    "|It is up in some tissues and down in others.|The direction depends on the tissue."
    "|All tissues except thymus agree.|It is far from consistent.|The tissues do not agree."
)
NEITHER = (
    "|The sky is blue.|I do not know.|Yes and no.|It may be consistent or not.|Yes. It is inconsistent."
    "|Nobody can tell if it is consistent.|I do not know whether it is consistent.|Glycolysis."
)


@pytest.mark.parametrize("verifier", ["factual", "consistency"])
def test_ordinary_words_for_alike_and_apart_were_read_as_wrong(verifier):
    """ "Yes." to "Is it consistent?" earned nothing where it was right: 23 of 44 wordings did."""
    prompt = "Is the response of Glycolysis consistent across liver, kidney, eye and thymus?"
    for said in (True, False):
        truth = {**truth_of({"is_consistent": said}), "verifiers": [verifier]}
        task = Task(id="t", prompt=prompt, truth=truth)
        paid = {
            text: verify(verifier, task, Response(task_id="t", id="r", text=text)).low
            for text in f"{ALIKE}|{APART}|{NEITHER}".split("|")
        }
        right = (ALIKE if said else APART).split("|")
        assert paid == {t: float(t in right) for t in paid}


def test_yes_is_alike_only_where_alike_is_asked():
    prompt = "Do liver, kidney and eye differ in their response?"
    asked = (prompt, truth_of({"is_consistent": False}))
    assert [pay(asked, t) for t in ("Yes.", "Yes, they differ.", "No.")] == [1.0, 1.0, 0.0]


def test_words_for_alike_that_nobody_listed_are_unread():
    truth = {**truth_of({"is_consistent": True}), "verifiers": ["consistency"]}
    task = Task(id="t", prompt="Is the response consistent across tissues?", truth=truth)
    part = verify("consistency", task, Response(task_id="t", id="r", text="It is, in all four."))
    assert part.value is None and part.details["unread"]


def test_silence_says_nothing_of_consistency():
    """Where no directions were given and the truth is "inconsistent", "" earned 1.0."""
    for said in (True, False):
        truth = truth_of({"is_consistent": said, "expected_confidence": "high"})
        asked = ("Does it respond alike in all tissues?", truth)
        texts = ("", "The sky is blue.", "I do not know.")
        assert [pay(asked, t) for t in texts] == [0.0, 0.0, 0.0]


def test_a_question_about_one_thing_offers_no_choice():
    asked = "What is the pH of 0.01 mol/L acid in water, and is this acid strong or weak?"
    assert offered(asked, "strong") == ("weak",) and offered(asked, "pH") == ()
    assert offered("In fact, which is larger, Titan or Venus?", "Venus") == ("titan",)


@pytest.mark.parametrize(
    "text",
    """Cortisol falls and melatonin rises, or vice versa.|cortisol down up melatonin up down
    |Cortisol falls and melatonin rises, or the other way round.
    |Not true: cortisol falls, melatonin rises.""".split("|"),
)
def test_both_directions_at_once_state_none(text):
    """Each earned 1.0: the second word, the hedge and the denial were passed over."""
    wanted = {"cortisol": "down", "melatonin": "up"}
    said = settle(claims(text, dict.fromkeys(wanted, ())))
    assert not any(said.get(k) == v for k, v in wanted.items())


@pytest.mark.parametrize(
    "frame",
    [
        "The {} is the most sensitive tissue, more than heart, {} and soleus.",
        "The {} ranks first, followed by the {}, the heart and the soleus.",
        "{}, followed by {}.",
        "The {} ranks first and the {} second.",
        "The {} is most sensitive; the {} comes second.",
        "{} (followed by heart, {} and skin).",
        "Most sensitive: {}. Next: {}.",
        "The {} beats the {}.",
        "The {} leads, with the {} in second place.",
        "The {} has 4,110, compared with 309 for the {}.",
        "{} (4,110), followed by {} (309) and heart (112).",
        "{} > {} > heart",
        "The order is {}, {}, heart.",
        "From most to least sensitive: {}, {}, heart.",
        "The {}. The {} and the heart come after it.",
        "The {} has the most; the {} has fewer.",
    ],
)
def test_a_ranking_names_its_first(frame):
    """The right first earned .096 for its rivals, the wrong one .996 for the thing behind it."""
    prompt = "Which tissue is most sensitive to radiation?"
    task = Task(id="t", prompt=prompt, truth={"facts": [{"id": "f", "text": "hippocampus"}]})

    def value(text):
        return factual.score(task, Response(task_id="t", id="r", text=text)).value

    assert value(frame.format("hippocampus", "liver")) == 1
    assert value(frame.format("liver", "hippocampus")) == 0
    assert value("More than the heart, the liver and the skin, it is the hippocampus.") > 0
    assert value("Of heart, liver and hippocampus, it is the hippocampus.") == 1
    assert value("The heart and the liver rank below the hippocampus.") == 1
    assert value("The heart and the hippocampus rank below the liver.") == 0


@pytest.mark.parametrize("frame", ["The {} lags the {}.", "The {} dominates, and the {} trails."])
def test_a_ranking_in_a_form_that_is_not_known_is_unknown(frame):
    """The right name earned the maximum first or last; a listing still costs."""
    prompt = "Which tissue is most sensitive to radiation?"
    facts = [{"id": "f", "text": "hippocampus"}]
    task = Task(id="t", prompt=prompt, truth={"facts": facts, "verifiers": ["factual"]})

    def part(text):
        return verify("factual", task, Response(task_id="t", id="r", text=text))

    for names in (("hippocampus", "liver"), ("liver", "hippocampus")):
        assert part(frame.format(*names)).value is None
    assert part("Heart, liver, hippocampus and soleus.").value == 0.25
    for text in ("is most sensitive to radiation.", "by far, which the data show.", "comes first."):
        assert part(f"The hippocampus {text}").value == 1


@pytest.mark.parametrize(
    ("alike", "text"),
    [
        (False, "No, it is not the same in all tissues: the liver rises, the eye falls."),
        (False, "The direction differs across tissues: up in liver, down in eye."),
        (False, "It depends on the tissue: the liver rises and the eye falls."),
        (False, "No: the liver rises and the eye falls."),
        (True, "Yes, consistently up in liver and eye."),
        (True, "Yes: up in liver and eye."),
        (True, "The response is the same in all tissues: liver and eye rise."),
    ],
)
def test_whether_tissues_respond_alike_is_read_in_words_and_in_their_directions(alike, text):
    """Four right directions earned less than four wrong ones beside "tissue-specific"."""
    row = {"tissue_directions": {"liver": "UP", "eye": "UP" if alike else "DOWN"}}
    prompt = "Compare the pathway across tissues: liver and eye. Is the response consistent?"
    for said in (alike, not alike):
        task = Task(id="t", prompt=prompt, truth=truth_of({**row, "is_consistent": said}))
        part = factual.score(task, Response(task_id="t", id="r", text=text))
        assert part.value == (said is alike)


def test_a_number_of_something_else_in_the_same_frame_is_unknown():
    """The maximum was earned by "6,425 for IR and 1,500 for HU", whichever was right."""
    facts = [{"id": "f", "text": "6,425", "number": 6425}]
    prompt = "How many genes does hindlimb unloading change?"
    task = Task(id="t", prompt=prompt, truth={"facts": facts, "verifiers": ["factual"]})

    def part(text):
        return verify("factual", task, Response(task_id="t", id="r", text=text))

    assert part("The number is 6,425 for IR and 1,500 for HU.").value is None
    assert part("It is 6,425 for hindlimb unloading and 1,500 for radiation.").value == 1


def test_a_constant_guess_does_not_escape_into_the_unknown_where_it_is_wrong():
    """Right on a quarter of the tasks and unknown on the others, it was worth 1.0 to the search;
    where one of its three names is right, which of them is meant is not said."""
    prompt = "Which tissue is most sensitive to stress: liver, thymus, kidney or eye?"
    text = "Liver. One thing that matters here is thymus. One thing that matters here is eye."
    for right, value in (("liver", None), ("thymus", 0), ("eye", 0)):
        truth = {"facts": [{"id": "f", "text": right}], "verifiers": ["factual"]}
        said = Response(task_id="t", id="r", text=text)
        assert verify("factual", Task(id="t", prompt=prompt, truth=truth), said).value == value


CLASSES = ("What is the response class of {}?", ("Type A", "Type B", "Type C"))
ORGANS = ("Which tissue responds most to {}?", ("soleus", "liver", "heart"))
CAPITALS = ("What is the capital of {}?", ("Oslo", "Stockholm", "Rome"))
COURTS = ("Which court decides {}?", ("Supreme Court", "High Court", "Crown Court"))
SOILS = ("Is {} acidic, neutral or alkaline?", ("acidic", "neutral", "alkaline"))
SENSES = ("Is {} HU-dominant or IR-dominant?", ("HU-dominant", "IR-dominant"))


def balanced(domain):
    prompt, names = domain
    subjects = zip(("Lima", "Quito", "Bogota"), names, strict=False)
    rows = ((prompt.format(s), {"facts": [{"text": n}]}) for s, n in subjects)
    return known_names(Task(id=p, prompt=p, truth=t) for p, t in rows)


def earned(tasks, text):
    return [factual.score(t, Response(task_id=t.id, id="r", text=text)).value for t in tasks]


@pytest.mark.parametrize("domain", [CLASSES, ORGANS, CAPITALS, COURTS, SOILS, SENSES])
def test_naming_several_candidates_of_one_answer_pays_no_more_than_a_guess(domain):
    """ "Type A & Type B & Type C" earned the maximum on every row, "X-dominant; Y-dominant" on one."""
    rows = balanced(domain)
    joints = " & |&| and | + | / |/| → |; |\t|\n| as well as | plus |, | = | - |. | along with "
    for by in joints.split("|"):
        for names in (domain[1], domain[1][::-1], domain[1][:2], domain[1][1::-1]):
            for frame in ("{}.", "It is both {}."):
                paid = earned(rows, frame.format(by.join(names)))
                assert sum(paid) / len(paid) <= 0.35, (by, names)


@pytest.mark.parametrize("domain", [CLASSES, ORGANS, CAPITALS, COURTS, SOILS])
@pytest.mark.parametrize(
    "frame",
    """{}.|{}, not {}.|{}, more than {}.|It is {}, not {} or {}.|{} rather than {}.|Not {1} but {0}.
    |{}. {} and {} respond less.|{}, whereas {} is seen elsewhere.|{}, because {} needs more time.
    |Although {1} is possible, it is {0}.|{1} is a common guess. The answer is {0}.""".split("|"),
)
def test_an_explanation_that_names_another_candidate_pays(domain, frame):
    rows = balanced(domain)
    for at, task in enumerate(rows):
        names = domain[1][at:] + domain[1][:at]
        assert earned([task], frame.strip().format(*names)) == [1.0]


def test_what_tells_types_apart_is_a_name_too():
    rows = balanced(CLASSES)
    for text in ("Types A and B.", "Type A/B", "Type A (Type B)"):
        assert earned(rows, text) == [0.0, 0.0, 0.0]
    assert earned(rows, "Type A. Type B and C respond less.") == [1.0, 0.0, 0.0]


TYPES = ("Is the {} response Type A, Type B or Type C?", ("Type A", "Type B", "Type C"))


def test_the_a_of_type_a_is_no_article():
    """ "It is Type A, whereas the heart is Type B." earned .94 on every row of Type A and B."""
    assert offered(TYPES[0], "Type B") == ("type A", "type C")
    assert offered("Is heart Type A, B, or C?", "Type B") == ("type A", "type C")
    assert offered("Is it grade I, II or III?", "grade II") == ("grade I", "grade iii")
    assert offered("Is the blood group A, B or AB?", "blood group A") == ("group B", "group ab")
    prompt = TYPES[0].format("liver")
    rows = [(prompt, {"text": name}) for name in TYPES[1]]
    for frame in ("It is {}, whereas the heart is {}.", "It is {}. The heart is {}."):
        paid = [pay(row, frame.format("Type A", "Type B")) for row in rows]
        assert sum(paid) <= 1.0, paid
    assert [pay(row, "It is Type B.") for row in rows] == [0.0, 1.0, 0.0]


@pytest.mark.parametrize(
    ("prompt", "names"),
    [
        ("Is gene G7 on the X or the Y chromosome?", ("X", "Y")),
        ("Is gene G7 on the X or the Y chromosome?", ("X chromosome", "Y chromosome")),
        ("In trial 11, did the drug or the placebo win?", ("drug", "placebo")),
        ("Does it cause a gain of function or a loss of function?", ("gain of function", "loss of function")),
        ("Is the risk a rise of pressure, a lack of air or heat?", ("rise of pressure", "lack of air", "heat")),
        ("Which of liver and kidney lost more mass in cohort 11?", ("liver", "kidney")),
        ("Did the patient lack vitamin A or vitamin D?", ("vitamin A", "vitamin D")),
        ("Was the donor infected with hepatitis A or hepatitis B?", ("hepatitis A", "hepatitis B")),
    ],
)  # fmt: skip
def test_each_option_of_a_question_is_an_alternative_to_each_other_one(prompt, names):
    """ "It is Y, whereas the cat is X." earned .996 on every row: one option was read too long."""
    rows = [(prompt, {"text": name}) for name in names]
    for one, two in (names[:2], names[1::-1]):
        for frame in ("It is {}, whereas the cat is {}.", "It is {}. In cats it is {}."):
            assert sum(pay(row, frame.format(one, two)) for row in rows) <= 1.0, frame
    assert [pay(row, f"It is {row[1]['text']}.") for row in rows] == [1.0] * len(rows)


@pytest.mark.parametrize("by", ["_", "^", ", "])
def test_a_list_of_numbers_with_their_unit_names_none_whatever_joins_it(by):
    """ "2 samples_3 samples_..." earned .94 on every row: only the first number was seen."""
    text = by.join(f"{i} samples" for i in range(2, 14))
    prompt = "How many samples did mission BM-3 return?"
    rows = [(prompt, {"text": f"{i} samples", "number": i}) for i in range(2, 14)]
    assert sum(pay(row, text) for row in rows) <= 1.0
    assert pay(rows[5], "It returned 7 samples.") == 1.0


@pytest.mark.parametrize(
    "names",
    ["2015 2017 2019 2021", "3 4 5 6", "0.3 0.04 0.02", "-2.3 -1.6 1.8", "1,500 1,600 1,700"],
)
def test_bare_numbers_joined_by_commas_without_blanks_are_several(names):
    """ "2015,2017,2019,2021" earned .999 on every row: it was read as one token, which cut nothing.
    Of "3,4,5,6" the search saw nothing either."""
    rows = [
        ("When was it?", {"text": n, "number": float(n.replace(",", ""))}) for n in names.split()
    ]
    for text in (said := names.replace(" ", ",")), f"It is {said}.", f"n={said}":
        assert sum(pay(row, text) for row in rows) <= 1.0, text  # no more than a guess
    assert [pay(row, f"It is {row[1]['text']}.") for row in rows] == [1.0] * len(rows)


@pytest.mark.parametrize("text", ["1,234,567", "It is 1,234,567.", "1,234,567.0 cells"])
def test_thousands_with_commas_stay_one_number(text):
    assert pay(("How many cells were seen?", {"text": "1234567", "number": 1234567}), text) == 1.0


LETTERS = "{}.|{}|**{}**|({})|It is {}.|The answer is {}.|Heart is an {}.|It's {}."


@pytest.mark.parametrize(
    ("prompt", "kind", "marks"),
    [
        ("Is heart Type A, B, or C?", "Type", "ABC"),
        ("Is heart Type A, Type B, or Type C?", "Type", "ABC"),
        ("Is the heart grade I, grade II or grade III?", "grade", ("I", "II", "III")),
    ],
)
def test_a_label_of_the_question_that_stands_alone_is_that_option(prompt, kind, marks):
    """ "A." to "Type A, B, or C?" was read as wrong, as every other letter."""
    rows = [(prompt, {"text": f"{kind} {m}"}) for m in marks]
    for text in LETTERS.split("|"):
        paid = [[pay(row, text.format(m)) for row in rows] for m in marks]
        assert paid == [[float(m == n) for n in marks] for m in marks], text
    for by in (", ", ". ", " or ", " and ", "\n", "; ", ". It is "):
        for said in permutations(marks):
            assert sum(pay(row, f"It is {by.join(said)}.") for row in rows) <= 1.0, (by, said)
    assert pay(rows[1], f"{kind.lower()} {marks[1].lower()}") == 1.0
    assert pay(rows[0], f"Not {marks[0]}.") == 0.0


def test_an_article_or_a_pronoun_is_no_label():
    assert pay(("Is heart Type A, B, or C?", {"text": "Type A"}), "A strong response.") == 0.0
    assert pay(("Is it grade I or grade II?", {"text": "grade I"}), "I do not know.") == 0.0


@pytest.mark.parametrize("by", ["%", "°", "² "])
def test_a_sign_between_names_makes_the_list_no_better(by):
    """ "titin%nebulin%desmin%..." earned twice what the list with commas does."""
    names = "calsequestrin myoglobin titin nebulin desmin dystrophin parvalbumin troponin".split()
    truth = {"facts": [{"text": "titin"}, {"text": "desmin"}]}
    asked = "Which two proteins are lost first?", truth
    assert pay(asked, by.join(names)) <= pay(asked, ", ".join(names)) <= 0.35


@pytest.mark.parametrize(
    "verb", ["is classified", "is categorized", "is best described", "counts", "is best classified"]
)
def test_what_a_thing_is_classified_as_is_the_option_that_is_named(verb):
    """ "It is classified as Type B." was a comparison; "as Type C, it is Type B" named B alone."""
    asked = ("Is the response Type A, Type B or Type C?", {"text": "Type B"})
    assert [pay(asked, f"It {verb} as Type {x}.") for x in "ABC"] == [0.0, 1.0, 0.0]
    assert pay(asked, f"It {verb} as Type A. It is Type B.") == 0.0
    assert pay(asked, f"It {verb} as Type A, as Type B and as Type C.") == 0.0
    assert pay(asked, "It is Type B, as opposed to Type A.") == 1.0


def test_what_was_found_is_counted():
    """ "7 mice were found." earned what a wrong number did, "7 mice were seen." everything."""
    asked = ("How many mice had a lesion?", {"text": "7 mice", "number": 7, "tolerance": 0})
    assert pay(asked, "7 mice were found.") == pay(asked, "A total of 7 mice were found.") == 1.0
    assert pay(asked, "7 mice were found innocent.") == 0.0


@pytest.mark.parametrize("verb", ["found", "seen", "detected", "counted"])
def test_several_numbers_with_one_verb_are_several_guesses(verb):
    """ "5 were seen 6 were seen 7 were seen" earned .67 of a right answer over four truths."""
    truths = [{"text": f"{k} mice", "number": k, "tolerance": 0} for k in (5, 6, 7, 8)]
    texts = ("5 were {} 6 were {} 7 were {}", "5 mice were {}, 6 were {}.")
    for t in texts:
        assert [pay(("How many mice?", f), t.replace("{}", verb)) for f in truths] == [0.0] * 4
    asked = ("How many mice had a lesion?", truths[2])
    for t in (
        "12 mice were observed, 7 were {}.",
        "7 of 12 mice were {}.",
        "In 12 mice 7 were {}.",
    ):
        assert pay(asked, t.replace("{}", verb)) == 1.0
    assert pay(asked, f"7 mice were {verb}, 5 mice were not {verb}.") == 1.0


@pytest.mark.parametrize("tail", ["protect the liver", "win", "protect the liver in trial 11"])
def test_a_verb_behind_the_last_option_is_no_part_of_it(tail):
    """ "placebo protect" was the option: "It is the placebo, whereas the cat is the diet." paid."""
    names = ("the drug", "the diet", "the placebo")
    rows = [(f"Did the drug, the diet or the placebo {tail}?", {"text": n}) for n in names]
    for one, two in permutations(names, 2):
        for frame in ("It is {}, whereas the cat is {}.", "It is {}. The cat is {}."):
            assert sum(pay(row, frame.format(one, two)) for row in rows) <= 1.0, (one, two)
    assert [pay(row, f"It is {row[1]['text']}.") for row in rows] == [1.0] * 3


@pytest.mark.parametrize(
    "prompt", ["Is it type A, B or C?", "Which cell is it? A) neuron B) astrocyte C) microglia"]
)
def test_letters_are_alternatives_where_the_truth_is_one(prompt):
    """ "It is C. The cat is B. The dog is A." earned .94 of the maximum on every row."""
    rows = [(prompt, {"text": letter}) for letter in "ABC"]
    for trio in permutations("ABC"):
        frames = "It is {}. The cat is {}. The dog is {}.", "{}, {} and {}", "{}, whereas {} and {}"
        for text in (frame.format(*trio) for frame in frames):
            assert sum(pay(row, text) for row in rows) <= 1.0, text
    for form in (
        "{}",
        "({})",
        "It is {}. A strong response was seen.",
        "A look says that it is {}.",
    ):
        for other in "ABC":
            said = [pay(row, form.format(other)) for row in rows]
            assert said == [float(letter == other) for letter in "ABC"], (form, other)
    assert pay(rows[0], "A because of the marker.") == pay(rows[0], "A fits best.") == 1.0


@pytest.mark.parametrize(
    ("prompt", "name"),
    [
        ("Was it drawn from group 1, group 2 or group 3?", "group {}"),
        ("Was it in group 1, 2 or 3?", "{}"),
        ("Which day was it: day 1, day 2 or day 3?", "day {}"),
    ],
)
def test_a_numbered_label_is_a_name_and_naming_all_chooses_none(prompt, name):
    """ "It was groups 1, 2 and 3." earned everything: the others stand in the question."""
    rows = [(prompt, truth_of({"expected_answer": name.format(i)})["facts"][0]) for i in (1, 2, 3)]
    names = [name.format(i) for i in (1, 2, 3)]
    for text in ("1, 2 and 3", "It is {} and {}.", "It was {}, {} and {}.", "{} or {}"):
        assert [pay(row, text.format(*names)) for row in rows] == [0.0] * 3, text
    for text in (
        "It was {}, not {} or {}.",
        "It is {}, whereas the control is {}.",
        "Not {1} but {0}.",
    ):
        assert [pay(row, text.format(*names)) for row in rows] == [1.0, 0.0, 0.0], text
    for text in ("It is {}.", "It was {} rather than {}.", "Unlike {1}, it was {0}.", "{}"):
        assert [pay(row, text.format(*names)) for row in rows] == [1.0, 0.0, 0.0], text
    assert [pay(row, "2") for row in rows] == [pay(row, name.format("two")) for row in rows]


@pytest.mark.parametrize(
    "prompt",
    [
        "Which cell takes it up (neuron, astrocyte, microglia)?",
        "Select one cell: neuron; astrocyte; microglia.",
        "Which cell takes it up, neuron/astrocyte/microglia?",
        "In the liver, neuron vs astrocyte vs microglia: which one won?",
    ],
)
def test_options_in_brackets_behind_a_colon_or_with_strokes_are_alternatives(prompt):
    """ "neuron, astrocyte and microglia" earned .94 of the maximum on every row."""
    names = ("neuron", "astrocyte", "microglia")
    rows = [(prompt, {"text": n}) for n in names]
    for trio in permutations(names):
        for frame in ("{}, {} and {}", "{}, whereas the cat is {} and the dog {}.", "{} and {}"):
            assert sum(pay(row, frame.format(*trio)) for row in rows) <= 1.0, (frame, trio)
    for frame in ("It is {}.", "It is {}, not {}.", "{} rather than {}."):
        assert [pay(row, frame.format(*names)) for row in rows] == [1.0, 0.0, 0.0], frame


def test_a_noun_behind_the_last_label_is_no_part_of_it():
    """ "Type C response" was cut to "type": "It is Type C. The cat is Type A." paid twice."""
    prompt = "Is it a Type A, Type B or Type C response?"
    rows = [(prompt, {"text": f"Type {x}"}) for x in "ABC"]
    for trio in permutations("ABC"):
        text = "It is Type {}. The cat is Type {}. The dog is Type {}.".format(*trio)
        assert sum(pay(row, text) for row in rows) <= 1.0, trio
    assert [pay(rows[1], f"It is Type {x}.") for x in "ABC"] == [0.0, 1.0, 0.0]


def recurring(prompt, names):
    """Four questions of one shape for each answer."""
    asked = [(prompt.format(f"K{i}"), n) for i, n in enumerate(names * 4)]
    truths = [truth_of({"expected_answer": n}) for _, n in asked]
    rows = [Task(id=p, prompt=p, truth=t) for (p, _), t in zip(asked, truths, strict=True)]
    return known_names(rows)[: len(names)]


SETS = [
    ("Was mouse {} sampled after 5, 7 or 30 days?", ("5 days", "7 days", "30 days")),
    ("After how many days was mouse {} sampled?", ("5 days", "7 days", "30 days")),
    ("Diet vs. drug vs. placebo in trial {}. Which protected it?", ("diet", "drug", "placebo")),
    ("Was {} given 5 mg, 10 mg or 50 mg of it?", ("5 mg", "10 mg", "50 mg")),
    ("Which dose did mouse {} get: 2.5, 5 or 10 mg/kg?", ("2.5 mg/kg", "5 mg/kg", "10 mg/kg")),
    ("Was survival in cohort {} 20%, 40% or 60%?", ("20%", "40%", "60%")),
    ("Which dilution was used for {}: 1:10, 1:100 or 1:1000?", ("1:10", "1:100", "1:1000")),
    ("In which year was payload {} launched?", ("2011", "2014", "2019")),
    ("What has patient {}?", ("type 1 diabetes", "type 2 diabetes", "gestational diabetes")),
    ("What did kit {} cost?", ("$5", "$10", "$50")),
    ("Was the change in {} -10%, 0% or +10%?", ("-10%", "0%", "+10%")),
    ("Name the organ that shrank in {}.", ("eye", "liver", "thymus")),
]


@pytest.mark.parametrize(("prompt", "names"), SETS)
def test_answers_that_recur_in_questions_of_one_shape_are_alternatives(prompt, names):
    """Naming all earned the maximum on every row: 5, 7 and 30 days are no rivals by their words."""
    rows = recurring(prompt, names)
    frames = """{}, {} and {}.|It is {}. The cat is {}. The dog is {}.|It was one of {}, {} and {}.
    |It is {}, whereas the cat is {}.|In cats it is {}. In dogs it is {}. In mice it is {}.
    |It is {} (in cats {}, in dogs {}).|The old mice show {}, the young ones {}.|{} of {} of {}"""
    for frame in frames.split("|"):
        for order in (names, names[::-1], names[1:] + names[:1]):
            assert sum(earned(rows, frame.strip().format(*order))) <= 1.0, (frame, order)
    honest = """{0}.|It is {0}.|It is {0}, not {1}.|{0} rather than {1}.|Not {1} but {0}.
    |It is {0}, seen on page 40.|At first {1} was suspected, but it was {0}."""
    for frame in honest.split("|"):
        for task, name in zip(rows, names, strict=True):
            other = names[names.index(name) - 1]
            assert earned([task], frame.strip().format(name, other)) == [1.0], (frame, name)


@pytest.mark.parametrize(
    "text",
    """{0} mice were seen, 7 had a lesion.|7 of {0} mice had a lesion.|Of {0} mice, 7 had a lesion.
    |7 mice had a lesion and {0} did not.|7 mice had a lesion; the controls had {0}.
    |The cohort held {0} mice. 7 had a lesion.|7 mice, sampled on day {0}.""".split("|"),
)
def test_a_count_beside_the_one_that_was_asked_is_no_second_choice(text):
    names = tuple(f"{k} mice" for k in range(5, 10))
    rows = recurring("How many mice of cohort {} had a lesion?", names)
    assert [earned(rows, text.strip().format(k))[2] for k in (8, 9, 30)] == [1.0] * 3


def test_what_a_question_is_about_is_no_option_of_it():
    prompt = "In the {}, which cell takes up the dye?"
    rows = [(prompt.format(c), n) for c in ("neuron", "liver") for n in ("neuron", "glia")]
    truths = [{"facts": [{"text": n}]} for _, n in rows]
    tasks = [
        Task(id=str(i), prompt=p, truth=t)
        for i, ((p, _), t) in enumerate(zip(rows, truths, strict=True))
    ]
    assert [t.truth["sisters"] for t in known_names(tasks)[2:]] == [["neuron", "glia"]] * 2
    assert "sisters" not in known_names(tasks)[1].truth


def test_options_that_change_from_question_to_question_are_alternatives():
    """ "5, 7 and 30 days" earned everything where the next question offers 10, 20 or 60 days."""
    days = [(5, 7, 30), (10, 20, 60), (7, 20, 90), (5, 40, 80), (3, 10, 50)]
    asked = "Was mouse {} sampled after {}, {} or {} days?"
    rows = [(asked.format(f"K{i}", *d), d) for d in days for i in range(3)]
    truths = [{"expected_answer": f"{d[i % 3]} days"} for i, (_, d) in enumerate(rows)]
    pairs = zip(rows, truths, strict=True)
    tasks = known_names(Task(id=p, prompt=p, truth=truth_of(t)) for (p, _), t in pairs)
    for i in range(0, len(rows), 3):
        d, trio = rows[i][1], tasks[i : i + 3]
        assert sum(earned(trio, "It is {} (in cats {}, in dogs {}) days.".format(*d))) <= 1.0
        assert earned(trio, "{}, {} and {} days.".format(*d)) == [0.0] * 3
        assert earned(trio, f"After {d[1]} days, not {d[0]}.") == [0.0, 1.0, 0.0]


def test_a_letter_and_what_it_stands_for_are_one_choice():
    asked = (
        "Which cell takes up dye {}? A) neuron B) glia",
        "Which cell takes up dye {}: neuron or glia?",
    )
    pairs = [
        (asked[k].format(i), n) for i in range(4) for k, n in enumerate([("A", "B")[i % 2], "glia"])
    ]
    truths = [{"facts": [{"text": n}]} for _, n in pairs]
    tasks = known_names(
        Task(id=p, prompt=p, truth=t) for (p, _), t in zip(pairs, truths, strict=True)
    )
    assert earned(tasks[2:3], "B) glia") == earned(tasks[2:3], "B, the glia.") == [1.0]
    assert earned(tasks[2:3], "A and B") == [0.0]


def test_who_cannot_tell_asserts_nothing_and_who_classes_does():
    """ "Nobody can tell if it was below 0.05" was paid, "I would class it as Type C" was not."""
    limit = ("Was the p value below or above 0.05?", truth_of({"key_facts": ["below 0.05"]}))
    unsure = ("Nobody can tell if", "Nobody knows if", "I cannot say if", "I do not know if")
    assert [pay(limit, f"{lead} it was below 0.05.") for lead in unsure] == [0.0] * 4
    assert pay(limit, "It was below 0.05.") == 1.0
    kind = ("Is kidney Type A, Type B, or Type C?", truth_of({"key_facts": ["Type C"]}))
    assert pay(kind, "I would class kidney as Type C.") == 1.0
    assert pay(kind, "I would class it as Type A.") == 0.0


@pytest.mark.parametrize("right", ["RESCUE", "SUPPRESSION"])
def test_an_answer_that_names_both_options_was_paid_for_either(right):
    """ "It shows rescue early and suppression late." earned the maximum on all 36 rows."""
    asked = ("Does liver show OXPHOS rescue or suppression?", truth_of({"expected_answer": right}))
    task = Task(id="t", prompt=asked[0], truth=asked[1] | {"verifiers": ["factual"]})
    for text in (
        "It shows rescue early and suppression late.",
        "Rescue at rest, suppression in flight.",
        "Rescue in males and suppression in females.",
    ):
        assert verified(task, text) in ("unread", 0), text
    own, other = right.lower(), "rescue" if right == "SUPPRESSION" else "suppression"
    assert [verified(task, f"It shows {x}.") for x in (own, other)] == [1, 0]
    assert verified(task, f"Between rescue and suppression, {other}.") in ("unread", 0)
    assert verified(task, f"It shows {own}, not {other}.") == 1


SPECIES = "E. coli|S. aureus|C. elegans|M. musculus|A. thaliana".split("|")


def one_each(names, asked):
    truths = [{"facts": [{"text": n}], "verifiers": ["factual"]} for n in names]
    rows = zip(names, truths, strict=True)
    return known_names(Task(id=n, prompt=asked.format(n), truth=t) for n, t in rows)


def verified(task, text):
    part = verify("factual", task, Response(task_id=task.id, id="r", text=text))
    return "unread" if part.details["unread"] else part.value


def test_a_name_that_begins_with_an_initial_earns_what_it_names():
    """ "E. coli", the key itself, was cut in two at its point, and every answer read as wrong."""
    tasks = one_each(SPECIES, "Which species was most common in the sample of {:.0}plot?")
    others = [*SPECIES[1:], SPECIES[0]]
    for said in ("{}", "It was {}.", "**{}**", "{} was most common.", "In all, {}, as expected."):
        assert [verified(t, said.format(t.id)) for t in tasks] == [1.0] * 5, said
        pairs = zip(tasks, others, strict=True)
        assert [verified(t, said.format(o)) for t, o in pairs] == [0.0] * 5, said
    for joint in (" and ", ", ", ". ", ". J. ", " J. ", " or "):
        pairs = zip(tasks, others, strict=True)
        assert [verified(t, t.id + joint + o) for t, o in pairs] == [0.0] * 5, joint


def test_an_initial_within_an_answer_parts_no_sentence():
    """ "According to J. Doe, it was the liver" and "The pathway of M. musculus is up" were lost."""
    tasks = one_each(("eye", "liver", "ear"), "Which organ shrank in flight {:.0}?")
    lead = (
        "According to J. Doe, it was the {}.",
        "The {} of M. musculus.",
        "{}, says a study by K. B. Mori.",
    )
    assert [verified(tasks[1], s.format("liver")) for s in lead] == [1.0] * 3
    assert [verified(tasks[1], s.format("eye")) for s in lead] == [0.0] * 3
    hedges = (
        "eye. E. liver",
        "liver. E. eye",
        "liver and J. eye",
        "eye of E. liver",
        "liver in J. eye",
    )
    assert [verified(tasks[1], s) for s in hedges] == [0.0] * 5
    assert settle(claims("The UPR of C. elegans rises.", {"UPR": ()})) == {"UPR": "up"}
    assert factual.polar.said("Does E. coli grow faster?", "E. coli grows faster.") == "yes"


def test_a_question_offers_names_with_initials_whole():
    assert offered("Was it E. coli or S. aureus?", "E. coli")[0] == "S aureus"
    asked = ("Was it E. coli or S. aureus?", {"text": "S. aureus"})
    said = ("S. aureus", "It was S. aureus, not E. coli.", "E. coli", "E. coli and S. aureus")
    assert [pay(asked, s) for s in said] == [1.0, 1.0, 0.0, 0.0]


def test_an_option_with_its_label_is_no_echo_of_the_question():
    """ "B) slow fibers" has words of the question alone, and was read as saying nothing."""
    forms = (
        "Which were lost? A) fast fibers B) slow fibers",
        "Which?\nA. fast fibers\nB. slow fibers",
    )
    for fact in ({"text": "B"}, {"text": "slow fibers"}):
        for asked in ((form, fact) for form in forms):
            right = ("B) slow fibers", "(B) slow fibers", "B. slow fibers", "B: slow fibers")
            assert [pay(asked, s) for s in right] == [1.0] * 4
            both = ("A) fast fibers", "A. fast fibers", "A) fast fibers B) slow fibers", asked[0])
            assert [pay(asked, s) for s in both] == [0.0] * 4
    named = ("Which species? A) E. coli B) S. aureus", {"text": "E. coli"})
    assert [pay(named, s) for s in ("E. coli", "A) E. coli", "S. aureus", "B) S. aureus")] == [
        1,
        1,
        0,
        0,
    ]


@pytest.mark.parametrize(
    "said",
    [
        "It shows rescue of the downregulated OXPHOS genes.",
        "The downregulated genes show rescue.",
        "It shows rescue, as stress decreased.",
        "Rescue after decreased expression.",
    ],
)
def test_a_word_of_decrease_beside_the_option_names_no_other_option(said):
    """Paid for either truth: the one was read as its word, the other as any decrease."""
    prompt = "Does KMP show OXPHOS rescue or suppression?"
    paid = [
        verify("factual", task, Response(task_id="t", id="r", text=said)).value
        for right in ("RESCUE", "SUPPRESSION")
        for task in [
            Task(
                id="t", prompt=prompt, truth={"facts": [{"text": right}], "verifiers": ["factual"]}
            )
        ]
    ]
    assert paid == [1.0, 0.0]
    task = Task(id="t", prompt=prompt, truth={"facts": [{"text": "SUPPRESSION"}]})
    assert factual.matched(task.truth["facts"][0], ["suppression"])
    assert factual.found(task, "OXPHOS is suppressed.")


@pytest.mark.parametrize("facts", [["liver"], [{"id": "f"}], {"text": "liver"}])
def test_a_truth_with_malformed_facts_breaks_no_answer(facts):
    """The order of a list was read from the raw truth: TypeError and KeyError for every answer."""
    asked = Task(id="t", prompt="Which tissue?", truth={"facts": facts})
    assert in_order(asked, "The liver.") == "The liver."


ROCK = ("Which rock forms from cooled lava, basalt or marble?", {"text": "basalt"})
LAYER = ("Which layer is liquid, the outer core or the inner core?", {"text": "outer core"})
MINERAL = ("Which mineral scratches all others?", {"text": "diamond"})
HEATED = ("Which effect had the heat?", {"text": "no effect"})


@pytest.mark.parametrize("asked", [ROCK, LAYER, MINERAL])
@pytest.mark.parametrize(
    "frame",
    [
        "{}.",
        "It is {}.",
        "I do not know. {}.",
        "Not {}.",
        "It does not decrease {}.",
        "It never decreases {}.",
        "Nobody can know it is {}.",
        "Nobody can know this decreases {}.",
    ],
)
def test_names_joined_by_or_are_a_listing_behind_a_denial_and_for_a_choice(asked, frame):
    """A list of all names of the data set by "or" earned .49 of the largest reward: behind a denial
    the others were no rivals, while the right one counted as said; and the right one of two options
    parted the list, as the question has its words."""
    names = "oboe or diamond or copper or basalt or lactose or outer core or blue"
    assert pay(asked, frame.format(names)) <= 0.25


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (ROCK, "Basalt, not granite or slate or chalk."),
        (ROCK, "It is not granite or slate, but basalt."),
        (ROCK, "It is not granite or slate - it is basalt."),
        (ROCK, "Lava stone, or more exactly, basalt."),
        (MINERAL, "It is not topaz or quartz but diamond."),
        (ROCK, "Basalt, the dark one, forms so."),
        (MINERAL, "It is not topaz or quartz; it is diamond."),
        (HEATED, "It had no effect or influence or bearing."),
    ],
)
def test_what_is_denied_with_or_is_no_rival(asked, said):
    """The denial of others beside the right name costs nothing; nor does a denial that is it."""
    assert pay(asked, said) == 1.0
