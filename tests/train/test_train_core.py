"""Training's own parts on a random model of two layers: equal log-probabilities, settings, logs, evaluation. Offline, seconds."""

from __future__ import annotations

import dataclasses
import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kit.errors import DataError, KitError, MissingError
from kit.records import Grade, Response, Verdict
from kit.settings.read import load
from kit.system.device import import_torch
from kit.train import config, evaluation, rollouts, trainer
from kit.train.config import DPOSettings, GRPOSettings, SFTSettings, build
from kit.train.presets import PRESETS, preset

quick = settings(max_examples=40, deadline=None, derandomize=True)


@pytest.fixture(scope="module")
def tiny():
    """A tiny random Llama with a LoRA adapter that does something, and its tokenizer."""
    torch = import_torch()
    torch.manual_seed(0)
    from kit.train.models import adapt, tiny_model, tiny_tokenizer

    tokenizer = tiny_tokenizer()
    model = adapt(
        tiny_model(len(tokenizer)), build(GRPOSettings, {"model": "tiny-random", "lora_rank": 4})
    )
    for name, p in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(p, std=0.2)
    return model, tokenizer


def _batch(prompts, answers):
    torch = import_torch()
    p, c = max(map(len, prompts)), max(map(len, answers))
    ids = torch.zeros(len(prompts), p + c, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for r, (x, y) in enumerate(zip(prompts, answers, strict=True)):
        ids[r, p - len(x) : p], mask[r, p - len(x) : p] = torch.tensor(x), 1
        ids[r, p : p + len(y)], mask[r, p : p + len(y)] = torch.tensor(y), 1
    return ids, mask, c


def _score(logits, labels):
    lp = logits.log_softmax(-1)
    return lp.gather(-1, labels[..., None])[..., 0], -(lp.exp() * lp).sum(-1)


def _plain(model, ids, mask, c):
    """One padded row per answer, as trl does it, positions counted from the first real token."""
    positions = (mask.cumsum(-1) - 1).clamp(min=0)
    logits = model(
        input_ids=ids, attention_mask=mask, position_ids=positions, use_cache=False
    ).logits[:, -c - 1 : -1]
    return _score(logits, ids[:, -c:])


@pytest.mark.parametrize("dtype, close", [("float32", 1e-5), ("bfloat16", 2e-2)])
def test_the_gradient_of_attention_written_by_hand_is_torchs(dtype, close):
    from kit.train.gradients import Attended

    torch = import_torch()
    draw = torch.Generator().manual_seed(0)
    shapes = ((6, 21, 8), (2, 21, 8), (2, 21, 8))
    whole = [torch.randn(s, generator=draw, dtype=torch.float64) for s in shapes]
    mask = torch.rand(21, 21, generator=draw).gt(0.4).logical_or(torch.eye(21).bool()).tril()
    pull = torch.randn(6, 21, 8, generator=draw, dtype=torch.float64)

    def found(way, parts):
        parts = [t.requires_grad_() for t in parts]
        out = way(*parts)
        return out, torch.autograd.grad(out, parts, pull.to(out.dtype))

    def plain(q, k, v):
        k, v = (t.repeat_interleave(3, 0) for t in (k, v))
        scores = (q @ k.mT / 8**0.5).masked_fill(~mask, -torch.inf)
        return scores.softmax(-1) @ v

    want, slopes = found(plain, [t.clone() for t in whole])
    got, mine = found(
        lambda q, k, v: Attended.apply(q, k, v, mask), [t.to(getattr(torch, dtype)) for t in whole]
    )
    for a, b in zip((got, *mine), (want, *slopes), strict=True):
        assert float((a.detach().double() - b.detach()).norm() / b.norm()) < close


class TestSampling:
    def test_attention_is_a_fused_one_at_every_step(self, tiny):
        """A transposed query has no fused kernel: torch took the slow way, a third of the time, in silence."""
        from torch.nn.attention import SDPBackend, sdpa_kernel

        from kit.train import sampling
        from kit.train.engine import Engine

        model, tokenizer = tiny
        prompts = [tokenizer("hello there")["input_ids"]] * 3
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):  # an error where it does not fit
            got = sampling.sample(Engine(model), prompts, max_new_tokens=4, eos_ids=[2])
        assert len(got.ids) == 3

    def test_logprobs_of_samples_are_those_of_the_model(self, tiny):
        from kit.train import engine, sampling
        from kit.train.engine import Engine

        torch, (model, tokenizer) = import_torch(), tiny
        assert engine.fast_ok(model) is None
        prompts = [tokenizer("hello there")["input_ids"]] * 3 + [tokenizer("x")["input_ids"]] * 3
        torch.manual_seed(1)
        got = sampling.sample(Engine(model), prompts, max_new_tokens=30, eos_ids=[2, 17, 40, 90])
        assert (
            len({len(i) for i in got.ids}) > 1
        )  # some ended early, so that dropping rows is exercised
        ids, mask, c = _batch(prompts, got.ids)
        with torch.no_grad():
            want, _ = _plain(model, ids, mask, c)
        for row, lps in enumerate(got.logprobs):
            assert torch.allclose(want[row, : len(lps)], torch.tensor(lps), atol=2e-5)
            assert got.truncated[row] == (got.ids[row][-1] not in (2, 17, 40, 90))

    def test_greedy_equals_generate(self, tiny):
        from kit.train import sampling
        from kit.train.engine import Engine

        torch, (model, tokenizer) = import_torch(), tiny
        prompt = tokenizer("what is it")["input_ids"]
        got = sampling.sample(
            Engine(model), [prompt], max_new_tokens=12, eos_ids=[2], temperature=0
        )
        want = model.generate(input_ids=torch.tensor([prompt]), max_new_tokens=12, do_sample=False)[
            0, len(prompt) :
        ].tolist()
        assert got.ids[0] == want

    @pytest.mark.parametrize("temperature, top_k, top_p", [(1.0, 0, 1.0), (0.7, 12, 0.9)])
    def test_confidence_off_the_fast_path_is_the_models_too(self, tiny, temperature, top_k, top_p):
        from kit.records import Task
        from kit.system.device import choose
        from kit.train import answers
        from kit.train.models import Loaded

        torch, (model, tokenizer) = import_torch(), tiny
        loaded = Loaded(
            model=model,
            tokenizer=tokenizer,
            engine="transformers",
            why="",
            device=choose(),
        )
        s = GRPOSettings(
            fast=False, max_answer_tokens=9, temperature=temperature, top_k=top_k, top_p=top_p
        )
        prompts = [
            answers.prompt_ids(tokenizer, Task(id="t", prompt=p))
            for p in ("a", "hello there", "x y")
        ]
        ends = {2, *range(40, 90)}  # many ends, so that rows stop early and are padded
        rows = answers._generate(loaded, prompts, s, ends, 3, temperature)
        assert len({len(ids) for ids, *_ in rows}) > 1
        for prompt, (ids, cut, logprobs) in zip(prompts, rows, strict=True):
            sure = answers.sequence_confidence(logprobs)
            with torch.no_grad():
                logits = (
                    model(input_ids=torch.tensor([[*prompt, *ids]])).logits[0, len(prompt) - 1 : -1]
                    / temperature
                )
            want = logits.log_softmax(-1).gather(-1, torch.tensor(ids)[:, None]).mean().exp().item()
            assert (
                sure == pytest.approx(want, abs=2e-5)
                and 0 < sure <= 1
                and cut == (ids[-1] not in ends)
            )

    def test_draw_has_the_softmax_distribution(self):
        from kit.train import sampling

        torch = import_torch()
        logits = torch.tensor([[2.0, 0.5, -1.0, 0.0, -30.0]])
        p = (logits / 0.7).softmax(-1)[0]
        n = 40_000
        tokens, logp = sampling.draw(
            logits.expand(n, -1), temperature=0.7, generator=torch.Generator().manual_seed(0)
        )
        counts = torch.bincount(tokens, minlength=5).double()
        chi2 = ((counts - n * p)[:4] ** 2 / (n * p)[:4]).sum().item()
        assert chi2 < 16.3 and counts[4] == 0  # 0.999 quantile with 3 degrees of freedom
        assert torch.allclose(logp, p.log()[tokens], atol=1e-6)

    def test_cuts_keep_the_likely_tokens_only(self):
        from kit.train import sampling

        torch = import_torch()
        logits = torch.tensor([[3.0, 2.0, 1.0, 0.0]]).expand(500, -1)
        assert set(sampling.draw(logits, temperature=1.0, top_k=2)[0].tolist()) == {0, 1}
        assert set(sampling.draw(logits, temperature=1.0, top_p=0.5)[0].tolist()) == {0}

    def test_refresh_takes_over_an_update(self, tiny):
        from kit.train import sampling
        from kit.train.engine import Engine

        torch, (model, tokenizer) = import_torch(), tiny
        prompt = [tokenizer("abc")["input_ids"]]
        engine = Engine(model)
        before = sampling.sample(
            engine, prompt, max_new_tokens=3, eos_ids=[2], temperature=0
        ).logprobs
        weight = next(p for n, p in model.named_parameters() if "lora_B" in n)
        old = weight.detach().clone()
        with torch.no_grad():
            weight.add_(1.0)
        engine.refresh()
        after = sampling.sample(
            engine, prompt, max_new_tokens=3, eos_ids=[2], temperature=0
        ).logprobs
        with torch.no_grad():
            weight.copy_(old)
        assert before != after

    def test_other_architectures_fall_back(self):
        from types import SimpleNamespace

        from kit.train import engine

        assert "gpt2" in engine.fast_ok(SimpleNamespace(config=SimpleNamespace(model_type="gpt2")))


