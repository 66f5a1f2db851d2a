"""What people see: figures, HTML, the command, files read in chunks; and that nothing heavy is imported for numbers."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import special
from scipy.special import ndtr

from kit import calibration as c
from kit import stats
from kit.__main__ import main, parser
from kit.cli import calibrate, common
from kit.errors import DataError
from kit.plots import plot

RNG = np.random.default_rng(0)
P = RNG.choice([0.1, 0.4, 0.6, 0.8, 0.95], 200)
Y = RNG.random(200) < P


def run(args: list[str]) -> int:
    given = parser("calibrate").parse_args(["calibrate", *args])
    done = calibrate.run(given)
    common.emit(given, done.data, done.text)
    return done.code


@pytest.mark.parametrize("kind", ["all", "binned", "smooth", "corp"])
def test_reliability_figure(kind) -> None:
    r = c.reliability(P, Y, n_boot=50)
    fig = json.loads(plot(r, kind=kind).to_json())
    assert (
        "calibrated model would score" in fig["layout"]["title"]["text"]
        and f"n={r.n}" in fig["layout"]["title"]["text"]
    )
    if kind in ("all", "binned"):
        bins = next(t for t in fig["data"] if t["name"].startswith("bins"))
        assert (
            "n=%{customdata[2]" in bins["hovertemplate"]
            and "customdata[4]" in bins["hovertemplate"]
        )
        assert len(r.table()) == 5 and sum(row["n"] for row in r.table()) == 200


def test_other_figures() -> None:
    for result in (
        c.risk_coverage(P, Y),
        c.sensitivity(P, Y, n_boot=20),
        c.compare((P, Y), (P, Y), n_boot=20),
    ):
        assert json.loads(plot(result).to_json())["data"] and result.table()


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(
        "conf,right,q\n"
        + "".join(
            f"{p},{str(bool(y)).lower()},{i // 4}\n"
            for i, (p, y) in enumerate(zip(P, Y, strict=True))
        )
    )
    return path


def test_command(table, tmp_path, capsys) -> None:
    base = [str(table), "--confidence", "conf", "--correct", "right"]
    assert run([*base, "--cluster", "q", "--json", "--html", str(tmp_path / "d.html")]) == 0
    out = json.loads(capsys.readouterr().out)
    assert (
        out["n"] == 200
        and out["n_clusters"] == 50
        and out["ece"] == pytest.approx(c.ece(P, Y, n_boot=0).value)
        and (tmp_path / "d.html").stat().st_size > 1e5
    )
    assert run([*base, "--bins", "10", "--closed", "left"]) == 0
    assert "10 equal-width left-closed bins" in capsys.readouterr().out
    assert run([*base, "--stream", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ece"] == pytest.approx(out["ece"])


def test_a_full_disk_leaves_the_page_that_was_there(table, tmp_path, capsys, monkeypatch) -> None:
    """ "where: unknown file", and half a page in the place of the older one."""
    page, whole = tmp_path / "d.html", Path.write_text
    page.write_text("older")

    def full(self, text, *args, **more):
        whole(self, text[:100])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    args = ["--confidence", "conf", "--correct", "right", "--html", str(page)]
    assert main(["calibrate", str(table), *args]) == 2 and "d.html" in capsys.readouterr().err
    assert page.read_text() == "older" and len(list(tmp_path.iterdir())) == 2


def test_a_confidence_just_above_1_is_shown_as_it_is() -> None:
    """It said "confidence is 1, outside [0, 1]"."""
    with pytest.raises(DataError, match=r"1\.0000001, outside.*\n.*\n.*--missing count"):
        c.reliability([0.5, 1.0000001], [1, 0])


def test_files_in_chunks(table, tmp_path) -> None:
    whole = c.sketch_file(table, confidence="conf", correct="right", chunk=17)
    assert c.ece(whole, n_boot=0).value == pytest.approx(c.ece(P, Y, n_boot=0).value, abs=1e-12)
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"p": 0.5, "ok": true}\n{"p": 1.2, "ok": true}\n')
    with pytest.raises(DataError, match="1.2, outside(.|\n)*line 2"):
        c.sketch_file(bad, confidence="p", correct="ok")
    assert c.sketch_file(bad, confidence="p", correct="ok", missing="count").missing == 1


@pytest.mark.parametrize("more", [[], ["--stream"]])
@pytest.mark.parametrize(
    "name, text, says, where",
    [
        ("text.csv", "id,p,ok\n1,0.5,1\n\n3,x,0\n", "'x', not a number", "line 4, field p"),
        ("percent.csv", "id,p,ok\n1,0.5,1\n2,1.5,0\n", "outside", "line 3, field p"),
        (
            "graded.csv",
            'id,p,ok\n"two\nlines",0.5,1\n2,0.5,3\n',
            "neither 0 nor 1",
            "line 4, field ok",
        ),
        (
            "words.jsonl",
            '{"p": 0.5, "ok": true}\n{"p": 0.4, "ok": "maybe"}\n',
            "'maybe'",
            "line 2, field ok",
        ),
        ("empty.csv", "id,p,ok\n1,,1\n", "NaN", "line 2, field p"),
    ],
    ids=lambda x: x if isinstance(x, str) and x.endswith(("csv", "jsonl")) else "",
)
def test_a_bad_row_is_named_by_its_line(tmp_path, name, text, says, where, more) -> None:
    """The command said "row 0 (the first row is 0)" of line 2 of a CSV file."""
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(DataError, match=says) as e:
        run([str(path), "--confidence", "p", "--correct", "ok", *more])
    assert e.value.where == f"{name}, {where}"


def test_a_row_without_a_cluster_is_named_by_its_line(tmp_path) -> None:
    path = tmp_path / "c.csv"
    path.write_text("p,ok,q\n0.5,1,a\n0.5,1,\n")
    with pytest.raises(DataError, match="cluster") as e:
        run([str(path), "--confidence", "p", "--correct", "ok", "--cluster", "q"])
    assert e.value.where == "c.csv, line 3, field q"


def test_numbers_import_no_plots_and_no_torch() -> None:
    code = (
        "import sys; from kit import calibration, confidence; calibration.reliability([.1,.9],[0,1],n_boot=10); "
        "print([m for m in ('plotly','torch','sklearn','pandas','transformers','kit.judge') if m in sys.modules])"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.strip()
        == "[]"
    )


def test_auto_binning_has_no_cliff_at_64_rows():
    """The default ECE fell from .309 at n=64 to .088 at n=65: 64 distinct confidences made 64 bins."""
    rng = np.random.default_rng(3)
    p = 0.5 + 0.5 * rng.random(65)
    y = rng.random(65) < p
    both = [c.ece(p[:n], y[:n], n_boot=0).value for n in (64, 65)]
    assert abs(both[0] - both[1]) < 0.05


def test_auto_binning_does_not_part_what_is_the_same():
    p = np.tile([0.1 + 0.2, 0.3, 0.9], 40)
    e = c.ece(p, np.tile([1, 0, 1], 40), n_boot=0)
    assert "2 values" in e.convention
    merged = c.Sketch().update(p[:60], [1] * 60).merge(c.Sketch().update(p[60:], [0] * 60))
    assert "2 values" in c.ece(merged, n_boot=0).convention
    few = c.ece(p.astype(np.float32), np.tile([1, 0, 1], 40), n_boot=0)
    assert abs(few.value - e.value) < 1e-6


def test_a_falling_ece_that_a_constant_matches_is_no_better_confidence():
    """RL drove every confidence to one level: ECE fell by .4, a constant did as well, and compare said "better calibrated"."""
    rng = np.random.default_rng(0)
    y = rng.random(400) < 0.4
    before = np.clip(0.6 + 0.3 * y + rng.normal(0, 0.1, 400), 0, 1)
    after = np.full(400, 0.4)
    got = c.compare((before, y), (after, y), paired=True, n_boot=200)
    assert got.difference.high < 0
    assert got.verdict.startswith("a lower calibration error, but no better confidence")
    assert "constant" in got.verdict and "right from wrong" in got.verdict
    honest = np.where(y, 0.8, 0.1)
    told = rng.permutation(y)  # as many right as before, on other questions
    open_ = c.compare((before, told), (honest, y), paired=True, n_boot=200)
    assert "not shown to be kept" in open_.verdict  # beating a constant was called "no better"
    assert "more than a constant" in open_.verdict and "no better" not in open_.verdict
    good = c.compare((np.clip(honest + 0.15, 0, 1), y), (honest, y), paired=True, n_boot=200)
    assert good.constant.high < 0 and good.auroc[1].low > 0.8


def test_whatever_got_clearly_worse_forbids_better_calibrated():
    """The Brier score rose by .041 and resolution fell to 0, and the verdict was "better calibrated";
    "accuracy not shown to be kept" stood where the outcomes were the same on both sides.
    """
    rate = np.repeat([0.2, 0.8], 500)
    y = np.random.default_rng(3).random(1000) < rate
    before, after = np.where(rate < 0.5, 0.05, 0.95), np.where(rate < 0.5, 0.47, 0.53)
    got = c.compare((before, y), (after, y), paired=True, n_boot=200)
    assert got.difference.high < 0 and got.brier.low > 0 and got.resolution_change.high < 0
    assert "better calibrated" not in got.verdict and "at a price" in got.verdict
    assert "the Brier score got worse" in got.verdict and "resolution got worse" in got.verdict
    assert "accuracy is the same by construction" in got.verdict and "kept" not in got.verdict
    few = c.compare((before[480:520], y[480:520]), (rate[480:520], y[480:520]), paired=True)
    assert (few.accuracy.low, few.accuracy.high) == (0, 0)


def test_an_unknown_interval_is_not_decided():
    """Exactly half right, all told apart: "the best constant does as well (-.250 [unknown, unknown])"."""
    y = np.repeat([1, 0], 300)
    before = np.tile([0.9, 0.99], 300)
    got = c.compare((before, y), (np.where(y, 0.99, 0.01), y), paired=True, n_boot=200)
    assert np.isnan(got.constant.low) and "not decided whether the best constant" in got.verdict
    assert "no better" not in got.verdict and "better calibrated" not in got.verdict


def test_a_token_that_ranks_better_is_named_whatever_its_scale():
    """Only raw Brier scores were compared: a token probability with an AUROC .08 higher went unsaid."""
    rng = np.random.default_rng(1)
    rate = rng.random(600)
    y = rng.random(600) < rate
    after, token = np.where(rate < 0.5, 0.25, 0.75), rate**8  # ranks better, badly scaled
    got = c.compare((np.full(600, 0.95), y), (after, y), paired=True, token=token, n_boot=200)
    assert got.token.high < 0 and got.token_auroc.high < 0
    assert "ranking by the token probability does better (AUROC" in got.verdict
    assert "better calibrated" not in got.verdict


@pytest.mark.parametrize("margin", ["x", -1, float("nan"), None, True])
def test_a_margin_is_a_share(margin):
    with pytest.raises(DataError, match="margin"):
        c.compare(([0.9], [1]), ([0.8], [1]), margin=margin)


def test_accuracy_that_falls_is_no_better_calibration():
    rng = np.random.default_rng(1)
    right = rng.random(600) < 0.6
    later = right & (rng.random(600) < 0.5)
    said = np.where(later, 0.9, 0.05)
    got = c.compare((np.full(600, 0.95), right), (said, later), paired=True, n_boot=200)
    assert "accuracy got worse" in got.verdict and got.accuracy.high < -0.02


def test_parquet_is_read_in_blocks_with_the_same_numbers(tmp_path, monkeypatch, capsys):
    """Ten million rows took 1.2 GB, 2.4 GB with clusters, as lists of objects."""
    import json

    import pyarrow as pa
    import pyarrow.parquet as pq

    from kit.__main__ import main
    from kit.cli import calibrate

    rng = np.random.default_rng(4)
    p = np.round(rng.random(3000), 3)
    table = {"p": p, "ok": rng.random(3000) < p, "task": [f"t{i // 6}" for i in range(3000)]}
    path, text = tmp_path / "t.parquet", tmp_path / "t.csv"
    pq.write_table(pa.table(table), path, row_group_size=700)
    rows = zip(*table.values(), strict=True)
    text.write_text("p,ok,task\n" + "".join(f"{a},{int(b)},{c}\n" for a, b, c in rows))

    def run(file, *more):
        assert (
            main(["calibrate", str(file), "--confidence", "p", "--correct", "ok", "--json", *more])
            == 0
        )
        return json.loads(capsys.readouterr().out)

    same = run(path)
    assert same["ece"] == pytest.approx(run(text)["ece"])
    by_task = run(path, "--cluster", "task")
    assert by_task["low"] == pytest.approx(run(text, "--cluster", "task")["low"])
    monkeypatch.setattr(calibrate, "STREAM_ABOVE", 1000)
    streamed = run(path)
    assert streamed["ece"] == pytest.approx(same["ece"]) and streamed["n"] == 3000
    table["p"][2500] = 1.5
    pq.write_table(pa.table(table), path)
    assert main(["calibrate", str(path), "--confidence", "p", "--correct", "ok"]) == 2
    assert "2501" in capsys.readouterr().err


@pytest.mark.parametrize(("n_clusters", "kind"), [(300, str), (300, int), (9000, str)])
def test_clusters_of_a_large_file_are_summed_while_it_is_read(tmp_path, capsys, n_clusters, kind):
    """With clusters ten million rows took 1 GB: all were held. Read in blocks, nothing may change:
    shuffled unequal clusters, missing values, one cluster whose rows all miss."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from kit.__main__ import main

    rng, n = np.random.default_rng(n_clusters), 100_000
    size = rng.pareto(1.5, n_clusters) + 0.2
    group = rng.choice(n_clusters, n, p=size / size.sum())
    p = np.round(rng.random(n), 3)
    right = (rng.random(n) < np.clip(p + 0.1 * rng.normal(size=n_clusters)[group], 0, 1)) * 1.0
    p[(rng.random(n) < 0.01) | (group == group[0])], right[rng.random(n) < 0.01] = np.nan, np.nan
    path = tmp_path / "t.parquet"
    columns = {"p": pa.array(p, from_pandas=True), "ok": pa.array(right, from_pandas=True)}
    columns["prompt"] = [kind(g) for g in group]
    pq.write_table(pa.table(columns), path, row_group_size=30_000)
    call = ["calibrate", str(path), "--confidence", "p", "--correct", "ok", "--cluster", "prompt"]
    call += ["--missing", "count", "--json"]
    found = []
    for more in ([], ["--stream"]):
        assert main([*call, *more]) == 0
        found.append(json.loads(capsys.readouterr().out))
    whole, streamed = found
    usable = ~np.isnan(p + right)
    assert whole["missing"] == n - usable.sum()
    assert whole["n_clusters"] == len(np.unique(group[usable])) < len(np.unique(group))
    for a, b in [(whole, streamed), *zip(whole["table"], streamed["table"], strict=True)]:
        numbers = {k: v for k, v in a.items() if isinstance(v, (int, float))}
        assert {k: b[k] for k in numbers} == pytest.approx(numbers, rel=0, abs=1e-9)
    assert whole["convention"] == streamed["convention"]


