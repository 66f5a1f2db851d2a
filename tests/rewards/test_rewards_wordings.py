"""Right answers in other ordinary words than the key's: right or not read, never wrong; and wrong
ones that look like them."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from kit import load
from kit.claims import known_names, verify
from kit.claims.direction import claims
from kit.data.formats.biorlhf import truth_of
from kit.records import Response, Task
from kit.rewards.trivial import NAMES, policy

TABLE = Path(__file__).with_name("ordinary_wordings.tsv")  # written before the readers
ROWS = [line.split("\t") for line in TABLE.read_text("utf-8").splitlines()]


def task(prompt, *keys, id="t", **more):
    truth = {**truth_of({"key_facts": [*keys]}), "verifiers": ["factual"]}
    return Task(id=id, prompt=prompt, truth=truth | more)


def read(asked, text):
    """What a text earns, None where it is not read."""
    part = verify("factual", asked, Response(task_id=asked.id, id="r", text=text))
    return None if part.details["unread"] else part.low


def test_ordinary_answers_were_read_as_wrong_and_other_periods_as_right():
    """55 of 97 right answers earned what the wrong ones do; 4 of 92 wrong ones earned all."""
    said = Counter((kind, read(task(p, key), text)) for kind, p, key, text in ROWS)
    assert said["right", 0.0] <= 2 and said["right", 1.0] >= 89, said
    assert said["wrong", 0.0] == sum(kind == "wrong" for kind, *_ in ROWS) == 92, said


WAYS = {
    "decrease": ("It decreased.", "It went down.", "MSTN expression fell.", "A decrease.", "Down."),
    "increased": ("An increase.", "It is upregulated.", "Expression of MSTN rose.", "Up."),
    "up": ("Upregulation.", "MSTN goes up.", "It was increased.", "Flight raises MSTN."),
    "SUPPRESSION": ("It is suppressed.", "MSTN is reduced.", "Down-regulation is seen."),
    "upregulated": ("Up-regulated.", "It increases in flight.", "MSTN is elevated."),
}


@pytest.mark.parametrize("key", WAYS)
def test_a_direction_was_read_by_its_own_word_alone(key):
    """180 of 288 right answers earned nothing: "It decreased." for the truth "decrease"."""
    asked = task("What happens to MSTN expression in flight?", key)
    assert [t for t in WAYS[key] if read(asked, t) != 1] == []
    down = key in ("decrease", "SUPPRESSION")
    other = [x for k, ts in WAYS.items() if (k in ("decrease", "SUPPRESSION")) != down for x in ts]
    assert [t for t in other if read(asked, t) != 0] == []
    way, turned = ("fall", "higher") if down else ("rise", "lower")
    assert read(asked, f"It did not {way}.") == read(asked, "It increased and decreased.") == 0
    assert read(asked, "It may vary.") == 0
    assert not read(asked, f"It is {turned} on the ground than in flight.")


def test_a_direction_with_another_thing_that_goes_the_other_way_stays_right():
    asked = task("Does X1 activate or inhibit Y2?", "inhibit")
    assert read(asked, "X1 inhibits Y2, which increases Z.") == read(asked, "It inhibits Y2.") == 1
    assert read(asked, "X1 activates Y2.") == read(asked, "It activates and inhibits Y2.") == 0
    of = task("Which falls faster, the hammer or the feather?", "same")
    assert read(of, "They fall at the same speed.") == 1
    sizes = task("Is A larger or smaller than B?", "larger")
    assert read(sizes, "A is larger than B.") == 1


def test_no_constant_answer_does_well_on_directions():
    rows = [task(f"What happens to G{i} in flight?", k) for i, k in enumerate([*WAYS] * 2)]
    for name in NAMES:
        said = [read(t, policy(name, t)) for t in rows]
        assert None not in said, name
        assert sum(said) <= 6, name  # 6 of 10 go up


WHO = "Who discovered penicillin?"


def test_a_person_by_surname_initial_or_title_was_another_person():
    """60 of 72 right answers earned nothing: "Fleming." for "Alexander Fleming"."""
    asked = task(WHO, "Alexander Fleming")
    right = (
        "Fleming.|It was Fleming.|Dr. Fleming.|A. Fleming.|Alexander J. Fleming.|Sir A.J. Fleming"
    )
    right += "|Penicillin was discovered by Fleming in 1928.|Prof. Fleming did.|It is Fleming's."
    assert [t for t in right.split("|") if read(asked, t) != 1] == []
    wrong = "Howard Fleming.|J. Fleming.|It was Joseph Fleming.|Florey.|Not Fleming.|Fleming-Smith."
    wrong += "|It was not Fleming but Florey.|Dr. Florey."
    assert [t for t in wrong.split("|") if read(asked, t) != 0] == []
    assert read(asked, "Fleming, Florey, Chain or Pasteur.") < 0.5
    assert read(task(WHO, "A. Fleming"), "Alexander Fleming.") == 1
    two = task("Who found it?", "James Watson and Francis Crick")
    assert read(two, "Watson and Crick.") == 1 and read(two, "Crick and Watson.") is None
    assert read(two, "Watson and Wilkins.") == read(two, "Watson.") == 0
    assert read(task("Which gas is it?", "Carbon Dioxide"), "Dioxide.") == 0


def test_a_surname_that_two_answers_share_is_not_read():
    keys = ["Marie Curie", "Pierre Curie", "Henri Becquerel", "Ernest Rutherford"]
    tasks = known_names([task(f"Who found {i}?", k, id=str(i)) for i, k in enumerate(keys)])
    said = [read(tasks[0], x) for x in ("Curie.", "Marie Curie", "M. Curie", "Pierre Curie.")]
    assert said == [None, 1, 1, 0]
    assert read(tasks[3], "Rutherford.") == 1
    keys = ["James Watson and Francis Crick", "Max Perutz", "Linus Pauling", "Jonas Salk"]
    tasks = known_names([task(f"Who found {i}?", k, id=str(i)) for i, k in enumerate(keys)])
    assert read(tasks[0], "Watson and Crick.") == 1


STEMS = [
    (
        "Which lobe?",
        "occipital lobe",
        "Occipital.|The occipital cortex.",
        "Frontal.|Not occipital.",
    ),
    (
        "What is it?",
        "loss of collagen IV",
        "Collagen IV loss.|Type IV collagen is lost.",
        "Loss of VI",
    ),
    ("Where?", "mitochondrial matrix", "The matrix of mitochondria.", "Extracellular matrix."),
    ("What?", "activation of caspase-3", "Caspase-3 is activated.", "Caspase-8 is activated."),
    ("What filters?", "glomerulus", "Glomeruli.", "Tubules.|Glomeruli, tubules, ducts and loops."),
    ("Myosin or actin?", "myosin", "Myosins do.", "Actin.|Myosin and actin."),
]


@pytest.mark.parametrize(("asked", "key", "same", "other"), STEMS)
def test_the_words_of_the_key_in_other_forms_are_not_wrong(asked, key, same, other):
    assert [t for t in same.split("|") if read(task(asked, key), t) == 0] == []
    assert [t for t in other.split("|") if read(task(asked, key), t) != 0] == []


LESS = [
    ("Which organ lost more mass, the eye or the liver?", "lost less mass than"),
    ("Which organ was heavier, the eye or the liver?", "was lighter than"),
    ("Which organ had more changed genes?", "had fewer changed genes than"),
    ("Which organ recovered first?", "recovered later than"),
    ("Which organ is smaller, the eye or the liver?", "is larger than"),
]


@pytest.mark.parametrize(("asked", "form"), LESS)
def test_the_lesser_of_two_was_paid_as_the_greater(asked, form):
    """ "The eye lost less mass than the liver." paid the eye in full, to "which lost more?"."""
    said = [read(task(asked, "liver"), f"The {x} {form} the {y}.") for x, y in (TWO, TWO[::-1])]
    assert said == [None, None]
    assert read(task(asked, "liver"), f"The eye did not {form} the liver.") is None


TWO = ("eye", "liver")


def test_a_comparison_by_a_word_whose_side_is_not_known_is_not_read():
    asked = task("Which organ recovered faster, the eye or the liver?", "liver")
    assert read(asked, "The eye recovered more neatly than the liver.") is None
    assert read(asked, "The eye recovered more slowly than the liver.") is None
    assert read(asked, "It recovered more slowly than expected.") == 0
    assert read(asked, "The liver recovered faster than the eye.") == 1
    assert read(asked, "The eye recovered faster than the liver.") == 0


@pytest.mark.parametrize(
    "text",
    [
        "Overall, 128 of 200 patients (64%) responded.",
        "64% (128 of 200).",
        "128 of 200 patients responded, i.e. 64%.",
        "64 ± 3%.",
        "64% ± 3%.",
    ],
)
def test_counts_and_a_spread_beside_a_percentage_made_it_wrong(text):
    """9 of 12 rows each lost the usual form of a result in a paper."""
    asked = "What percentage of patients responded?"
    assert read(task(asked, "64%"), text) == 1
    assert read(task(asked, "46%"), text) == read(task(asked, "128%"), text) == 0
    assert read(task(asked, "64%"), "90 of 200 patients, 64%.") == 0
    assert read(task(asked, "64%"), "64 ± 40%.") == 0


def test_a_mean_with_its_spread_is_the_mean():
    asked = "What was the mean weight?"
    forms = "21 ± 1.2 g.|The mean weight was 21 ± 1.2 g.|The mice weighed 21 g ± 1.2 g.|21 +/- 1 g"
    assert [t for t in forms.split("|") if read(task(asked, "21 g"), t) != 1] == []
    wrong = "21 ± 1.2 kg.|22 ± 1 g.|1.2 ± 21 g.|21 ± 15 g."
    assert [t for t in wrong.split("|") if read(task(asked, "21 g"), t) != 0] == []


def test_the_sign_of_an_nes_is_a_direction():
    """ "X has a positive NES." was wrong on every row; "positive enrichment score" is read."""
    forms = "{0} has a {1} NES.|The NES of {0} is {1}.|The {0} gene set has a {1} NES in the liver."
    for sign, way in (("positive", "up"), ("negative", "down")):
        for text in (f.format("DNA repair", sign) for f in forms.split("|")):
            found = claims(text, {"DNA repair": []})
            assert [c.direction for c in found] == [way], text


@pytest.mark.parametrize(
    "text", ["An increase rather than a decrease.", "It increases versus decreases."]
)
def test_what_is_paid_for_one_direction_is_wrong_for_the_other(text):
    """It was unread there: said always, it was paid on half of the rows and counted on no other."""
    asked = "Does the expression increase or decrease?"
    one, other = ("increase", "decrease") if "An " in text else ("increases", "decreases")
    assert read(task(asked, one), text) == 1 and read(task(asked, other), text) == 0


KINDS = {
    "Who led study {}?": ("Ruth Curie", "Maria Sanger", "Alexander Koch", "Ruth Koch"),
    "How often was drug {} given?": ("once daily", "twice daily", "three times daily"),
    "What does condition {} cause?": ("reduced bone density", "loss of photoreceptors"),
    "Does gene {} increase or decrease?": ("increase", "decrease"),
}


@pytest.mark.parametrize("prompt", KINDS)
def test_what_another_rows_truth_would_pay_is_wrong_not_unread(prompt):
    """ "Curie and Maria Sanger." was paid for Sanger and unread for Curie: no row counted it."""
    keys = KINDS[prompt]
    asked = known_names([task(prompt.format(1), k, id=k) for k in keys] * 2)[: len(keys)]
    asked = [replace(asked[0], truth=t.truth) for t in asked]
    forms = "{}.", "It is {}.", "{} and {}.", "{} rather than {}.", "Not {}.", "It is {}, not {}."
    words = [w for k in keys for w in (k, k.split()[-1], " ".join(k.split()[::-1]))]
    words += ["daily three", "rises"]
    for text in (f.format(a, b) for f in forms for a in words for b in words):
        said = {read(t, text) for t in asked}
        assert not {1, None} <= said, (text, said)


def test_a_surname_of_another_rows_person_is_a_rival():
    """ "Globus; Fleming." was paid for either: .70 of the maximum by who knows neither."""
    people = ("Ruth Globus", "Alexander Fleming", "Kary Mullis")
    asked = [task(f"Who led study {i}?", p, id=p) for i, p in enumerate(people)]
    for t in known_names(asked):
        said = [read(t, x) for x in ("Globus; Fleming.", "Globus and Fleming.", "Dr. Globus.")]
        assert said == [0, 0, int(t.id == people[0])]


def test_july_is_no_adverb():
    """ "In August 2014." was paid for "July 2014", as was each other month."""
    asked = "When did the trial begin?"
    assert read(task(asked, "July 2014"), "In July 2014.") == 1
    assert read(task(asked, "July 2014"), "In August 2014.") == 0


FORMS = [
    line.split("\t")  # a question, two options, what says that l is less of it than w
    for line in TABLE.with_name("comparisons.tsv").read_text("utf-8").splitlines()
]


def test_a_comparison_in_other_words_than_the_questions_is_not_read():
    """106 of 165 right answers ("It was lighter", to "which was heavier?") earned nothing at first, and
    92 of the wrong ones all; turned round by lists of opposites, each new word was a new fault."""
    said = Counter()
    for asked, options, form in FORMS:
        for a, b in (options.split("|"), options.split("|")[::-1]):
            of = task(asked.format(a=a, b=b), a.removeprefix("the "))
            for kind, w, l in (("right", a, b), ("wrong", b, a)):  # noqa: E741
                W, L = (x[0].upper() + x[1:] for x in (w, l))
                text = form.format(w=w, l=l, W=W, L=L)
                said[kind, read(of, text)] += 1
    assert said["wrong", 1.0] == 0 and said["right", 0.0] <= 2, said
    assert said["right", 1.0] >= 56, said  # those in the question's own words


AFTER = "It was higher after {}.", "It was lower after {}."
PEAKED = "{} peaked earlier.", "{} peaked later."


@pytest.mark.parametrize(
    ("prompt", "a", "b", "own", "other"),
    [
        ("Was the yield higher after {} or after {}?", "24 h", "48 h", *AFTER),
        ("Was expression higher after {} or after {}?", "fasting", "feeding", *AFTER),
        ("Which cytokine peaked earlier, {} or {}?", "IL-6", "TNF", *PEAKED),
        ("Which cytokine peaked earlier, {} or {}?", "PD-1", "CTLA-4", *PEAKED),
    ],
)
def test_options_behind_after_and_names_with_a_hyphen_were_turned_round(prompt, a, b, own, other):
    """ "It was higher after 48 h." earned nothing and "24 h" all; "IL-6 peaked later." was paid."""
    for right, wrong in ((a, b), (b, a)):
        asked = task(prompt.format(a, b), right)
        assert [read(asked, own.format(x)) for x in (right, wrong)] == [1, 0]
        assert [read(asked, other.format(x)) for x in (right, wrong)] == [None, None]


def test_one_of_several_in_opposite_words_is_not_the_answer():
    asked = task("Which organ recovered first?", "liver")
    assert read(asked, "The eye recovered after the liver.") is None
    offered = task("Which organ recovered first, the eye or the liver?", "liver")
    assert read(offered, "The liver recovered after the eye.") is None
    assert read(asked, "The liver recovered later.") is None
    assert read(asked, "The liver recovered first.") == 1
    of = task("Which vitamin is needed more in winter?", "vitamin D")
    assert read(of, "Vitamin D, because there is less sun.") == 1
    assert read(of, "Vitamin D due to its lower synthesis.") == 1


def test_no_constant_answer_does_well_on_comparisons():
    """What is not read is paid to nobody: a policy that compares on another scale earns nothing."""
    rows = []
    for i, (asked, options, _) in enumerate(FORMS[::8]):
        a, b = options.split("|")
        rows.append(task(asked.format(a=a, b=b), (a, b)[i % 2].removeprefix("the "), id=str(i)))
    for name in NAMES:
        said = [read(t, policy(name, t)) for t in rows]
        assert sum(x or 0 for x in said) <= 0.55 * len(said), name


WITHOUT = [  # in a question whose options have a preposition, units, several words
    "Were samples kept at {} or at {}?|4 °C|37 °C|At {}.",
    "Was RNA collected on {} or on {}?|day 3|day 14|On {}.",
    "Was it done with {} or with {}?|male mice|female mice|With {}.",
    "Was the dose {} or {}?|5 mg/kg|50 mg/kg|{}",
    "Which isoform dominates, {} or {}?|TGF-β1|TGF-β2|{}",
    "Is it {} or {}?|stage 2 disease|stage 3 disease|{}.",
    "Was heart rate higher {} or {} exercise?|before|after|{} exercise.",
    "Was heart rate higher {} or {} exercise?|before|after|It was higher {} exercise.",
]


@pytest.mark.parametrize("row", WITHOUT)
def test_an_option_as_it_stands_in_the_question_was_an_echo(row):
    """48 of 80 right answers ("At 4 °C.") and 108 of 264 bare ones ("50 mg/kg") earned nothing."""
    asked, a, b, form = row.split("|")
    for right, wrong in ((a, b), (b, a)):
        of = task(asked.format(a, b), right)
        said = [form.format(x)[0].upper() + form.format(x)[1:] for x in (right, wrong)]
        assert [read(of, x) for x in said] == [1, 0]
        assert read(of, of.prompt) == 0


LOWER = ("In {}, mortality was lower.", "Mortality was lower with {}.", "With {}, it was lower.")


@pytest.mark.parametrize("form", LOWER)
def test_a_comparison_beside_its_option_was_not_seen(form):
    """ "In smokers, mortality was lower." was paid for the higher one, and "lower with" them."""
    for right, wrong in (("smokers", "controls"), ("controls", "smokers")):
        of = task("Which group had the higher mortality, smokers or controls?", right)
        assert [read(of, form.format(*x)) for x in ((right, wrong), (wrong, right))] == [None] * 2
        assert read(of, f"In {right}, mortality was higher.") == 1
        assert read(of, f"{right.title()}, who die earlier.") == 1
    on = "Was expression greater on day 3 or on day 7?"  # was wrong for the key "day 7" alone
    assert [read(task(on, x), "It was lower on day 3.") for x in ("day 3", "day 7")] == [None] * 2


@pytest.mark.parametrize("grade", ["slowly", "faintly", "weakly"])
def test_more_of_a_word_that_says_less_was_more(grade):
    """ "P waves travel more slowly." was paid where they are faster, "S waves ... more slowly" not."""
    compared = {"quantity": "speed", "more": "P waves", "less": "S waves"}
    of = task("Which travel faster, P waves or S waves?", "P waves", comparison=compared)
    for x in ("P waves", "S waves"):
        assert read(of, f"{x} travel more {grade}.") is None
    assert read(of, "P waves travel faster.") == 1
    assert read(of, "S waves travel faster, because P waves travel more slowly.") == 0


@pytest.mark.parametrize(
    ("said", "paid"),
    [
        ("Heart, liver, and kidney.", 1.0),
        ("- heart\n- liver\n- kidney", 1.0),
        ("1. heart\n2. liver\n3. kidney", 1.0),
        ("They are the kidney, liver and heart.", 1.0),
        ("heart, liver, kidney", 1.0),
        ("heart and liver", 0.0),
        ("heart, liver, kidney and lung", 0.0),
        ("heart, heart and liver", 0.0),
    ],
)
def test_a_list_is_the_same_in_any_order_and_form(said, paid):
    """30 of 96 right lists were wrong: for a comma before "and", for bullets, for other rows' truths."""
    asked = [("Which organs responded?", "heart, liver and kidney")]
    asked += [
        (f"Which failed first in flight {i}?", o) for i, o in enumerate(["heart", "liver"] * 4)
    ]
    rows = [
        {
            "task_id": f"o{i}",
            "prompt": prompt,
            "ground_truth": {"expected_answer": right},
            "question_type": "factual",
            "applicable_verifiers": ["V1", "V4"],
        }
        for i, (prompt, right) in enumerate(asked)
    ]
    task = load(rows).tasks[0]
    answer = Response(task_id=task.id, id="r", text=said)
    assert verify("factual", task, answer).value == paid
