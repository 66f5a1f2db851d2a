"""What a policy is told, by the template of its model: turns of tools, and models without one."""

from __future__ import annotations

import pytest

from kit.data import load_tasks
from kit.train import answers, inputs, models, stages
from kit.train.config import DPOSettings, build

TOOL = "<snippet id=S_1>It is 330 m tall.</snippet>\n<snippet id='S_2'>Opened.</snippet>"
CHAT = [
    {"role": "system", "content": "Refine."},
    {"role": "user", "content": "How tall is it?"},
    {"role": "assistant", "content": "I should search."},
    {"role": "tool", "content": TOOL},
]
REFUSES = (
    "{% for m in messages %}{% if m.role == 'tool' %}{{ raise_exception('no tools') }}{% endif %}"
    "{{ m.content }}{% endfor %}"
)
DROPS = "{% for m in messages %}{% if m.role != 'tool' %}{{ m.content }}{% endif %}{% endfor %}"


def refiner(chat):
    rubrics = {"positive_rubrics": [{"title": "h", "description": "States 330 m."}]}
    negative = {"negative_rubrics": [{"title": "n", "description": "States 300 m."}]}
    return load_tasks([{"messages": chat, **rubrics, **negative}])


@pytest.mark.parametrize("more", [[], [{"role": "assistant", "content": "330 m."}]])
def test_what_a_tool_said_after_the_question_is_read_and_may_be_cited(more):
    """The refiner was trained on the question alone: no reasoning, no sources, no citations."""
    found = refiner(CHAT + more)
    task = found.tasks[0]
    assert task.prompt == "How tall is it?"
    said = ["1 turns follow the last tool turn: neither judge nor policy sees them"]
    assert [f.message for f in found.findings if f.severity != "info"] == said * len(more)
    assert dict(task.sources) == {"S_1": "It is 330 m tall.", "S_2": "Opened."}
    assert answers.messages(task, models.tiny_tokenizer(), 2000) == CHAT
    assert TOOL in task.asked and "I should search." in task.asked


@pytest.mark.parametrize(
    "more",
    [
        {"dataset": "gsm8k", "ground_truth": "42"},
        {"dataset": "rubric", "ground_truth": '{"query": "6*7?", "rubrics": ["Says 42."]}'},
        {"positive_rubrics": ["Says 42."], "negative_rubrics": ["Lies."]},
        {"rubrics": ["Says 42."]},
    ],
)
def test_the_reference_at_the_end_of_a_chat_is_never_asked(more):
    """Trainers of RLVR cut it off; here the policy went on behind the answer, without a word."""
    chat = [{"role": "user", "content": "6*7?"}, {"role": "assistant", "content": "It is 42."}]
    found = load_tasks([{"messages": chat, **more}])
    assert found.tasks[0].asked == "6*7?"
    assert [f.code for f in found.findings if f.severity == "warning"] == ["unread-turns"]
    assert found.tasks[0].meta["messages"] == chat


@pytest.mark.parametrize("template", [REFUSES, DROPS])
def test_a_template_without_turns_of_tools_is_told_one_text(template, caplog):
    tokenizer = models.tiny_tokenizer()
    tokenizer.chat_template = template
    (said,) = answers.messages(refiner(CHAT).tasks[0], tokenizer)
    assert said["role"] == "user" and f"[tool]\n{TOOL}" in said["content"]
    assert CHAT[2]["content"] in said["content"]


@pytest.fixture
def base(tmp_path):
    tokenizer = models.tiny_tokenizer()
    tokenizer.chat_template = None
    tokenizer.save_pretrained(tmp_path / "base")
    return str(tmp_path / "base")


def test_a_base_model_without_a_template_reads_the_texts(base, caplog):
    """GRPO and DPO ended in transformers' traceback after the model was loaded."""
    tokenizer = models.tokenizer_of(base)
    assert f"{base} has no chat template" in caplog.text
    asked = "### Instruction:\nSay it.\n\n### Response:\n"
    task = load_tasks([{"prompt": asked, "criteria": ["Short."]}]).tasks[0]
    assert tokenizer.decode(answers.prompt_ids(tokenizer, task)) == asked
    s = build(DPOSettings, {"model": base, "max_tokens": 200})
    rows = stages.learned(s, [{"prompt": asked, "chosen": "yes", "rejected": "no"}])
    (row,) = inputs.fitting(rows, tokenizer, s)
    whole = tokenizer.apply_chat_template(row["prompt"] + row["chosen"], tokenize=False)
    assert whole == f"{asked}yes{tokenizer.eos_token}"
