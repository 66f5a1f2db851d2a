"""The workbench with a fake judge: what is asked, what is paid, what may be claimed."""

import dataclasses
import json
import math

import numpy as np
import pytest

import kit
from kit.data.taskset import TaskSet
from kit.errors import DataError, KitError
from kit.judge.attacks import Attack
from kit.records import Criterion, Response, Task, Verdict, fingerprint, unknown
from kit.tuning import SealedError, Seals, attacked, trials
from kit.tuning.pages import flips_html

STRICT = "Be strict."


class FakeJudge:
    """Says met to all, unless it is strict: then it reads the answer. Counts what it is asked."""

    asked = 0

    def __init__(self, prompt, how="all"):
        self.prompt, self.how, self.name = prompt, how, "fake"

    def key(self, task, response, criterion):
        return fingerprint([self.prompt, self.how, task.asked, response.text, criterion.text])

    async def verdicts(self, task, response, criteria):
        FakeJudge.asked += 1
        met = "good" in response.text or (STRICT not in self.prompt)
        met = met and "Say no" not in self.prompt
        ids = {"task_id": task.id, "response_id": response.id}
        status = "met" if met else "unmet"
        return [
            Verdict(**ids, criterion_id=c.id, status=status, reason=self.prompt, cost=0.01)
            for c in criteria
        ]


def labels(n=40):
    tasks, answers, verdicts = [], [], []
    for i in range(n):
        task = Task(id=f"t{i}", prompt=f"Q {i}", criteria=(Criterion(id="a", text="Right."),))
        tasks.append(task)
        for k, word in enumerate(("good", "bad")):
            answers.append(Response(task_id=task.id, id=f"r{k}", text=f"a {word} answer"))
            ids = {"task_id": task.id, "response_id": f"r{k}", "criterion_id": "a"}
            status = "met" if word == "good" else "unmet"
            verdicts.append(Verdict(**ids, status=status, judge="human"))
    return TaskSet(tasks=tasks, responses=answers, verdicts=verdicts)


def bench_of(tmp_path, n=40, judge=FakeJudge, given=None, prompt="Be kind. Read all.", **more):
    FakeJudge.asked = 0
    seals = Seals(tmp_path / "seals.sqlite")
    return kit.workbench(
        given or labels(n),
        judge=judge,
        ledger=tmp_path / "l.sqlite",
        prompt=prompt,
        seals=seals,
        **more,
    )


def test_three_lines_find_the_better_prompt_and_the_sealed_test_says_so(tmp_path):
    bench = bench_of(tmp_path)
    bench.try_("strict", bench.prompt.replace("Be kind.", STRICT))
    first, last = bench.data()
    assert first["trial"] == "strict" and first["kappa on dev"].startswith("1.000")
    assert last["trial"] == "baseline" and last["from"] == "" and first["from"] == "baseline"
    flips = bench.flips("baseline", "strict")
    assert flips.words == f"{len(flips)} mended, 0 broken, 0 lost, 0 found" and flips
    assert flips[0]["reason now"].startswith(STRICT) and flips[0]["human"] == "unmet"
    read = bench.test()
    assert read.winner == "strict" and read.reads == 1 and read.gain.value == 1
    with pytest.raises(SealedError):
        bench.test()
    assert bench.test(replay=True).replayed


def test_the_sealed_test_is_read_for_the_trial_that_is_named(tmp_path):
    """What the search found stood on the test's table only where it won."""
    bench = bench_of(tmp_path)
    bench.try_("strict", STRICT)
    bench.try_("fair", "Be fair.")
    read = bench.test("fair")
    assert read.winner == "fair" and read.gain.value == 0 and "beats" not in read.sentence
    with pytest.raises(SealedError):
        bench.test()


def test_the_test_rows_are_never_asked_before_it_is_read(tmp_path):
    bench = bench_of(tmp_path)
    bench.try_("strict", STRICT)
    hidden = bench.part == "test"
    assert all(bench.trials["strict"].verdicts[i] is None for i in hidden.nonzero()[0])
    assert all(f["part"] != "test" for f in bench.answers("strict"))
    with pytest.raises(DataError, match="sealed"):
        bench.doubt(int(hidden.nonzero()[0][0]), "me", "it is wrong")
    with pytest.raises(DataError, match="sealed"):
        bench.again(int(hidden.nonzero()[0][0]), "strict")


