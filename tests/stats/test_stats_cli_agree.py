"""`agree` on the command line."""

import json

import numpy as np
import pandas as pd
import pytest

import kit
from kit import stats
from kit.__main__ import main
from kit.data import labels
from kit.errors import DataError

ROWS = "prompt,judge,human,score\np1,met,met,4\np1,unmet,met,2\np2,met,met,5\np2,,unmet,1\np3,unmet,unmet,1\np3,met,met,\n"


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(ROWS)
    return str(path)


def test_text_and_json(table, capsys):
    assert (
        main(["agree", table, "--judge", "judge", "--human", "human", "--cluster", "prompt"]) == 0
    )
    text = capsys.readouterr().out
    assert (
        "kappa" in text and "unknown: judge 1, human 0" in text and "always answering met" in text
    )
    assert (
        main(
            [
                "agree",
                table,
                "--judge",
                "judge",
                "--human",
                "human",
                "--cluster",
                "prompt",
                "--json",
            ]
        )
        == 0
    )
    data = json.loads(capsys.readouterr().out)
    assert (
        data["confusion"] == [[3, 0], [1, 1]]
        and data["n"] == 5
        and data["n_clusters"] == 3
        and data["missing_judge"] == 1
    )


def test_threshold(table, capsys):
    assert (
        main(["agree", table, "--judge", "score", "--human", "score", "--threshold", "3", "--json"])
        == 0
    )
    assert json.loads(capsys.readouterr().out)["confusion"] == [[3, 0], [0, 2]]


@pytest.mark.parametrize(
    "args",
    [
        ["--judge", "judge", "--human", "humen"],
        ["--judge", "judge", "--human", "human", "--threshold", "3"],
    ],
)
def test_errors_name_the_column(table, capsys, args):
    assert main(["agree", table, *args]) == 2
    err = capsys.readouterr().err
    assert "to do" in err and "t.csv" in err


