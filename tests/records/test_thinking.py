"""A thought is no part of an answer, for whoever reads it: judge, check, reward, ledger."""

import pytest

from kit.records import strip_thinking

ANSWERS = [  # an answer as it comes, what of it is judged
    ("Red.", "Red."),
    ("  Red.\n", "  Red.\n"),
    ("<think>Green? No.</think>\n\nRed.", "Red."),
    ("\n <think>\nGreen?\n</think>Red. ", "Red. "),
    ("Green? No.\n</think>\n\nRed.", "Red."),
    ("</think>Red.", "Red."),
    ("<think>Green? It never ends", ""),
    ("<think>Green?</think>", ""),
    # An answer may speak of the tags: there is no thought in front of it.
    ("Red. Write <think>green</think> first.", "Red. Write <think>green</think> first."),
    ("Red, </thinking> and <think", "Red, </thinking> and <think"),
]


@pytest.mark.parametrize(("text", "answer"), ANSWERS)
def test_the_answer_is_what_stands_behind_the_thought(text, answer):
    assert strip_thinking(text) == answer
