"""Broken tables and files: what a stray quote, a cut archive or an empty file takes with it is said."""

import gzip
import json
import os

import pytest

import kit
from kit.data import load_tasks
from kit.data.tables import read_rows
from kit.errors import DataError, KitError


def table(tmp_path, text, name="a.csv"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8", newline="")
    return load_tasks(path)


def errors(tasks):
    return [f for f in tasks.findings if f.severity == "error"]


def test_a_quote_that_is_never_closed_ends_the_reading_and_says_so(tmp_path):
    """Three rows became one task whose criterion was the rest of the file, with 0 skipped: what
    follows such a quote is not read, and that is said."""
    tasks = table(tmp_path, 'id,prompt,criteria\n1,p1,c1\n2,p2,"c2 is 5 tall\n3,p3,c3\n')
    assert [t.id for t in tasks.tasks] == ["1"] and tasks.skipped == 1
    assert "line 3" in errors(tasks)[0].where and "nothing was read" in errors(tasks)[0].message


def test_text_after_a_closing_quote_is_an_error_and_rows_in_a_quoted_cell_are_said(tmp_path):
    bad = table(tmp_path, 'id,prompt,criteria\n1,p,c\n2,q,"a" b\n')
    assert [t.id for t in bad.tasks] == ["1"] and len(errors(bad)) == 1
    rows = "".join(f"{i},p{i},c\n" for i in range(2, 9))
    swallowed = table(tmp_path, f'id,prompt,criteria\n1,p,"c\n{rows}9,p,"\n10,q,c\n')
    assert "quoted-lines" in {f.code for f in swallowed.findings}
    prose = table(
        tmp_path, 'id,prompt,criteria\n1,"Dear A, dear B,\n\nhello, you,\nall","c.\nd."\n'
    )
    assert not prose.findings and len(prose.tasks[0].criteria) == 2


ROWS = b"".join(
    json.dumps({"prompt": f"p{i}", "criteria": [f"x{i}"]}).encode() + b"\n" for i in range(600)
)


@pytest.mark.parametrize(
    ("damage", "least"),
    [
        (lambda z: z[: len(z) * 2 // 3], 200),
        (lambda z: z + b"rest of a download", 600),
        (lambda z: z[:-8] + b"\1\2\3\4" + z[-4:], 600),
    ],
)
def test_a_damaged_archive_gives_what_stands_before_the_damage(tmp_path, damage, least):
    """Below 64 KB it was called an empty file."""
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(damage(gzip.compress(ROWS)))
    tasks = load_tasks(path)
    assert least <= len(tasks) <= 600
    assert any("cut off or damaged" in f.message for f in errors(tasks))


def test_archives_of_several_members_and_with_padding_are_read_whole(tmp_path):
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(ROWS[:20_000]) + gzip.compress(ROWS[20_000:]) + b"\0" * 512)
    assert sum(1 for _ in read_rows(path)) == 600


@pytest.mark.parametrize(("name", "text"), [("a.txt", "one line\n"), ("a.csv", "id,prompt\n")])
def test_a_file_without_rows_is_an_error(tmp_path, name, text):
    """0 tasks, format "empty", and no finding."""
    assert [f.code for f in errors(table(tmp_path, text, name))] == ["no-rows"]
    assert [f.code for f in errors(load_tasks([]))] == ["no-rows"]


@pytest.mark.parametrize("name", ["a.md", "a.html", "a.bz2"])
def test_files_of_other_kinds_are_refused_by_name(tmp_path, name):
    with pytest.raises(DataError, match="not read"):
        table(tmp_path, "hello\n", name)


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (None, "NoneType"),
        (3, "int"),
        ({"prompt": "p", "criteria": ["x"]}, "put a row into a list"),
        (os.devnull, "device"),
    ],
)
def test_a_source_that_is_none_is_named(source, says):
    with pytest.raises(KitError, match=says):
        kit.load(source)


def test_a_set_of_parts_is_told_to_give_one():
    """A DatasetDict was told to put a row into a list."""
    datasets = pytest.importorskip("datasets")
    rows = datasets.Dataset.from_list([{"prompt": "p", "criteria": ["x"]}])
    with pytest.raises(DataError, match="one of its parts.*train"):
        kit.load(datasets.DatasetDict({"train": rows}))


def test_a_frame_is_told_to_give_its_rows():
    pandas = pytest.importorskip("pandas")
    with pytest.raises(DataError, match="records"):
        kit.load(pandas.DataFrame({"prompt": ["p"], "criteria": ["x"]}))


def test_a_pair_that_answers_another_prompt_is_an_error():
    """The answers to OTHER became answers to P."""

    def chat(asked, said):
        return [{"role": "user", "content": asked}, {"role": "assistant", "content": said}]

    other = load_tasks([{"prompt": "P", "chosen": chat("O", "c"), "rejected": chat("O", "r")}])
    assert [f.code for f in errors(other)] == ["context-mismatch"]
    same = {"chosen": chat("P", "c"), "rejected": chat("P", "r")}
    assert not errors(load_tasks([{"prompt": "P", **same}])) and not errors(load_tasks([same]))
    empty = load_tasks([{"prompt": "P", "chosen": "", "rejected": "r"}])
    assert "empty-answer" in {f.code for f in empty.findings}


def test_labels_on_no_criterion_and_two_labels_of_one_rater_are_said():
    tasks = load_tasks([{"task_id": "t", "prompt": "p", "criteria": [{"id": "c", "text": "x"}]}])
    answers = [
        {"task_id": "t", "response_id": "r", "response": "a", "labels": {"c": 1, "other": 1}},
    ]
    verdict = {"record": "verdict", "task_id": "t", "response_id": "r", "criterion_id": "c"}
    again = [
        {**verdict, "status": s, "value": v, "judge": "human:1"}
        for s, v in (("met", 1.0), ("unmet", 0.0))
    ]
    assert "unknown-criterion" in {f.code for f in errors(tasks.joined(load_tasks(answers)))}
    assert "two-labels" in {f.code for f in errors(tasks.joined(load_tasks(again)))}