def test_an_unchanged_prompt_costs_nothing(tmp_path):
    bench = bench_of(tmp_path)
    bench.try_("strict", STRICT)
    paid = FakeJudge.asked
    bench.try_("strict", STRICT)
    bench.try_("the same words", STRICT)
    assert FakeJudge.asked == paid
    assert bench.data()[0]["$ per 1000"] == "10.000"  # what it cost when it was asked


def test_a_bad_prompt_is_given_up_before_all_is_paid(tmp_path):
    bench = bench_of(tmp_path, n=150)
    bench.try_("good start", STRICT)
    full = FakeJudge.asked
    bench = bench_of(tmp_path, n=150, folder=tmp_path / "kept")
    FakeJudge.asked = 0
    trial = bench.try_("no", "Say no. " + STRICT.replace("strict", "harsh"))
    assert not trial.stopped  # half of the answers are bad: saying no is as good as saying yes
    bench = bench_of(tmp_path, n=150)
    bench.prompt = STRICT
    bench.try_("baseline", STRICT)
    FakeJudge.asked = 0
    trial = bench.try_("worse", "Be kind.")
    assert trial.stopped and FakeJudge.asked < full / 4 and trial.asked < 150
    assert "worse" not in {c.name for c in bench.candidates()}
    assert bench.data()[-1]["note"] == trial.stopped


def test_a_prompt_whose_replies_cannot_be_used_is_given_up_before_all_is_paid(tmp_path):
    """908 of 908 rows were asked, and paid, of a trial that gave no verdict: it could not win."""

    class FakeMute(FakeJudge):
        async def verdicts(self, task, response, criteria):
            got = await super().verdicts(task, response, criteria)
            if "Say nothing." not in self.prompt:
                return got
            return [unknown(*v.ids, "parse", cost=0.01) for v in got]

    bench = bench_of(tmp_path, n=200, judge=FakeMute)
    trial = bench.try_("mute", "Say nothing.")
    assert "gives less than 90% of verdicts" in trial.stopped and trial.asked < 60


def test_two_people_may_doubt_a_label_and_a_seal_may_be_a_file(tmp_path):
    """The second doubt took the first one's place; a path of seals was found out at the test."""
    bench = bench_of(tmp_path, folder=tmp_path / "kept")
    row = int(bench._queue[0])
    bench.doubt(row, "ann", "unclear")
    bench.doubt(row, "bob", "wrong")
    bench.doubt(row, "bob", "surely wrong")
    again = bench_of(tmp_path, folder=tmp_path / "kept")
    assert [(d["who"], d["why"]) for d in again.doubts] == [
        ("ann", "unclear"),
        ("bob", "surely wrong"),
    ]
    with pytest.raises(DataError, match="no such row"):
        bench.doubt(True, "ann", "unclear")
    path = tmp_path / "s.sqlite"
    assert kit.workbench(labels(), judge=FakeJudge, seals=path).seals.path == path


def test_an_edit_under_the_same_name_keeps_the_old_version_in_the_count(tmp_path):
    bench = bench_of(tmp_path)
    bench.try_("mine", "Be fair.")
    second = bench.try_("mine", STRICT)
    assert second.parent == "mine~1" and bench.trials["mine~1"].prompt == "Be fair."
    assert second.diff(bench.trials["mine~1"]) == [("gone", "Be fair."), ("new", STRICT)]
    assert len(bench.data()) == 3
    with pytest.raises(KitError, match="did you mean 'mine'"):
        bench.flips("mime", "baseline")
    bench.try_("other", "Be brief.")
    third = bench.try_("mine", "Be very brief.", parent="other")
    assert third.parent == "other"  # it was "mine~2", and its diff was shown against that


def test_a_later_session_finds_trials_and_doubts_and_pays_nothing(tmp_path):
    bench = bench_of(tmp_path, folder=tmp_path / "kept")
    bench.try_("strict", STRICT)
    at = bench.flips("baseline", "strict")[0]["row"]
    bench.doubt(at, "ann", "the answer is fine")
    before = bench.data()
    again = bench_of(tmp_path, folder=tmp_path / "kept")
    assert FakeJudge.asked == 0 and again.data() == before
    assert again.doubts == bench.doubts and math.isnan(again.labels()[at])


