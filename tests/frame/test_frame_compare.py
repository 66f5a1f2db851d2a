"""Comparison of runs, the newest run, and the incidents that shaped them."""

from __future__ import annotations

import json
import math
import re
import time
from pathlib import Path
from typing import Any

import pytest

from kit import runs, stats
from kit.plots import compare as plots
from kit.plots import theme
from kit.records import Grade, Run, Verdict, to_json, unknown
from kit.runs import compare, findings, report
from kit.system import paths
from kit.tables import rows_html, show
from kit.train import evaluation
from kit.widgets import compare as widgets


def write(folder: Path, name: str, seed: int, value: float, **params: object) -> Path:
    run = Run(
        id=name,
        notebook="03_train_grpo",
        profile="test",
        seed=seed,
        params={"seed": seed, **params},
        started=f"2026-01-0{seed + 1}T00:00:00",
        metrics={
            "gain": {
                "value": value,
                "low": value - 0.05,
                "high": value + 0.05,
                "n": 40,
                "n_clusters": 20,
                "method": "paired difference",
            },
            "steps": 30,
            "shown": True,
        },
    )
    (folder / name).mkdir(parents=True)
    runs.write_json(folder / name / "metrics.json", to_json(run))
    return folder / name


@pytest.fixture
def found(tmp_path: Path) -> list[tuple[Path, Run]]:
    for seed, value in enumerate((0.30, 0.10, 0.02)):
        write(tmp_path, f"run{seed}", seed, value, lr=1e-4)
    write(tmp_path, "other", 0, 0.5, lr=5e-4)
    return runs.find(tmp_path)


def test_overview_names_what_differs(found: list[tuple[Path, Run]]) -> None:
    rows = {r["run"]: r["differs in"] for r in compare.overview(found)}
    assert (
        rows["run1"] == "lr=0.0001" and rows["other"] == "lr=0.0005"
    )  # the seed has a column of its own


def test_a_plot_names_runs_by_what_sets_them_apart(
    found: list[tuple[Path, Run]], tmp_path: Path
) -> None:
    """Labels held the first parameters, cut at 48 letters: four runs of a sweep were "tasks_file=, steps=0, beta=0.0, learning_rate=0."."""
    assert compare.labels(found) == {
        "run0": "lr=0.0001, seed=0",
        "run1": "lr=0.0001, seed=1",
        "run2": "lr=0.0001, seed=2",
        "other": "lr=0.0005, seed=0",
    }
    figure = plots.forest_by_metric(compare.metrics(found, contains="gain"))
    assert {t.name for t in figure.data} == set(compare.labels(found).values())
    said = [text for t in figure.data for text in t.hovertext]
    assert any("0.3 [0.25, 0.35], n=40 in 20 clusters" in text for text in said)
    again = write(tmp_path, "run9", 0, 0.3, lr=1e-4)
    assert sorted(compare.labels(runs.find(tmp_path))[n] for n in ("run0", again.name)) == [
        "lr=0.0001, seed=0 (run0)",
        "lr=0.0001, seed=0 (run9)",
    ]


def test_the_report_shows_settings_seeds_and_links(
    found: list[tuple[Path, Run]], tmp_path: Path
) -> None:
    (tmp_path / "run1" / "03_train_grpo.html").write_text("page")
    page = report.build(tmp_path)
    for part in (
        '<a href="#run1">',
        "What was found",
        "What to distrust",
        "lr=0.0005, seed=0",
        "Over seeds",
        'id="seeds"',
        "0.14",
        "3 seeds",
        "$0.0000 together",
    ):
        assert part in page, part


def test_seeds_are_the_sample_and_other_settings_stay_apart(found: list[tuple[Path, Run]]) -> None:
    seeds = {s.metric: s for s in compare.across_seeds(found)}
    gain = seeds["gain"]
    assert (
        gain.runs == 3
        and gain.mean.value == pytest.approx(0.14)
        and gain.mean.low < 0 < gain.mean.high
    )  # three seeds say little
    assert gain.excluded_zero == "2 of 3"
    assert "shown" not in seeds  # a yes / no is no number