CZECH = "Popište, proč se řeka vylévá z břehů. Odpověď uvádí tři důvody a jeden příklad."
TURKISH = "Irmağın neden taştığını açıklayın. Yanıt üç neden ve bir örnek içerir."
RUSSIAN = "Объясните, почему река разливается."
LATIN = (
    "Expliquez pourquoi la rivière déborde, à l’été et où.",
    "Erkläre, warum der Fluß über die Ufer tritt – für „Kinder“.",
    "Explica por qué el río crece: ¿cuándo y cómo? Da un ejemplo del año.",
    "Förklara varför ån svämmar över på våren.",
)


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (CZECH, "iso8859-2"),
        (TURKISH, "cp1254"),
        (RUSSIAN, "koi8-r"),
        ("川はなぜあふれるのか説明する。", "shift-jis"),
        ("请解释河流为什么会泛滥。", "gb18030"),
        (LATIN[0].replace("’", "'"), "cp437"),
        (LATIN[1], "mac-roman"),
        ("Wyjaśnij, dlaczego rzeka wylewa: podaj źródło i żółty przykład.", "iso8859-2"),
    ],
)
@pytest.mark.parametrize("rows", [2, 30])
def test_another_encoding_is_refused(tmp_path, text, encoding, rows):
    """Czech, Turkish and others were read as Windows-1252: mojibake."""
    lines = [f'{{"prompt": "{i} {text}", "criteria": ["{text}"]}}\n' for i in range(rows)]
    path = tmp_path / "a.jsonl"
    path.write_bytes("".join(lines).encode(encoding))
    with pytest.raises(DataError, match="not UTF-8"):
        load_tasks(path)


def test_blank_rows_and_columns_of_a_spreadsheet_are_no_tasks(tmp_path):
    """Excel's `,,` lines became tasks with an empty prompt; trailing empty columns refused the file."""
    path = tmp_path / "a.csv"
    path.write_text("id,prompt,criteria,,\n1,p1,c1,,\n,,,,\n2,p2,c2,,\n3,p3,c3,,lost\n")
    found = kit.load(path)
    assert [t.prompt for t in found.tasks] == ["p1", "p2"]
    assert [f.where for f in found.findings if f.severity == "error"] == ["a.csv, line 5"]


def test_a_verdict_whose_value_contradicts_its_status_is_an_error():
    rows = [
        {"record": "task", "id": "1", "prompt": "p", "criteria": [{"id": "c", "text": "x"}]},
        {"record": "response", "task_id": "1", "id": "r", "text": "t"},
    ]
    ids = {"record": "verdict", "task_id": "1", "response_id": "r", "criterion_id": "c"}
    for status, value in (("met", 0), ("unmet", 1), ("met", 0.3)):
        found = kit.load([*rows, {**ids, "judge": "j", "status": status, "value": value}])
        assert not found.verdicts
        assert any("value is" in f.message for f in found.findings if f.severity == "error")
    assert kit.load([*rows, {**ids, "judge": "j", "status": "met", "value": 1}]).verdicts


@pytest.mark.parametrize("end", ["", "\n"])
def test_an_object_whose_first_line_ends_behind_a_list_is_one_document(tmp_path, end):
    """ "the line is not JSON": autorubric's files have the rubric in line 1, the rest in line 2."""
    path = tmp_path / "one.json"
    path.write_text('{"prompt": "a?", "criteria": [{"text": "x", "weight": 2}],\n"id": "q"}' + end)
    (task,) = kit.load(path).tasks
    assert (task.id, task.criteria[0].weight) == ("q", 2)


@pytest.mark.parametrize("other", ["validation", "dev", "train_extra"])
def test_two_parts_in_one_file_are_not_read_as_one(tmp_path, other):
    """Only train + test were refused: of train + validation one part was dropped, with a warning."""
    rows = [{"prompt": "p?", "criteria": ["x"]}]
    path = tmp_path / "parts.json"
    path.write_text(json.dumps({"train": rows, other: rows}))
    with pytest.raises(DataError, match=f"several lists of rows.*{other}"):
        kit.load(path)


def test_blanks_behind_the_commas_of_a_header_are_no_part_of_the_names(tmp_path):
    """ "prompt, criterion, weight" gave two bare tasks, criteria and weights in meta."""
    path = tmp_path / "t.csv"
    path.write_text("prompt, criterion, weight\na?, x, 3\na?, rude, -2\n")
    (task,) = kit.load(path).tasks
    assert [c.weight for c in task.criteria] == [3.0, -2.0]


def test_pairs_under_query_and_reject_are_pairs():
    """Plan-RewardBench lost 593 pairs with an info; `query` beside chosen had no prompt."""
    for bad in ("rejected", "reject"):
        found = kit.load([{"query": "a?", "chosen": "G", bad: "B"}])
        assert found.tasks[0].prompt == "a?" and not found.findings
        assert [(r.source, r.text) for r in found.responses] == [("chosen", "G"), ("rejected", "B")]
    turns = [{"role": "user", "content": "a?"}, {"role": "assistant", "content": "G"}]
    worse = [turns[0], {"role": "assistant", "content": "B"}]
    found = kit.load([{"chosen": {"messages": turns}, "rejected": {"messages": worse}}])
    assert [r.text for r in found.responses] == ["G", "B"] and found.tasks[0].prompt == "a?"