def test_a_folder_keeps_verdicts_where_no_ledger_is_named(tmp_path):
    """Trials were kept and their verdicts were not: each opening of the bench paid for all."""
    more = {"judge": FakeJudge, "prompt": "Be kind.", "folder": tmp_path / "kept"}
    first = kit.workbench(labels(), **more)
    first.try_("strict", STRICT)
    FakeJudge.asked = 0
    assert kit.workbench(labels(), **more).data() == first.data() and FakeJudge.asked == 0


def test_the_search_competes_as_a_trial_and_goes_on_without_paying_twice(tmp_path):
    pytest.importorskip("gepa")
    seen = []

    def reflect(prompt):
        seen.append(prompt)
        return f"```\n{STRICT}\n```"

    reflect.name = "fake lm"
    bench = bench_of(tmp_path)
    most = bench.estimate(100)
    bench.search(reflect, rows=100)
    paid, asked = FakeJudge.asked, len(seen)
    assert paid + asked <= most.calls and most.cost is None
    assert bench.choose().winner.name == "found 1" and asked > 0
    again = bench_of(tmp_path)
    first = (again.part == "train").nonzero()[0][0]
    again.search(reflect, rows=100)
    assert FakeJudge.asked == 0 and len(seen) == asked and paid > 0
    assert again.trials["baseline"].verdicts[first].cached
    test = {again.rows[i].task.asked for i in (again.part == "test").nonzero()[0]}
    assert not any(f"{q}\n" in text or f"{q}'" in text for q in test for text in seen)


def test_export_and_the_page_escape_what_was_judged(tmp_path):
    bench = bench_of(tmp_path)
    bench.rows[bench._queue[0]].response.__dict__["text"] = "a bad <script>alert(1)</script>"
    bench.try_("strict", STRICT)
    data = json.loads(bench.export(tmp_path / "b.json").read_text())
    assert {t["trial"] for t in data["trials"]} == {"baseline", "strict"}
    assert data["flips"]["strict"] and data["test"] is None
    html = bench.export(tmp_path / "b.html").read_text()
    assert "<script>alert" not in html and "strict" in html


def test_the_cut_of_flips_keeps_each_kind():
    """Of 387 flips the first 200 were on the page, all of them broken: "mended" showed none."""
    row = {"row": 0, "part": "dev", "human": "met", "before": "met", "now": "unmet"}
    row |= {"criterion": "c", "prompt": "p", "answer": "a", "P before": None, "P now": None}
    row |= {"reason before": "", "reason now": ""}
    flips = [{**row, "effect": kind} for kind in ("broken", "mended") for _ in range(7)]
    html = flips_html(flips, top=5)
    assert html.count(">mended<") == html.count(">broken<") == 5 and "10 of 14 are listed" in html


def test_labels_of_one_kind_or_too_few_prompts_are_refused(tmp_path):
    few = labels(4)
    with pytest.raises(DataError, match="prompts fall into"):
        kit.workbench(few, judge=FakeJudge)
    some = TaskSet(tasks=few.tasks, responses=few.responses, verdicts=few.verdicts[::2])
    with pytest.raises(DataError, match="alike"):
        kit.workbench(some, judge=FakeJudge)
    with pytest.raises(KitError, match="no prompt to change"):
        kit.workbench(labels(), judge="code")


def test_a_prompt_that_agrees_more_may_be_easier_to_fool_and_the_table_says_so(tmp_path):
    bench = bench_of(tmp_path)
    bench.try_("strict", STRICT)
    bench.try_("no", STRICT + " Say no.")
    praise = Attack("praise", "calls itself good", lambda task, r: r.text + " It is good.")
    found = bench.attack("strict", "no", attacks=[praise], answers=5)
    rates = {name: audit.row("praise").rate for name, audit in found.items()}
    assert (rates["strict"].value, rates["no"].value) == (1.0, 0.0)
    assert rates["strict"].n == 5
    table = attacked.rows(found)
    assert table[0]["what"] == "praise" and table[0]["strict"].startswith("1.000")
    assert next(r["what"] for r in table if r[""] == "ladder") == "whole"
    paid = FakeJudge.asked
    bench.attack("strict", "no", attacks=[praise], answers=5)
    assert FakeJudge.asked == paid  # from the ledger


