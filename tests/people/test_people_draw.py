"""`kit label`: what is drawn, what it is worth, and that its file, filled in, is read again."""

from __future__ import annotations

import csv
import json
import re
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from answered import made, rows_of, write

import kit
from kit import people
from kit.__main__ import main
from kit.data import TaskSet
from kit.data.values import guarded, unguarded
from kit.errors import DataError
from kit.people.labels import read_labels
from kit.people.view import joined, judgments
from kit.records import Criterion, Response, Task, Verdict
from kit.tables import averaged, table


def study(folder, *, prompts=120, seed=0):
    """One criterion a prompt, 4 answers; the judge misses a third of the rare failures."""
    rng = np.random.default_rng(seed)
    tasks, answers, grades, truth = [], [], [], {}
    rubric = [{"id": "c", "text": "t", "meta": {}}]
    for t in range(prompts):
        tasks.append({"id": f"t{t}", "prompt": "p", "criteria": rubric})
        for a in range(4):
            ids = {"task_id": f"t{t}", "response_id": f"r{a}"}
            met = bool(rng.random() < 0.85)
            said = (met and rng.random() < 0.95) or (not met and rng.random() < 0.33)
            truth[f"t{t}", f"r{a}"] = met
            answers.append({**ids, "response": "x"})
            ends = {"score": 1.0, "score_low": 1.0, "score_high": 1.0}
            verdicts = [{"criterion_id": "c", "status": "met" if said else "unmet"}]
            grades.append({**ids, **ends, "verdicts": verdicts})
    names = ("tasks", "answers", "grades")
    paths = [folder / f"{n}{seed}.jsonl" for n in names]
    rows = (tasks, answers, grades)
    return [write(p, r) for p, r in zip(paths, rows, strict=True)], truth


def filled(drawn, truth):
    """The rows of a draw with their labels."""
    words = {True: "met", False: "unmet"}
    return [r | {"label": words[truth[r["task_id"], r["response_id"]]]} for r in drawn.rows]


