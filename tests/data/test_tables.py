"""One reader for tables: the same table in every kind of file gives the same numbers, or one sentence says why not."""

import csv
import gzip
import json

import pytest

from kit import cli, load
from kit.data import read_table
from kit.errors import DataError

ROWS = [(0.9, 1, "NA"), (0.4, 0, "a"), (0.7, 1, "None"), (0.2, 0, "a")]
TEXT = "p,y,cl\n" + "".join(f"{p},{y},{cl}\n" for p, y, cl in ROWS)
TABBED = TEXT.replace(",", "\t").encode()
FILES = {
    "a.csv": TEXT.encode(),
    "a.CSV": TEXT.encode(),
    "mark.csv": TEXT.encode("utf-8-sig"),
    "crlf.csv": TEXT.replace("\n", "\r\n").encode(),
    "a.tsv": TABBED,
    "a.TSV": TABBED,
    "a.csv.gz": gzip.compress(TEXT.encode()),
    "a.TSV.gz": gzip.compress(TABBED),
    "a.jsonl": "".join(json.dumps({"p": p, "y": y, "cl": c}) + "\n" for p, y, c in ROWS).encode(),
    "words.csv": TEXT.replace(",1,", ",true,").replace(",0,", ", False,").encode(),
}


@pytest.mark.parametrize("name", FILES)
def test_the_same_table_gives_the_same_number_from_every_file(tmp_path, capsys, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_bytes(FILES[name])
    frame = read_table(name, numbers=("p", "y"))
    assert [tuple(row) for row in frame.itertuples(index=False)] == ROWS
    options = ["--cluster", "cl", "--bins", "2", "--closed", "left", "--equal-mass"]
    assert cli.main(["calibrate", name, "p", "y", *options]) == 0
    out = capsys.readouterr().out
    assert "ECE .250" in out and "2 bins of about equal mass" in out


BROKEN = [  # name, bytes, parts of the sentence
    ("ansi.csv", "p,y\n\u201c.9\u201d,1\n".encode("cp1252"), ["ansi.csv", "UTF-8"]),
    ("wide.csv", TEXT.encode("utf-16"), ["wide.csv", "UTF-8"]),
    ("empty.csv", b"", ["empty.csv", "no rows"]),
    ("head.csv", b"p,y\n", ["head.csv", "no rows"]),
    ("twice.csv", b"p,y,y\n.9,1,0\n", ["twice.csv", "same name", "rename"]),
    ("short.csv", b"p,y\n.9\n", ["short.csv, row 2", "cells"]),
    ("words.csv", b"p,y\n.9,yes\n", ["words.csv, row 2", "'y'", "'yes'", "1 and 0"]),
    ("percent.csv", b"p,y\n95%,1\n", ["percent.csv, row 2", "'p'", ".95"]),
    *(
        (f"{x}.csv", f"p,y\n.9,1\n{x},1\n".encode(), ["row 3", "'p'", x])
        for x in ("nan", "inf", "1_0")
    ),
    ("cut.csv.gz", gzip.compress(TEXT.encode(), mtime=0)[:-9], ["cut.csv.gz", "cut"]),
    ("list.jsonl", b"[1]\n", ["list.jsonl, line 1", "object"]),
]


@pytest.mark.parametrize(("name", "content", "parts"), BROKEN)
def test_another_table_is_one_sentence(tmp_path, capsys, name, content, parts):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError) as e:
        read_table(tmp_path / name, numbers=("p", "y"))
    assert all(part in str(e.value) for part in parts), str(e.value)
    assert cli.main(["calibrate", str(tmp_path / name), "p", "y"]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_an_empty_cell_is_unknown_and_counted(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("p,y\n.9,1\n,0\n.8,\n" + ".6,1\n" * 9)
    assert read_table("a.csv", numbers=("p", "y")).isna().sum().tolist() == [1, 1]
    (tmp_path / "b.csv").write_text("p,label\n.9,1\n.8,\n")
    assert read_table("b.csv", numbers=("p", "label")).isna().sum().tolist() == [0, 1]
    assert cli.main(["calibrate", "a.csv", "p", "y"]) == 2
    assert cli.main(["calibrate", "a.csv", "p", "y", "--missing", "count"]) == 0


def test_reading_a_long_cell_leaves_the_limit_of_the_process(tmp_path):
    before = csv.field_size_limit()
    (tmp_path / "a.csv").write_text(f"prompt,note\n{'x' * 200_000},n\n")
    assert len(load(tmp_path / "a.csv")[0].prompt) == 200_000
    assert csv.field_size_limit() == before