def test_the_sealed_answers_are_never_attacked(tmp_path):
    bench = bench_of(tmp_path)
    bench.try_("strict", STRICT)
    attacked_texts = []
    spy = Attack(
        "spy", "notes who it is", lambda task, r: attacked_texts.append(task.prompt) or "x"
    )
    bench.attack("strict", attacks=[spy], answers=100)
    parts = {r.task.prompt: part for r, part in zip(bench.rows, bench.part, strict=True)}
    assert {parts[t] for t in attacked_texts} == {"train"}


def test_a_refused_second_read_is_not_paid(tmp_path):
    """The test's rows were asked for another winner, and only then the read was refused."""
    bench = bench_of(tmp_path)
    bench.try_("strict", STRICT)
    bench.test()
    again = bench_of(tmp_path)
    again.try_("other", STRICT + " And fair.")
    paid = FakeJudge.asked
    for replay in (False, True):
        with pytest.raises(SealedError):
            again.test(replay=replay)
    assert FakeJudge.asked == paid


def test_a_prompt_that_judges_alike_does_not_win(tmp_path):
    """A copy of the baseline won by its name, and used up the sealed read."""
    bench = bench_of(tmp_path)
    bench.try_("a copy", bench.prompt)
    assert bench.choose().winner.name == bench.data()[0]["trial"] == "baseline"
    assert bench.test().sentence == "The baseline was the best on dev: nothing to claim."


def test_the_order_of_the_file_does_not_hide_that_the_test_was_read(tmp_path):
    """With the same rows in another order, a replay found no recorded reading."""
    bench = bench_of(tmp_path, measure="accuracy")
    bench.try_("strict", STRICT)
    bench.test()
    turned = labels()
    turned = TaskSet(tasks=turned.tasks, responses=turned.responses[::-1], verdicts=turned.verdicts)
    again = kit.workbench(
        turned, judge=FakeJudge, prompt=bench.prompt, measure="accuracy", seals=bench.seals
    )
    again.try_("strict", STRICT)
    assert again.test(replay=True).replayed


@pytest.mark.parametrize("change", ["{}\r\n", "  {}", "{}.", "upper"])
def test_a_text_saved_by_another_program_does_not_open_the_seal(tmp_path, change):
    """Windows' line ends, a blank, a full stop or capitals: the test was read again as the first
    time, without --unseal.
    """
    bench = bench_of(tmp_path)
    bench.try_("strict", STRICT)
    bench.test()

    def other(text):
        return text.upper() if change == "upper" else change.format(text)

    old = labels()
    saved = TaskSet(
        tasks=[dataclasses.replace(t, prompt=other(t.prompt)) for t in old.tasks],
        responses=[dataclasses.replace(r, text=other(r.text)) for r in old.responses],
        verdicts=old.verdicts,
    )
    again = bench_of(tmp_path, given=saved)
    again.try_("strict", STRICT)
    with pytest.raises(SealedError):
        again.test()


def test_a_seal_of_before_holds(tmp_path):
    """Rows were known by their texts to the letter; a kit of today knows them by their words."""
    bench = bench_of(tmp_path)
    bench.try_("strict", STRICT)
    study = bench.study()
    ids = [fingerprint([r.task.asked, r.response.text, r.criterion.text]) for r in bench.rows]
    dataclasses.replace(study, ids=ids, before=None).test(bench.choose(), seals=bench.seals)
    with pytest.raises(SealedError):
        bench.test()


def test_labels_that_say_nothing_are_left_out_and_named(tmp_path):
    """Two raters split evenly counted as met, and labels not understood vanished in silence."""
    said = [["yes", "no"], "maybe??", "partly", ["no", "no"]]
    rows = [
        {"task_id": f"t{i}", "prompt": f"Q {i}", "criterion_id": "a", "criterion": "Right."}
        | {"response_id": f"t{i}r{k}", "response": f"answer {i} {k}", "label": label}
        for i in range(40)
        for k, label in enumerate(said)
    ]
    file = tmp_path / "labels.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    bench = kit.workbench(file, judge=FakeJudge, folder=tmp_path / "kept")
    assert len(bench.rows) == 80 and bench.human.sum() == 40
    assert "40 rows have no label: the raters are split evenly" in repr(bench)
    assert "40 labels lie between met and unmet: .5 and more is met" in repr(bench)
    assert "40 labels left out (unreadable-label), as: the label 'maybe??'" in repr(bench)
    bench.try_("strict", STRICT)
    assert "split evenly" in bench._repr_html_()


