"""Who rewrites and proposes, over a real connection: what is asked, paid, lost, and said."""

import asyncio
import json
from types import SimpleNamespace
from typing import ClassVar

import pytest
from served import FakeChat, served
from test_tuning_bench import STRICT, FakeJudge, bench_of

import kit
from kit.errors import BudgetError, DataError, JudgeDownError
from kit.judge import Ledger, factory
from kit.train import evolving, reward
from kit.tuning.makers import Reflector, maker
from kit.tuning.search import Labelled, size

pytest.importorskip("gepa")


class FakeModel(FakeChat):
    """Gives a strict prompt, and keeps what it read."""

    asked: ClassVar[list[dict]] = []
    said: ClassVar[str] = f"```\n{STRICT}\n```"
    lost = 0  # replies that break off

    def do_POST(self):
        FakeModel.asked.append(self.body())
        if FakeModel.lost:
            FakeModel.lost -= 1
            self.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{broken}}")
            return
        self.answer(FakeModel.said)


@pytest.fixture
def model():
    FakeModel.asked = []
    with served(FakeModel) as url:
        yield {"endpoint": "w", "base_url": url}


def test_a_model_over_http_rewrites_and_is_paid_once(tmp_path, model):
    """The caller's third argument had become a number of tokens: each of 20 reflections was paid,
    failed with an AttributeError that GEPA swallowed, and was paid again by the next run.
    """
    assert Reflector(None, maker(model))("Rewrite.") == FakeModel.said
    bench = bench_of(tmp_path)
    bench.search(model, rows=100)
    assert bench.trials["found 1"].prompt == STRICT
    asked = len(FakeModel.asked)
    bench_of(tmp_path).search(model, rows=100)
    assert len(FakeModel.asked) == asked > 1
    assert FakeModel.asked[0]["max_completion_tokens"] == 1200


def test_a_model_over_http_proposes_criteria_in_a_training(tmp_path, model):
    bill, book = reward.Bill.of(tmp_path / "bill.json", False), Ledger(tmp_path / "ledger.sqlite")
    judge = factory.judge_of({**model, "price": [1, 2]})
    ask = evolving.asker(judge, SimpleNamespace(bill=bill, ledger=book, budget=None))
    for _ in range(2):  # once it is known
        assert asyncio.run(ask("Propose.")) == FakeModel.said
    bill.begin(book)
    assert bill.calls == 1 and bill.cost == pytest.approx(19e-6)


def test_proposals_count_in_the_budget_of_a_training(tmp_path, model):
    """kit.Budget(calls=1) was passed by every proposal: only the judge's own calls counted."""
    bill, book = reward.Bill.of(tmp_path / "bill.json", False), Ledger(tmp_path / "ledger.sqlite")
    of = SimpleNamespace(bill=bill, ledger=book, budget=kit.Budget(calls=1))
    ask = evolving.asker(factory.judge_of(model), of)
    assert asyncio.run(ask("Propose.")) == asyncio.run(ask("Propose.")) == FakeModel.said
    with pytest.raises(BudgetError):
        asyncio.run(ask("Propose another."))
    assert len(FakeModel.asked) == 1 == of.budget.spent.calls


def test_a_rewriting_function_may_ask_a_judge(tmp_path, model):
    """It is not called in the kit's own loop, which it would wait for and stop."""

    def rewrite(prompt):
        (v,) = kit.judge(
            [kit.Task(id="t", prompt="p", criteria=(kit.Criterion(id="c", text="is short"),))],
            [kit.Response(task_id="t", id="r", text=prompt)],
            judge=model,
            progress=False,
        )
        return v.status

    with Ledger(tmp_path / "ledger.sqlite") as book:
        assert Reflector(rewrite, None, ledger=book)("A prompt.") == "unknown"


def test_a_proposal_without_a_text_is_asked_again(tmp_path, model, monkeypatch):
    """A reply without a text stood in the ledger as "None", and a resumed run read it there."""
    bill, book = reward.Bill.of(tmp_path / "bill.json", False), Ledger(tmp_path / "ledger.sqlite")
    ask = evolving.asker(
        factory.judge_of(model), SimpleNamespace(bill=bill, ledger=book, budget=None)
    )
    monkeypatch.setattr(FakeModel, "said", None)
    assert asyncio.run(ask("Propose.")) == ""
    monkeypatch.setattr(FakeModel, "said", "A criterion.")
    assert asyncio.run(ask("Propose.")) == "A criterion."
    assert {r["judge"]: r["calls"] for r in book.costs()} == {"evolve": 2}


