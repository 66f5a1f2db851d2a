"""The lint: every rule fires where it should and stays silent where it should not; the note rule is measured."""

from pathlib import Path

import pytest

from kit.data import iter_tasks, load_tasks
from kit.data.words import words
from kit.records import Criterion, Task
from kit.rubrics import Linter, lint, scan
from kit.rubrics.notes import THRESHOLD, note_score

SAMPLE = [
    line.split("\t")
    for line in (Path(__file__).parent / "annotator_notes.tsv")
    .read_text(encoding="utf-8")
    .splitlines()
]


def rules(*criteria, prompt="Describe how a steam engine drives a locomotive.", **more):
    cs = tuple(
        c if isinstance(c, Criterion) else Criterion(id=f"c{i}", text=c)
        for i, c in enumerate(criteria, 1)
    )
    return lint([Task(id="t", prompt=prompt, criteria=cs, **more)], rules="all").counts


def measure(rows):
    said = [
        (kind == "note", note_score(text, set(words(text))) >= THRESHOLD) for kind, text in rows
    ]
    tp = sum(a and b for a, b in said)
    return tp / sum(b for _, b in said), tp / sum(a for a, _ in said)


def test_annotator_notes_precision_and_recall_on_both_halves():
    assert len(SAMPLE) >= 150
    for half in (
        0,
        1,
    ):  # the even lines were looked at while the rule was written, the odd ones were not
        precision, recall = measure(SAMPLE[half::2])
        assert precision >= 0.95 and recall >= 0.85, (half, precision, recall)


def test_the_word_filter_loses_no_note():
    assert [
        t
        for _, t in SAMPLE
        if (note_score(t) >= THRESHOLD) != (note_score(t, set(words(t))) >= THRESHOLD)
    ] == []


@pytest.mark.parametrize(
    ("code", "criteria"),
    [
        ("annotator-note", ["Gemini missed this."]),
        ("empty-criterion", [" - "]),
        ("duplicate-criterion", ["Names the boiler.", "names the BOILER"]),
        (
            "near-duplicate",
            [
                "The answer names the boiler and its pressure valve.",
                "The answer names the boiler and its pressure valves.",
            ],
        ),
        ("contradiction", ["It has at least 100 words.", "It has at most 50 words."]),
        ("contradiction", ["Uses bullet points.", "Does not use bullet points."]),
        ("several-requirements", ["Names the boiler and explains the valve."]),
        ("subjective", ["The explanation is engaging."]),
        ("encoding", ["Names the cafÃ© car."]),
        ("encoding", ["Names the\u200bboiler"]),
        (
            "impossible-check",
            [Criterion(id="c", text="short boiler", check={"name": "words", "min": 5, "max": 2})],
        ),
        ("zero-weights", [Criterion(id="c", text="boiler", weight=0)]),
        ("one-signed", [Criterion(id="c", text="boiler", weight=-1)]),
    ],
)
def test_rules_fire(code, criteria):
    assert rules(*criteria).get(code) == 1


def test_rules_stay_silent_on_a_clean_row():
    clean = rules(
        "Names the boiler.",
        "Names the piston.",
        "The answer has at least 100 words.",
        "Says that steam pushes the piston.",
        Criterion(id="n", text="Claims that a diesel engine is used.", weight=-1),
    )
    assert clean == {}
    assert "near-duplicate" not in rules(
        "The answer names cause 1 of the boiler failure.",
        "The answer names cause 2 of the boiler failure.",
    )
    assert "contradiction" not in rules(
        "Uses bullet points.", Criterion(id="n", text="Does not use bullet points.", weight=-1)
    )
    assert "contradiction" not in rules("It has at least 50 words.", "It has at most 100 words.")


