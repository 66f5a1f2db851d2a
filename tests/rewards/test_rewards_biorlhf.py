"""Five real evaluation files: the composed reward follows from the stored verifier scores to 1e-12."""

import json
import math
from pathlib import Path

import pytest

from kit import load
from kit.claims import verify
from kit.claims.factual import score
from kit.data.formats.biorlhf import truth_of
from kit.data.load import load_tasks
from kit.records import Part, Response, Task
from kit.rewards import components
from kit.rewards.composer import Composer

FOLDER = Path(__file__).resolve().parents[2] / ".." / "shared" / "data" / "biorlhf"
FILES = sorted(FOLDER.glob("grpo_*eval*.json"))
# In the files V1 is the direction (pathway) verifier, V2 the factual one: the scores of V1 are values of the pathway formula.
NAMES = {"V1": "direction", "V2": "factual", "V3": "consistency", "V4": "uncertainty"}


@pytest.mark.skipif(not FILES, reason="the real files are not here (../shared/data/biorlhf)")
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_composed_rewards(path, monkeypatch):
    rows = json.loads(path.read_text(encoding="utf-8"))["per_sample"]
    composer = Composer.from_config("biorlhf_published")
    stored: dict[str, float] = {}

    def given(kind, name, options, task, response, verdicts):
        return Part.known(name, stored[name]) if name in stored else Part.absent(name)

    monkeypatch.setattr(components, "score", given)
    for i, row in enumerate(rows):
        stored = {NAMES[k]: v for k, v in row["verifier_scores"].items()}
        g = composer.score(
            Task(id="t", prompt=row["prompt"]),
            Response(task_id="t", id=str(i), text=row["response"]),
            [],
        )
        assert abs(g.score - row["total_reward"]) <= 1e-12
        assert math.fsum(v for v in g.parts.values() if v is not None) == pytest.approx(
            g.score, abs=1e-12
        )
    mean = json.loads(path.read_text(encoding="utf-8"))["grpo"]["mean_reward"]
    assert mean == pytest.approx(sum(r["total_reward"] for r in rows) / len(rows), abs=1e-12)


def test_five_files_or_none():
    assert len(FILES) in (0, 5)


NAMES_WITH_NUMBERS = (
    (
        "Which disease was it?",
        "type 2 diabetes",
        "Type II diabetes.",
        "Fatty liver, in 2 of the mice.",
    ),
    ("Which strain was used?", "C57BL/6J", "The C57BL/6J strain.", "NOD, 6 mice."),
    ("When was it collected?", "day 7", "On the 7th day.", "7 hours after dosing."),
    ("On which date?", "May 5", "On the 5th of May.", "5 days later."),
    ("On which date?", "May 5", "5 May", "June 5."),
    ("Which chromosome carries it?", "chromosome 7", "It is on 7.", "Chromosome X, 7 times."),
    ("Which mission was it?", "Apollo 11", "It was Apollo eleven.", "Soyuz, with 11 cosmonauts."),
    ("In which week?", "week 3", "In the third week.", "Day 3."),
    ("Which mission?", "Rodent Research 5", "Rodent Research-5.", "Five mice flew on Cosmos."),
    ("Which isotope was used?", "carbon 14", "Carbon-14.", "Nitrogen 14."),
    ("When was blood drawn?", "flight day 14", "On flight day 14.", "After 14 hours."),
    ("Which system was it?", "Windows 10", "It was Windows 10.", "Linux, kernel 10."),
    ("How many died?", "12 mice", "Twelve mice died.", "13 mice."),
    ("How old were they?", "Age 12", "12", "13"),
)


@pytest.mark.parametrize(("question", "key", "right", "wrong"), NAMES_WITH_NUMBERS)
def test_a_number_within_a_name_is_no_amount(question, key, right, wrong):
    """The bare number of a name paid in full: 43 of 45 wrong answers to 15 questions."""
    row = {"prompt": question, "ground_truth": {"key_facts": [key]}, "question_type": "factual"}
    (task,) = load_tasks([row | {"applicable_verifiers": ["V2"]}]).tasks
    composer = Composer.from_config("verifiers")

    def paid(text):
        return composer.score(task, Response(task_id=task.id, id="r", text=text), []).score

    assert paid(right) == paid(key) == 1.0
    assert paid(wrong) <= 0.1