def test_settings_and_rows_that_cannot_be_meant_are_refused_unpaid(tmp_path):
    """A score of 2 was refused after all was paid; row -1 was another row, 9999 an IndexError."""
    bench = bench_of(tmp_path)
    bench.try_("strict", STRICT)
    paid = FakeJudge.asked
    for wrong in (
        {"options": {"zed": 2, "nil": 0}},
        {"options": {"zed": "1", "nil": 0}},
        {"options": {"zed": 1}},
        {"options": 3},
        {"reword": {"Right.": []}},
        {"reword": {"Right.": [" "]}},
        {"reword": 3},
    ):
        with pytest.raises(KitError):
            bench.try_("wrong", **wrong)
    for row in (-1, len(bench.rows), 9999):
        with pytest.raises(DataError, match="no such row"):
            bench.doubt(row, "ann", "why")
        with pytest.raises(DataError, match="no such row"):
            bench.again(row, "strict")
    assert FakeJudge.asked == paid and not bench.doubts


def test_an_interval_that_few_prompts_carry_says_so_in_the_table(tmp_path):
    """kappa .984 [-1.00, 1.00] stood there without a word."""
    bench = bench_of(tmp_path)
    bench.try_("nearly", STRICT)
    dev = [i for i, part in enumerate(bench.part) if part == "dev"]
    trial = bench.trials["nearly"]
    flipped = list(trial.verdicts)
    flipped[dev[0]] = dataclasses.replace(flipped[dev[0]], status="unmet", value=None)
    bench.trials["nearly"] = dataclasses.replace(trial, verdicts=tuple(flipped))
    row = next(r for r in bench.data() if r["trial"] == "nearly")
    assert "few clusters carry all the spread" in row["note"], row


def test_prompts_that_differ_by_blanks_or_case_are_one_prompt(tmp_path):
    """33 of 60 such questions lay in more than one part: train quoted rows of the sealed test."""
    data = labels(30)
    twins = [
        dataclasses.replace(t, id=f"{t.id}x", prompt=f" {t.prompt.upper()} ") for t in data.tasks
    ]
    more = {
        "responses": [dataclasses.replace(r, task_id=f"{r.task_id}x") for r in data.responses],
        "verdicts": [dataclasses.replace(v, task_id=f"{v.task_id}x") for v in data.verdicts],
    }
    both = {name: [*getattr(data, name), *rows] for name, rows in more.items()}
    given = TaskSet(tasks=[*data.tasks, *twins], **both)
    b = bench_of(tmp_path, given=given)
    parts = {}
    for row, part in zip(b.rows, b.part, strict=True):
        parts.setdefault(row.task.id.removesuffix("x"), set()).add(part)
    assert len(set(b.cluster)) == 30 and {len(p) for p in parts.values()} == {1}


def test_a_doubt_stays_on_its_own_answer_when_two_have_the_same_words(tmp_path):
    """Opened again, the doubt lay on the sound label and the doubted one counted."""
    data = labels(40)
    same = [dataclasses.replace(r, text="an answer") for r in data.responses]
    data = dataclasses.replace(data, responses=same)
    b = bench_of(tmp_path, given=data, folder=tmp_path / "kept")
    rows = [i for i, p in enumerate(b.part) if p == "train"][:2]
    for doubted in rows:
        b.doubt(doubted, "me", "why")
        again = bench_of(tmp_path, given=data, folder=tmp_path / "kept")
        assert again.doubts[-1]["row"] == doubted


def test_trials_by_hand_are_no_group_whatever_their_names(tmp_path):
    """Two prompts by hand named "found 3" and "found 7" were one group: dev never saw the other."""
    bench = bench_of(tmp_path, folder=tmp_path / "kept")
    for n, text in ((3, "Be kind."), (7, STRICT)):
        bench.try_(f"found {n}", text)
    assert {s.name for s in bench.choose().dev} == {"baseline", "found 3", "found 7"}
    for name in ("found 3", "found 7"):  # as a search leaves them
        bench.trials[name] = dataclasses.replace(bench.trials[name], found=True)
    bench._remember()
    again = bench_of(tmp_path, folder=tmp_path / "kept")
    assert {s.name for s in again.choose().dev} == {"baseline", "found 7"}


