"""Rates corrected by labels: `kit rate`, its designs, the difference of two policies."""

from __future__ import annotations

import json

import numpy as np
import pytest
from answered import made, rows_of, write

import kit
from kit import people, stats
from kit.__main__ import main
from kit.errors import DataError


def planted(folder, *, lenient, truth, seed=0, prompts=150, name="p", labelled=40):
    """A judge that passes `lenient` of what people fail; labels of `labelled` prompts."""
    rng = np.random.default_rng(seed)
    tasks, labels, grades = [], [], []
    for t in range(prompts):
        rubric = [{"id": c, "text": c, "weight": 1.0, "meta": {}} for c in "ab"]
        tasks.append({"id": f"t{t}", "prompt": "p", "criteria": rubric})
        good = {c: bool(rng.random() < truth) for c in "ab"}
        said = {c: g or bool(rng.random() < lenient) for c, g in good.items()}
        ids = {"task_id": f"t{t}", "response_id": name}
        given = {c: int(g) for c, g in good.items()} if t < labelled else {}
        labels.append({**ids, "response": "x", "labels": given})
        verdicts = [{"criterion_id": c, "status": "met" if m else "unmet"} for c, m in said.items()]
        ends = {"score": 1.0, "score_low": 1.0, "score_high": 1.0}
        grades.append({**ids, **ends, "verdicts": verdicts})
    paths = [folder / f"{name}-{kind}.jsonl" for kind in ("tasks", "labels", "grades")]
    return [write(p, rows) for p, rows in zip(paths, (tasks, labels, grades), strict=True)]


def test_the_bias_of_a_lenient_judge_is_taken_out(tmp_path):
    held = 0
    for seed in range(20):
        found = kit.rate(*planted(tmp_path, lenient=0.5, truth=0.5, seed=seed), design="random")
        held += found.passed.low <= 0.5 <= found.passed.high
        assert found.judge.low > 0.6  # the judge alone never holds the truth
        assert found.score.estimate.value == pytest.approx(found.passed.value, abs=0.06)
    assert held >= 17  # 19 of 20 expected