def test_a_level_excludes_no_zero(tmp_path: Path) -> None:
    """ "labels that agree with the code" .999: "3 of 3" runs excluded 0, where 0 means nothing."""
    for seed in (0, 1):
        folder = write(tmp_path, f"run{seed}", seed, 0.3)
        row = json.loads((folder / "metrics.json").read_text())
        level = {"value": 0.9 + seed / 99, "low": 0.8, "high": 1.0, "n": 40, "method": "Wilson"}
        row["metrics"]["agree"] = level
        (folder / "metrics.json").write_text(json.dumps(row))
    seeds = {s.metric: s.excluded_zero for s in compare.across_seeds(runs.find(tmp_path))}
    assert (seeds["agree"], seeds["gain"]) == ("", "2 of 2")
    table = report.build(tmp_path).split('id="seeds"')[1]
    assert "a level" in table and "2 of 2" in table


def test_fifty_large_runs_make_less_than_ten_megabytes(tmp_path: Path) -> None:
    """Only figures were counted: the tables of later runs came on top. Templates stood in each of hundreds of figures."""
    big = plots.theme.figure(title="many points").add_scatter(y=[i / 7 for i in range(6000)])
    figures = [
        {"name": f"f{i}", "caption": "", "figure": json.loads(big.to_json())} for i in range(4)
    ]
    tables = [
        {
            "name": "t",
            "caption": "",
            "rows": [{"answer": "x" * 300, "other": "y" * 300, "i": i} for i in range(60)],
        }
    ]
    for seed in range(50):
        folder = write(tmp_path, f"run{seed:02d}", seed % 9, seed / 50, lr=seed)
        runs.write_json(folder / "figures.json", figures)
        runs.write_json(folder / "tables.json", tables)
    page = report.build(tmp_path)
    assert len(page.encode()) < 8e6 and page.count("data-plot=") >= 20
    assert "figures are left out" in page and "more rows are in tables.json" in page
    assert page.count('"templates":[') == 1 and page.count("colorscale") < 100


