"""Rows in and out of files, with their places."""

import gzip
import json
import math

import pandas
import pytest

import kit
import kit.data.stream as stream
from kit.data import load_tasks
from kit.data.jsonl import write_jsonl
from kit.data.tables import named, read_columns, read_rows
from kit.errors import DataError, MissingError
from kit.settings.read import closest


def test_nan_and_none_are_kept_everywhere(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    write_jsonl(tmp_path / "a.jsonl", [{"x": float("nan"), "y": None}, {"x": 1.0}])
    (tmp_path / "a.csv").write_text("x,y\nnan,\n1.0,\n")
    pq.write_table(
        pa.table({"x": [float("nan"), 1.0], "y": pa.nulls(2, pa.float64())}), tmp_path / "a.parquet"
    )
    for name in ("a.jsonl", "a.csv", "a.parquet"):
        got = read_columns(tmp_path / name, ["x", "y"])
        assert math.isnan(got["x"][0]) and got["x"][1] == 1.0 and got["y"] == [None, None], name


def test_places_and_errors_name_file_line_and_nearest_field(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"confidence": 1}\n\n{"confidence": 2}\n')
    assert [w for w, _ in read_rows(path)] == ["a.jsonl, line 1", "a.jsonl, line 3"]
    with pytest.raises(DataError, match="did you mean 'confidence'"):
        read_columns(path, ["confidense"])
    with pytest.raises(MissingError, match="did you mean 'a.jsonl'"):
        list(read_rows(tmp_path / "b.jsonl"))
    path.write_text('{"a": 1}\n{"a": }\n')
    with pytest.raises(DataError, match="a.jsonl, line 2"):
        list(read_rows(path))
    (tmp_path / "c.csv").write_text("a,b\n1\n")
    with pytest.raises(DataError, match="line 2"):
        list(read_rows(tmp_path / "c.csv"))


def test_a_cut_off_array_is_an_error_not_a_short_file(tmp_path):
    path = tmp_path / "a.json"
    for text in ('[{"a": 1}, {"a"', '[{"a": 1}', '[{"a": 1}, ', '[{"a": "x'):
        path.write_text(text)
        with pytest.raises(DataError, match="cut off"):
            list(read_rows(path))


def test_containers_gzip_bom_utf16_and_pretty_objects(tmp_path):
    (tmp_path / "a.json").write_text('{"version": 1, "data": [{"a": 1}, {"a": 2}]}')
    assert [r for _, r in read_rows(tmp_path / "a.json")] == [{"a": 1}, {"a": 2}]
    with gzip.open(tmp_path / "a.jsonl.gz", "wt") as f:
        f.write('{"a": "ü"}\n')
    assert [r for _, r in read_rows(tmp_path / "a.jsonl.gz")] == [{"a": "ü"}]
    (tmp_path / "b.jsonl").write_bytes(b'\xef\xbb\xbf{"a": 1}\n')
    (tmp_path / "c.json").write_bytes('[{"a": "ü"}]'.encode("utf-16"))
    (tmp_path / "d.json").write_text('{\n "a": 1\n}\n{\n "a": 2\n}')
    assert [r for _, r in read_rows(tmp_path / "b.jsonl")] == [{"a": 1}]
    assert [r for _, r in read_rows(tmp_path / "c.json")] == [{"a": "ü"}]
    assert [r for _, r in read_rows(tmp_path / "d.json")] == [{"a": 1}, {"a": 2}]


def test_reading_is_lazy(tmp_path):
    class Counting:
        def __init__(self):
            self.blocks = 0

        def read(self, size):
            self.blocks += 1
            return b"[" + b'{"a": 1},' * 1000 if self.blocks == 1 else b'{"a": 1},' * 1000

    source = Counting()
    got = stream.values(source, stream.decoder(lambda note: None))
    for _ in range(1500):
        next(got)
    assert source.blocks <= 3


def test_write_is_atomic(tmp_path):
    path = tmp_path / "a.jsonl"
    write_jsonl(path, [{"a": 1}])

    def broken():
        yield {"a": 2}
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError):
        write_jsonl(path, broken())
    assert path.read_text() == '{"a": 1}\n' and [p.name for p in tmp_path.iterdir()] == ["a.jsonl"]


@pytest.mark.parametrize("name", ["x.parquet", "x.XLSX", "x.jsonl.zst", "x.csv.zip"])
def test_rows_are_not_written_under_a_name_that_says_another_form(tmp_path, name):
    """kit.save of x.parquet wrote JSONL and said 1; kit.load called the file corrupted."""
    with pytest.raises(DataError, match="written as JSONL"):
        kit.save(tmp_path / "new" / name, kit.load([{"prompt": "Q", "criteria": ["A"]}]))
    assert not any(tmp_path.iterdir())