class TestPacking:
    @quick
    @given(st.data())
    def test_packed_equals_padded_with_gradients(self, tiny, data):
        from kit.train import packing
        from kit.train.engine import Engine, trains_ok

        torch, (model, _) = import_torch(), tiny
        token = st.integers(3, 250)
        base = data.draw(st.lists(st.lists(token, min_size=1, max_size=9), min_size=1, max_size=3))
        rows = data.draw(
            st.lists(
                st.tuples(st.integers(0, len(base) - 1), st.lists(token, min_size=1, max_size=7)),
                min_size=1,
                max_size=6,
            )
        )
        ids, mask, c = _batch([base[i] for i, _ in rows], [a for _, a in rows])
        model.zero_grad()
        assert trains_ok(model) is None
        now = Engine(model)
        got, entropy = packing.spread(model, ids, mask, c, through=lambda g: now.score(g, 1.0))
        weight = torch.linspace(-1, 1, got.numel()).view_as(got) * mask[:, -c:]
        (got * weight).sum().backward()
        grads = [p.grad.clone() for p in model.parameters() if p.grad is not None]
        model.zero_grad()
        want, want_entropy = _plain(model, ids, mask, c)
        (want * weight).sum().backward()
        seen = mask[:, -c:].bool()
        assert torch.allclose(got[seen], want[seen], atol=3e-5) and torch.allclose(
            entropy[seen], want_entropy[seen], atol=3e-5
        )
        for a, b in zip(
            grads, [p.grad for p in model.parameters() if p.grad is not None], strict=True
        ):
            assert torch.allclose(a, b, rtol=1e-3, atol=2e-4)

    def test_masked_answers_are_left_out(self, tiny):
        from kit.train import packing
        from kit.train.engine import Engine

        model, _ = tiny
        ids, mask, c = _batch([[5, 6]] * 2, [[7, 8], [9, 10]])
        mask[1, -c:] = 0
        now = Engine(model)
        got, _ = packing.spread(model, ids, mask, c, through=lambda g: now.score(g, 1.0))
        assert got[1].abs().sum() == 0 and got[0].abs().sum() > 0


