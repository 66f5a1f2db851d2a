"""GRPO steps of bare trl, of unsloth's trainer and of the kit, side by side on the same work; plain script, prints a table.

    python tests/benchmarks/bench_train.py [--steps 3] [--model SmolLM2-135M-Instruct] [--only trl,unsloth,kit] [--json]

Same model, LoRA (rank 16, all projections), prompts, group size, answer length, learning rate and code-checked reward; each runs
in a process of its own (unsloth must be imported first). The first step (warm-up) is not counted. Seconds depend on the
machine, ratios less so. `kit_logprobs` is the largest difference between the log-probabilities that the kit's sampler,
its packed forward pass and a plain padded forward pass give the same tokens: the distribution is the same. `overhead` is the
share of a step that the kit's own code takes outside sampling, judge and update (records, sentinels, logs, live view), from the
accounting in steps.jsonl: for this model, and for the random model of two layers, whose steps are short (`--only overhead`).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

GROUP, PROMPTS, TOKENS = 8, 2, 28


def tasks() -> list:
    """The training prompts of the project, with the criteria that code checks."""
    import dataclasses

    from kit.data import load_tasks
    from kit.system import paths

    rows = [t for t in load_tasks(paths.data("short_answers.json")).tasks if t.split == "train"]
    return [
        dataclasses.replace(t, criteria=tuple(c for c in t.criteria if c.by_code)) for t in rows
    ]


def grade(task, text: str) -> float:
    """Share of criteria met."""
    from kit.checks import check
    from kit.records import Response

    return sum(
        check(task, Response(task_id=task.id, id="r", text=text), c).status == "met"
        for c in task.criteria
    ) / len(task.criteria)


def bare(engine: str, steps: int, model: str) -> dict:
    """trl.GRPOTrainer as its documentation shows it; with unsloth imported first when that is asked for."""
    from kit.train import models
    from kit.train.config import GRPOSettings

    settings = GRPOSettings(
        model=model, engine=engine, max_answer_tokens=TOKENS, max_prompt_tokens=128
    )
    loaded = models.load(settings)
    import trl
    from datasets import Dataset
    from transformers import TrainerCallback

    from kit.train.answers import messages
    from kit.train.inputs import order

    todo = order(tasks(), GRPOSettings(steps=steps, prompts_per_step=PROMPTS))
    by_id = {t.id: t for t in todo}
    seen: dict = {"rewards": [], "tokens": [], "times": []}

    def reward(completions, completion_ids, task_id, **_):
        values = [
            grade(by_id[i], c[-1]["content"].strip())
            for c, i in zip(completions, task_id, strict=True)
        ]
        seen["rewards"] += values
        seen["tokens"] += [len(i) for i in completion_ids]
        return values

    class Clock(TrainerCallback):
        began = 0.0

        def on_train_begin(self, *a, **k):
            self.began = time.perf_counter()

        def on_step_end(self, *a, **k):
            seen["times"].append(round(time.perf_counter() - self.began, 3))
            self.began = time.perf_counter()

    with tempfile.TemporaryDirectory() as out:
        args = trl.GRPOConfig(
            output_dir=out,
            max_steps=steps,
            per_device_train_batch_size=GROUP * PROMPTS,
            num_generations=GROUP,
            max_completion_length=TOKENS,
            learning_rate=1e-5,
            beta=0.0,
            temperature=1.0,
            top_k=0,
            use_cpu=loaded.device.kind == "cpu",
            bf16=loaded.device.dtype == "bfloat16" and loaded.device.kind == "cuda",
            report_to="none",
            save_strategy="no",
            gradient_checkpointing=False,
            shuffle_dataset=False,
            disable_tqdm=True,
            logging_steps=1,
            remove_unused_columns=False,
        )
        trainer = trl.GRPOTrainer(
            model=loaded.model,
            reward_funcs=reward,
            args=args,
            processing_class=loaded.tokenizer,
            callbacks=[Clock()],
            train_dataset=Dataset.from_list(
                [{"prompt": messages(t), "task_id": t.id} for t in todo]
            ),
        )
        trainer.train()
    return {"step_seconds": seen["times"], **_quality(seen)}


def _quality(seen: dict) -> dict:
    n = len(seen["rewards"])
    return {
        "reward": round(sum(seen["rewards"]) / n, 3),
        "tokens": round(sum(seen["tokens"]) / n, 2),
        "answers": n,
    }


def kit(steps: int, model: str) -> dict:
    """The kit's trainer on the same work."""
    from kit.train import grpo
    from kit.train.config import GRPOSettings

    with tempfile.TemporaryDirectory() as out:
        settings = GRPOSettings(
            model=model,
            engine="transformers",
            steps=steps,
            group_size=GROUP,
            prompts_per_step=PROMPTS,
            lr=1e-5,
            max_answer_tokens=TOKENS,
            save_every=0,
        )
        result = grpo.train(settings, tasks(), out=out)
        rows, steps_ = result.rollouts(), result.steps()
    split = {
        k: round(sum(s[f"seconds_{k}"] for s in steps_[1:]) / max(1, len(steps_) - 1), 3)
        for k in ("generation", "judge", "update", "kit")
    }
    return {
        "overhead": overhead(steps_),
        "step_seconds": [round(s["seconds"], 3) for s in steps_],
        "split": split,
        **_quality({"rewards": [r["reward"] for r in rows], "tokens": [r["tokens"] for r in rows]}),
        "kit_logprobs": equal(model),
    }


