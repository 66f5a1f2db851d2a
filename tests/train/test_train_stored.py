"""Kept runs: figures come from answers that are graded again."""

from __future__ import annotations

import dataclasses
import json
from types import SimpleNamespace

import pytest

import kit
from kit.errors import DataError, KitError
from kit.rewards import trivial
from kit.runs import compare
from kit.system import paths
from kit.train import evaluation, stored


@pytest.fixture(scope="module")
def kept():
    return stored.runs("greedy")


def test_what_the_readme_says_of_the_kept_runs(kept):
    """The goals: .75 in mean, .65 in the worst, .50 of what was never trained, .70 finished."""
    tasks = stored.heldout()
    found = stored.over_seeds(kept, tasks)
    never = stored.over_seeds(kept, [t for t in tasks if "+" in t.kind])
    assert len(found.after) == 5 and found.before < 0.12
    assert sum(found.after) / 5 >= 0.79 and min(found.after) >= 0.76
    assert never.before == 0 and sum(never.after) / 5 >= 0.65
    assert found.prompts.low > 0.57 and found.seeds.low > 0.6
    assert all(row["finished"] >= 0.97 for row in stored.each(kept, tasks)[:5])


def test_the_control_shows_no_gain(kept):
    control = [k for k in kept if k.control]
    before, after = control[0].strict(stored.heldout())
    ids = control[0].before.clusters
    assert len(control) == 1
    assert evaluation.paired(before, after, ids, ids).low <= 0


def test_shares_are_counted_from_the_answers_themselves(kept):
    """By hand: an answer passes when no verdict on it is unmet."""
    run, tasks = kept[0], stored.heldout()
    by_hand = [all(v.status == "met" for v in g.verdicts) for g in run.after.grades]
    assert stored.over_seeds(kept, tasks).after[0] == pytest.approx(sum(by_hand) / 84)
    rows = evaluation.by_kind(run.before, run.after, tasks)
    assert rows[0]["prompts"] == 84 == sum(r["prompts"] for r in rows[1:])
    assert rows[0]["after"] == pytest.approx(sum(by_hand) / 84)


def test_what_is_kept_is_small_and_says_whose_it_is():
    path = paths.data(stored.FILE)
    assert path.stat().st_size < 1_000_000
    assert "Apache-2.0" in json.loads(path.read_text("utf-8"))["about"]


def test_the_trained_model_passes_what_no_frame_around_the_quoted_words_does(kept):
    """Copying passed everything once, then as much as the trained model (.68)."""
    tasks, ids = stored.heldout(), [t.id for t in stored.heldout()]
    said = [trivial.slot_frame(t) for t in tasks]
    grades = kit.grade(tasks, kit.judge(tasks, said), reward="rubric", responses=said)
    frame = [float(g.score == 1) for g in grades]
    trained = [v for k in kept if not k.control for v in k.strict(tasks)[1]]
    assert evaluation.paired(frame, trained, ids, ids * 5).low > 0.2
    rows = {r["prompts"]: r for r in stored.habits(kept, tasks)}
    first = {k: r["begins with the first quoted word"] for k, r in rows.items()}
    assert first["begin"] > 0.9 and first["begin+use"] > 0.7
    assert max(first["use"], first["pair"], first["use+begin"]) < 0.1
    every = {k: r["holds every quoted word"] for k, r in rows.items()}
    assert every["pair"] > 0.6 and every["instead"] < 0.1
    assert rows["question"]["asks"] > 0.9 and rows["use"]["asks"] < 0.1


def test_a_loose_reward_pays_in_full_what_the_whole_one_pays_nothing(kept):
    """Notebook 3's lesson in reward hacking showed answers that were worth .9."""
    import kit

    old, prompts = stored.said(kept), stored.heldout()
    assert len({r.id for r in old}) == len(old) == 84 * 6
    loose = kit.only(prompts, lambda c: not c.required)
    paid = kit.grade(loose, kit.judge(loose, old, progress=False), reward="rubric", responses=old)
    full = [r for r, g in zip(old, paid, strict=True) if g.score == 1]
    assert 10 <= sum(r.meta["whole"] == 0 for r in full) < len(full)


def test_kept_seeds_stand_in_where_a_folder_has_no_several_runs(kept):
    """After the demo, "Over seeds" in notebook 5 was empty."""

    found = stored.as_runs(kept, stored.heldout())
    rows = {s.metric: s for s in compare.across_seeds(found)}
    gain = rows["gain in strict passes"]
    assert gain.seeds == (0, 1, 2, 3, 4) and gain.excluded_zero == "5 of 5"
    assert gain.mean.low < gain.mean.value < gain.mean.high
    assert {r["metric"] for r in compare.shared(found)} == set(rows)


def test_answers_are_paired_by_their_prompt_and_none_may_be_missing(kept):
    """Rows in another order gave other intervals, a missing one "columns differ in length"."""
    tasks = stored.heldout()
    turned = [
        dataclasses.replace(k, after=dataclasses.replace(
            k.after, responses=k.after.responses[::-1], grades=k.after.grades[::-1]
        ))
        for k in kept
    ]  # fmt: skip
    assert stored.table(turned, tasks) == stored.table(kept, tasks)
    cut = dataclasses.replace(
        kept[0].after, responses=kept[0].after.responses[1:], grades=kept[0].after.grades[1:]
    )
    with pytest.raises(DataError, match="no answer to 'heldout-000'"):
        dataclasses.replace(kept[0], after=cut).strict(tasks)


def test_one_interval_over_seeds_in_notebooks_3_and_5(kept):
    """Notebook 3 had a jackknife, notebook 5 a t interval over the same five numbers."""
    found = stored.over_seeds(kept, stored.heldout())
    rows = {s.metric: s for s in compare.across_seeds(stored.as_runs(kept, stored.heldout()))}
    assert str(found.seeds) == str(rows["gain in strict passes"].mean)


def test_a_kept_file_that_cannot_be_says_what_is_wrong(kept):
    """Each of these was a KeyError or a StopIteration of Python's."""
    with pytest.raises(KitError, match="no way of answering 'x'"):
        stored.runs("x")
    with pytest.raises(DataError, match="no task 'heldout-999'"):
        stored.graded("before", {"heldout-999": "a"}, SimpleNamespace(by_id={}))
    with pytest.raises(DataError, match="no run but controls"):
        stored.table([k for k in kept if k.control], stored.heldout())
