"""The relevance judge: who is asked what (fast, without a model), and the real MiniLM (when it is in the cache)."""

import math

import pytest

from kit.data import models
from kit.errors import DataError
from kit.judge.embedding import EmbeddingJudge, on_topic
from kit.records import Criterion, Response, Task

np = pytest.importorskip("numpy")
TASK = Task(id="t", prompt="How do tides arise?")


def relevant(**spec):
    return Criterion(id="c", text="Stays on the subject.", meta={"embedding": spec})


def answer(text):
    return Response(task_id="t", id="r", text=text)


class FakeEmbedding(EmbeddingJudge):
    """Bag of letters instead of a model."""

    def _forward(self, text):
        v = np.array([[text.lower().count(c) for c in "abcdefghijklmnopqrstuvwxyz"]], np.float32)
        return v / np.linalg.norm(v)


def test_only_relevance_is_judged():
    judge = FakeEmbedding()
    out = judge.decide(
        TASK,
        answer("How do tides arise?"),
        [Criterion(id="a", text="Is true."), relevant(), relevant(text="qqq xx")],
    )
    assert (
        [v.status for v in out] == ["unknown", "met", "unmet"]
        and out[0].failure == "abstain"
        and out[1].p > 0.9 > 0.1 > out[2].p
    )
    loose = FakeEmbedding(relevance_only=False).decide(
        TASK, answer("Is true."), [Criterion(id="a", text="Is true.")]
    )
    assert loose[0].status == "met"
    levels = Criterion(id="o", text="x", scale="ordinal", levels=("a", "b"), meta={"embedding": {}})
    assert judge.decide(TASK, answer("x"), [levels])[0].failure == "abstain"


def test_an_answer_without_words_is_off_topic():
    assert FakeEmbedding().decide(TASK, answer(" \n..."), [relevant()])[0].status == "unmet"
    assert (
        FakeEmbedding().decide(TASK, answer("tides"), [relevant(text="?!")])[0].failure == "error"
    )


@pytest.mark.parametrize(
    "spec",
    [
        {"txt": "a"},
        {"text": ""},
        {"text": 3},
        {"threshold": 2},
        {"width": 0},
        {"threshold": "high"},
    ],
)
def test_malformed_settings_are_named(spec):
    with pytest.raises(DataError, match="task 't', criterion 'c', field meta.embedding"):
        FakeEmbedding().decide(TASK, answer("a"), [relevant(**spec)])


def test_keys():
    judge = FakeEmbedding()
    keys = {
        judge.key(TASK, answer(a), relevant(**s))
        for a in ("a", "b")
        for s in ({}, {"threshold": 0.2}, {"text": "criterion"})
    }
    assert len(keys) == 6 and judge.key(TASK, answer("a"), relevant()) == judge.key(
        Task(id="u", prompt=TASK.prompt), answer("a"), relevant()
    )


def test_the_map_is_monotone():
    ps = [on_topic(c / 20) for c in range(-20, 21)]
    assert ps == sorted(ps) and all(0 < p < 1 for p in ps) and math.isfinite(on_topic(-1, 1, 1e-9))


@pytest.fixture(scope="module")
def real():
    if models.minilm_cached() is None:
        pytest.skip("MiniLM is not in the cache: python -m kit fetch models")
    pytest.importorskip("transformers")
    return EmbeddingJudge(models.minilm_cached())


@pytest.mark.slow
def test_minilm_tells_topics_apart(real):
    on, off = (
        real.decide(TASK, answer(t), [relevant()])[0]
        for t in (
            "The moon's gravity pulls the sea into two bulges; as the earth turns, coasts pass through high and low water.",
            "Whisk the eggs, add flour and bake.",
        )
    )
    assert on.status == "met" and off.status == "unmet" and on.p > 0.9 and off.p < 0.1
    assert real.embed("x").shape == (1, 384) and float(
        (real.embed("moon") ** 2).sum()
    ) == pytest.approx(1, abs=1e-5)


@pytest.mark.slow
def test_minilm_does_not_see_negation(real):
    """The documented limit: relevance is all that it knows."""
    true, false = (
        real.cosines(t, ["Does the moon cause the tides?"])[0]
        for t in ("The moon causes the tides.", "The moon does not cause the tides.")
    )
    assert abs(true - false) < 0.2 and false > 0.35


@pytest.mark.slow
def test_batching_and_windows_change_nothing(real):
    long = " ".join(f"The tide number {i} rose and fell." for i in range(200))
    windows = real.embed(long)
    assert windows.shape[0] > 1
    alone = EmbeddingJudge(real.path, batch=1).embed(long)
    assert np.abs(windows - alone).max() < 1e-5


@pytest.mark.slow
def test_minilm_on_recorded_answers(real):
    from kit.data import recorded
    from kit.stats import mean

    if not (
        recorded.paths.home() / "recorded" / f"flakyjudge-{recorded.SHA256[:12]}" / "complete"
    ).is_file():
        pytest.skip("the recordings are not in the cache")
    items = list(recorded.load().items.values())[::8]
    other = items[7:] + items[:7]
    on = mean([real.cosines(i["response"], [i["query"]])[0] >= real.threshold for i in items])
    off = mean(
        [
            real.cosines(i["response"], [o["query"]])[0] >= real.threshold
            for i, o in zip(items, other, strict=True)
        ]
    )
    assert on.low > 0.85 and off.high < 0.12
