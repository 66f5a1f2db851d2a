"""The search: GEPA on a fake judge and a fake rewriter, through the ledger, and the recorded one."""

import pytest
from fake_server import FakeServer, honest
from fakes_of_tuning import STRICT, Fake, labels

import kit
from kit.errors import BudgetError, MissingError
from kit.system import paths
from kit.tuning import AUDIT_CHANGES

pytest.importorskip("gepa")
ROWS = 140


class Writer:
    def __init__(self):
        self.prompts = []

    def __call__(self, prompt):
        self.prompts.append(prompt)
        return f"```\n{STRICT}\n```"


def test_the_search_finds_the_better_prompt():
    b, writer = kit.workbench(labels(), judge=Fake, prompt="Be kind."), Writer()
    assert b.search(rows=200, reflect=writer) == ["searched 1"]
    assert b.trials["searched 1"].prompt == STRICT and b.choose() == "searched 1"
    assert "Wrong: people say not met." in writer.prompts[0] and "Be kind." in writer.prompts[0]
    assert "test" not in set(b.trials["searched 1"].verdicts["part"])


def test_what_the_rewriter_raises_ends_the_search():
    def broken(prompt):
        raise MissingError("no rewriter")

    b = kit.workbench(labels(), judge=Fake, prompt="Be kind.")
    with pytest.raises(MissingError, match="no rewriter"):
        b.search(rows=200, reflect=broken)


def test_a_search_that_was_stopped_goes_on_from_the_ledger(tmp_path):
    """With an endpoint: stop in the middle, and nothing is paid twice."""

    def reply(asked):
        if not asked.criteria:
            return f"```\n{STRICT}\n```"
        kind = STRICT not in asked.system
        return honest(asked, flip=[n for n, met in asked.truth.items() if kind and met == "unmet"])

    def bench(server, budget=None):
        judge = {"endpoint": "fake", "base_url": server.url, "system": "Be kind."}
        few = labels(40, text="{} good. Is {} clear.")
        ledger = tmp_path / "ledger.sqlite"
        return kit.workbench(few, judge=judge, ledger=ledger, budget=budget)

    with FakeServer(reply) as server:
        with pytest.raises(BudgetError):
            bench(server, kit.Budget(calls=30)).search(rows=100)
        first = len(server.calls)
        assert 20 < first <= 30
        bench(server).search(rows=100)
        whole = len(server.calls)
        bench(server).search(rows=100)
        assert len(server.calls) == whole


# -- the recorded judge
@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    seals = tmp_path_factory.mktemp("seals")
    b = kit.workbench(paths.data("judge_labels.jsonl"), judge="replay:small", seals=seals)
    for name in ("strict", "fair", "evidence", "examples"):
        b.try_(name, paths.data("judge_prompts", f"{name}.txt").read_text("utf-8"))
    b.try_("one by one", how="one")
    b.search(rows=ROWS)
    return b


# on dev, as the first edition measured them from the replies themselves
KAPPAS = {"baseline": 0.027, "strict": 0.152, "fair": 0.136, "evidence": 0.051, "examples": 0.095}
KAPPAS |= {"one by one": 0.146, "searched 1": 0.129}


@pytest.mark.parametrize("name", KAPPAS)
def test_the_recorded_loop_is_replayed(recorded, name):
    assert recorded.agreement(name).value == pytest.approx(KAPPAS[name], abs=6e-4)


def test_the_recorded_search_can_be_run_again(recorded):
    text = recorded.trials["searched 1"].prompt
    again = kit.workbench(paths.data("judge_labels.jsonl"), judge="replay:small")
    assert again.search(rows=ROWS) == again.search(rows=ROWS) == ["searched 1"]
    assert again.trials["searched 1"].prompt == text
    with pytest.raises(MissingError, match="no completion"):
        again.search(rows=300)


def test_the_recorded_test_and_attacks(recorded):
    reading = recorded.test("strict")
    assert reading.gain.n == 84 and "No difference in kappa" in reading.sentence
    failed = recorded.rows[(recorded.part == "train") & (recorded.rows["human"] == 0)]
    ids = set(zip(failed["task"], failed["response"], strict=True))
    answers = [r for r in recorded.data.responses if r.ids in ids][:8]
    audits = {}
    for name in ("baseline", "strict"):
        judge = recorded.judge_of(recorded.trials[name].prompt)
        attacks = [n for n, c in AUDIT_CHANGES.items() if c.kind in ("attack", "step")]
        audits[name] = kit.audit(judge, recorded.data, answers, changes=attacks, progress=False)
    tricks = ("nothing added", "fake verdict", "rubric echo", "self-praise", "control tokens")
    for audit in audits.values():
        assert all(audit.rates[name].n for name in tricks)
        assert audit.rates["padding"].note == "not recorded"
    assert "self-praise" in audits["strict"].line


def test_what_was_not_recorded_says_how_to_go_on(recorded):
    with pytest.raises(MissingError) as e:
        recorded.try_("mine", recorded.prompt + " Be kind.")
    assert "kit fetch judge" in e.value.fix and "mine" not in recorded.trials
