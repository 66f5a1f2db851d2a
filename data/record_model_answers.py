"""Record the answers of local models for notebook 5: `python data/record_model_answers.py`, after `kit fetch judge`.

Writes model_answers.jsonl: one sentence for each held-out instruction. A stored answer is not asked again, so a stopped
recording goes on.
"""

import kit
from kit import training
from kit.system.paths import data

MODELS = {"SmolLM2-135M": "SmolLM2-135M-Instruct", "Qwen2.5-Coder-1.5B": "small"}
TRAINED = "SmolLM2-135M trained"


def main() -> None:
    """Two models answer; the answers of the third are those of the first stored training."""
    _, heldout = kit.load(data("instructions.jsonl")).halves()
    responses: list[kit.Response] = []
    for name, model in MODELS.items():
        responses += kit.answer(
            list(heldout), model, max_tokens=24, name=name
        ).responses
    after = training.stored("instructions").frame.query(
        "run == 'seed 0' and how == 'greedy' and stage == 'after'"
    )
    for task, text in zip(after["task"], after["answer"], strict=True):
        responses.append(
            kit.Response(
                task_id=task, id=f"{task}-{TRAINED}-1", text=text, source=TRAINED
            )
        )
    kit.save(
        data("model_answers.jsonl"), kit.data.TaskSet(tasks=[], responses=responses)
    )


if __name__ == "__main__":
    main()