def test_nearest_is_none_for_strangers():
    assert closest("zzz", ["prompt"]) is None


def test_labels_that_a_data_set_holds_as_classes_are_read_by_their_names(tmp_path):
    """Names are sorted, so met was 0, which was read as unmet, and rows of the test split were
    trained on."""
    datasets = pytest.importorskip("datasets")
    kinds = {"label": datasets.ClassLabel(names=["met", "unmet"])}
    kinds |= {"split": datasets.ClassLabel(names=["test", "train"])}
    kinds |= {k: datasets.Value("string") for k in ("prompt", "criterion", "response")}
    rows = [
        {"prompt": f"p{i}", "criterion": "x", "response": "R", "label": i, "split": i}
        for i in (0, 1)
    ]
    held = datasets.Dataset.from_list(rows, features=datasets.Features(kinds))
    held.to_parquet(tmp_path / "a.parquet")
    for source in (held, tmp_path / "a.parquet"):
        got = kit.load(source)
        assert [v.status for v in got.verdicts] == ["met", "unmet"]
        assert [t.held_out for t in got.tasks] == [True, False]


def test_classes_inside_lists_and_objects_have_their_names_too():
    """The labels of several raters are a list of classes."""
    kind = {"names": ["met", "unmet"], "_type": "ClassLabel"}
    inside = {"r": {"feature": kind, "_type": "List"}, "old": [kind], "o": {"x": kind}}
    row = {"r": [1, None, -1], "old": [0], "o": {"x": 1}, "other": 1}
    told = {"r": ["unmet", None, None], "old": ["met"], "o": {"x": "unmet"}, "other": 1}
    assert named(row, inside) == told


FLAT = {"prompt": "Summarize.", "criterion": "Names the river."}


@pytest.mark.parametrize("field", ["input", "system", "passage", "source", "sources"])
def test_rows_of_a_flat_table_with_other_texts_are_other_tasks(field):
    """The answer to the second text was judged beside the first one's text."""
    texts = ("The Rhine flows through Basel.", "The Aare flows through Bern.")
    rows = [
        {**FLAT, field: x, "response": "R", "label": y} for x, y in zip(texts, "10", strict=True)
    ]
    assert len(kit.load(rows).tasks) == 2
    rows = [{**FLAT, "source": m, "response": m} for m in ("model a", "model b")]
    assert len(kit.load(rows).tasks) == 1


@pytest.mark.parametrize(
    "said", [{"response": "A"}, {"completion": "A"}, {"chosen": "A", "rejected": "B"}]
)
def test_answers_are_paired_by_their_sources(said):
    """Tasks that differ in their sources alone refused every answer."""
    asked = {"prompt": "Summarize the source."}
    tasks = kit.load([{**asked, "sources": {"S": x}, "criteria": ["x"]} for x in ("t1", "t2")])
    found = tasks.joined(kit.load([{**asked, "sources": {"S": "t2"}, **said}]))
    assert {r.task_id for r in found.responses} == {"row-2"} and not found.findings
    found = tasks.joined(kit.load([{**asked, "sources": {"S": "t3"}, **said}]))
    assert {r.task_id for r in found.responses} == {"row-1#2"}  # a task of its own, and said so
    assert [(f.code, f.severity) for f in found.findings] == [("unknown-task", "warning")]


@pytest.mark.parametrize("mark", [{"split": "test"}, {"dataset_split": "dev"}, {"is_test": "true"}])
def test_a_task_of_a_flat_table_is_held_out_where_any_row_of_it_is(mark):
    rows = [{**FLAT, "response": "A"}, {**FLAT, "response": "B", **mark}]
    for given in (rows, rows[::-1]):
        found = kit.load(given)
        assert [t.held_out for t in found.tasks] == [True] and not found.findings


@pytest.mark.parametrize("name", ["criterion_text", "rubric_item", "requirement"])
def test_a_criterion_under_another_usual_name_of_a_column_is_read(name):
    rows = [{"task_id": 1, "prompt": "Q", name: x, "weight": w} for x, w in (("A", 3), ("B", -2))]
    criteria = kit.load(rows).tasks[0].criteria
    assert [(c.text, c.weight) for c in criteria] == [("A", 3), ("B", -2)]
    found = kit.load([{**r, "Weight": r.pop("weight")} for r in rows]).findings
    assert [f.severity for f in found if f.field == "Weight"] == ["error"]


@pytest.mark.parametrize("name", ["annotator_id", "worker", "labeled_by", "graderId"])
def test_who_labelled_is_told_apart_in_a_flat_table(name):
    """Two annotators were one "human", who contradicted itself."""
    rows = [{**FLAT, "response": "R", "label": x, name: x} for x in ("met", "unmet")]
    found = kit.load(rows)
    assert [v.judge for v in found.verdicts] == ["human:met", "human:unmet"]
    assert not found.findings