def test_rules_across_rows():
    def task(i, prompt, split, criterion="Names it."):
        return Task(
            id=str(i),
            prompt=prompt,
            split=split,
            group="g" if i < 2 else f"g{i}",
            criteria=(Criterion(id="c", text=criterion),),
        )

    report = lint(
        [
            task(0, "Say A.", "train"),
            task(1, "say a", "heldout"),
            task(2, "Say B.", "train"),
            task(3, "Say B!", "train"),
            task(4, "Say C.", "train"),
            task(5, "Say D.", "heldout"),
        ],
    )
    assert report.counts["split-leak"] == 1 and report.counts["duplicate-prompt"] == 1
    assert (
        report.counts["group-in-splits"] == 1
        and report.counts["boilerplate"] == 1
        and report.counts["one-signed-set"] == 1
    )
    assert {f.row for f in report.of("split-leak")} == {2}


def test_labels_and_prompt_length_and_reader_findings():
    t = load_tasks(
        [
            {
                "task_id": "a",
                "prompt": "word " * 3000,
                "responseA": "x",
                "rubric - 1. criterion": "Names it.",
                "rubric - 1. ratingA": ["yes", "no"],
                "stray": 1,
            },
            {"task_id": "b", "rubric - 1. criterion": "Names it."},
        ]
    )
    counts = lint(t).counts
    assert (
        counts["raters-disagree"] == 1
        and counts["long-prompt"] == 1
        and counts["unread-field"] == 1
        and counts["missing-field"] == 2
    )
    assert "long-prompt" not in lint(t, profile="gpu").counts


def test_kept_findings_are_capped_and_all_are_counted():
    linter = Linter(keep=3)
    for p in load_tasks([{"prompt": f"p{i}", "rubrics": [""]} for i in range(10)]).parsed():
        linter.add(p)
    report = linter.report()
    assert (
        report.counts["empty-criterion"] == 10
        and len(report.of("empty-criterion")) == 3
        and "10" in str(report)
    )


def test_report_escapes_html_and_names_rows():
    report = lint(
        [
            Task(
                id="t",
                prompt="p",
                criteria=(Criterion(id="c", text="<script>alert(1)</script> Gemini missed this."),),
            )
        ],
    )
    assert "<script>" not in report._repr_html_() and "rows 1" in str(report)