class TestKL:
    def test_formulas_on_known_numbers(self):
        torch = import_torch()
        d = torch.tensor([0.0, 1.0, -0.5])
        ref = torch.tensor([-1.0, -2.0, -3.0])
        assert trainer.estimate(ref + d, ref, "k1").tolist() == pytest.approx([0, 1, -0.5])
        assert trainer.estimate(ref + d, ref, "k2").tolist() == pytest.approx([0, 0.5, 0.125])
        assert trainer.estimate(ref + d, ref, "k3").tolist() == pytest.approx(
            [0, math.exp(-1), math.exp(0.5) - 1.5]
        )
        assert trainer.estimate(ref + 100, ref, "k1").tolist() == [40.0] * 3  # clamped

    def test_k1_and_k3_are_unbiased_and_k3_is_never_negative(self):
        torch = import_torch()
        p, q = torch.tensor([0.6, 0.3, 0.1]), torch.tensor([0.2, 0.5, 0.3])
        true = (p * (p / q).log()).sum().item()
        for name in ("k1", "k3"):
            values = trainer.estimate(p.log(), q.log(), name)
            assert (p * values).sum().item() == pytest.approx(true, abs=1e-6)
        assert (trainer.estimate(p.log(), q.log(), "k3") >= 0).all()


class TestSettings:
    @pytest.mark.parametrize("cls", [GRPOSettings, SFTSettings, DPOSettings])
    def test_round_trip(self, cls):
        s = cls(lora_targets=("q_proj", "v_proj"), options={"adam_beta2": 0.95})
        assert config.from_mapping(json.loads(json.dumps(config.to_mapping(s)))) == s

    @pytest.mark.parametrize(
        "values, hint",
        [
            ({"group_sise": 4}, "group_size"),
            ({"lr": "1e-5"}, "is not a number"),
            ({"kl": "k7"}, "k3"),
            ({"group_size": 1}, "baseline"),
            ({"steps": True}, "int"),
            ({"advantage": "centered"}, "centred"),
            ({"temperature": 0.0}, "1.0"),
            ({"micro_rows": 5}, "micro"),
            ({"lora_targets": [1]}, "lora_targets"),
            ({"steps": 0}, "1 or more"),
            ({"lr": 0.0}, "above 0"),
        ],
    )
    def test_wrong_values_say_what_and_how(self, values, hint):
        with pytest.raises(KitError, match=hint):
            build(GRPOSettings, values)

    def test_files(self, tmp_path):
        path = tmp_path / "c.yaml"
        path.write_text("stage: grpo\npreset: test\nlr: 1.0e-3\n")
        assert config.from_mapping(load(path)).model == "tiny-random"
        path.write_text("stage: grpo\nlr: 1e-3\n")
        assert config.from_mapping(load(path)).lr == 1e-3
        path.write_text("a: [")
        with pytest.raises(KitError, match="cannot be read"):
            load(path)
        with pytest.raises(MissingError):
            load(tmp_path / "none.yaml")

    def test_three_systems_presets(self):
        r, f, b = (build(GRPOSettings, preset(n)) for n in ("rlvr", "refiner", "biorlhf"))
        assert (
            r.group_size,
            r.prompts_per_step,
            r.lr,
            r.lora_rank,
            r.max_answer_tokens,
            r.advantage,
        ) == (8, 32, 4e-5, 32, 2048, "centred")
        assert (
            f.prompts_per_step,
            f.group_size,
            f.kl,
            f.beta,
            f.lr,
            f.max_prompt_tokens,
            f.max_answer_tokens,
        ) == (32, 8, "k3", 0.001, 5e-6, 6144, 1024)
        assert (b.group_size, b.beta, b.iterations, b.lora_rank, b.lora_alpha, b.quantize) == (
            16,
            0.02,
            2,
            64,
            128.0,
            "nf4",
        )
        for name in PRESETS:
            (
                build(GRPOSettings, preset(name)),
                build(SFTSettings, preset(name, "sft")),
                build(DPOSettings, preset(name, "dpo")),
            )
        with pytest.raises(KitError, match="refiner"):
            preset("refinor")


