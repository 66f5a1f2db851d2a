"""What an outsider saw in the rewards: each test tells one incident."""

import pytest

from kit import data
from kit.claims import bags, factual, known_names
from kit.claims.direction import claims, settle
from kit.records import Response, Task
from kit.rewards import search
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