def test_labels_of_a_judge_in_a_flat_table_are_no_persons():
    rows = [{**FLAT, "response": "R", "label": "met", "judge": j} for j in ("gpt-4o", "human")]
    assert [v.judge for v in kit.load(rows).verdicts] == ["gpt-4o", "human"]


@pytest.mark.parametrize("label, value", [("met", 1.0), (3, 1.0)])
def test_a_judge_that_is_named_in_an_object_of_labels_is_no_person(label, value):
    """It was "human:gpt-4o" there, and "gpt-4o" in a table."""
    levels = {"levels": ["bad", "fair", "good"]} if label == 3 else {}
    row = {**FLAT, **levels, "response": "R", "label": label, "judge": "gpt-4o"}
    own = {"id": "c1", "text": "A", **levels}
    said = {"c1": {"label": label, "judge": "gpt-4o"}}
    nested = {"prompt": "Q", "rubrics": [own], "response": "R", "labels": said}
    listed = {**nested, "labels": [{"criterion": "c1", **said["c1"]}]}
    for one in (row, nested, listed):
        first = {**row, "label": 1} if one is row else {**nested, "labels": {"c1": 1}}
        found = kit.load([one, {**first, "response": "S"}] if label == 3 else [one]).verdicts[0]
        assert (found.judge, found.value) == ("gpt-4o", value)