def test_vocabularies_levels_and_order(tmp_path, capsys):
    path = tmp_path / "w.csv"
    rows = ["met,yes,low,1,0", "unmet,no,mid,3,1", "met,yes,high,5,1", "unmet,no,low,2,0"] * 4
    path.write_text("judge,human,level,score,label\n" + "\n".join(rows) + "\n")
    assert main(["agree", str(path), "--judge", "judge", "--human", "human", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["measures"][0]["value"] == 1
    cut = ["agree", str(path), "--judge", "score", "--human", "label"]
    assert main(cut) == 2 and "threshold" in capsys.readouterr().err
    assert main([*cut, "--threshold", "3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["measures"][0]["value"] == 1
    ordered = ["agree", str(path), "--judge", "level", "--human", "level", "--weights", "quadratic"]
    assert main(ordered) == 2 and "order" in capsys.readouterr().err
    assert main([*ordered, "--order", "low,mid,high"]) == 0


def test_a_measure_with_weights_says_so_in_its_name(tmp_path, capsys):
    """Gwet's AC2 stood in a line called AC1, and a weighted kappa in one called kappa."""
    path = tmp_path / "w.csv"
    rows = [("low", "low"), ("mid", "high"), ("high", "high"), ("low", "mid"), ("mid", "mid")] * 4
    path.write_text("judge,human\n" + "\n".join(map(",".join, rows)) + "\n")
    sides = ["agree", str(path), "--judge", "judge", "--human", "human", "--order", "low,mid,high"]
    assert main([*sides, "--weights", "linear"]) == 0
    text = capsys.readouterr().out
    assert "AC1" not in text and "AC2 (linear weights) " in text
    assert "kappa (linear weights) " in text
    assert main([*sides, "--json"]) == 0
    named = [m["measure"] for m in json.loads(capsys.readouterr().out)["measures"]]
    assert named[:2] == ["kappa", "AC1"]
    table = {k: [r[i] for r in rows] for i, k in enumerate(("judge", "human"))}
    how = {"weights": "linear", "categories": ["low", "mid", "high"]}
    figure = kit.plot(kit.agree(table, "judge", "human", **how))
    assert "kappa (linear weights) ." in figure.layout.title.text


def test_what_the_judge_says_where_the_human_says_each_level(table, capsys):
    """Sensitivity and specificity were in the library only."""
    sides = ["--judge", "judge", "--human", "human", "--cluster", "prompt", "--confusion"]
    assert main(["agree", table, *sides]) == 0
    assert "  met -> unmet: .250" in capsys.readouterr().out
    assert main(["agree", table, *sides, "--json"]) == 0
    rows = {(r["human"], r["judge"]): r for r in json.loads(capsys.readouterr().out)["rates"]}
    assert rows["met", "met"]["value"] == 0.75 and rows["unmet", "met"]["n"] == 1
    cut = ["--judge", "score", "--human", "score", "--threshold", "3", "--confusion", "--json"]
    assert main(["agree", table, *cut]) == 0
    rates = json.loads(capsys.readouterr().out)["rates"]
    assert [(r["human"], r["judge"], r["value"]) for r in rates if r["value"]] == [
        (0, 0, 1.0),
        (1, 1, 1.0),
    ]


def test_a_panel_needs_no_human(tmp_path, capsys):
    path = tmp_path / "panel.csv"
    rows = [(i % 2, i % 2, 1 if i % 5 == 0 else i % 2) for i in range(60)]
    path.write_text("a,b,c\n" + "\n".join(",".join(map(str, r)) for r in rows) + "\n")
    assert main(["agree", str(path), "--panel", "a,b,c", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["label"] == [i % 2 for i in range(60)] and data["n"] == 60
    assert data["accuracy"]["c"] < data["accuracy"]["a"] <= 1.0
    assert main(["agree", str(path), "--panel", "a,b,c"]) == 0
    assert "by the model" in capsys.readouterr().out
    assert main(["agree", str(path), "--panel", "a,a,b"]) == 2  # was read as two judges
    assert "'a' stands twice" in capsys.readouterr().err
    assert main(["agree", str(path), "--judge", "a"]) == 2
    assert "--human" in capsys.readouterr().err


@pytest.mark.parametrize("word", ["NA", "#N/A", "-", "?", "unsure", "Skip", "not applicable"])
@pytest.mark.parametrize("sides", [("met", "unmet"), (1, 0)])
def test_a_word_that_labels_read_as_unknown_is_no_verdict_of_its_own(tmp_path, capsys, word, sides):
    """R writes NA for a missing cell: it was a third verdict, each a disagreement, with
    "unknown: judge 0" below; kappa .027 for .059."""
    path = tmp_path / "t.csv"
    yes, no = sides
    rows = [f"{yes},{yes}", f"{no},{no}", f"{yes},{no}", f"{no},{no}"] * 5
    path.write_text("\n".join(["judge,human", *rows, *[f"{word},{yes}"] * 6]))
    side = ["agree", str(path), "--judge", "judge", "--human", "human"]
    assert main(side) == 0
    assert "n=20, 6 unknown" in (said := capsys.readouterr().out) and "unknown: judge 6" in said
    assert labels.read_label(word)[0] == "unknown"


def test_plus_and_minus_are_not_a_verdict_and_an_empty_cell(tmp_path, capsys):
    path = tmp_path / "t.csv"
    path.write_text("judge,human\n" + "+,+\n-,-\n-,+\n-,-\n" * 5)
    side = ["agree", str(path), "--judge", "judge", "--human", "human"]
    assert main(side) == 2 and "'-' is what tables write" in capsys.readouterr().err
    assert main([*side, "--order=-,+"]) == 0
    assert "unknown: judge 0, human 0" in capsys.readouterr().out


@pytest.mark.parametrize(
    "more", [["--threshold", "3"], ["--weights", "linear", "--order", "1,2,3"]]
)
def test_a_word_for_unknown_leaves_the_other_cells_numbers(tmp_path, capsys, more):
    """The numbers beside an n/a were words: refused, as "not a number", or outside the order."""
    path = tmp_path / "t.csv"
    path.write_text("judge,human\n3,3\n1,n/a\n2,1\n3,2\n1,1\n")
    side = ["--judge", "judge", "--human", "human", "--unknown", "n/a"]
    assert main(["agree", str(path), *side, *more]) == 0
    assert "n=4, 1 unknown" in capsys.readouterr().out


@pytest.mark.parametrize(
    "command",
    ["agree --judge value --human human", "calibrate --confidence value --correct correct"],
)
def test_labels_drawn_unevenly_are_refused_by_a_command_as_by_python(command, tmp_path, capsys):
    """ "raw agreement .750" of a stratified draw whose truth was .908, without a word."""
    path = tmp_path / "t.csv"
    rows = [f"{i % 2},{i % 2},{(i // 2) % 2},{0.1 if i % 5 else 1}" for i in range(40)]
    path.write_text("\n".join(["value,human,correct,inclusion", *rows]))
    name, *options = command.split()
    assert main([name, str(path), *options]) == 2
    assert "unequal probability" in capsys.readouterr().err
    path.write_text("\n".join(["value,human,correct,inclusion", *(r[:6] + "0.5" for r in rows)]))
    assert main([name, str(path), *options]) == 0


def test_a_judge_as_good_as_a_constant_is_not_called_worse(capsys):
    """A coin was "worse than always answering 1" in .2 of the reports, with any number of rows."""
    rng = np.random.default_rng(0)
    for _ in range(40):
        judge, human = rng.integers(0, 2, (2, 40))
        assert "is worse than always" not in stats.agree(judge, human).text()


def test_weights_given_by_hand_weigh_labels_that_were_drawn_unevenly():
    """`weights=1/inclusion` was refused: "this does not weigh them"."""
    frame = pd.DataFrame(
        {"correct": [1, 0, 1, 1], "w": [1, 1, 2, 2], "inclusion": [1, 1, 0.5, 0.5]}
    )
    assert stats.mean(frame, "correct", weights="w").value == pytest.approx(5 / 6)
    with pytest.raises(DataError, match="unequal probability"):
        stats.mean(frame, "correct")


def test_few_unlabelled_rows_do_not_move_a_corrected_difference_beyond_what_they_can_be():
    """One unlabelled row of 100 moved -.029 to -.050, by a weight of -2.48."""
    rng, gone = np.random.default_rng(1), 0
    for _ in range(60):
        human = (rng.random(100) < 0.6) * 1.0
        judge = np.where(rng.random(100) < 0.8, human, 1 - human)
        policy, cluster = np.tile(["a", "b"], 50), np.arange(100) // 4
        seen = np.where(np.arange(100) < 2, np.nan, human)
        e = stats.policy_difference(judge, seen, policy, new="a", old="b", cluster=cluster)
        ends = [
            (np.append(seen[2::2], a).mean() - np.append(seen[3::2], b).mean())
            for a in (0, 1)
            for b in (0, 1)
        ]
        gone += not min(ends) - 1e-9 <= e.value <= max(ends) + 1e-9
    assert gone <= 6
