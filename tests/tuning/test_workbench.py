"""The workbench on a fake judge: trials, flips, doubts, the sealed test, and what it refuses."""

import json

import msgspec
import pytest
from fake_server import FakeServer
from fakes_of_tuning import STRICT, Fake, labels

import kit
from kit.data import TaskSet
from kit.errors import DataError
from kit.plots import explore


def bench(prompts=40, **options):
    maker = options.pop("judge", Fake)
    return kit.workbench(labels(prompts), judge=maker, prompt="Be kind.", **options)


def test_a_better_prompt_is_seen_chosen_and_claimed():
    b = bench(120)
    trial = b.try_("strict", f"{STRICT} Be kind.")
    assert trial.diff(b.trials["baseline"]) == [f"+ {STRICT}"]
    table = b.table()
    assert list(table["trial"]) == ["strict", "baseline"] and b.choose() == "strict"
    assert table["kappa on dev"][0].startswith("1.000") and table["judged"][0] == "100%"
    assert table["more than the baseline"][0].startswith("1.000")
    flips = b.flips("baseline", "strict")
    assert {f["effect"] for f in flips} == {"mended"} and "mended, 0 lost" in repr(flips)
    assert flips[0]["reason before"] == "because 1.0" and flips[0]["people"] == "unmet"
    reading = b.test()
    assert reading.sentence.startswith("A gain in kappa of strict")
    assert reading.gain.low > 0 and "dev less test: .000" in repr(reading)
    figure = b.plot()
    assert figure.layout.meta["rows"][0]["name"] == "strict"
    assert "A gain in kappa of strict over" in figure.layout.title.text


def test_the_test_part_is_asked_only_by_test():
    Fake.count = 0
    b = bench()
    b.try_("strict", STRICT)
    n = int((b.part != "test").sum())
    assert Fake.count == 2 * n and len(b.trials["strict"].verdicts) == n
    b.try_("strict", STRICT)
    assert Fake.count == 2 * n  # the same trial again asks nothing
    b.test()
    assert Fake.count == 2 * len(b.rows)


def test_a_test_is_read_once():
    b = bench()
    b.try_("strict", STRICT)
    first = b.test()
    again = bench()
    again.try_("strict", STRICT)
    assert repr(again.test()) == repr(first)
    again.try_("other", f"{STRICT} Truly.")
    with pytest.raises(DataError, match="was read before") as e:
        again.test("other")
    assert "unseal=True" in e.value.fix
    assert "The test was read 2 times" in again.test("other", unseal=True).sentence


def test_labels_may_name_their_sealed_test():
    data = labels(40)
    last = {t.id for t in data.tasks[-10:]}
    tasks = [msgspec.structs.replace(t, split="test" if t.id in last else None) for t in data]
    data = TaskSet(tasks=tasks, responses=data.responses, verdicts=data.verdicts)
    b = kit.workbench(data, judge=Fake, prompt="Be kind.")
    assert set(b.rows["task"][b.part == "test"]) == last
    assert set(b.part) == {"train", "dev", "test"}


def test_rows_are_known_by_their_texts_whatever_their_ids():
    assert bench().test("baseline").sentence.startswith("Kappa of the baseline on")
    whole = labels()

    def moved(records, field):
        new = kit.records.msgspec.structs.replace
        return [new(r, **{field: f"other {getattr(r, field)}"}) for r in records]

    tasks, answers = moved(whole.tasks, "id"), moved(whole.responses, "task_id")
    other = TaskSet(tasks=tasks, responses=answers, verdicts=moved(whole.verdicts, "task_id"))
    b = kit.workbench(other, judge=Fake, prompt="Be kind.")
    b.try_("strict", STRICT)
    with pytest.raises(DataError, match="was read before"):
        b.test("strict")


def test_silence_gains_nothing():
    """Unknown where it would be wrong is counted as a disagreement."""

    def maker(prompt, **more):
        return Fake(prompt, silent=("bad",) if "quiet" in prompt else (), **more)

    b = bench(120, judge=maker)
    b.try_("quiet", "quiet")
    assert b.flips("baseline", "quiet")[0]["effect"] == "lost"
    assert b.table().set_index("trial")["judged"]["quiet"] == "50%" and b.choose() == "baseline"
    assert "gain" not in b.test("quiet").sentence