SYMBOLS = (
    ("TNF-alpha", ("TNF-α", "TNFα", "TNF alpha"), ("TNF-β", "TNF-beta", "IL-6")),
    ("NF-kappaB", ("NF-κB", "NF-kappa B", "The NFκB complex"), ("AP-1", "p53")),
    ("IL-1β", ("IL-1beta", "IL1 beta", "IL-1 β"), ("IL-1α", "IL-1alpha", "IL-6")),
    ("HIF-1alpha", ("HIF-1α", "HIF1α"), ("HIF-2α", "HIF-1β")),
    ("β-catenin", ("beta-catenin", "Beta catenin"), ("α-catenin", "cadherin")),
    ("IL-6", ("IL6", "It is IL-6."), ("IL-16", "IL-8", "6 cytokines")),
)


@pytest.mark.parametrize(("key", "right", "wrong"), SYMBOLS)
def test_a_greek_letter_and_its_name_are_one(key, right, wrong):
    """ "TNF-α" earned -.33 at 95 % where the key was "TNF-alpha", as 41 of 64 usual spellings."""
    truth = truth_of({"key_facts": [key]})
    task = Task(id="t", prompt="Which factor does the study name?", truth=truth)
    said = [Response(task_id="t", id=x, text=x) for x in (key, *right, *wrong)]
    assert [score(task, r).value for r in said] == [1.0] * (1 + len(right)) + [0.0] * len(wrong)


@pytest.mark.parametrize(
    ("key", "same"),
    [
        ("Wnt signaling", "Wnt signalling"),
        ("tumour", "tumor"),
        ("haemoglobin", "hemoglobin"),
        ("slow fibers", "slow fibres"),
        ("oesophagus", "esophagus"),
        ("polarization", "polarisation"),
        ("sulphur", "sulfur"),
    ],
)
def test_a_name_in_the_other_english_spelling_was_a_wrong_answer(key, same):
    """25 of 25 pairs of spellings earned 0, in both directions."""
    for want, text in ((key, same), (same, key)):
        task = Task(id="t", prompt="What is named?", truth=truth_of({"key_facts": [want]}))
        said = [Response(task_id="t", id=x, text=x) for x in (f"It is {text}.", "liver", "hours")]
        assert [score(task, r).value for r in said] == [1.0, 0.0, 0.0]


SETS = (
    ("HALLMARK_P53_PATHWAY", "p53 signaling", "The p53 pathway", "p53"),
    ("HALLMARK_PI3K_AKT_MTOR_SIGNALING", "PI3K/AKT/mTOR signaling", "The PI3K-AKT-mTOR axis"),
    ("HALLMARK_IL6_JAK_STAT3_SIGNALING", "IL-6/JAK/STAT3 signaling"),
    ("HALLMARK_TGF_BETA_SIGNALING", "TGF-β signaling", "TGFβ"),
    ("HALLMARK_MYC_TARGETS_V1", "MYC targets", "MYC target genes"),
    ("HALLMARK_KRAS_SIGNALING_DN", "KRAS signaling", "KRAS signaling (down) genes"),
    ("HALLMARK_UV_RESPONSE_UP", "The UV response", "UV response (up) genes"),
    ("HALLMARK_ESTROGEN_RESPONSE_EARLY", "The early estrogen response"),
)


@pytest.mark.parametrize("name", SETS, ids=lambda n: n[0])
@pytest.mark.parametrize("direction", ["UP", "DOWN"])
def test_a_gene_set_under_its_usual_name_was_silence(name, direction):
    """174 of 540 right answers ("p53 signaling is upregulated") earned what a wrong one earns."""
    words = {"UP": "is upregulated", "DOWN": "is downregulated"}
    truth = truth_of({"pathway": name[0], "direction": direction})
    task = Task(id="t", prompt="Up or down?", truth=truth | {"verifiers": ["direction"]})
    for said in name[1:]:
        for way, verb in words.items():
            r = Response(task_id="t", id="r", text=f"{said} {verb} in flight.")
            assert (verify("direction", task, r).value > 0.5) == (way == direction), r.text


@pytest.mark.parametrize("key", ["grade II", "grade 2", "Grade two"])
@pytest.mark.parametrize("form", ["facts", "key_facts"])
def test_a_grade_in_another_numeral_was_another_grade(key, form):
    """ "Grade 2" earned nothing where the key was "grade II", as 7 of 10 usual wordings did."""
    truth = {"facts": [{"id": "f", "text": key}]} if form == "facts" else {form: [key]}
    for asked in ("Which grade was it?", "Is it of grade I, grade II or grade III?"):
        task = Task(id="t", prompt=asked, truth=truth_of(truth))
        right = "Grade 2.", "grade II", "It was grade two.", "A grade 2 tumour.", "II"
        wrong = "Grade 3", "grade III", "Grade one", "III", "not grade 2", "stage 2", "grade 12"
        said = [Response(task_id="t", id=x, text=x) for x in (*right, *wrong)]
        assert [score(task, r).value for r in said] == [1] * len(right) + [0] * len(wrong)
    both = Response(task_id="t", id="r", text="Grade 2 or grade 3.")
    assert score(task, both).value == 0