class TestLog:
    def test_resume_voids_what_came_after_the_checkpoint(self, tmp_path):
        log = rollouts.Log(tmp_path / "rollouts.jsonl")
        log.append([{"step": s, "v": "old"} for s in (1, 2, 3)])
        log.rewind(1)
        log.append([{"step": 2, "v": "new"}])
        assert [(r["step"], r["v"]) for r in rollouts.read(tmp_path)] == [(1, "old"), (2, "new")]

    def test_a_torn_line_is_cut(self, tmp_path):
        path = tmp_path / "rollouts.jsonl"
        rollouts.Log(path).append([{"step": 1}])
        with open(path, "a") as f:
            f.write('{"step": 2, "tex')
        assert rollouts.read(tmp_path) == [{"step": 1}]
        rollouts.Log(path).append([{"step": 2}])
        assert [r["step"] for r in rollouts.read(tmp_path)] == [1, 2]

    def test_health_counts_every_group_once(self):
        h = rollouts.health([[1.0, 1.0], [0.0, 0.0], [0.3, 0.3], [0.1, None, 0.9], [None]])
        assert h == dict.fromkeys(("good", "bad", "flat", "mixed", "unknown"), 1)


def _evaluation(name, table):
    responses, grades = [], []
    for task, scores in table.items():
        for j, s in enumerate(scores):
            rid = f"{name}{task}{j}"
            status = "unknown" if s is None else ("met" if s > 0.5 else "unmet")
            v = Verdict(
                task_id=task,
                response_id=rid,
                criterion_id="c",
                status=status,
                failure="parse" if s is None else None,
            )
            responses.append(Response(task_id=task, id=rid, text="a b"))
            grades.append(
                Grade(
                    task_id=task,
                    response_id=rid,
                    score=s,
                    score_low=s or 0.0,
                    score_high=1.0 if s is None else s,
                    verdicts=(v,),
                )
            )
    return evaluation.Evaluation(name=name, responses=tuple(responses), grades=tuple(grades))