def test_scan_and_the_subcommand(tmp_path, capsys):
    import json

    from kit.__main__ import main

    path = tmp_path / "t.jsonl"
    path.write_text(
        '{"task_id": "a", "prompt": "p", "rubrics": ["Gemini missed <b>x</b>.", "Names it."]}\n{broken\n'
    )
    found = scan(path)
    assert (found.rows, found.skipped, found.format) == (
        2,
        1,
        "checklist",
    ) and found.lint.note_share == 0.5
    assert main(["inspect", str(path), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["lint"]["counts"]["annotator-note"] == 1 and data["summary"]["per_task"]["max"] == 2
    assert main(["inspect", str(path), "--lint"]) == 1
    out = capsys.readouterr().out
    assert "annotator-note" in out and "line 2" in out


def only(code, *criteria, prompt):
    return [
        f.criterion_id
        for f in lint(
            [
                Task(
                    id="t",
                    prompt=prompt,
                    criteria=tuple(
                        c if isinstance(c, Criterion) else Criterion(id=f"c{i}", text=c)
                        for i, c in enumerate(criteria, 1)
                    ),
                )
            ],
            rules="all",
        ).of(code)
    ]


def test_the_same_demand_in_another_tense_is_a_near_duplicate():
    """fault-02 of data/rubrics.json: too few letters in common for n-grams, cosine .90 for the sentence model."""
    ferry = "Summarise in one sentence: the ferry was cancelled because of fog, and all passengers got a room."
    assert only(
        "near-duplicate",
        "Says that the ferry was cancelled.",
        "States that the ferry had been cancelled.",
        prompt=ferry,
    ) == ["c2"]
    for other in (
        "States that the ferry had not been cancelled.",
        "States that the cancelled ferry returned.",
        "Asks whether the ferry was cancelled.",
        Criterion(id="c2", text="States that the ferry had been cancelled.", weight=-1),
    ):
        assert (
            only("near-duplicate", "Says that the ferry was cancelled.", other, prompt=ferry) == []
        )
    assert (
        only("near-duplicate", "Mentions the ferry.", "Includes a ferry.", prompt=ferry) == []
    )  # one word is too little to tell


def test_clauses_with_subjects_of_their_own_are_several_requirements():
    """fault-04: "..., each rule is correct, no rule is repeated, and every bullet is ..." has no "and <verb>"."""
    for text in (
        "Has three bullets, each rule is correct, no rule is repeated, and every bullet is at most 15 words long.",
        "Lists three cakes, and every cake has a price.",
        "Uses bullets; no bullet is longer than a line.",
    ):
        assert only(
            "several-requirements", text, prompt="List three rules of badminton as bullets."
        ) == ["c1"], text
    for text in (
        "Every bullet is at most 15 words long.",
        "If there are several cakes, each cake has a price.",
        "Says that, in winter, all bears are asleep.",
        "Has three bullets, each with a verb.",
        "Names salt, pepper and no other spice.",
    ):
        assert (
            only("several-requirements", text, prompt="List three rules of badminton as bullets.")
            == []
        ), text


def test_a_label_that_is_the_right_answer_is_no_annotator_note():
    """classify-04: "The label is praise." was once taken for a remark on labelling."""
    for text in (
        "The label is praise.",
        "The label is complaint.",
        "Gives only one label.",
        "The rating is three stars.",
    ):
        assert (
            only(
                "annotator-note", text, prompt="Label the message as question, complaint or praise."
            )
            == []
        ), text


def test_the_faults_of_our_own_set_are_found():
    """data/README.md lists the faults put in on purpose; the lint finds all but the two that only a reader can tell (fault-06, c1; fault-08, c2), and no note that is none."""
    tasks = load_tasks(Path(__file__).resolve().parents[2] / "data" / "rubrics.json")
    found = {(f.code, f.task_id, f.criterion_id) for f in lint(tasks, rules="all").findings}
    wanted = {
        ("annotator-note", "fault-01", "c3"),
        ("duplicate-criterion", "fault-02", "c3"),
        ("near-duplicate", "fault-02", "c4"),
        ("impossible-checks", "fault-03", "c2"),
        ("several-requirements", "fault-04", "c1"),
        ("subjective", "fault-05", "c2"),
        ("empty-criterion", "fault-07", "c2"),
        ("encoding", "fault-08", "c4"),
        ("annotator-note", "fault-09", "c3"),
    }
    assert wanted <= found
    assert {x for x in found if x[0] in ("annotator-note", "near-duplicate")} <= wanted


def test_what_looks_like_a_note_by_its_words_is_no_error():
    """67 of 112 ordinary criteria near a note's words were errors: `kit inspect --lint` ended with 1."""
    texts = ("Explicitly names Paris.", "Chooses answer B.", "Says that Claude Monet painted it.")
    tasks = [Task(id="t", prompt="p", criteria=[Criterion(id=x, text=x) for x in texts])]
    assert not [f for f in lint(tasks, rules="all").findings if f.severity == "error"]


def test_an_empty_prompt_is_one_error():
    """The reader and the lint both said it: 17 empty instructions of a file were 34 errors."""
    rows = [
        {"id": "a", "prompt": " "},
        {"id": "b", "prompt": "Say hi.", "criteria": ["It greets."]},
    ]
    found = lint(load_tasks(rows))
    assert [f.row for f in found.of("empty-prompt")] == [1]
    stream = Linter()
    for row in iter_tasks(rows):
        stream.add(row)
    assert stream.report().counts["empty-prompt"] == 1
    made = lint([Task(id="a", prompt="")])  # of no reader
    assert len(made.of("empty-prompt")) == 1