def test_a_trial_without_a_name_or_with_idle_settings_is_refused_unpaid(tmp_path):
    """An empty name stood in the table; of and how together were taken, and how did nothing."""
    bench = bench_of(tmp_path)
    for name, more in (
        (" ", {"prompt": STRICT}),
        ("empty", {"prompt": " "}),
        ("bands", {"bands": {"": [0.2, 0.8]}}),
        ("cascade", {"of": ["baseline", "a"], "bands": {"x": [0, 1]}}),
        ("panel", {"of": ["baseline", "a"], "how": "one"}),
        ("panel", {"of": ["baseline", "panel"]}),
    ):
        with pytest.raises(KitError):
            bench.try_(name, **more)
    assert FakeJudge.asked == 0 and not bench.trials


def test_the_order_of_the_label_rows_is_paid_once(tmp_path):
    """Rows in another order put the criteria in another order into the prompt: 88 of 176 calls
    were paid again, and other answers were shown as examples.
    """
    rows = [
        {"task_id": f"t{i}", "prompt": f"Q {i}", "criterion": text}
        | {"response": f"{answer} {i}", "label": label}
        | ({"criterion_id": f"c{n}"} if i % 2 else {})
        for i in range(40)
        for answer, label in (("good", "met"), ("bad", "unmet"))
        for n, text in ((2, "Right."), (10, "Clear."))
    ]
    asked, shown = set(), []
    for given in (rows, rows[::-1]):
        file = tmp_path / "labels.jsonl"
        file.write_text("\n".join(map(json.dumps, given)))
        bench = bench_of(tmp_path, given=file)
        asked |= {tuple((c.id, c.text) for c in r.task.criteria) for r in bench.rows}
        shown.append(bench.examples(4))
    assert asked == {
        (("c2", "Right."), ("c10", "Clear.")),
        (("c1", "Clear."), ("c2", "Right.")),
    }
    assert shown[0] == shown[1]
    bench = bench_of(tmp_path, given=file)
    bench.try_("strict", STRICT)
    assert 0 < FakeJudge.asked < 80


def test_a_search_on_rows_in_another_order_pays_nothing(tmp_path):
    """Its minibatches went by the order of the file: sorted anew, judging and rewriting were paid
    again."""
    data, wrote = labels(30), []

    def rewrite(prompt):
        wrote.append(prompt)
        return f"```\n{STRICT}\n```"

    rewrite.name = "fake writer"
    found = []
    for rows in (data.responses, data.responses[::-1]):
        given = dataclasses.replace(data, responses=rows)
        bench = bench_of(tmp_path, given=given, folder=tmp_path / "kept")
        found.append((bench.search(rewrite, rows=60), len(wrote)))
    assert found[0] == found[1] and len(wrote) > 0
    assert FakeJudge.asked == 0 and "found 1" in bench.trials


def test_a_folder_of_another_form_of_the_rows_is_refused_unpaid(tmp_path):
    """--whole with the folder of an earlier bench asked all of its trials on joined rubrics."""
    bench_of(tmp_path, folder=tmp_path / "kept").try_("strict", STRICT)
    with pytest.raises(KitError, match="criteria one by one, not whole rubrics"):
        bench_of(tmp_path, folder=tmp_path / "kept", whole=True)
    assert FakeJudge.asked == 0


def test_the_first_look_is_at_prompts_of_all_kinds(tmp_path):
    """A file sorted by kind began with the one where the new prompt is worse: a prompt that agreed
    .28 more was given up after 96 of 960 rows. An interval for any time needs rows in no order.
    """
    given = labels(240)
    turned = dataclasses.replace(given, tasks=given.tasks[::-1], responses=given.responses[::-1])
    first = [
        {b.rows[i].task.id for i in trials.stages(b._queue, b.cluster, 8)[0]}
        for b in (bench_of(tmp_path, given=g) for g in (given, turned))
    ]
    assert first[0] == first[1] and len(first[0]) == 8
    assert max(int(name[1:]) for name in first[0]) > 60