def test_clusters_of_a_stream_take_memory_by_cluster_not_by_row():
    """The cells of all rows at once: 12 bytes a row and more."""
    import tracemalloc

    from kit.calibration import cells
    from kit.calibration.inputs import Inputs

    def peak(blocks):
        rng, p = np.random.default_rng(0), np.linspace(0, 1, 20_000)
        rows = (Inputs(p, p > 0.5, None, rng.integers(0, 50, 20_000), 50) for _ in range(blocks))
        tracemalloc.start()
        assert cells.tally(rows, cells.width(10)).rows == 20_000 * blocks
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    assert peak(2) * 1.2 > peak(40)


def test_a_threshold_to_abstain_at_has_a_door(tmp_path, capsys):
    """`stats.abstain_below` was in the library only."""
    from kit.__main__ import main

    path = tmp_path / "t.csv"
    lines = [f"{i / 100},{int(i > 20)},p{i}" for i in range(100)]
    path.write_text("\n".join(["p,ok,prompt", *lines]))
    call = ["calibrate", str(path), "--confidence", "p", "--correct", "ok", "--cluster", "prompt"]
    assert main([*call, "--abstain", "0.05", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["abstain"]["at"] == 0.17
    assert main([*call, "--abstain", "0.05"]) == 0
    assert "answer from a confidence of 0.17" in capsys.readouterr().out
    assert main([*call, "--abstain", "2"]) == 2
    assert main([*call[:-2], "--stream", "--abstain", "0.05"]) == 2


def test_no_interval_of_no_width() -> None:
    """Perfect and constant confidences gave [.00, .00]: three right rows are no proof."""
    for n, p in ((3, 1.0), (30, 0.9), (30, 0.6)):
        b = c.brier([p] * n, [1] * n).value
        assert b.high > b.value and b.high > 0.1
        e = c.ece([p] * n, [1] * n, n_boot=50).debiased
        assert e.high > e.value and e.high - e.low > 0.1
    change = c.compare(([0.6] * 30, [1] * 30), ([1.0] * 30, [1] * 30), paired=True, n_boot=50)
    assert change.difference.low < change.difference.value < change.difference.high


def test_brier_knows_how_many_clusters_the_rows_are_worth() -> None:
    """One cluster of 60 rows and seven of three: the intervals covered .38 of the time."""
    rng, cluster, hits = np.random.default_rng(0), np.repeat(np.arange(8), [60] + [3] * 7), 0
    for _ in range(50):
        y = rng.random(81) < rng.beta(1.05, 0.45, 8)[cluster]
        e = c.brier(np.full(81, 0.7), y, cluster=cluster).value
        hits += e.low <= 0.21 <= e.high
    assert hits >= 45


def test_a_falling_error_is_measured_against_what_needs_no_training():
    """A policy trained to say each family's rate was "better calibrated", and a table of rates did as well."""
    rng = np.random.default_rng(0)
    family, rate = np.repeat(["easy", "hard"], 120), np.repeat([0.9, 0.1], 120)
    y = rng.random(240) < rate
    token = np.clip(np.where(y, 0.97, 0.03), 0, 1)
    found = c.compare((np.full(240, 0.9), y), (rate, y), paired=True, family=family, token=token)
    assert found.constant.high < 0 and abs(found.lookup.value) < 0.01 and found.token.low > 0
    assert "look-up of each family's rate may do as well" in found.verdict
    assert "the token probability does better" in found.verdict
    assert found.resolution[0] == pytest.approx(0) and found.resolution[1] > 0.1
    sharp = c.compare((np.full(240, 0.9), y), (token, y), paired=True, family=family)
    assert sharp.lookup.high < 0 and "without training" not in sharp.verdict
    assert sharp.token is None and "token" not in str(sharp.table())


def test_the_look_up_never_sees_its_own_row():
    """A family of one row would be right about itself."""
    x = c.against_lookup([0.5, 0.5, 0.5, 0.5], [1, 0, 0, 0], ["a", "b", "b", "b"])
    assert x.value == pytest.approx(0.25 - 1 / 4)
    by_prompt = c.against_lookup([0.5] * 4, [1, 1, 0, 0], ["a"] * 4, cluster=["p", "p", "q", "q"])
    assert by_prompt.value == pytest.approx(0.25 - 1.0 + 0.5)  # less what two clusters do not know
    with pytest.raises(DataError, match="family"):
        c.against_lookup([0.5, 0.5], [1, 0], ["a"])


@pytest.mark.parametrize("unknown", [None, float("nan")])
def test_an_unknown_family_is_no_family(unknown):
    """It was one: rows of which nothing is known were said to be alike."""
    with pytest.raises(DataError, match="the family is unknown"):
        c.against_lookup([0.5] * 4, [1, 0, 1, 0], ["a", "a", unknown, unknown])


def test_families_of_one_row_allow_no_look_up():
    """The table was the rate of all rows, and the confidence was said to beat it."""
    names, y = [str(i) for i in range(40)], [1, 0] * 20
    found = c.against_lookup([0.9, 0.1] * 20, y, names)
    assert math.isnan(found.value) and "no look-up can be made" in found.note
    made = c.compare(([0.1, 0.9] * 20, y), ([0.9, 0.1] * 20, y), paired=True, family=names)
    assert "not decided whether a look-up" in made.verdict


def test_rates_of_unsure_rows_have_the_interval_of_every_rate() -> None:
    """P(right | confidence < .3) had an interval of its own that held the truth in .72 to .85."""
    p, y = np.tile([0.1, 0.2, 0.9], 40), np.tile([0, 0, 1, 1, 0, 1], 20)
    cluster = np.arange(120) // 6
    few = p < 0.3
    e, same = (
        c.underconfidence(p, y, cluster=cluster),
        stats.mean(y[few], cluster=cluster[few]),
    )
    assert (e.value, e.low, e.high) == pytest.approx((same.value, same.low, same.high))


def test_the_area_under_the_risk_of_one_error_is_not_certain() -> None:
    """AURC of 40 prompts with an error or two held the truth in .79."""
    y = np.ones(40)
    y[3] = 0
    e = c.risk_coverage(np.linspace(0.5, 0.99, 40), y).aurc
    assert e.value < 0.05 and e.high > 0.1


def test_a_bin_of_equal_outcomes_has_an_mce_with_a_width():
    """[.00, .00] on one answer, and [.50, .50] on twelve: nothing was certain."""
    for conf, right in (([1.0], [1]), ([1.0] * 12, [1] * 12), ([0.5] * 12, [0] * 12)):
        found = c.mce(conf, right)
        assert found.high - found.low > 0.2


def test_nearly_certain_answers_that_are_calibrated_are_not_shown_to_be_off() -> None:
    """Confidences of .9 and .99 that are right, ICC .8: the interval held 0 in .80 at 8 clusters and
    .84 at 20. The few clusters with wrong answers had not been drawn."""
    rng, held = np.random.default_rng(0), 0
    for _ in range(60):
        cluster = np.repeat(np.arange(20), rng.integers(2, 17, 20))
        conf = np.where(rng.random(20) < 0.5, 0.9, 0.99)[cluster]
        z = 0.8**0.5 * rng.normal(size=20)[cluster] + 0.2**0.5 * rng.normal(size=len(cluster))
        held += c.ece(conf, ndtr(z) < conf, cluster=cluster, n_boot=100).low == 0
    assert held >= 56
    off = c.ece(np.full(200, 0.9), np.tile([1, 0], 100), cluster=np.arange(200) // 5, n_boot=100)
    assert off.low > 0.2  # what is plainly off is still shown


def test_a_stream_and_rows_in_memory_give_one_answer_for_rounded_confidences() -> None:
    """The mean confidence of a bin was .09999999999999706 in memory: its draws, and with them the
    p value and the bands, were others (.2158 and .2188).
    """
    rng = np.random.default_rng(5)
    p = rng.random(20_000).round(1)
    y = (rng.random(20_000) < p).astype(int)
    rows, stream = (
        c.reliability(p, y, n_boot=200),
        c.reliability(c.Sketch().update(p, y), n_boot=200),
    )
    assert rows.ece.p_value == stream.ece.p_value
    for a, b in zip(rows.table(), stream.table(), strict=True):
        assert a == pytest.approx(b, abs=1e-9, nan_ok=True)


def test_the_largest_gap_of_few_clusters_has_their_quantile() -> None:
    """The interval of `mce` was the normal one with 8 clusters too, and held .90."""
    y, cluster = np.tile([1, 0, 1, 1, 1], 8), np.arange(40) // 5
    y[:5] = 0
    few = c.mce(np.full(40, 0.9), y, cluster=cluster)
    rows = c.mce(np.full(40, 0.9), y, cluster=np.arange(40))
    assert few.high - few.low > rows.high - rows.low


def test_a_confidence_that_is_its_familys_rate_is_no_better_than_the_table():
    """The table's own noise counted against it: 60 of 60 such confidences were "better"."""
    rng, better, values = np.random.default_rng(5), 0, []
    for _ in range(40):
        family = np.repeat(np.arange(7), 20)
        rate = rng.uniform(0.1, 0.95, 7)[family]
        found = c.against_lookup(rate, (rng.random(140) < rate).astype(float), family)
        better += found.high < 0
        values.append(found.value)
    assert better <= 3 and abs(np.mean(values)) < 0.003


@pytest.mark.parametrize("sides", [([0.1, 0.2, 0.3], [1, 0, 1]), (None, None), ((1, 2, 3), (1, 2))])
def test_a_side_that_is_no_pair_of_columns_is_named(sides):
    """A bare TypeError: check() takes 2 positional arguments but 60 were given."""
    with pytest.raises(DataError, match="no pair of columns"):
        c.compare(*sides)


@pytest.mark.parametrize("wrong", ["no", float("nan"), 2, None])
def test_paired_is_true_or_false(wrong):
    """The text "no" was taken for True: intervals of another design."""
    pair = [0.1, 0.9], [0, 1]
    with pytest.raises(DataError, match="paired is"):
        c.compare(pair, pair, paired=wrong)


def test_a_token_that_is_unknown_is_called_a_token():
    pair = [0.1, 0.9] * 4, [0, 1] * 4
    with pytest.raises(DataError, match="token is NaN"):
        c.compare(pair, pair, paired=True, token=[0.5] * 7 + [float("nan")])
    with pytest.raises(DataError, match="score has 7 rows"):
        c.against_score(*pair, [0.5] * 7)


@pytest.mark.parametrize("alike", [0.0, 0.5])
def test_the_band_of_a_calibrated_judge_holds_its_own_bins(alike):
    """Drawn from the residuals that were there, it knew of no outcome that was not: of a judge that
    is calibrated 21 % of the bins lay outside, 76 % of the diagrams had such a bin."""
    rng = np.random.default_rng(5)
    outside = []
    for _ in range(30):
        cluster = np.repeat(np.arange(50), rng.integers(1, 7, 50))
        p = rng.choice([0.002, 0.05, 0.3, 0.6, 0.9, 0.99, 0.998], len(cluster))
        own, common = rng.random(len(cluster)), rng.random(50)[cluster]
        y = np.where(rng.random(len(cluster)) < alike, common, own) < p
        bins = c.reliability(p, y, bins=10, cluster=cluster, n_boot=200).bins
        outside += [*((bins.accuracy < bins.band_low) | (bins.accuracy > bins.band_high))]
    assert np.mean(outside) <= 0.06
    (row,) = c.reliability([0.9968] * 173, [1] * 173, bins=10, cluster=range(173)).table()
    assert row["band_low"] < 0.99 and row["band_high"] == 1.0


def test_the_band_knows_how_alike_the_rows_of_twenty_prompts_are():
    """Easy and hard questions hid it, read off all rows of a prompt: 20 prompts of 20 rows, .86 of
    the points of a calibrated model's smooth curve lay in their band, .88 of its bins."""
    rng = np.random.default_rng(6)
    bins, points = [], []
    for _ in range(80):
        cluster = np.repeat(np.arange(20), np.minimum(rng.geometric(1 / 20, 20), 160))
        p = rng.choice([0.2, 0.5, 0.7, 0.9], len(cluster))
        y = special.ndtr(
            0.8**0.5 * rng.normal(size=20)[cluster] + 0.2**0.5 * rng.normal(size=len(p))
        )
        found = c.reliability(p, y < p, cluster=cluster, n_boot=200)
        b, s = found.bins, found.smooth
        bins += [*((b.accuracy >= b.band_low) & (b.accuracy <= b.band_high))]
        at = [20, 50, 70, 90]
        points += [*((s.y >= s.band_low) & (s.y <= s.band_high))[at]]
    assert np.mean(bins) >= 0.9 and np.mean(points) >= 0.9


def test_weights_of_two_equal_doubled_rows_under_the_default_bins():
    """ "auto" counted rows, not weights: ECE .142 in 5 bins beside .259 in 10."""
    rng = np.random.default_rng(2)
    p = rng.random(40)
    y = (rng.random(40) < p).astype(int)
    twice = c.ece(np.r_[p, p], np.r_[y, y], n_boot=0)
    weighed = c.ece(p, y, weights=[2] * 40, n_boot=0)
    assert weighed.value == pytest.approx(twice.value) and weighed.n_bins == twice.n_bins == 10
    none = c.ece(
        np.r_[p, rng.random(200)], np.r_[y, y, y, y, y, y], weights=[1] * 40 + [0] * 200, n_boot=0
    )
    assert none.value == pytest.approx(c.ece(p, y, n_boot=0).value)
    sketch = c.Sketch().update(p, y, weights=[2] * 40)
    assert c.ece(sketch).value == pytest.approx(twice.value)


def test_a_bin_on_the_end_of_the_band_lies_inside():
    """Ends were rounded to 12 digits: an accuracy of 2/3 lay below a band from .666666666667."""
    bins = c.reliability([0.92] * 3, [1, 1, 0], bins=10).bins
    assert bins.accuracy[0] >= bins.band_low[0] > 0.6


def test_how_often_a_calibrated_judge_strays_is_counted_from_its_own_bins():
    """1 - .95**10 = 40% was said of ten bins, six of which hold so few answers that none can."""
    few = c.reliability([0.15, 0.25, 0.55, 0.65, 0.75], [0, 1, 1, 0, 1], bins=10).bins
    many = c.reliability([0.25, 0.5, 0.75] * 200, [0, 1, 1] * 200, bins=4).bins
    assert few.strays == 0.0 and 0.06 < many.strays < 0.16


@pytest.mark.parametrize(("n", "sure", "right"), [(100, 1.0, 0.97), (40, 1.0, 0.92), (20, 1, 0.85)])
def test_the_interval_of_one_confidence_with_few_errors_holds(n, sure, right):
    """A model that always says 1.0 and is right 97 times in 100: .85 of the intervals held .03."""
    from scipy.stats import binom

    held = 0.0
    for k in range(n + 1):
        found = c.ece([sure] * n, [1] * k + [0] * (n - k), n_boot=50)
        inside = found.low - 1e-12 <= sure - right <= found.high + 1e-12
        held += inside * binom.pmf(k, n, right)
        assert "clusters" not in found.note  # there are none
    assert held >= 0.92


def test_every_function_of_columns_knows_them_by_name():
    frame = {"p": [0.6, 0.9] * 6, "y": [1, 0, 1] * 4, "c": [*"aabbccddeeff"], "w": [1, 2] * 6}
    by_name = c.mce(frame, "p", "y", cluster="c")
    assert by_name == c.mce(frame["p"], frame["y"], cluster=frame["c"])
    weighed = c.null_ece(frame, "p", weights="w")
    assert weighed == c.null_ece(frame["p"], weights=frame["w"])
    two = {k: frame[k] for k in "pyc"}
    rows = stats.compare(two, "p", cluster="c")
    assert rows == stats.compare({k: frame[k] for k in "py"}, "p", cluster=frame["c"])


@pytest.mark.parametrize(("n", "right"), [(100, 0.95), (400, 0.98)])
def test_the_largest_gap_of_one_confidence_with_few_errors_holds(n, right):
    """.88 and .895 of the intervals held the gap of a model that always says 1.0."""
    from scipy.stats import binom

    found = [c.mce([1.0] * n, [1] * k + [0] * (n - k)) for k in range(n + 1)]
    inside = [e.low - 1e-12 <= 1 - right <= e.high + 1e-12 for e in found]
    assert sum(binom.pmf(k, n, right) for k in range(n + 1) if inside[k]) >= 0.92


@pytest.mark.parametrize(("n", "sure", "right"), [(100, 0.97, 0.92), (40, 0.9, 0.8)])
def test_one_confidence_against_the_best_constant_holds(n, sure, right):
    """Always .97 and right 92 times in 100: .82 of the intervals held (.97 - .92) ** 2."""
    from scipy.stats import binom

    held = 0.0
    for k in range(n + 1):
        e = c.against_constant([sure] * n, [1] * k + [0] * (n - k))
        held += binom.pmf(k, n, right) * (e.low <= (sure - right) ** 2 <= e.high)
    assert held >= 0.92


@pytest.mark.parametrize(
    ("n", "said", "right"), [(60, (0, 1), (0.02, 0.98)), (20, (0.9, 0.99), (0.85, 0.9))]
)
def test_two_confidences_with_few_wrong_rows_leave_their_scores_open(n, said, right):
    """A yes / no judge, wrong at 2 % of each: .85 of the intervals of `against_constant` held; at
    .9 and .99, 20 rows, .89 of those of the Brier score."""
    from scipy.stats import binom

    chance = [binom.pmf(range(n // 2 + 1), n // 2, r) for r in right]
    brier = np.mean([r * (1 - p) ** 2 + (1 - r) * p**2 for p, r in zip(said, right, strict=True)])
    known = brier - np.mean(right) * (1 - np.mean(right))
    held = np.zeros(2)
    for j, k in np.argwhere(np.outer(*chance) > 5e-4):
        rows = np.repeat([*said, *said], [j, k, n // 2 - j, n // 2 - k])
        y = [1] * (j + k) + [0] * (n - j - k)
        found = c.against_constant(rows, y), c.brier(rows, y).value
        pairs = zip(found, (known, brier), strict=True)  # no limits are open ones
        inside = [not (v < e.low or v > e.high) for e, v in pairs]
        held += chance[0][j] * chance[1][k] * np.array(inside)
    assert held.min() >= 0.92


def test_the_room_for_few_wrong_rows_does_not_widen_scores_of_many():
    """What two well-filled values tell is what their rows' spread says."""
    rng = np.random.default_rng(3)
    p = rng.choice([0.3, 0.8], 400)
    y = (rng.random(400) < p).astype(int)
    e = c.brier(p, y).value
    assert 1 < (e.high - e.low) / (2 * 1.96 * e.se) < 1.03


def test_several_classes_and_the_slope_have_a_door(tmp_path, capsys):
    """Classwise calibration, the ranked probability score and Cox's slope were for Python alone."""
    rng = np.random.default_rng(1)
    probs = rng.dirichlet([1, 2, 3], 200).round(6)
    probs[:, 2] = 1 - probs[:, :2].sum(1)
    level = np.array([rng.choice(3, p=p) for p in probs])
    names = ["bad", "fair", "good"]
    rows = [
        dict(zip(names, p, strict=True)) | {"is": names[k], "right": int(k == 2), "q": i // 4}
        for i, (p, k) in enumerate(zip(probs.tolist(), level, strict=True))
    ]
    file = tmp_path / "classes.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    own = ["--cluster", "q", "--json"]
    assert (
        main(["calibrate", str(file), "--confidence", "bad,fair,good", "--correct", "is", *own])
        == 0
    )
    said = json.loads(capsys.readouterr().out)
    found = c.classwise(probs, level, cluster=np.arange(200) // 4)
    assert [said[n]["value"] for n in names] == [e.value for e in found]
    right = np.cumsum(probs, 1) - (np.arange(3) >= level[:, None])
    assert said["rps"]["value"] == pytest.approx((right[:, :2] ** 2).sum(1).mean() / 2)
    asked = ["calibrate", str(file), "--confidence", "good", "--correct", "right", "--slope", *own]
    assert main(asked) == 0
    slope = json.loads(capsys.readouterr().out)["cox"]["slope"]
    assert slope["low"] < 1 < slope["high"] and slope["n_clusters"] == 50
    assert main(["calibrate", str(file), "--confidence", "bad,fair", "--correct", "is"]) != 0
    assert "'good' is none of the classes" in capsys.readouterr().err


@pytest.mark.parametrize(
    "option", [["--html", "o.html"], ["--abstain", "0"], ["--slope"], ["--missing", "count"]]
)
def test_what_classes_do_not_have_is_refused(option, tmp_path, capsys):
    """--html, --abstain, --slope and --missing were taken and did nothing, without a word."""
    file = tmp_path / "classes.csv"
    file.write_text("bad,good,is\n" + ".4,.6,good\n.7,.3,bad\n" * 20)
    asked = ["calibrate", str(file), "--confidence", "bad,good", "--correct", "is"]
    assert main(asked) == 0
    assert main([*asked, *option]) != 0
    assert f"option {option[0]}" in capsys.readouterr().err