@pytest.mark.parametrize("reply", [None, "", 7, RuntimeError("401")])
def test_a_rewriter_that_fails_ends_the_search_and_says_so(tmp_path, reply):
    """All reflections failed, and the search said that it had found nothing, with exit code 0."""
    asked = []

    def rewrite(prompt):
        asked.append(prompt)
        if isinstance(reply, Exception):
            raise reply
        return reply

    with pytest.raises(RuntimeError if isinstance(reply, Exception) else JudgeDownError):
        bench_of(tmp_path).search(rewrite, rows=100)
    assert len(asked) == 1


def test_a_rewriter_that_is_down_is_an_error(tmp_path):
    down = {"endpoint": "w", "base_url": "http://127.0.0.1:9/v1", "tries": 1, "patience": 1}
    with pytest.raises(JudgeDownError):
        bench_of(tmp_path).search(down, rows=100)


def test_the_budget_holds_in_a_search_and_nothing_is_lost(tmp_path, model):
    """A search went past kit.Budget and --budget-usd, by its verdicts and its reflections."""
    bench = bench_of(tmp_path)
    bench.budget = kit.Budget(calls=1)
    with pytest.raises(BudgetError):
        bench.search(lambda prompt: f"```\nBe kind, {len(prompt)}.\n```", rows=200)
    assert bench.budget.spent.calls == 1
    bench = bench_of(tmp_path)
    bench.budget = kit.Budget(calls=0)
    with pytest.raises(BudgetError):
        bench.search(model, rows=100)
    assert FakeModel.asked == []
    bench.budget = kit.Budget(calls=9)
    bench.search(model, rows=100)
    assert bench.budget.spent.calls == len(FakeModel.asked) > 0 and "found 1" in bench.trials


def test_labels_in_doubt_are_no_lesson(tmp_path):
    """Labels that somebody doubted were shown to the rewriter as what people say."""
    seen, bench = [], bench_of(tmp_path)
    bench.try_("baseline", bench.prompt)
    train = [i for i, part in enumerate(bench.part) if part == "train"]
    names = list(dict.fromkeys(bench.rows[i].task.asked for i in train))[:5]
    for i in train:
        if bench.rows[i].task.asked in names:
            bench.doubt(i, "ann", "unclear")
    bench.search(lambda prompt: seen.append(prompt) or f"```\nBe {len(seen)}.\n```", rows=100)
    shown = "\n".join(seen)
    assert seen and not any(f"{name}\n" in shown for name in names)


def test_rows_is_a_cap_and_too_few_are_refused_unpaid(tmp_path):
    """rows=10 judged 87 rows, rows=100 judged 198."""
    bench = bench_of(tmp_path)
    paid = FakeJudge.asked
    with pytest.raises(DataError, match="10 rows are too few") as error:
        bench.search(lambda prompt: f"```\nBe kind {len(prompt)}.\n```", rows=10)
    least = int(error.value.fix.split("rows=")[1].split()[0])
    assert paid == FakeJudge.asked and not bench.trials
    for rows in (least, least + 1, 2 * least):
        found = bench.search(lambda prompt: f"```\n{STRICT} {len(prompt)}\n```", rows=rows)
        assert 0 < found.judged_rows <= rows and len(found.instructions) > 1


@pytest.mark.parametrize("rewrites", [True, False])
def test_a_search_makes_no_more_calls_than_its_estimate(tmp_path, rewrites):
    """ "At most" left out the reflections, the trials of what is found, and calls for one row."""
    asked, bench = [], bench_of(tmp_path)

    def rewrite(prompt):
        asked.append(prompt)
        return f"```\n{STRICT if rewrites else 'Be kind.'} {len(asked)}\n```"

    most = bench.estimate(60).calls
    bench.search(rewrite, rows=60)
    assert asked and FakeJudge.asked + len(asked) <= most


def test_a_search_has_room_for_rounds_however_many_labels_there_are():
    """The default of 300 rows was an error where train had more than 288."""
    few, many = ([Labelled(None, None, None, i % 2, f"q{i}") for i in range(n)] for n in (40, 600))
    assert size(few).most == 300
    assert size(many).most == size(many).tracked + 5 * size(many).once > 1500