def test_settings_are_trials():
    b = bench()
    b.try_("strict", STRICT)
    b.try_("hard", lenient=False)
    assert b.trials["hard"].diff(b.trials["baseline"]) == ["+ lenient = False"]
    b.try_("other judge", judge=lambda prompt: Fake(STRICT))
    assert b.agreement("other judge").value == 1.0
    assert b.trials["other judge"].prompt == b.prompt


REFUSED = [
    (lambda b: b.try_("baseline", "another"), "another trial of this name"),
    (lambda b: b.export("x.txt", "strikt"), "did you mean 'strict'"),
    (lambda b: b.search(rows=3, reflect=str), "too few for a round"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_what_is_refused(call, message):
    b = bench()
    b.try_("strict", STRICT)
    with pytest.raises(DataError, match=message):
        call(b)


@pytest.mark.parametrize("judge", ["code", Fake, Fake()])
def test_a_judge_without_a_prompt_is_refused(judge):
    with pytest.raises(DataError, match="no prompt to begin with"):
        kit.workbench(labels(), judge=judge)


def test_a_doubtful_label_is_left_out():
    whole = labels()
    other = kit.records.msgspec.structs.replace(
        whole.verdicts[0], judge="human:b", status="unmet", value=0.0
    )
    split = TaskSet(tasks=whole.tasks, responses=whole.responses, verdicts=[*whole.verdicts, other])
    raters = kit.workbench(split, judge=Fake, prompt="Be kind.")
    assert len(raters.rows) == len(bench().rows) - 1 and "1 label in doubt" in repr(raters)


def test_few_prompts_are_compared_and_no_more():
    b = bench(6)
    b.try_("strict", STRICT)
    table = b.table()
    assert "kappa on train" not in table and "n=24" in table["kappa on dev"][0]
    assert "all rows are compared" in repr(b)
    for call in (b.test, b.search):
        with pytest.raises(DataError, match="prompts with labels: 6") as e:
            call()
        assert "100 prompts" in e.value.fix


def test_hostile_text_is_escaped_in_all_views():
    b = bench()
    b.try_("strict", f"{STRICT} <script>x</script>")
    for name, draw in b.views().items():
        assert "<script>" not in draw()._repr_html_(), name
    assert "trials" in b.views()
    assert "strict" in explore(b)._repr_html_()


def test_three_files_are_joined(tmp_path):
    whole = labels()
    for name in ("tasks", "responses", "verdicts"):
        rows = [kit.records.to_json(r) for r in getattr(whole, name)]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / f"{name}.jsonl").write_text(text)
    files = [tmp_path / f"{n}.jsonl" for n in ("tasks", "responses", "verdicts")]
    b = kit.workbench(files, judge=Fake, prompt="Be kind.")
    assert len(b.rows) == 160 and b.part.tolist() == bench().part.tolist()


def test_answers_with_labels_on_other_criteria(tmp_path):
    whole = labels(12)
    few = [v for v in whole.verdicts if v.response_id == "r0" or v.criterion_id == "a"]
    b = kit.workbench(
        TaskSet(tasks=whole.tasks, responses=whole.responses, verdicts=few), judge=Fake, prompt="x"
    )
    assert len(b.rows) == 36
    b.try_("strict", STRICT)
    assert b.agreement("strict").value == 1.0


def test_one_prompt_file_from_tuning_to_judging(tmp_path):
    """Verdicts are paid once, cost is read from the ledger, and the exported file is a judge's prompt."""
    few = labels(12)
    with FakeServer() as server:
        judge = {"endpoint": "fake", "base_url": server.url, "price": [1.0, 1.0]}
        options = {"judge": judge, "ledger": tmp_path / "ledger.sqlite"}
        b = kit.workbench(few, **options)
        b.try_("strict", STRICT)
        b.try_("one", how="one")
        n, table = len(server.calls), b.table()
        assert n == 24 + 24 + 48  # 24 answers: all at once twice, two criteria
        again = kit.workbench(few, **options)
        again.try_("strict", STRICT)
        assert len(server.calls) == n
        costs = [
            dict(zip(t["trial"], t["$ per 1000"], strict=True)) for t in (table, again.table())
        ]
        assert costs[0]["strict"] == costs[1]["strict"] and float(costs[0]["strict"]) > 0
        path = b.export(tmp_path / "prompt.txt", "strict")
        assert path.read_text() == f"{STRICT}\n"
        made = kit.judge_of({"endpoint": "fake", "base_url": server.url, "prompt": str(path)})
        assert made.system == STRICT