def test_a_prompt_stays_in_its_part_under_other_ids(tmp_path):
    """A prompt had the part of its smallest id: with a second model's answers under new ids, 42 of
    60 prompts moved, and examples of train were rows of the new test.
    """
    data = labels(60)

    def named(name):
        tasks = [dataclasses.replace(t, id=f"{name}{t.id}") for t in data.tasks]
        more = {
            "responses": [
                dataclasses.replace(r, task_id=f"{name}{r.task_id}") for r in data.responses
            ],
            "verdicts": [
                dataclasses.replace(v, task_id=f"{name}{v.task_id}") for v in data.verdicts
            ],
        }
        return {"tasks": tasks, **more}

    both = {k: v + named("a")[k] for k, v in named("").items()}
    parts = [
        {r.task.asked: p for r, p in zip(b.rows, b.part, strict=True)}
        for b in (bench_of(tmp_path, given=g) for g in (data, TaskSet(**both)))
    ]
    assert parts[0] == parts[1] and set(parts[0].values()) == {"train", "dev", "test"}


def test_two_benches_on_one_folder_keep_each_others_trials_and_doubts(tmp_path):
    """The one that wrote last wiped out the other's trials: they count, and were paid."""
    a, b = (bench_of(tmp_path, folder=tmp_path / "kept") for _ in range(2))
    first, second = (int(i) for i in a._queue[:2])
    a.try_("one", STRICT)
    a.doubt(first, "ann", "unclear")
    b.try_("one", "Be fair.")
    b.doubt(second, "bob", "unclear")
    a.try_("three", "Be brief.")
    again = bench_of(tmp_path, folder=tmp_path / "kept")
    prompts = {t.name: t.prompt for t in again.trials.values()}
    assert prompts.pop("one~1") == "Be fair." and prompts.pop("one") == STRICT
    assert set(prompts) == {"baseline", "three"}
    assert {d["row"] for d in again.doubts} == {first, second}


def test_what_was_made_of_a_trial_stays_made_of_it_beside_another_bench(tmp_path):
    """Another bench wrote a prompt of the same name: the panel was opened again as one of that
    prompt (kappa .978 became .933), and the child showed its diff against it.
    """
    a, b = (bench_of(tmp_path, folder=tmp_path / "kept") for _ in range(2))
    a.try_("one", STRICT)
    a.try_("child", "Be brief.", parent="one")
    a.try_("panel", of=["baseline", "one"])
    b.try_("one", "Be fair.")
    a.try_("last", "Be short.")
    for bench in (b, a):
        bench.try_("baseline")
        kept = bench_of(tmp_path, folder=tmp_path / "kept").trials
        made = next(n for n, t in kept.items() if t.prompt == STRICT)
        assert kept["child"].parent == made and kept["panel"].settings["of"] == ["baseline", made]
        assert "panel~1" not in kept and {"one", "one~1"} <= set(kept)


def test_a_panel_of_panels_that_is_replaced_beside_another_bench_stays_what_it_is(tmp_path):
    """The file then held a panel of itself, and no bench could open it again (RecursionError)."""
    a = bench_of(tmp_path, folder=tmp_path / "kept")
    a.try_("one", STRICT)
    a.try_("two", of=["one", "baseline"])
    b = bench_of(tmp_path, folder=tmp_path / "kept")
    a.try_("panel", of=["two", "one"])
    a.try_("two", of=["one", "panel"])
    b.doubt(int(b._queue[0]), "ann", "unclear")
    kept = bench_of(tmp_path, folder=tmp_path / "kept").trials
    assert set(kept) == {"baseline", "one", "two", "panel", "two~1"}
    made = {n: t.settings["of"] for n, t in kept.items() if "of" in t.settings}
    first = next(n for n, of in made.items() if of == ["one", "baseline"])
    assert made["panel"] == [first, "one"] and ["one", "panel"] in made.values()