def test_an_empty_weight_of_a_flat_table_is_said(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("task_id,prompt,criterion,weight\n1,Q,A,30\n1,Q,B,-20\n1,Q,C,\n")
    found = kit.load(path)
    assert [c.weight for c in found.tasks[0].criteria] == [30, -20, 1]
    assert [f.where for f in found.findings if f.code == "null-weight"] == ["t.csv, line 4"]


def test_rows_that_share_a_prompt_are_each_compared_once(monkeypatch):
    """4,000 flat rows of one prompt and another article each took 85 s: each was compared with all."""
    from kit.data import shelf

    compared = []

    def counted(a, b, old=shelf.same_task):
        compared.append(1)
        return old(a, b)

    monkeypatch.setattr(shelf, "same_task", counted)
    base = {"prompt": "Summarize the article.", "criterion": "Is short.", "label": 1}
    rows = [{**base, "article": f"text {i % 90}", "response": f"r{i}"} for i in range(270)]
    found = kit.load(rows)
    assert (len(found.tasks), len(found.responses)) == (90, 270)
    assert len(compared) <= 3 * len(rows)
    assert [t.meta["article"] for t in found.tasks] == [f"text {i}" for i in range(90)]


def test_rows_with_an_id_are_joined_whatever_else_they_hold():
    rows = [
        {"task_id": "a", "prompt": "Q", "input": str(i), "criterion": c, "response": c}
        for i, c in enumerate("XYX")
    ]
    assert len(kit.load(rows).tasks) == 1


def test_more_fields_beside_the_rows_than_are_named_are_counted(tmp_path):
    """The ninth and those behind it were not mentioned."""
    for n in (8, 11):
        fields = {f"f{i}": i for i in range(n)}
        (tmp_path / "a.json").write_text(json.dumps({**fields, "data": [{"prompt": "p"}]}))
        (found,) = load_tasks(tmp_path / "a.json").findings
        assert "'f7'" in found.message and ("and 3 more beside" in found.message) == (n == 11)


def test_labels_in_a_table_of_pandas_are_read(tmp_path):
    """A cell held Python's repr: criteria there were read, labels were an info or an error."""
    row = {"prompt": "p", "criteria": [{"id": "x", "text": "T"}], "labels": {"x": "met"}}
    answer = {"task_id": "row-1", "response": "a", "labels": {"x": "unmet"}}
    for given, status in (({**row, "response": "a"}, "met"), (answer, "unmet")):
        pandas.DataFrame([given]).to_csv(tmp_path / "a.csv", index=False)
        assert [v.status for v in load_tasks(tmp_path / "a.csv").verdicts] == [status]


def test_a_map_of_arrow_is_read_as_the_object_that_it_is(tmp_path):
    """Spark's and DuckDB's maps came as lists of pairs: a cited [doc7] was no source, a chat was
    text, and labels were refused."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    texts = pa.map_(pa.string(), pa.string())
    chat = [{"role": "user", "content": "U"}, {"role": "assistant", "content": "A"}]
    chat.append({"role": "user", "content": "Why?"})
    row = {"id": "t", "prompt": chat, "rubrics": ["It cites."], "response": "As [doc7] says."}
    row |= {"sources": {"doc7": "one", "doc9": "two"}, "truth": {"expected_answer": "42"}}
    row |= {"labels": {"c1": {"ann": 4, "bob": 2}}}
    kinds = {"prompt": pa.list_(texts), "sources": texts, "truth": texts}
    kinds["labels"] = pa.map_(pa.string(), pa.map_(pa.string(), pa.int64()))
    pairs = {k: list(x.items()) if isinstance(x, dict) else x for k, x in row.items()}
    pairs |= {"prompt": [list(t.items()) for t in chat]}
    pairs |= {"labels": [("c1", list(row["labels"]["c1"].items()))]}
    columns = {k: pa.array([x], kinds.get(k)) for k, x in pairs.items()}
    pq.write_table(pa.table(columns), tmp_path / "m.parquet")
    read, wanted = load_tasks(tmp_path / "m.parquet"), load_tasks([row])
    assert read.tasks == wanted.tasks and [v.value for v in read.verdicts] == [0.75, 0.25]
    assert {f.code for f in read.findings} == {"label-scale"}
    assert read.tasks[0].sources["doc7"] == "one" and len(read.tasks[0].history) == 2


def test_an_empty_map_of_arrow_is_an_empty_object(tmp_path):
    """Spark's usual empty map was "list, not an object", and its task was skipped."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    texts = pa.map_(pa.string(), pa.string())
    given = [[("expected_answer", "42")], [], None]
    columns = {"id": list("abc"), "prompt": list("PQR"), "criteria": [[{"text": "It says."}]] * 3}
    more = {
        "truth": pa.array(given, texts),
        "sources": pa.array([[("d", "1"), ("d", "2")]] * 3, texts),
    }
    pq.write_table(pa.table(columns | more), tmp_path / "m.parquet")
    rows = [row for _, row in read_rows(tmp_path / "m.parquet")]
    assert [row["truth"] for row in rows] == [{"expected_answer": "42"}, {}, None]
    # an object would lose the first
    assert rows[0]["sources"] == [("d", "1"), ("d", "2")]
    pq.write_table(pa.table(columns | {"truth": more["truth"]}), tmp_path / "m.parquet")
    read = load_tasks(tmp_path / "m.parquet")
    assert [t.truth for t in read.tasks] == [{"expected_answer": "42"}, {}, {}]
    assert not read.findings and not read.skipped


def test_pairs_of_python_are_no_map_and_lose_nothing():
    """A chat of LangChain's pairs lost all but the last turn of a speaker, without a word."""
    chat = [("system", "S"), ("human", "U1"), ("ai", "A1"), ("human", "U2")]
    row = {"id": "a", "prompt": chat, "criteria": [{"text": "Says."}]}
    row |= {"notes": [("ann", "good"), ("ann", "bad")]}
    task = load_tasks([row]).tasks[0]
    assert all(text in task.prompt for _, text in chat)
    assert task.meta["notes"] == [["ann", "good"], ["ann", "bad"]]


@pytest.mark.parametrize("own", [{}, {"response": "Paris", "label": "met"}])
def test_rows_of_a_task_id_are_one_task_whatever_their_own_id(own):
    """Each row of a clean table with an `id` beside its `task_id` was a task of one criterion, and
    an error; the warning said that `id` is kept in meta."""
    rows = [
        {"id": f"{t}{c}", "task_id": t, "prompt": f"What is {t}?", "criterion": c, **own}
        for t in ("t1", "t2")
        for c in ("Names Paris", "Cites a source")
    ]
    s = kit.load(rows)
    assert [(t.id, len(t.criteria)) for t in s.tasks] == [("t1", 2), ("t2", 2)]
    assert len(s.responses) == 2 * bool(own) and len(s.verdicts) == 4 * bool(own)
    assert not [f for f in s.findings if f.severity == "error"]
    assert "id" in s.tasks[0].meta or "id" in s.responses[0].meta


def test_ids_that_pandas_keeps_as_first_last_and_step_are_read(tmp_path):
    """A frame whose index is id 1, 2, 3 lost its ids in Parquet: tasks were row-1 and on."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path / "index.parquet"
    known = {"index_columns": [{"kind": "range", "name": "id", "start": 1, "stop": 7, "step": 2}]}

    def write(n):
        table = pa.table({"prompt": ["Q one", "Q two", "Q three"][:n]})
        pq.write_table(table.replace_schema_metadata({"pandas": json.dumps(known)}), path)

    write(3)
    assert [t.id for t in load_tasks(path).tasks] == ["1", "3", "5"]
    write(2)  # another program left a row out: which ids are left is not known
    assert [t.id for t in load_tasks(path).tasks] == ["row-1", "row-2"]


@pytest.mark.parametrize("suffix", [".feather", ".arrow"])
def test_other_tables_are_not_read_as_text(tmp_path, suffix):
    """They were said to be "not UTF-8", with `iconv` as what to do."""
    path = tmp_path / f"x{suffix}"
    path.write_bytes(b"ARROW1\0\0\xff\xff\xff\xff")
    with pytest.raises(DataError, match=f"{suffix} files are not read"):
        load_tasks(path)