def test_filled_in_it_is_what_agree_and_rate_read(tmp_path, capsys):
    (tasks, answers, grades), truth = study(tmp_path)
    out = tmp_path / "todo.csv"
    command = ["label", tasks, answers, "--n", "60", "--grades", grades]
    assert main([*command, "--design", "stratified", "--out", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["fresh"] == 60
    with out.open(newline="") as f:
        rows = list(csv.DictReader(f))
    assert "unmet" not in out.read_text()  # the judge's verdict is not shown to who labels
    for r in rows:
        r["label"] = "yes" if truth[r["task_id"], r["response_id"]] else "no"
    with out.open("w", newline="") as f:
        table = csv.DictWriter(f, list(rows[0]))
        table.writeheader()
        table.writerows(rows)
    assert main(["agree", tasks, str(out), grades]) == 0
    assert "n=60" in capsys.readouterr().out
    assert main(["rate", tasks, str(out), grades, "--json"]) == 0  # the file says its design
    data = json.loads(capsys.readouterr().out)
    assert data["design"] == "probability" and data["score"] is not None
    assert main(["rate", tasks, str(out), grades, "--design", "random"]) == 2
    assert main([*command, "--out", str(out)]) == 2  # labels are never written over
    assert "may hold labels" in capsys.readouterr().err


def test_stratified_draws_are_weighted_back(tmp_path):
    """Half of the rows are from the rare verdict: without weights kappa and rate are off."""
    (tasks, answers, grades), truth = study(tmp_path, prompts=300)
    everything = [
        {
            "task_id": t,
            "response_id": r,
            "criterion_id": "c",
            "design": "random",
            "label": int(m),
            "inclusion": 1.0,
        }
        for (t, r), m in truth.items()
    ]
    whole = kit.agreement(tasks, write(tmp_path / "all.jsonl", everything), grades)
    rate = np.mean(list(truth.values()))
    kappas, rates, held = [], [], 0
    for seed in range(12):
        drawn = kit.draw(tasks, answers, n=120, design="stratified", grades=grades, seed=seed)
        labels = write(tmp_path / f"l{seed}.jsonl", filled(drawn, truth))
        found = kit.agreement(tasks, labels, grades).overall
        kappas.append(found.kappa.value)
        rates.append(kit.rate(tasks, labels, grades).passed)
        held += found.kappa.low <= whole.overall.kappa.value <= found.kappa.high
    assert np.mean(kappas) == pytest.approx(whole.overall.kappa.value, abs=0.05)
    assert np.mean([r.value for r in rates]) == pytest.approx(rate, abs=0.015)
    assert held >= 10 and sum(r.low <= rate <= r.high for r in rates) >= 10


def test_a_probability_that_a_spreadsheet_wrote_anew_is_read_or_an_error_of_its_cell(tmp_path):
    """A decimal comma, a percentage or one empty cell, and all weights were left out in silence."""
    (tasks, answers, grades), truth = study(tmp_path, prompts=30)
    drawn = kit.draw(tasks, answers, n=20, design="stratified", grades=grades)
    rows, path = filled(drawn, truth), tmp_path / "l.jsonl"
    wanted = kit.agreement(tasks, write(path, rows), grades).overall.accuracy.value
    for form in (lambda x: str(x).replace(".", ","), lambda x: f"{100 * x} %"):
        changed = [r | {"inclusion": form(r["inclusion"])} for r in rows]
        found = kit.agreement(tasks, write(path, changed), grades).overall.accuracy
        assert found.value == pytest.approx(wanted)
    for cell in (None, "", "01. Jan"):
        write(path, [*rows[:3], rows[3] | {"inclusion": cell}, *rows[4:]])
        with pytest.raises(DataError, match=r"probability(?s:.*)line 4, inclusion"):
            kit.agreement(tasks, path, grades)
    bare = [{k: x for k, x in r.items() if k != "inclusion"} for r in rows]
    with pytest.raises(DataError, match="do not say their probability"):
        kit.agreement(tasks, write(path, bare), grades)
    # a label beside the draw, a row by hand: all others had lost their weights
    chosen = {tuple(r[k] for k in ("task_id", "response_id")) for r in rows}
    task, response = next(at for at in truth if at not in chosen)
    more = {"task_id": task, "response_id": response, "criterion_id": "c", "label": "met"}
    with pytest.raises(DataError, match="do not say their probability"):
        kit.agreement(tasks, write(tmp_path / "m.jsonl", [*rows, more]), grades)
    # a new draw needs no more than their labels
    assert kit.draw(tasks, answers, n=400, labels=path).fresh == 100


def test_what_it_promises_comes_true(tmp_path):
    (tasks, answers, grades), truth = study(tmp_path)
    drawn = kit.draw(tasks, answers, n=100, grades=grades)
    labels = write(tmp_path / "l.jsonl", filled(drawn, truth))
    more = kit.draw(tasks, answers, n=60, grades=grades, labels=labels, seed=1)
    assert "so far" in " ".join(more.worth)  # the judge's errors are read from the labels
    real = kit.rate(tasks, write(tmp_path / "m.jsonl", filled(more, truth)), grades).passed
    assert more.half_width == pytest.approx((real.high - real.low) / 2, rel=0.35)


@pytest.mark.parametrize("design", ["random", "stratified"])
def test_an_earlier_draw_goes_on(tmp_path, design):
    (tasks, answers, grades), truth = study(tmp_path, prompts=30)
    first = kit.draw(tasks, answers, n=20, design=design, grades=grades)
    labels = write(tmp_path / "one.jsonl", filled(first, truth))
    more = kit.draw(tasks, answers, n=10, design=design, grades=grades, labels=labels)
    assert len(more.rows) == 30 and more.fresh == 10
    old = {(r["task_id"], r["response_id"]): r["label"] for r in rows_of(labels)}
    kept = {(r["task_id"], r["response_id"]): r["label"] for r in more.rows if r["label"]}
    assert kept == old
    if design == "random":
        assert {r["inclusion"] for r in more.rows} == {30 / 120}
    other = {"random": "stratified", "stratified": "random"}[design]
    with pytest.raises(DataError, match="were drawn"):
        kit.draw(tasks, answers, n=10, design=other, grades=grades, labels=labels)


def test_equal_seeds_and_formulas(tmp_path):
    tasks, labels, _ = made(tmp_path, prompts=5)
    rows = [r | {"response": '=HYPERLINK("x")'} for r in rows_of(labels)]
    path = write(
        tmp_path / "a.jsonl", [{k: v for k, v in r.items() if k != "labels"} for r in rows]
    )
    one, two = (kit.draw(tasks, path, n=9, seed=s) for s in (4, 4))
    assert one.rows == two.rows and len(one.rows) == 9
    assert {r["answer"] for r in one.rows} == {'\'=HYPERLINK("x")'}
    assert main(["label", tasks, path, "--n", "0"]) == 2
    assert main(["label", tasks, path, "--design", "stratified"]) == 2
    found = people.read_labels(write(tmp_path / "blank.jsonl", list(one.rows)))
    assert len(found.blank) == 9 and not found.values
    assert Path(path).exists()


def test_a_draw_goes_on_only_from_the_rows_that_it_was_drawn_from(tmp_path):
    """One probability stood beside all rows: after answers were added kit rate said .49 where the
    truth was .27, with a re-tuned judge's strata .23 for .10; labels of lost answers vanished.
    """
    (tasks, answers, grades), truth = study(tmp_path, prompts=30)
    first = kit.draw(tasks, answers, n=20, grades=grades)
    labels = write(tmp_path / "one.jsonl", filled(first, truth))
    rows = rows_of(answers)
    more = [r | {"response_id": f"{r['response_id']}b"} for r in rows]
    for other in (rows + more, rows[:60]):
        with pytest.raises(DataError, match="drawn from other rows"):
            kit.draw(tasks, write(tmp_path / "b.jsonl", other), n=10, labels=labels)
    strata = kit.draw(tasks, answers, n=20, design="stratified", grades=grades)
    labels = write(tmp_path / "two.jsonl", filled(strata, truth))
    said = rows_of(grades)
    turned = [r | {"verdicts": said[i - 1]["verdicts"]} for i, r in enumerate(said)]
    turned = write(tmp_path / "g.jsonl", turned)
    more = {"n": 10, "design": "stratified", "labels": labels}
    with pytest.raises(DataError, match="first draw"):
        kit.draw(tasks, answers, grades=turned, **more)
    assert kit.draw(tasks, answers, grades=grades, **more).fresh == 10


@pytest.mark.parametrize("design", ["random", "stratified"])
def test_a_file_filled_in_half_way_is_a_sample_too(tmp_path, design):
    """Rows stood in the order of the answers' file: who stopped after the easy half had a pass
    rate of .80 for .50, and 4 of 30 intervals held the truth."""
    paths, truth = study(tmp_path)
    tasks, answers, grades = paths
    easy = {f"t{i}" for i in range(60)}
    truth = {k: k[0] in easy for k in truth}
    found, held = [], 0
    for seed in range(12):
        drawn = people.draw.draw(tasks, answers, n=60, grades=grades, design=design, seed=seed)
        half = filled(drawn, truth)[:30] + [dict(r) for r in drawn.rows[30:]]
        e = kit.rate(tasks, write(tmp_path / f"half{seed}.jsonl", half), grades).passed
        found.append(e.value)
        held += e.low <= 0.5 <= e.high
    assert abs(np.mean(found) - 0.5) < 0.08 and held >= 10
    rows = [r["task_id"] for r in drawn.rows]
    assert rows != sorted(rows)


def test_a_draw_that_goes_on_with_the_same_seed_is_a_draw(tmp_path):
    """It repeated the first one's numbers on what was left: the mean of drawn / inclusion was .63
    on some rows, where it must be 1."""
    (tasks, answers, _), truth = study(tmp_path, prompts=5)
    tasks = kit.load(tasks).tasks
    answers = [Response(task_id=t, id=r, text="x") for t, r in truth]
    seeds, place = range(400), {key: i for i, key in enumerate(truth)}
    weights = np.zeros((len(seeds), len(place)))
    for seed in seeds:
        first = filled(kit.draw(tasks, answers, n=6, seed=seed), truth)
        labels = write(tmp_path / "one.jsonl", first)
        for r in kit.draw(tasks, answers, n=6, seed=seed, labels=labels).rows:
            weights[seed, place[r["task_id"], r["response_id"]]] = 1 / r["inclusion"]
    off = (weights.mean(0) - 1) / (weights.std(0) / len(seeds) ** 0.5)
    assert abs(off).max() < 4


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_ids_come_back_as_they_were_written(tmp_path, ending):
    """A label file's "2.0" was read as "2": 16 of 44 labels were lost, and where a task "2" was
    there too they stood as its labels; an id "'=z" was lost as well."""
    ids = ["2.0", "2", "1.10", "007", "'=z", "=z", "-1"]
    tasks = [Task(id=i, prompt=i, criteria=(Criterion(id="1.0", text="t"),)) for i in ids]
    answers = [Response(task_id=i, id="3.0", text="x") for i in ids]
    drawn = kit.draw(tasks, answers, n=9)
    given = {i: ("met", "unmet")[k % 2] for k, i in enumerate(ids)}
    rows = [r | {"label": given[unguarded(r["prompt"])]} for r in drawn.rows]
    path = people.draw.write(rows, tmp_path / f"l.{ending}")
    key = {"response_id": "3.0", "criterion_id": "1.0"}
    grades = [Verdict(task_id=i, **key, status=s) for i, s in given.items()]
    found = kit.agreement(tasks, path, grades)
    assert found.overall.n == 7 and found.overall.accuracy.value == 1
    again = kit.draw(tasks, answers, n=9, labels=path)
    assert again.fresh == 0 and len(again.rows) == 7


def test_a_draw_keeps_its_design_in_a_set_and_its_labels_where_a_spreadsheet_changed_a_text(
    tmp_path,
):
    """A set of it was "not said how they were drawn"; the file alone said it."""
    (tasks, answers, grades), truth = study(tmp_path)
    drawn = kit.draw(tasks, answers, n=60, design="stratified", grades=grades)
    rows = [r | {"answer": r["answer"] + " "} for r in filled(drawn, truth)]
    path = write(tmp_path / "l.jsonl", [*rows[1:], {**rows[0], "label": ""}])
    one, two = (kit.rate(tasks, x, grades) for x in (path, kit.load(path)))
    assert one.design == two.design == "probability"
    assert one.passed.value == two.passed.value and one.passed.n == two.passed.n
    found = people.read_labels(kit.load(path))
    assert found == people.read_labels(path) and len(found.blank) == 1
    more = kit.draw(tasks, answers, n=9, design="stratified", grades=grades, labels=path)
    assert more.fresh == 10 and len(more.rows) == 69
    for change, said in (({"inclusion": 2}, "in (0, 1]"), ({"schema": 9}, "form 9 of labels")):
        with pytest.raises(DataError, match=re.escape(said)):
            people.read_labels(write(tmp_path / "b.jsonl", [rows[1], {**rows[0], **change}]))
    other = write(tmp_path / "b.jsonl", [rows[1], {**rows[0], "design": "random"}])
    with pytest.raises(DataError, match="several designs: random, stratified"):
        people.read_labels(other)


def test_levels_are_listed_and_partly_is_half_way_as_the_help_says(tmp_path, capsys):
    """ "partly" was refused on a criterion with levels, and so was an earlier draw that went on."""
    words = ["Poor", "Fair", "Good"]
    rubric = [{"id": "c", "text": "It greets.", "scale": "ordinal", "levels": words}]
    ids = {"task_id": "t", "response_id": "r"}
    files = [
        write(tmp_path / "t.jsonl", [{"id": "t", "prompt": "p", "criteria": rubric}]),
        write(tmp_path / "a.jsonl", [{**ids, "response": "Hi"}]),
    ]
    (row,) = people.draw.draw(*files, n=1).rows
    assert row["scale"] == "Poor | Fair | Good"
    tasks, key, out = kit.load(files[0]).tasks, ("t", "r", "c"), tmp_path / "l.jsonl"
    for said, value in (("partly", 0.5), ("Fair", 0.5), ("met", 1.0), ("50%", 0.5)):
        path = write(out, [{**row, "label": said}])
        assert people.read_labels(path, tasks).values == {key: value}
        (again,) = people.draw.draw(*files, n=1, labels=path).rows
        path = write(out, [again])
        assert people.read_labels(path, tasks).values == {key: value}
    write(out, [{**row, "label": "Excellent"}])
    assert main(["rate", files[0], str(out), files[1]]) == 2
    assert "'Poor', 'Fair', 'Good'" in capsys.readouterr().err


def test_points_of_the_kits_own_form_are_points_where_nobody_gave_more_than_one(tmp_path):
    """On "0 to 4 points" a 1 was all four and 0.5 the half of them; 0 and 1 alone were refused."""
    rubric = [{"id": "c", "text": "It greets.", "scale": "points", "points": 4}]
    answers = [{"task_id": "t", "response_id": f"r{i}", "response": f"Hi {i}"} for i in range(3)]
    files = [
        write(tmp_path / "t.jsonl", [{"id": "t", "prompt": "p", "criteria": rubric}]),
        write(tmp_path / "a.jsonl", answers),
    ]
    tasks, rows = kit.load(files[0]).tasks, kit.draw(*files, n=3).rows
    for said in (["0", "0.5", "1"], ["1", "0", "1"], ["1", "1", "50%"]):
        given = [{**r, "label": x} for r, x in zip(rows, said, strict=True)]
        wanted = [0.5 if x == "50%" else float(x) / 4 for x in said]
        path = write(tmp_path / "l.jsonl", given)
        assert list(people.read_labels(path, tasks).values.values()) == wanted
        both = kit.load(files[0]).joined(kit.load(files[1])).joined(kit.load(path))
        assert [v.value for v in both.verdicts] == wanted


def test_a_draw_that_goes_on_keeps_labels_as_they_were_written(tmp_path):
    """ "ok" was written anew as 66.6666666666667%: no level's value, and a kappa of 1.00 was .43."""
    words = ["bad", "poor", "ok", "good"]
    criteria = {
        "c": {"scale": "ordinal", "levels": words},
        "p": {"scale": "points", "points": 7},
    }
    rubric = [{"id": i, "text": f"Is {i}.", **more} for i, more in criteria.items()]
    files = [
        write(tmp_path / "t.jsonl", [{"id": "t", "prompt": "p", "criteria": rubric}]),
        write(tmp_path / "a.jsonl", [{"task_id": "t", "response_id": "r", "response": "Hi"}]),
    ]
    rows, tasks = kit.draw(*files, n=2).rows, kit.load(files[0]).tasks
    for said, kept, values in (
        (("ok", "3"), ("ok", "3/7"), (2 / 3, 3 / 7)),
        (("33%", "3/7"), ("33%", "3/7"), (1 / 3, 3 / 7)),
        (("66.7%", "42.9%"), ("66.7%", "42.9%"), (2 / 3, 3 / 7)),
        (("partly", "40%"), ("partly", "40%"), (0.5, 0.4)),
    ):
        given = dict(zip("cp", said, strict=True))
        path = write(tmp_path / "l.jsonl", [r | {"label": given[r["criterion_id"]]} for r in rows])
        again = kit.draw(*files, n=2, labels=path).rows
        assert {r["criterion_id"]: r["label"] for r in again} == dict(zip("cp", kept, strict=True))
        for labels in (path, write(tmp_path / "m.jsonl", again)):
            found = people.read_labels(labels, tasks).values
            assert tuple(found["t", "r", i] for i in "cp") == values


def test_labels_stay_on_the_words_that_people_were_shown(tmp_path):
    """A criterion was put on top of a rubric without ids: c1's labels were on it, and kappa 1.00
    was .09."""
    task = {"id": "t", "prompt": "p"}
    old, new = (
        ["States the dose", "Invents facts"],
        ["Is polite", "States the dose", "Invents facts"],
    )
    answers = write(tmp_path / "a.jsonl", [{"task_id": "t", "response_id": "r", "response": "Hi"}])
    first = write(tmp_path / "t.jsonl", [{**task, "criteria": old}])
    drawn = kit.draw(first, answers, n=2).rows
    rows = [r | {"label": "yes" if r["criterion"] == old[0] else "no"} for r in drawn]
    labels = write(tmp_path / "l.jsonl", rows)
    tasks = kit.load([{**task, "criteria": new}])
    found = tasks.joined(kit.load(answers)).joined(kit.load(labels)).sound()
    assert {v.criterion_id: v.status for v in found.verdicts} == {"c2": "met", "c3": "unmet"}
    lost = kit.load([{**task, "criteria": new[:2]}]).joined(kit.load(answers))
    lost = lost.joined(kit.load(labels))
    assert [f.code for f in lost.findings] == ["other-criterion"]
    assert "'Invents facts'" in lost.findings[0].message


@pytest.mark.parametrize("drawn", [True, False])
@pytest.mark.parametrize("loaded", [True, False])
def test_labels_on_a_criterion_of_other_words_by_now_are_refused(tmp_path, capsys, drawn, loaded):
    """The rubric was edited after people had labelled: a note and exit code 0, or no word, and the
    old labels stood beside verdicts on the new text."""
    task = {"id": "t", "prompt": "p"}
    old = [{"id": "dose", "text": "It states the dose."}, {"id": "kind", "text": "It is kind."}]
    new = [{"id": "dose", "text": "It states the dose in mg."}, old[1]]
    answers = write(tmp_path / "a.jsonl", [{"task_id": "t", "response_id": "r", "response": "Hi"}])
    rows = kit.draw([{**task, "criteria": old}], answers, n=2).rows
    keep = ("task_id", "response_id", "criterion_id", "criterion")
    rows = [(r if drawn else {k: r[k] for k in keep}) | {"label": "met"} for r in rows]
    labels = write(tmp_path / "l.jsonl", sorted(rows, key=lambda r: r["criterion_id"]))
    tasks = write(tmp_path / "t.jsonl", [{**task, "criteria": new}])
    there = kit.load(tasks)
    given = kit.load(labels) if loaded else labels
    with pytest.raises(DataError, match="'dose' was 'It states the dose.'") as said:
        people.read_labels(given, there)
    assert "is 'It states the dose in mg.'" in said.value.what
    assert "l.jsonl, line 1" in said.value.where and "label it anew" in said.value.fix
    verdicts = [{"criterion_id": i, "status": "met"} for i in ("dose", "kind")]
    grade = {"task_id": "t", "response_id": "r", "verdicts": verdicts}
    grades = write(tmp_path / "g.jsonl", [grade])
    assert (
        main(["agree", tasks, labels, grades]) == 2 and "label it anew" in capsys.readouterr().err
    )
    now = {c.id: c.text for c in there.tasks[0].criteria}
    mended = write(tmp_path / "m.jsonl", [r | {"criterion": now[r["criterion_id"]]} for r in rows])
    assert len(people.read_labels(mended, there).values) == 2
    blank = [r | {"label": ""} for r in rows] if drawn else []
    elsewhere = [r | {"task_id": "gone"} for r in rows]
    found = people.read_labels(write(tmp_path / "e.jsonl", blank + elsewhere), there)
    assert {k[0] for k in found.values} == {"gone"}


TAGS = Criterion(id="tags", text="Puts its thoughts in <think>.")


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
@pytest.mark.parametrize("tags", [True, False])
def test_people_label_the_answer_that_judges_read_without_its_thoughts(tmp_path, ending, tags):
    """They saw the thoughts, and the judge did not: an answer was "met" by what it only thought."""
    tasks = [Task(id="t", prompt="p", criteria=(Criterion(id="c", text="Is good"), *[TAGS] * tags))]
    texts = ("<think>Or 17?</think>It is 16.", "It is 18.")
    answers = [Response(task_id="t", id=f"r{i}", text=x) for i, x in enumerate(texts)]
    rows = [r | {"label": "met"} for r in people.draw.draw(tasks, answers, n=9).rows]
    held = {(r["response_id"], r["criterion_id"]): (r["answer"], r["thoughts"]) for r in rows}
    assert held["r0", "c"] == ("It is 16.", people.draw.LEFT_OUT)
    assert held["r1", "c"] == ("It is 18.", "")
    assert not tags or held["r0", "tags"] == ("It is 16.", texts[0])
    path = people.draw.write(rows, tmp_path / f"l.{ending}")
    there = TaskSet(tasks=tasks, responses=answers)
    for both in (there.joined(kit.load(path)), kit.load(path).joined(there)):
        assert sorted(r.text for r in both.sound().responses) == sorted(texts)
        assert len(both.responses) == 2 and not any("thoughts" in r.meta for r in both.responses)
        assert len(both.verdicts) == len(rows)
    assert len(people.read_labels(path, there).values) == len(rows)
    alone = TaskSet(tasks=tasks).joined(kit.load(path)).sound()
    assert sorted(r.text for r in alone.responses) == ["It is 16.", "It is 18."]
    plain = people.draw.draw(tasks, answers[1:], n=9).rows
    assert "thoughts" not in plain[0]


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
@pytest.mark.parametrize("several", [True, False])
def test_a_draw_that_goes_on_keeps_the_columns_that_labellers_added(tmp_path, ending, several):
    """Their notes were gone from the second file, and how sure they were was the answer's."""
    tasks = [Task(id="t", prompt="p", criteria=(Criterion(id="c", text="Is good"),))]
    answers = [Response(task_id="t", id=f"r{i}", text=f"a{i}") for i in range(9)]
    there = TaskSet(tasks=tasks, responses=answers)
    drawn = people.draw.draw(tasks, answers, n=3).rows
    rows = [
        {**r, "rater": who, "label": "met", "my note": f"-{who} {n}", "confidence": "80%"}
        for n, r in enumerate(drawn[:2])
        for who in ("ann", "bob")[: 1 + several]
    ]
    rows.append({**drawn[2], "rater": "", "my note": "later", "confidence": ""})
    first = people.draw.write(
        [{k: guarded(x) for k, x in r.items()} for r in rows], tmp_path / f"1.{ending}"
    )
    again = people.draw.draw(tasks, answers, n=2, labels=first)
    second = people.draw.write(again.rows, tmp_path / f"2.{ending}")
    third = people.draw.draw(tasks, answers, n=1, labels=second)
    for found in (again, third):
        kept = {
            (r["response_id"], r.get("rater", ""), r["my note"], r["confidence"])
            for r in found.rows
            if r["my note"]
        }
        assert kept == {
            (r["response_id"], r["rater"], guarded(r["my note"]), r["confidence"]) for r in rows
        }
        assert len({tuple(r) for r in found.rows}) == 1
    assert (len(again.rows), len(third.rows)) == (len(rows) + 2, len(rows) + 3)
    assert not any(r.confidence for r in there.joined(kit.load(second)).responses)


def test_raters_who_all_say_one_level_say_that_level():
    """.2 + .2 + .2 over 3 was no level: judge and three people who agree had a kappa of .455."""
    for place, top in ((p, n) for n in range(2, 12) for p in range(1, n)):
        same, apart = [place / top] * 7, [(place - 1) / top, (place + 1) / top]
        means = {averaged(same[:n]) for n in range(1, 8)} | {averaged(apart * 3)}
        assert means - {None} == {place / top}


def test_raters_in_any_order_are_split_or_are_not():
    """2, 6 and 7 of 10 points were a tie, 6, 7 and 2 were .49999999999999994, which is refused."""
    for said, mean in (((2, 6, 7), 0.5), ((2, 2, 2, 8, 8, 8), None), ((1, 5, 9), 0.5)):
        for order in permutations([x / 10 for x in said]):
            assert averaged(order) == mean


def test_an_answer_with_a_lone_carriage_return_leaves_the_table_whole(tmp_path):
    """ "10%\\r20%", a progress bar: csv writes it without quotes, readers end the line there."""
    tasks = [Task(id="t", prompt="p", criteria=(Criterion(id="c", text="Is good"),))]
    answers = [Response(task_id="t", id=f"r{i}", text=f"10%\r20%\n{i}") for i in range(4)]
    rows = people.draw.draw(tasks, answers, n=4).rows
    out = people.draw.write(rows, tmp_path / "todo.csv")
    read = list(csv.DictReader(out.open(newline="")))
    assert sorted(r["answer"] for r in read) == sorted(r.text for r in answers)
    assert people.read_labels(out, tasks)


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
@pytest.mark.parametrize("named", [True, False])
def test_answers_that_a_spreadsheet_would_take_for_formulas_are_read_back_as_they_were(
    tmp_path, ending, named
):
    """A list of bullets stood twice, and its labels hung on the copy with an apostrophe."""
    texts = ["- milk\n- eggs", "+1", "=2*3", "@ann said it", "\tit", "'-x", "'tis", "milk"]
    ids = [{"task_id": "-t", "response_id": f"={n}"} for n in range(len(texts))]
    names = ids if named else [{"prompt": "- what?"}] * len(texts)
    answers = kit.load([{**n, "response": x} for n, x in zip(names, texts, strict=True)])
    rubric = [{"id": "-c", "text": "Says milk.", "weight": 1}]
    tasks = kit.load([{"id": "-t", "prompt": "- what?", "criteria": rubric}])
    there = tasks.joined(answers)
    drawn = kit.draw(tasks, there.responses, n=20)
    rows = [r | {"label": "yes" if "milk" in r["answer"] else "no"} for r in drawn.rows]
    path = people.draw.write(rows, tmp_path / f"l.{ending}")
    found = there.joined(kit.load(path))
    assert found.responses == there.responses and not found.findings
    met = {r.id for r in there.responses if "milk" in r.text}
    assert {v.response_id for v in found.verdicts if v.status == "met"} == met
    assert people.read_labels(path).values == {v.ids: v.value for v in found.verdicts}


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_a_draw_that_goes_on_keeps_what_each_rater_said(tmp_path, ending):
    """Who said what was gone, and a tie of two raters became the label "unknown"."""
    tasks = [Task(id="t", prompt="p", criteria=(Criterion(id="c", text="Is good"),))]
    answers = [Response(task_id="t", id=f"r{i}", text=f"a{i}") for i in range(9)]
    there = TaskSet(tasks=tasks, responses=answers)
    said = (("met", "unmet"), ("met", "unmet", "unmet"), ("unknown", "50%"), ("met",))
    names = ("ann", "=bob", "cy")
    rows = [
        {**row, "rater": name, "label": label}
        for row, labels in zip(people.draw.draw(tasks, answers, n=4).rows, said, strict=True)
        for name, label in zip(names, labels, strict=False)
    ]
    first = people.draw.write(rows, tmp_path / f"first.{ending}")
    drawn = people.draw.draw(tasks, answers, n=2, labels=first)
    assert (len(drawn.rows), drawn.fresh) == (len(rows) + 2, 2)
    again = people.draw.write(drawn.rows, tmp_path / f"again.{ending}")
    old, new = (people.read_labels(path, there) for path in (first, again))
    assert new.values == old.values and new.ties == old.ties and len(new.ties) == 1

    def told(found):
        return {(*v.ids, v.judge, v.status, v.value) for vs in found.said.values() for v in vs}

    assert told(old) == {x for x in told(new) if x[3] != "human"} and len(told(old)) == len(rows)
    plain = people.draw.draw(tasks, answers, n=2).rows
    assert "rater" not in plain[0]


@pytest.mark.parametrize("design", ["random", "stratified"])
def test_no_agreement_is_shown_that_does_not_weigh_a_stratified_draw(tmp_path, design):
    """Accuracy .625 stood on the page for .914, and the table's agreement was that, too."""
    (tasks, answers, grades), truth = study(tmp_path, prompts=30)
    drawn = kit.draw(tasks, answers, n=20, design=design, grades=grades)
    labels = write(tmp_path / "l.jsonl", filled(drawn, truth))
    data = judgments(grades, tasks=tasks, answers=answers, labels=labels)
    assert data["uneven"] == joined(data)["uneven"] == (design == "stratified")
    there = kit.load(tasks).joined(kit.load(answers)).joined(kit.load(labels))
    frame = table(people.labels.verdicts_of(grades), human=there)
    for measure in (
        lambda: kit.agree(frame, "value", "human", cluster="task", threshold=0.5),
        lambda: kit.each(frame, "judge", kit.kappa, "value", "human"),
        lambda: kit.mean(frame, "correct"),
    ):
        if design == "random":
            measure()
            continue
        with pytest.raises(DataError, match="unequal probability"):
            measure()
    assert kit.mean(frame, "value").n and frame["inclusion"].notna().sum() == 20


def test_labels_stay_with_the_words_that_were_labelled(tmp_path):
    """`kit label --labels OLD` carried 80 labels over to the next checkpoint's answers, which had
    the same ids, and wrote the new texts beside them; what a spreadsheet changes is no other text.
    """
    task = Task(id="t", prompt="Which river?", criteria=(Criterion(id="x", text="Names a river"),))
    file = tmp_path / "labels.csv"
    head = "task_id,response_id,criterion_id,label,criterion,prompt,answer,design,schema\n"
    row = 't,r,x,met,Names a river,Which river?,"The  Nile, \r\nin Egypt.",random,1\n'
    file.write_bytes((head + row).encode())

    def of(text):
        said = Response(task_id="t", id="r", text=text)
        return read_labels(str(file), TaskSet(tasks=[task], responses=[said]))

    assert of("<think>Po?</think>The Nile, in Egypt.").values == {("t", "r", "x"): 1.0}
    with pytest.raises(DataError, match="another text was labelled"):
        of("The Po, in Italy.")


def test_numeric_labels_of_another_scale_are_said_where_the_number_is_made(tmp_path, caplog):
    """Labels of 1, 2 and 3 were read on 1-5: `kit inspect` said so, `kit rate` gave .431 for .611
    and was silent.
    """
    criteria = tuple(Criterion(id=i, text=f"Names {i}") for i in "xyz")
    tasks = TaskSet(tasks=[Task(id="t", prompt="Which river?", criteria=criteria)])
    file = tmp_path / "labels.csv"
    head = "task_id,response_id,criterion_id,label\n"
    file.write_text(head + "t,r,x,3\nt,r,y,1\nt,r,z,2\n", "utf-8")
    read_labels(str(file), tasks)
    assert "on the scale 1-5; the largest of the file is 3" in caplog.text
