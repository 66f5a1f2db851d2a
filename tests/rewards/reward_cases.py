"""One task, one answer and its verdicts, for the tests of rewards."""

from kit.records import Criterion, Response, Task, Verdict, unknown
from kit.rewards import static_criteria

GOOD = Criterion(id="p1", text="good")
BAD = Criterion(id="n1", text="bad", weight=-1)
PLAIN = Task(id="t", prompt="Why?", criteria=(GOOD, BAD))
TASK = Task(id="t", prompt="Why?", criteria=(GOOD, BAD), sources={"a": "It rains.", "b": "x"})
CITED = "<answer><snippet id=a>It rains.</snippet></answer>"
STATIC = [c.id for c in static_criteria("all")]
CLAIMS = ["cite:1:support", "cite:1:relevant"]


def answer(text=CITED):
    return Response(task_id="t", id="r", text=text)


def verdict(name, value=1.0, task_id="t", response_id="r", **more):
    """A verdict of this value; None is unknown."""
    ids = {"task_id": task_id, "response_id": response_id, "criterion_id": name}
    if value is None:
        return unknown(**ids, failure="parse")
    status = {0.0: "unmet", 1.0: "met"}.get(value, "level")
    return Verdict(**ids, status=status, value=value, **more)