def test_a_thousand_runs_make_eight_megabytes_in_seconds(tmp_path: Path) -> None:
    """300 runs took 13 s, 27 of 31 profiled seconds in texts added to a plot one by one."""
    for i in range(1000):
        write(tmp_path, f"run{i:04d}", i % 3, i / 1000, lr=1e-4 * (1 + i // 3))
    begin = time.process_time()
    page = report.build(tmp_path)
    assert time.process_time() - begin < 15 and len(page.encode()) < 8e6
    assert "run0500" in page and "confirm a setting with new seeds" in page


def test_the_first_screen_says_what_was_found_and_what_to_distrust(tmp_path: Path) -> None:
    folder = write(tmp_path, "run0", 0, 0.3, lr=1e-4)
    row = json.loads((folder / "metrics.json").read_text())
    row["metrics"]["loose reward pays"] = 7
    row["metrics"]["kappa"] = {"value": 0.5, "low": None, "high": None, "n": 8, "missing": 2}
    row["meta"] = {"found": ["<b>The policy got better.</b>"]}
    (folder / "metrics.json").write_text(json.dumps(row))
    failed = write(tmp_path, "run1", 0, 0.3, lr=1e-4)
    (failed / "metrics.json").rename(failed / "config.json")
    row = json.loads((failed / "config.json").read_text())
    (failed / "config.json").write_text(json.dumps({**row, "status": "failed", "metrics": {}}))
    page = report.build(tmp_path)
    first = page.split('id="runs"')[0].split("What was found")[1]
    assert "&lt;b&gt;The policy got better." in first and "<b>The policy" not in first
    assert "gain: up by 0.300 [0.250, 0.350], n = 40 in 20 clusters" in first
    for doubt in (
        "did not finish",
        "without the skill: loose reward pays: 7, without an interval",
        "Unknown values",
        "No interval",
    ):
        assert doubt in first, doubt
    assert page.index("What was found") < page.index("Ids, memory and money")


def test_what_to_distrust_names_runs_that_are_broken_or_recorded_nothing(tmp_path: Path) -> None:
    """It said "unreadable (broken)" without the folder; one whose metrics.json was deleted was
    "done" without a word; a rate of 0.0001 was told as 0.000.
    """
    for i in range(3):
        write(tmp_path, f"run{i}", i, 0.3, **{"lr": 1e-4})
        row = json.loads((tmp_path / f"run{i}/metrics.json").read_text())
        row["metrics"] = {"rate": 0.0001}
        (tmp_path / f"run{i}/metrics.json").write_text(json.dumps(row))
    (tmp_path / "run1/metrics.json").write_text("{")
    row |= {"metrics": {}, "status": "done"}
    (tmp_path / "run2/config.json").write_text(json.dumps(row))
    (tmp_path / "run2/metrics.json").unlink()
    (tmp_path / "run0/figures.json").write_text("{broken")  # was an error for the whole report
    (tmp_path / "run0/tables.json").write_text("[1, 2")
    page = report.build(tmp_path)
    assert "run0/figures.json cannot be read" in page and "run0/tables.json cannot" in page
    said = findings.doubts(runs.find(tmp_path))
    assert "1 of 3 runs did not finish: run1 (broken)." in said
    assert "1 of 3 runs recorded nothing: run2 (seed=2, done)." in said
    assert findings.sentence("rate", {"value": 0.0001}).startswith("rate: 0.0001,")


def test_no_sentence_is_lost_and_a_control_says_that_it_is_one(tmp_path: Path) -> None:
    """Notebook 6 said five sentences, the report four, without the chain's end; of ten broken runs
    four were named; a run on rewards dealt out at random stood there like any other; "attack .38"
    without n or interval; counted unknowns were nowhere in the run's table.
    """
    folder = write(tmp_path, "run0", 0, 0.3, **{"control": True})
    row = json.loads((folder / "metrics.json").read_text())
    row["meta"] = {"found": [f"sentence {i}" for i in range(6)], "defaults": {"control": False}}
    attack = {"value": 0.4, "low": 0.3, "high": 0.5, "n": 8, "missing": 1}
    row["metrics"] = {"score, attack": attack}
    (folder / "metrics.json").write_text(json.dumps(row))
    said = findings.found(runs.find(tmp_path))
    assert said == {"03_train_grpo: control=True": [f"sentence {i}" for i in range(6)]}
    for k in range(6):
        write(tmp_path, f"x{k}", k, 0.3, **{"control": True})
        (tmp_path / f"x{k}" / "metrics.json").write_text("{")
    broken, gamed, *_ = findings.doubts(runs.find(tmp_path))
    assert broken.endswith("x2 (broken); and 3 more.") and "0.400 [0.300, 0.500], n = 8" in gamed
    page = report.build(tmp_path)
    assert "03_train_grpo: control=True <span" in page and "8, 1 unknown" in page


def test_a_control_beside_a_result_keeps_both_runs_sentences(tmp_path: Path) -> None:
    """The first screen said "the same in all 2 runs", one of them a control, and no own sentence."""
    for name, more in (("run0", {"control": True}), ("run1", {"control": False})):
        folder = write(tmp_path, name, 0, 0.3, **more)
        row = json.loads((folder / "metrics.json").read_text())
        own = "a control" if more["control"] else "a result"
        row["meta"] = {"found": ["both say it", own], "defaults": {"control": False}}
        (folder / "metrics.json").write_text(json.dumps(row))
    said = findings.found(runs.find(tmp_path))
    want = ["both say it", "a control (control=True)", "a result (control=False)"]
    assert said["03_train_grpo"][:3] == want
    place = Run(id="x", seed=0, notebook="04", profile="test", params={"runs_dir": "/home/me"})
    place.meta["defaults"] = {"runs_dir": ""}
    assert findings.title(place) == "04"  # a page that is mailed names no folder of ours


def test_links_hold_where_the_report_lies_elsewhere(
    found: list[tuple[Path, Run]], tmp_path: Path
) -> None:
    """A report that was mailed held links to each notebook's page, all dead."""
    (tmp_path / "run1" / "03_train_grpo.html").write_text("page")
    page = report.write(tmp_path, tmp_path / "sent round" / "r.html").read_text()
    targets = set(re.findall(r'<a href="([^"]*)"', page.split("</head>")[1]))
    assert targets and all(t[0] == "#" and f'id="{t[1:]}"' in page for t in targets)


def test_equal_seeds_have_no_interval_and_are_no_shares(tmp_path: Path) -> None:
    """Two gains of exactly 0 were taken for a share of 0 out of 2: [0, .66], for a number that may be negative."""
    for seed in (0, 1):
        write(tmp_path, f"run{seed}", seed, 0.0)
    gain = next(s for s in compare.across_seeds(runs.find(tmp_path)) if s.metric == "gain")
    assert (
        gain.mean.value == 0
        and math.isnan(gain.mean.low)
        and math.isnan(gain.mean.high)
        and gain.seeds == (0, 1)
    )
    assert "all seeds gave the same" in report.build(tmp_path)
    write(tmp_path, "run2", 2, 1.0)
    gain = next(s for s in compare.across_seeds(runs.find(tmp_path)) if s.metric == "gain")
    assert gain.mean.low == pytest.approx(
        1 / 3 - 4.3027 / 3, abs=1e-3
    )  # t with 2 degrees of freedom, sd / sqrt(3) = 1/3


def test_filters(found: list[tuple[Path, Run]]) -> None:
    assert {r["metric"] for r in compare.metrics(found, contains="GAI")} == {"gain"}
    assert compare.metrics(found, notebook="absent") == []
    assert len(compare.shared(found)) == 8


def test_notebook_5_says_how_many_metrics_runs_share_not_how_many_are_drawn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """ "3 metrics were recorded by several runs" was the most that are drawn; there were 15."""
    for seed in (0, 1):
        folder = write(tmp_path, f"run{seed}", seed, 0.3)
        row = json.loads((folder / "metrics.json").read_text())
        row["metrics"] |= {f"metric {i}": i + seed for i in range(5)}
        (folder / "metrics.json").write_text(json.dumps(row))
    book = json.loads((paths.notebooks() / "05_compare_runs.ipynb").read_text())
    (cell,) = ["".join(c["source"]) for c in book["cells"] if c["id"] == "df57dfaa"]
    found, drawn = runs.find(tmp_path), []
    exec(
        cell,
        dict(
            found=found,
            contains="",
            held="",
            compare=compare,
            plots=plots,
            stored=None,
            display=drawn.append,
        ),
    )
    said = capsys.readouterr().out
    assert said.startswith("7 metrics were") and said.endswith("the first 3\n") and len(drawn) == 1


def test_explorer_headless_is_its_figure(
    found: list[tuple[Path, Run]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A live Output widget made nbclient wait for ever for the end of its cell, once in a few runs."""
    monkeypatch.setenv("KIT_HEADLESS", "1")
    assert widgets.explorer(found).to_plotly_json()["data"]
    monkeypatch.setenv("KIT_HEADLESS", "0")
    assert len(widgets.explorer(found).children) == 2


def test_a_metric_that_came_out_unknown_is_a_doubt(tmp_path: Path) -> None:
    """ "Nothing that the runs recorded speaks against them": a mean of nothing stood nowhere."""
    path = write(tmp_path, "run0", 0, 0.0)
    kept = json.loads((path / "metrics.json").read_text())
    kept["metrics"]["odd"] = {"value": None, "low": None, "high": None, "n": 0}
    (path / "metrics.json").write_text(json.dumps(kept))
    said = findings.doubts(runs.find(tmp_path))
    assert any("o value could be had for" in s and "odd" in s for s in said), said


def test_the_same_is_said_only_of_what_is_the_same(tmp_path: Path) -> None:
    """ "0 [-.25, .25], n = 36; the same in all 4 runs": one had four answers and no interval."""
    for seed, n in enumerate((36, 4)):
        path = write(tmp_path, f"run{seed}", seed, 0.0)
        kept = json.loads((path / "metrics.json").read_text())
        kept["metrics"]["gain"]["n"] = n
        (path / "metrics.json").write_text(json.dumps(kept))
    said = findings.over_settings(runs.find(tmp_path))
    assert any("in all 2 runs (n = 4 to 36)" in s for s in said), said


def test_a_metrics_file_of_a_training_is_no_run(
    found: list[tuple[Path, Run]], tmp_path: Path
) -> None:
    (tmp_path / "run0" / "training").mkdir()
    (tmp_path / "run0" / "training" / "metrics.json").write_text(json.dumps({"steps": 3}))
    assert [r.id for _, r in runs.find(tmp_path)] == [r.id for _, r in found]
    assert "run2" in report.build(tmp_path)


def test_newest(found: list[tuple[Path, Run]], tmp_path: Path) -> None:
    assert runs.newest("03_train_grpo", tmp_path) == tmp_path / "run2"
    write(tmp_path, "random", 8, 0.0, control=True)  # the newest, and no training
    assert runs.newest("03_train_grpo", tmp_path) == tmp_path / "run2"
    assert runs.newest("absent", tmp_path) is None and runs.newest("x", tmp_path / "absent") is None


def test_fulfilled_reads_signs_and_unknown() -> None:
    def grade(*statuses: str) -> Grade:
        verdicts = tuple(
            unknown("t", "r", f"c{i}", "parse")
            if s == "unknown"
            else Verdict(task_id="t", response_id="r", criterion_id=f"c{i}", status=s)
            for i, s in enumerate(statuses)
        )
        return Grade(
            task_id="t", response_id="r", score=None, score_low=0, score_high=1, verdicts=verdicts
        )

    assert evaluation.fulfilled(grade("met", "met"), {}) is True
    assert evaluation.fulfilled(grade("met", "met"), {"c1": -1.0}) is False
    assert evaluation.fulfilled(grade("met", "unmet"), {"c1": -1.0}) is True
    assert evaluation.fulfilled(grade("met", "unknown"), {}) is None
    assert (
        evaluation.fulfilled(grade("unmet", "unknown"), {}) is False
    )  # settled whatever the unknown one is


def test_reruns_of_one_seed_count_once(tmp_path: Path) -> None:
    """Five reruns of seed 0 beside one of seed 1 made six seeds, with an interval for six."""
    for k in range(5):
        write(tmp_path, f"run{k}", 0, 0.2)
    write(tmp_path, "other", 1, 0.4)
    gain = next(s for s in compare.across_seeds(runs.find(tmp_path)) if s.metric == "gain")
    assert dict(zip(gain.seeds, gain.values, strict=True)) == pytest.approx({0: 0.2, 1: 0.4})
    assert gain.mean.n == 2 and gain.mean.value == pytest.approx(0.3) and gain.runs == 6


def test_a_try_out_with_another_profile_is_no_seed_of_the_real_runs(tmp_path: Path) -> None:
    """A run of a tiny random model beside two real ones: "gain .507 [-.37, 1.38] over 3 seeds"."""
    for seed, value in enumerate((0.1, 0.7, 0.72)):
        folder = write(tmp_path, f"run{seed}", seed, value)
        row = json.loads((folder / "metrics.json").read_text())
        row["profile"] = "cpu" if seed else "test"
        (folder / "metrics.json").write_text(json.dumps(row))
    (gain,) = [s for s in compare.across_seeds(runs.find(tmp_path)) if s.metric == "gain"]
    assert gain.seeds == (1, 2) and gain.setting == "profile=cpu"


def test_what_fell_is_down_by_a_positive_number() -> None:
    """The report said "change of ECE: down by -0.147"."""
    words = "change in debiased ECE, paired, from both intervals"
    fell = {"value": -0.147, "low": -0.176, "high": -0.1, "n": 995, "method": words}
    assert "down by 0.147 [0.100, 0.176]" in findings.sentence("ECE", fell)


def test_a_level_is_no_rise_whatever_its_name_and_a_difference_says_so_itself() -> None:
    """Names were searched for words: "kappa aGAINst people: up by .62", "kappa - gpt-4o: up by";
    of 53 differences in notebook 4 the report counted 13.
    """
    level = {
        "value": 0.62,
        "low": 0.5,
        "high": 0.7,
        "n": 40,
        "method": "kappa, cluster jackknife-t",
    }
    for name in ("kappa against people", "kappa - gpt-4o", "share that change nothing", "no gain"):
        assert "up by" not in findings.sentence(name, level)
    methods = ["change in AUROC, clustered DeLong, paired", "dev - test of the winner"]
    methods += ["Brier less that of the best constant, cluster jackknife-t", "paired difference, t"]
    for method in methods:
        assert "up by" in findings.sentence("x", {**level, "method": method})


def test_every_difference_of_the_kit_says_so() -> None:
    """What the report takes for a difference is read off the method: none may be without a word."""
    from kit.calibration import compare as calibrated

    ones, other, people = [0, 1, 1, 0, 1, 0], [1, 1, 0, 0, 1, 1], [0, 1, 1, 1, 1, 0]
    sure, unsure, prompts = [0.1, 0.4, 0.8, 0.9, 0.3, 0.6], [0.5] * 6, [1, 1, 2, 2, 3, 3]
    ends = {"new_cluster": prompts, "old_cluster": prompts}
    both = calibrated((unsure, people), (sure, ones), cluster=prompts, n_boot=20)
    assert all(
        compare.is_difference(vars(e))
        for e in (
            stats.difference(ones, other),
            stats.difference(sure, unsure, cluster=prompts),
            stats.macro_difference(ones, other, **ends),
            stats.macro_difference(sure, unsure, **ends),
            stats.agreement_difference(ones, other, people),
            stats.auroc_change(sure, unsure, people, cluster=prompts),
            *(both.difference, both.accuracy, both.brier, both.auroc_change, both.constant),
        )
    )
    level = stats.mean(sure), stats.kappa(ones, people), stats.auroc(sure, people)
    assert not any(compare.is_difference(vars(e)) for e in level)


def test_runs_that_say_the_same_say_so_with_their_interval(tmp_path: Path) -> None:
    """ "from 0.129 (seed=0) to 0.129 (seed=0)": no interval, and both ends were one run."""
    from kit.runs import findings

    for seed in (0, 1):
        folder = write(tmp_path, f"run{seed}", seed, 0.3)
        row = json.loads((folder / "metrics.json").read_text())
        row["meta"] = {"found": ["all say so", f"only seed {seed}"]}
        (folder / "metrics.json").write_text(json.dumps(row))
    (said,) = findings.found(runs.find(tmp_path)).values()
    assert said[:2] == ["all say so", "only seed 0 (seed=0)"]
    assert any("the same in all 2 runs" in s and "[" in s for s in said), said


def test_runs_are_named_by_parameters_that_the_notebook_did_not_pass_on(tmp_path: Path) -> None:
    """Two cells of a sweep over `share` were called by their ids, and averaged as one setting."""
    for k, share in enumerate((0.1, 0.5)):
        folder = write(tmp_path, f"run{k}", k, 0.3 + k)
        config = {"notebook": "03_train", "params": {"share": share}, "meta": {}}
        config["meta"]["defaults"] = {"share": 0.25, "other": 1}
        (folder / "config.json").write_text(json.dumps(config))
    found = runs.find(tmp_path)
    assert all("share=" in name for name in compare.labels(found).values())
    assert found[0][1].params["other"] == 1 and not compare.across_seeds(found)


def test_a_table_says_unknown_of_numbers_only() -> None:
    """An empty cell of words read "unknown"."""
    shown = report.table([{"n": None, "hint": None}, {"n": 1, "hint": "do"}])
    assert [c["text"] for c in shown["rows"][0]] == ["unknown", ""]


def test_a_picture_that_a_notebook_puts_in_front_is_on_the_first_screen(tmp_path: Path) -> None:
    """The first screen showed a single point of the winner's curse, for it was drawn first."""
    folder = write(tmp_path, "run0", 0, 0.3, lr=1e-4)
    drawn = {"data": [{"y": [1, 2]}], "layout": {}}
    rows = [{"name": n, "figure": drawn, "front": n == "kappa"} for n in ("curse", "kappa")]
    (folder / "figures.json").write_text(json.dumps(rows))
    first, rest = report.build(tmp_path).split('id="runs"')
    assert "<strong>kappa" in first.replace("<b>", "<strong>") and "curse" not in first
    assert "curse" in rest


def test_a_name_from_the_data_turns_no_number_round(tmp_path: Path) -> None:
    """A source that ends in a bidi override: the first screen said ":" and then ".099 ,776.0"."""
    folder = write(tmp_path, "run0", 0, 0.3)
    row = json.loads((folder / "metrics.json").read_text())
    row["metrics"] = {"score, good\u202e": {"value": 0.8, "low": 0.6, "high": 0.9, "n": 8}}
    (folder / "metrics.json").write_text(json.dumps(row))
    shown = show([{"score": 0.5, "kind\u2066": "x\u202e"}], caption="of \u202e")._repr_html_()
    for page in (report.build(tmp_path), shown):
        assert not set("\u202e\u2066") & set(page) and "\u2039U+202E\u203a" in page
    assert theme.safe('it\'s "so" & <b>') == 'it\'s "so" &amp; &lt;b&gt;'  # was &quot;so&quot;
    assert show([], caption="skipped: no files")._repr_html_() == "<p>skipped: no files</p>"


def test_what_all_runs_say_alike_stands_once(tmp_path: Path) -> None:
    """Two equal runs and another: 45 rows of the same numbers, "not recorded" for each count."""
    for k in range(3):
        write(tmp_path, f"run{k}", k, 0.3 + (k == 2) / 10)
    table = report.build(tmp_path).split('id="compare"')[1].split("<h2")[0]
    assert table.count("steps</td>") == 1 and "all 3 alike" in table  # 30 in each
    assert table.count("gain</td>") == 3 and "not recorded" not in table


def test_a_difference_that_several_runs_say_alike_is_one_look() -> None:
    """53 kept differences of notebook 4 counted twice, once for each of two runs of it."""
    gain = {"value": 0.1, "low": -0.1, "high": 0.3, "n": 9, "method": "paired difference"}
    metrics = {f"gain {k}": {**gain, "value": 0.1 + k / 100} for k in range(5)}
    every = [*metrics.items()] * 2
    assert findings._many(every, 2)[0].startswith("5 differences stand here")


def test_judgments_that_are_too_many_are_thinned_not_dropped(tmp_path: Path) -> None:
    """2,400 answers, 11.8 MB: the page kept none of them, and named a path of this machine."""
    folder = write(tmp_path, "run0", 0, 0.3)
    tasks = [{"id": f"t{i}", "prompt": "p", "group": None, "criteria": []} for i in range(90)]
    answer = {"id": "r", "text": "w " * 60_000, "source": None, "set": "", "v": []}
    answers = [{**answer, "t": i, "score": 1.0, "low": 1.0, "high": 1.0} for i in range(90)]
    data = {"schema": 1, "tasks": tasks, "answers": answers}
    (folder / runs.JUDGMENTS).write_text(json.dumps(data))
    page = report.build(tmp_path)
    assert "one task in 6 stands here" in page and str(tmp_path) not in page
    assert page.count('"prompt": "p"') == 15 and len(page) < 8_000_000


def test_a_filter_that_fits_nothing_draws_nothing(found: list[tuple[Path, Run]]) -> None:
    """Notebook 5 showed "None" for each notebook, and then a plot without a mark."""
    assert widgets.show(found, "03_train_grpo", "zzz") is None
    assert widgets.show(found, "03_train_grpo", "gain") is not None


def test_many_runs_keep_their_sentences_and_an_opened_test_is_said(tmp_path: Path) -> None:
    """Of five runs of notebook 2 not one sentence stood on the page: "no sealed result" neither."""
    for k in range(5):
        folder = write(tmp_path, f"run{k}", 0, 0.3, lr=k)
        row = json.loads((folder / "metrics.json").read_text())
        own = f"Nothing gained. The test was read {k + 2} times: this is no sealed result."
        (folder / "metrics.json").write_text(json.dumps({**row, "meta": {"found": [own]}}))
    pairs = runs.find(tmp_path)
    (said,) = findings.found(pairs).values()
    assert sum("Nothing gained" in s for s in said) == 5 and "(lr=3)" in said[3]
    assert any("read more than once" in s for s in findings.doubts(pairs))


def test_shares_over_seeds_stay_shares(tmp_path: Path) -> None:
    """ "score 0.7333 [-0.1137, 1.58]" of three seeds, on the report's first screen."""
    for k, value in enumerate((0.4, 0.8, 1.0)):
        folder = write(tmp_path, f"run{k}", k, 0.3)
        row = json.loads((folder / "metrics.json").read_text())
        share = {"value": value, "low": 0.1, "high": 1.0, "n": 9, "method": "share, Wilson"}
        (folder / "metrics.json").write_text(json.dumps({**row, "metrics": {"score": share}}))
    (score,) = compare.across_seeds(runs.find(tmp_path))
    assert 0 <= score.mean.low < score.mean.high == 1


def test_every_measure_over_seeds_stays_in_its_range(tmp_path: Path) -> None:
    """ "pass: 0.972 [0.923, 1.022] over 3 seeds" of a mean over prompts, and a kappa up to 1.047."""
    prompts, rows = [0, 0, 1, 1, 2, 2], [1, 1, 1, 0, 1, 1]
    named = {
        "pass": stats.macro_mean(rows, cluster=prompts).method,
        "kappa": stats.kappa(rows, [1, 1, 0, 0, 1, 1], cluster=prompts).method,
        "AUROC": stats.auroc([1, 2, 3, 1, 3, 2], rows).method,
        "reward": stats.mean([3.0, 4.0, 5.0]).method,
        "gain": stats.difference(rows, [0, 0, 1, 0, 1, 1], cluster=prompts).method,
    }
    for k, value in enumerate((0.5, 0.9, 1.0)):
        folder = write(tmp_path, f"run{k}", k, 0.3)
        row = json.loads((folder / "metrics.json").read_text())
        each = {m: {"value": value, "n": 9, "method": how} for m, how in named.items()}
        (folder / "metrics.json").write_text(json.dumps({**row, "metrics": each}))
    found = {s.metric: s.mean for s in compare.across_seeds(runs.find(tmp_path))}
    assert [found[m].high for m in ("pass", "kappa", "AUROC")] == [1, 1, 1]
    assert found["reward"].high > 1 and found["gain"].high > 1


def test_first_pictures_name_their_run_and_are_not_of_other_parameters() -> None:
    """Three pictures of the oldest runs, one of them with n = 1, and none said which."""

    def section(name: str, picture: str) -> dict[str, Any]:
        return {"name": name, "figures": [{"title": picture, "front": True, "caption": ""}]}

    sections = [section("02_tune", "a"), section("02_tune: limit=20", "b"), section("04_plot", "c")]
    shown = report._pictures(sections)
    assert [(f["title"], f["caption"]) for f in shown] == [("a", "Run 02_tune. "), ("c", "")]


def test_a_text_in_a_table_has_room_on_a_phone() -> None:
    """20 rows of 200 px each in notebook 1: a word or two a line."""
    page = rows_html(("id", "text"), [("a", "word " * 30)])
    assert page.count("min-width:16em") == 1 and page.index("min-width") > page.index("a</td>")


def test_data_that_changed_under_one_name_are_two_settings(tmp_path: Path) -> None:
    """24 tasks, then 6 under the same file name: "tasks 15 ... all seeds gave the same"."""
    data = tmp_path / "d.jsonl"
    for name, text in (("before", "24 tasks"), ("after", "6 tasks")):
        data.write_text(text)
        for seed in (0, 1):
            folder = write(tmp_path / "r", f"{name}{seed}", seed, 0.3, rubrics=str(data))
            held = runs.digests({"rubrics": str(data), "seed": seed})
            runs.write_json(folder / "config.json", {"meta": {"files": held}})
    found = runs.find(tmp_path / "r")
    seeds = [s for s in compare.across_seeds(found) if s.metric == "gain"]
    assert [s.runs for s in seeds] == [2, 2]
    assert all(s.setting.startswith("rubrics (sha256)=") for s in seeds)
    assert len(set(compare.labels(found).values())) == 4