def test_the_design_is_asked_for_and_checked(tmp_path, capsys):
    paths = planted(tmp_path, lenient=0.3, truth=0.5)
    assert main(["rate", *paths]) == 2
    assert "--design" in capsys.readouterr().err
    assert main(["rate", *paths, "--design", "rundom"]) == 2
    assert "by_label" in capsys.readouterr().err
    assert main(["rate", *paths, "--design", "probability"]) == 2
    assert "inclusion" in capsys.readouterr().err
    assert main(["rate", *paths, "--design", "by_label", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["score"] is None and "at random" in " ".join(data["notes"])
    assert data["pass_rate"]["low"] < 0.5 < data["pass_rate"]["high"]


def by_label(rng, silent=0.0):
    """Rows of which 85 % pass; up to 60 labels of either kind are chosen among them."""
    truth = rng.random(600) < 0.85
    judge = np.where(rng.random(600) < 0.9, truth, ~truth).astype(float)
    judge[rng.random(600) < silent * (2 - 1.5 * truth)] = np.nan
    human = np.full(600, np.nan)
    for kind in (truth, ~truth):
        at = rng.permutation(np.flatnonzero(kind))[:60]
        human[at] = truth[at]
    return truth.mean(), judge, human


@pytest.mark.parametrize("silent", [0.0, 0.15])
def test_labels_chosen_by_their_label_among_the_graded_rows(silent):
    """The judge's rate was read from the rows that the labels had left over: 1.000 for .860, and
    where the judge was silent the labels were thrown away."""
    rng = np.random.default_rng(7)
    off, held = [], 0
    for _ in range(40):
        truth, judge, human = by_label(rng, silent)
        e = stats.pass_rate(judge, human, design="by_label")
        off.append(e.value - truth)
        held += e.low <= truth <= e.high
        assert e.n == 600 and e.missing == 0
    assert abs(np.mean(off)) < 0.02 and held >= 37
    assert ("unknown verdicts are read as fail" in e.note) == (silent > 0)


def test_a_fault_that_is_not_there_passes(tmp_path):
    """Weights below 0 mark what must not be there: unmet is credit, in every number."""
    tasks, labels, grades = made(tmp_path)
    rows = [
        dict(r, verdicts=[v for v in r["verdicts"] if v["criterion_id"] == "n"])
        for r in rows_of(grades)
    ]
    found = kit.rate(tasks, labels, write(tmp_path / "n.jsonl", rows), design="random")
    assert found.judge.value == pytest.approx(26 / 40) and found.people.value == found.judge.value


def answered(folder, criteria, said):
    """Forty answers whose verdicts and labels are all the same."""
    ids = [{"task_id": f"t{i}", "response_id": "r"} for i in range(40)]
    status = {k: "met" if v else "unmet" for k, v in said.items()}
    verdicts = [{"criterion_id": k, "status": x, "judge": "j"} for k, x in status.items()]
    tasks = [{"id": i["task_id"], "prompt": i["task_id"], "criteria": criteria} for i in ids]
    rows = [
        {**i, "score": 1.0, "score_low": 1.0, "score_high": 1.0, "verdicts": verdicts} for i in ids
    ]
    labels = [{**i, "response": "An answer.", "labels": said} for i in ids]
    files = {"tasks": tasks, "labels": labels, "grades": rows}
    return [write(folder / f"{name}.jsonl", x) for name, x in files.items()]


def test_a_rubric_that_is_no_sum_has_no_rubric_score(tmp_path):
    """A tree whose answers all earn .9 had a "rubric score" of .1, an unmet must-have .5."""
    tree = [
        {"id": "G", "text": "good", "weight": 1.0},
        {"id": "B", "text": "faults", "weight": -1.0},
    ]
    tree += [
        {"id": "a", "text": "leaf a", "parent": "G"},
        {"id": "b", "text": "rude", "parent": "B"},
    ]
    found = kit.rate(*answered(tmp_path, tree, {"a": 1, "b": 0}), design="random")
    assert found.score is None and "tree" in str(found)
    assert found.passed.value == 1.0  # b is a fault, and it is not there
    must = [{"id": "a", "text": "a"}, {"id": "b", "text": "b", "required": True}]
    for met in (0, 1):
        found = kit.rate(*answered(tmp_path, must, {"a": 1, "b": met}), design="random")
        assert (found.score is None) == (not met)


def test_a_gain_that_only_the_judge_sees_is_no_gain(tmp_path):
    """The judge passes half of the new policy's failures and none of the old one's."""
    new = planted(tmp_path, lenient=0.5, truth=0.5, seed=1, name="new")
    old = planted(tmp_path, lenient=0.0, truth=0.5, seed=2, name="old")
    labels = write(tmp_path / "both.jsonl", rows_of(new[1]) + rows_of(old[1]))
    found = people.against(new[0], labels, new[2], old[2], design="random")
    seen = [
        np.mean([v["status"] == "met" for r in rows_of(p[2]) for v in r["verdicts"]])
        for p in (new, old)
    ]
    assert seen[0] - seen[1] > 0.2 and not found.excludes(0)
    assert main(["rate", new[0], labels, new[2], "--against", old[2], "--design", "random"]) == 0


def test_one_label_never_counts_for_both_policies(tmp_path):
    new = planted(tmp_path, lenient=0.5, truth=0.5, seed=1, name="r")
    other = write(tmp_path / "other.jsonl", rows_of(new[2]))
    with pytest.raises(DataError, match="both policies"):
        people.against(*new, other, design="random")
    same = people.against(*new, other, other_labels=new[1], design="random")
    assert same.value == pytest.approx(0.0, abs=1e-9)


def test_against_names_what_it_compares_and_takes_no_threshold(tmp_path, capsys):
    """--threshold was dropped in silence, and the credit's difference read as that of pass rates."""
    tasks, labels, grades = made(tmp_path)
    files = ["rate", tasks, labels, grades, "--against", grades, "--design", "random"]
    for more in (["--threshold", "0.6"], ["--how", "signed"]):
        assert main([*files, *more]) == 2
        assert "--against" in capsys.readouterr().err


@pytest.mark.parametrize("cut", [0.5, 0.6])
def test_partly_is_one_half_of_a_rubric_score_for_people_too(tmp_path, cut):
    """Judge and people said "partly" everywhere: the score was .99, or .01 with a threshold of .6."""
    rubric = [{"id": c, "text": c} for c in "ab"]
    tasks, labels, grades = answered(tmp_path, rubric, {"a": 1, "b": 1})
    rows = rows_of(labels)
    rows = [
        {**r, "labels": dict.fromkeys("ab", "partly") if i < 30 else {}} for i, r in enumerate(rows)
    ]
    said = [
        {**r, "verdicts": [{**v, "status": "level", "value": 0.5} for v in r["verdicts"]]}
        for r in rows_of(grades)
    ]
    files = write(tmp_path / "l.jsonl", rows), write(tmp_path / "g.jsonl", said)
    found = kit.rate(tasks, *files, design="random", cut=cut)
    assert found.score.estimate.value == pytest.approx(0.5, abs=0.01)


def test_labels_from_elsewhere_rate_the_rows_without_label(tmp_path, capsys):
    """n and "the judge alone" were of the old and the new answers together: .470 of 400 beside a
    rate that was of the 200 new ones, on which the judge said .700; so were old "unknown" labels.
    """
    new = planted(tmp_path, lenient=0.2, truth=0.8, labelled=0, name="new")
    old = planted(tmp_path, lenient=0.2, truth=0.1, labelled=150, name="old")
    labels = rows_of(old[1])
    labels[0]["labels"] = {"a": None, "b": None}
    both = [new[0], write(tmp_path / "l.jsonl", labels)]
    both.append(write(tmp_path / "g.jsonl", rows_of(new[2]) + rows_of(old[2])))
    assert main(["rate", *both, "--design", "shifted"]) == 0
    assert "298 labels of other rows" in capsys.readouterr().out
    found = kit.rate(*both, design="shifted")
    said = [v["status"] == "met" for g in rows_of(new[2]) for v in g["verdicts"]]
    assert found.judge.value == pytest.approx(np.mean(said)) and found.judge.n == 300
    assert (found.passed.n, found.passed.n_clusters) == (300, 150)
    assert found.passed.low < 0.8 < found.passed.high and found.people.n == 298