class TestEvaluation:
    def test_a_gain_is_paired_by_prompt(self):
        before = _evaluation("b", {"p": [0.1], "q": [0.6], "r": [0.2]})
        after = _evaluation("a", {"p": [0.3], "q": [0.9], "r": [0.45]})
        cheap = {
            k: _evaluation(k, {p: [v] for p in "pqr"}) for k, v in (("empty", 0.0), ("parrot", 0.9))
        }
        gain = evaluation.compare(before, after, trivial=cheap)
        assert gain.reward.value == pytest.approx((0.2 + 0.3 + 0.25) / 3)
        assert not gain.shown and "Too few prompts" in gain.sentence  # three of them
        assert "does not beat the best trivial one (parrot" in gain.sentence
        from scipy.stats import ttest_1samp

        low, high = ttest_1samp([0.2, 0.3, 0.25], 0).confidence_interval(0.95)
        assert gain.reward.low < low and high < gain.reward.high, "room for prompts not drawn"
        assert (gain.reward.low, gain.reward.high) == pytest.approx((low, high), abs=0.003)

    def test_a_gain_on_many_prompts_is_shown_and_trivial_policies_are_beaten_by_interval(self):
        before = _evaluation("b", {f"p{i}": [0.2 + 0.01 * (i % 5)] for i in range(24)})
        after = _evaluation("a", {f"p{i}": [0.5 + 0.03 * (i % 7)] for i in range(24)})
        parrot = _evaluation("parrot", {f"p{i}": [0.575] for i in range(24)})
        gain = evaluation.compare(before, after, trivial={"parrot": parrot})
        assert gain.shown and "rose" in gain.sentence
        assert gain.over.value > 0 > gain.over.low
        assert "is not shown to beat the best trivial one" in gain.sentence
        empty = _evaluation("empty", {f"p{i}": [0.0] for i in range(24)})
        gain = evaluation.compare(before, after, trivial={"empty": empty})
        assert "beats the best trivial one (empty, 0.000): +0.58" in gain.sentence

    def test_an_interval_above_zero_that_shows_nothing_says_why(self):
        """ "+0.271 [+0.067, +0.458]" was "not shown to beat" the trivial policy, and no more."""
        rewards = (0.0, 0.1, 0.1, 0.6)
        after = _evaluation("a", {f"p{i}": [rewards[i % 4]] for i in range(24)})
        empty = _evaluation("e", {f"p{i}": [0.0] for i in range(24)})
        gain = evaluation.compare(empty, after, trivial={"empty": empty})
        assert gain.over.low > 0 and "not shown to beat" in gain.sentence
        assert gain.sentence.endswith("; a few prompts that collapse would turn it.")

    def test_a_few_lucky_prompts_beat_nothing(self):
        """ "beats" stood beside rewards dealt out at random, with no interval behind it."""
        after = _evaluation("a", {f"p{i}": [1.0 if i < 2 else 0.0] for i in range(24)})
        empty = _evaluation("e", {f"p{i}": [0.0] for i in range(24)})
        gain = evaluation.compare(empty, after, trivial={"empty": empty, "parrot": empty})
        assert "(0.083) is not shown to beat the best trivial one (empty" in gain.sentence

    def test_zeros_and_ones_of_another_range_are_no_shares(self):
        """Rewards from -1 to 1 that are all 0 had [0, .137], and one-word answers +0 [-.277, .277]."""

        def ranged(name, score, high):
            e = _evaluation(name, {f"p{i}": [score] for i in range(30)})
            meta = {"range": (-high, high)}
            return dataclasses.replace(
                e, grades=tuple(dataclasses.replace(g, meta=meta) for g in e.grades)
            )

        one, ten = (ranged("b", 0.0, high).reward() for high in (1.0, 10.0))
        assert one.low < 0 < one.high and ten.high == pytest.approx(10 * one.high)
        gain = evaluation.compare(ranged("b", 0.0, 1.0), ranged("a", 1.0, 1.0))
        assert gain.reward.value == 1.0 and gain.reward.high != 1.0
        assert math.isnan(gain.words.low), "two words each: there is no share of words"
        shares = evaluation.paired([0.0, 1.0] * 9, [1.0, 1.0] * 9, list(range(18)), list(range(18)))
        counts = evaluation.paired(
            [0.0, 1.0] * 9, [1.0, 1.0] * 9, list(range(18)), list(range(18)), (0.0, math.inf)
        )
        assert "shares" in shares.method and "shares" not in counts.method

    def test_nothing_known_is_no_comparison(self):
        lost = _evaluation("b", {"p": [None]})
        gain = evaluation.compare(lost, lost, trivial={"empty": _evaluation("e", {"p": [0.0]})})
        assert "no held-out prompt has a known reward" in gain.sentence
        assert "nan" not in gain.sentence and "beat" not in gain.sentence

    def test_no_gain_is_said(self):
        gain = evaluation.compare(
            _evaluation("b", {"p": [0.5], "q": [0.5]}), _evaluation("a", {"p": [0.9], "q": [0.3]})
        )
        assert not gain.shown and gain.sentence.startswith("No gain was shown")

    def test_unknown_is_left_out_not_zero(self, tmp_path):
        e = _evaluation("b", {"p": [None, 1.0], "q": [1.0, 1.0]})
        assert e.reward().value == 1.0 and e.criteria()["id c"].n == 3
        e.save(tmp_path / "e.json")
        assert evaluation.read(tmp_path / "e.json") == e

    def test_nothing_known(self):
        assert math.isnan(_evaluation("b", {"p": [None]}).reward().value)