@pytest.mark.parametrize("asked", [["V3", "V4"], ["V4"]])
@pytest.mark.parametrize(
    ("truth", "right", "wrong"),
    [
        ({"key_facts": ["thymus"]}, "The thymus.", "The liver."),
        ({"pathway": "DNA_REPAIR", "direction": "UP"}, "DNA repair is up.", "DNA repair is down."),
        ({"is_consistent": True}, "It is consistent.", "It is tissue-specific."),
        (
            {"comparison": {"quantity": "mass", "more": "liver", "less": "heart"}},
            "The mass is higher in the liver than in the heart.",
            "The mass is higher in the heart than in the liver.",
        ),
    ],
)
def test_a_confidence_is_held_against_the_truth_where_v4_alone_is_asked(truth, right, wrong, asked):
    """It was held against 0: the right answer earned .427 at 5 % and -.087 at 95 %."""
    row = {"prompt": "What is it?", "ground_truth": truth, "applicable_verifiers": asked}
    (task,) = load_tasks([row]).tasks
    composer = Composer.from_config("verifiers")

    def paid(text, sure):
        said = Response(task_id=task.id, id="r", text=f"{text} Confidence: {sure}%")
        return composer.score(task, said, []).score

    assert paid(right, 5) < paid(right, 50) < paid(right, 99)
    assert paid(wrong, 5) > paid(wrong, 50) > paid(wrong, 99)


ALIKE = {"liver": "UP", "kidney": "UP", "thymus": "UP"}
MIXED = {**ALIKE, "thymus": "DOWN"}


@pytest.mark.parametrize(
    ("text", "ways", "right"),
    [
        ("Glycolysis is upregulated in all three tissues.", ALIKE, True),
        ("It rises in each of the tissues.", ALIKE, True),
        ("Up in all of them.", ALIKE, True),
        ("Every tissue shows an increase.", ALIKE, True),
        ("It goes up in all three, so yes, the response is consistent.", ALIKE, True),
        ("Upregulated everywhere.", ALIKE, True),
        ("In all 3 tissues, glycolysis is activated.", ALIKE, True),
        ("Both show an increase.", {"liver": "UP", "eye": "UP"}, True),
        ("Glycolysis is downregulated in all three tissues.", ALIKE, False),
        ("It is not upregulated in all three tissues.", ALIKE, False),
        ("Not all tissues show an increase.", ALIKE, False),
        ("It is upregulated in almost all tissues.", ALIKE, False),
        ("It is upregulated in all tissues except the thymus.", ALIKE, False),
        ("It is upregulated in two of the three tissues.", ALIKE, False),
        ("It is upregulated in all two tissues.", ALIKE, False),
        ("Up in the liver, down in all other tissues.", ALIKE, False),
        ("Up in both.", ALIKE, False),
        ("It is upregulated in all three tissues.", MIXED, False),
        ("Down in all of them.", MIXED, False),
    ],
)
def test_all_three_tissues_are_the_three_that_were_asked_for(text, ways, right):
    """ "Upregulated in all three tissues" earned what "downregulated" in them did."""
    *first, last = ways
    task = load(
        [
            {
                "id": "t",
                "prompt": f"How does glycolysis change in {', '.join(first)} and {last}?",
                "ground_truth": {"tissue_directions": ways},
                "applicable_verifiers": ["V1", "V4"],
            }
        ]
    ).tasks[0]
    composer = Composer.from_config("verifiers")
    said = Response(task_id="t", id="r", text=f"{text} Confidence: 95%")
    earned = composer.score(task, said, ()).score or 0.0  # none where it is not read
    assert (earned > 0.8 * composer.limits(task)[1]) is right


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("It is highly conserved.", True),
        ("There is strong conservation across missions.", True),
        ("High conservation.", True),
        ("It is not highly conserved.", False),
        ("It is poorly conserved.", False),
        ("Highly unlikely to be conserved.", False),
    ],
)
def test_highly_conserved_is_of_high_conservation(text, right):
    task = Task(id="t", prompt="Is it conserved?", truth=truth_of({"conservation_level": "high"}))
    assert score(task, Response(task_id="t", id="r", text=text)).value == float(right)