def test_a_folder_of_other_labels_another_judge_or_baseline_is_refused_unpaid(tmp_path):
    """All trials of a folder were asked, and paid, on whatever labels and judge it was opened with;
    a new baseline was shown with the old one's numbers.
    """
    first = bench_of(tmp_path, folder=tmp_path / "kept")
    first.try_("strict", STRICT)
    other = labels(40)
    answers = [dataclasses.replace(r, text=f"other {r.text}") for r in other.responses]
    other = dataclasses.replace(other, responses=answers)
    for more in ({"given": other}, {"prompt": "Be fair."}):
        with pytest.raises(KitError, match="other labels|another prompt"):
            bench_of(tmp_path, folder=tmp_path / "kept", **more)
    assert FakeJudge.asked == 0
    again = bench_of(tmp_path, folder=tmp_path / "kept", prompt=None)
    assert again.prompt == first.prompt and set(again.trials) == {"baseline", "strict"}
    file = tmp_path / "kept" / "bench.json"
    kept = json.loads(file.read_text())
    file.write_text(json.dumps({**kept, "judge": "endpoint:other"}))
    with pytest.raises(KitError, match="of endpoint:other, not endpoint:m"):
        bench_of(tmp_path, judge="endpoint:m", folder=tmp_path / "kept")


@pytest.mark.parametrize(
    "text", ["{", "", "[]", '{"trials": []}', '{"trials": [{}], "doubts": []}']
)
def test_a_file_that_no_bench_wrote_is_named(tmp_path, text):
    """A damaged bench.json was a traceback."""
    (tmp_path / "bench.json").write_text(text)
    with pytest.raises(DataError, match="no bench wrote this file") as error:
        bench_of(tmp_path, folder=tmp_path)
    assert "bench.json" in error.value.where


def test_a_prompt_counts_by_its_rows_when_a_trial_is_given_up():
    """One that was right more often in the table was given up: few large prompts mended by it,
    many small ones broken.
    """
    cluster = np.repeat(np.arange(240), [30 if i % 4 == 0 else 1 for i in range(240)])
    gap = np.where(cluster % 4 == 0, 0.2, -0.6)
    assert gap.mean() > 0 and not trials.hopeless(gap, cluster)
    assert trials.hopeless(-gap, cluster) and trials.hopeless(np.full(99, -0.6), np.arange(99))


def test_one_question_in_two_groups_is_one_prompt(tmp_path):
    """42 of 60 questions that two sources ask lay in more than one part."""
    data = labels(30)
    tasks = [dataclasses.replace(t, id=f"x{t.id}", group=f"g{t.id}") for t in data.tasks]
    more = {
        "tasks": [*data.tasks, *tasks],
        "responses": data.responses
        + [dataclasses.replace(r, task_id=f"x{r.task_id}") for r in data.responses],
        "verdicts": data.verdicts
        + [dataclasses.replace(v, task_id=f"x{v.task_id}") for v in data.verdicts],
    }
    bench = bench_of(tmp_path, given=TaskSet(**more))
    assert len(bench.rows) == 120 and len(set(bench.cluster)) == 30
    assert set(bench.cluster) == {f"gt{i}" for i in range(30)}


def test_names_and_prompts_that_are_no_text_are_refused_unpaid(tmp_path):
    """A trial named None was kept: every later trial was paid, died with it and was lost."""
    bench = bench_of(tmp_path, folder=tmp_path / "kept")
    for name, prompt in ((None, STRICT), (3, STRICT), ("p", 5), ("p", "")):
        with pytest.raises(DataError, match="name is|prompt is"):
            bench.try_(name, prompt)
    assert FakeJudge.asked == 0 and not bench.trials
    bench.try_("p", STRICT)
    for who, why in ((None, None), ("me", None)):
        with pytest.raises(DataError, match="who and why"):
            bench.doubt(0, who, why)
    with pytest.raises(DataError, match="rows"):
        bench.search(lambda p: p, rows="x")


def test_flips_of_a_part_that_is_none_are_refused(tmp_path):
    """ "0 verdicts changed" was said of the part "Dev", where 54 had."""
    bench = bench_of(tmp_path)
    bench.try_("strict", STRICT)
    both = [bench.flips("baseline", "strict", part=p) for p in ("train", "dev")]
    assert sum(map(len, both)) == len(bench.flips("baseline", "strict")) > 0
    for part in ("Dev", "test"):
        with pytest.raises(KitError, match="part"):
            bench.flips("baseline", "strict", part=part)