def overhead(steps: list) -> float:
    """The kit's own seconds as a share of all seconds, first step left out."""
    return round(sum(s["seconds_kit"] for s in steps[1:]) / sum(s["seconds"] for s in steps[1:]), 5)


def tiny_overhead(steps: int) -> dict:
    """The accounting on the tiny random model: seconds of the kit's own code per step, and its share of so short a step."""
    from kit.train import grpo
    from kit.train.config import GRPOSettings

    with tempfile.TemporaryDirectory() as out:
        settings = GRPOSettings(
            model="tiny-random",
            engine="transformers",
            steps=max(steps, 8),
            group_size=GROUP,
            prompts_per_step=PROMPTS,
            max_answer_tokens=TOKENS,
            save_every=0,
        )
        rows = grpo.train(settings, tasks(), out=out).steps()
    return {
        "step_seconds": [round(s["seconds"], 3) for s in rows],
        "overhead": overhead(rows),
        "kit_ms": round(1000 * sum(s["seconds_kit"] for s in rows[1:]) / (len(rows) - 1), 2),
    }


def equal(model: str) -> float:
    """Largest difference of log-probabilities between sampler, packed pass and plain padded pass, in float32, over one batch with
    a random adapter (bfloat16 rounds the logits alone by .1 and more)."""
    import torch

    from kit.train import engine, models, packing, sampling
    from kit.train.answers import prompt_ids
    from kit.train.config import GRPOSettings

    loaded = models.load(GRPOSettings(model=model, engine="transformers", dtype="float32"))
    for name, p in loaded.model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(p, std=0.01)
    prompts = [prompt_ids(loaded.tokenizer, t) for t in tasks()[:2] for _ in range(4)]
    now = engine.Engine(loaded.model)
    got = sampling.sample(
        now,
        prompts,
        max_new_tokens=TOKENS,
        eos_ids=models.eos_ids(loaded.model, loaded.tokenizer),
    )
    p, c = max(map(len, prompts)), max(map(len, got.ids))
    ids, mask = (
        torch.zeros(len(prompts), p + c, dtype=torch.long),
        torch.zeros(len(prompts), p + c, dtype=torch.long),
    )
    for r, (x, y) in enumerate(zip(prompts, got.ids, strict=True)):
        ids[r, p - len(x) : p + len(y)], mask[r, p - len(x) : p + len(y)] = (
            torch.tensor([*x, *y]),
            1,
        )

    def score(logits, labels):
        lp = logits.log_softmax(-1)
        return lp.gather(-1, labels[..., None])[..., 0], lp[..., 0]

    with torch.no_grad():
        packed, _ = packing.spread(loaded.model, ids, mask, c, through=lambda g: now.score(g, 1.0))
        logits = loaded.model(
            input_ids=ids, attention_mask=mask, logits_to_keep=c + 1, use_cache=False
        ).logits[:, :-1]
        plain = score(logits, ids[:, -c:])[0]
    seen = mask[:, -c:].bool()
    sampled = torch.zeros_like(plain)
    for r, lps in enumerate(got.logprobs):
        sampled[r, : len(lps)] = torch.tensor(lps)
    return max(float((a - plain)[seen].abs().max()) for a in (packed, sampled))


def main() -> int:
    """Run each contender in its own process and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--model", default="SmolLM2-135M-Instruct")
    parser.add_argument("--only", default="trl,unsloth,kit,overhead")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        if args.worker == "unsloth":
            from kit.train.models import import_unsloth

            import_unsloth()
        if args.worker in ("kit", "overhead"):
            got = kit(args.steps, args.model) if args.worker == "kit" else tiny_overhead(args.steps)
            print("RESULT " + json.dumps(got))
            return 0
        got = bare(
            "unsloth" if args.worker == "unsloth" else "transformers", args.steps, args.model
        )
        print("RESULT " + json.dumps(got))
        return 0
    found: dict = {}
    for name in args.only.split(","):
        env = {**os.environ, "OMP_WAIT_POLICY": "PASSIVE", "KIT_HEADLESS": "1"}
        run = subprocess.run(
            [
                sys.executable,
                __file__,
                "--worker",
                name,
                "--steps",
                str(args.steps),
                "--model",
                args.model,
            ],
            env=env,
            capture_output=True,
            text=True,
        )
        line = next((x for x in run.stdout.splitlines() if x.startswith("RESULT ")), None)
        found[name] = (
            json.loads(line[7:])
            if line
            else {"error": (run.stderr.strip().splitlines() or ["no output"])[-1]}
        )
    if args.json:
        print(json.dumps(found))
        return 0
    print(
        f"GRPO, {PROMPTS} prompts x {GROUP} answers of up to {TOKENS} tokens, {args.model}; seconds per step, first step left out"
    )
    base = None
    for name, r in found.items():
        if "error" in r:
            print(f"  {name:8s} failed: {r['error']}")
            continue
        if name == "overhead":
            print(
                f"  tiny     the kit's own code {r['kit_ms']:.1f} ms a step, {r['overhead']:.2%} of the tiny model's step"
            )
            continue
        mean = sum(r["step_seconds"][1:]) / max(1, len(r["step_seconds"]) - 1)
        base = base or mean
        print(
            f"  {name:8s} {mean:7.2f} s  ({base / mean:4.2f} x the first)  reward {r['reward']:.3f}, {r['tokens']:.1f} tokens, n={r['answers']}"
            + (
                f"  split {r['split']}  log-probs (float32) equal to {r['kit_logprobs']:.1e}, overhead {r['overhead']:.3%} of the step"
                if "split" in r
                else ""
            )
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