def test_a_function_is_not_given_what_another_one_wrote(tmp_path):
    """Every plain function was the same writer in the ledger: the second was never asked."""
    for text in ("First.", "Second."):
        bench_of(tmp_path).search(lambda prompt, text=text: f"```\n{text}\n```", rows=60)
        with Ledger(tmp_path / "l.sqlite") as book:
            write = Reflector(lambda prompt, text=text: text, FakeJudge, ledger=book)
            assert write("Rewrite.") == text


def test_reflections_stand_in_the_cost_book_and_in_the_estimate(tmp_path, model):
    """The search's dearest calls cost $0 there, at the judge's price in the estimate."""
    dear = {**model, "price": [1000, 1000]}
    bench = bench_of(tmp_path)
    assert bench.estimate(60, dear).cost is None  # the judge's own price is not known
    cheap = bench_of(tmp_path, judge=lambda prompt: maker({**model, "price": [1, 1]})(prompt))
    assert cheap.estimate(60, dear).cost > 100 * cheap.estimate(60).cost > 0
    bench.search(dear, rows=60)
    book = {r["judge"]: r for r in bench.ledger.costs()}["reflection"]
    asked = len(FakeModel.asked)
    assert (book["calls"], book["tokens_in"], book["tokens_out"]) == (asked, 9 * asked, 5 * asked)
    assert book["cost"] == pytest.approx(14e-3 * asked)


def test_an_empty_reply_that_was_paid_stands_in_the_cost_book(tmp_path, model, monkeypatch):
    """The server billed 73 calls, the ledger knew 72: the reflection without a text was nowhere."""
    monkeypatch.setattr(FakeModel, "said", "")
    dear = {**model, "price": [1000, 1000]}
    with Ledger(tmp_path / "l.sqlite") as book:
        write = Reflector(dear, maker(dear), ledger=book)
        for asked in (1, 2):  # what gave nothing is asked again, and paid again
            with pytest.raises(JudgeDownError, match="an empty reply"):
                write("Rewrite.")
            costs = {r["judge"]: r for r in book.costs()}
            assert costs["reflection"]["calls"] == len(FakeModel.asked) == asked
            assert costs["reflection"]["cost"] == pytest.approx(14e-3 * asked)
        monkeypatch.setattr(FakeModel, "said", "Be strict.")
        assert write("Rewrite.") == write("Rewrite.") == "Be strict."
    assert len(FakeModel.asked) == 3


def test_an_attempt_that_was_lost_stands_in_the_cost_book(tmp_path, model, monkeypatch):
    """A reflection that broke off and was tried again stood once in the ledger, twice on the bill."""
    monkeypatch.setattr(FakeModel, "lost", 1)
    dear = {**model, "price": [1000, 1000]}
    budget = kit.Budget()
    with Ledger(tmp_path / "l.sqlite") as book:
        write = Reflector(dear, maker(dear), ledger=book, budget=budget)
        assert write("Rewrite.") == FakeModel.said
        costs = book.costs()
    assert sum(r["calls"] for r in costs) == len(FakeModel.asked) == 2
    assert budget.spent.cost > 20e-3
    assert sum(r["cost"] for r in costs) == pytest.approx(budget.spent.cost)


def test_judging_again_stands_in_the_cost_book(tmp_path, model, monkeypatch):
    """The server billed 51 calls, the ledger knew 46: what was asked again was nowhere."""
    reply = {"a": {"reason": "so", "verdict": "met"}}
    monkeypatch.setattr(FakeModel, "said", json.dumps(reply))
    bench = bench_of(tmp_path, judge=model)
    bench.try_("baseline")
    row, asked = int(bench._queue[0]), len(FakeModel.asked)
    monkeypatch.setattr(FakeModel, "said", json.dumps(reply).replace("met", "unmet"))
    assert bench.again(row, "baseline").status == "unmet"
    assert sum(r["calls"] for r in bench.ledger.costs()) == len(FakeModel.asked) == asked + 1
    again = bench_of(tmp_path, judge=model)
    assert again.try_("baseline").verdicts[row].status == "met"  # the first answer counts
    assert len(FakeModel.asked) == asked + 1


def test_another_place_of_a_model_is_another_writer(model):
    """Two servers with one model name shared their replies, whatever temperature was asked for."""
    first = Reflector(model, maker(model))
    others = {**model, "temperature": 1.0}, {**model, "base_url": "http://127.0.0.1:9/v1"}
    assert all(Reflector(o, maker(o))._who() != first._who() for o in others)