def test_options_are_checked_against_the_installed_trainer():
    from trl import GRPOConfig

    config.merged({}, {"learning_rate": 1e-4}, GRPOConfig)
    with pytest.raises(KitError, match="learning_rate"):
        config.merged({}, {"learning_rat": 1e-4}, GRPOConfig)


def test_training_needs_its_own_prompts(tmp_path):
    from kit.records import Task
    from kit.train import grpo

    task = Task(id="t", prompt="p")
    with pytest.raises(DataError, match="held-out"):
        grpo.train(GRPOSettings(**preset("test")), [task], out=tmp_path, heldout=[task])
    with pytest.raises(DataError, match="no training tasks"):
        grpo.train(GRPOSettings(**preset("test")), [], out=tmp_path)


def test_every_step_has_its_share_of_every_kind():
    """The issue's "one prompt per family in each step" had no setting: steps of one kind alone came."""
    from kit.records import Task
    from kit.train import inputs

    tasks = [Task(id=f"{k}{i}", prompt=f"{k}{i}", kind=k) for k in "abc" for i in range(4)]
    given = {**preset("test"), "steps": 8, "prompts_per_step": 3, "stratify": "kind"}
    ordered = inputs.order(tasks, build(GRPOSettings, given))
    steps = [{t.kind for t in ordered[i : i + 3]} for i in range(0, 24, 3)]
    assert steps == [{"a", "b", "c"}] * 8
    assert sorted(t.id for t in ordered[:12]) == sorted(t.id for t in tasks)
    assert ordered[:12] != ordered[12:]


def test_attention_with_dropout_is_trained_by_transformers(tiny):
    """The engine left the dropout out without a word: gradients were off by more than their size."""
    from kit.train.engine import base_of, trains_ok

    model = tiny[0]
    assert trains_ok(model) is None
    try:
        base_of(model).config.attention_dropout = 0.3
        assert "dropout" in trains_ok(model)
    finally:
        base_of(model).config.attention_dropout = 0.0
