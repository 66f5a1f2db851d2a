"""A made label set for tests of tuning, and judges that are functions of prompt and answer."""

from kit import Criterion, Response, Task, Verdict
from kit.data import TaskSet
from kit.judging import Judge

STRICT = "Read each criterion strictly."


class Fake(Judge):
    """A judge that passes everything; under a prompt with STRICT it reads whether the answer is good."""

    concurrency = 4
    count = 0

    def __init__(self, prompt="Be kind.", *, lenient=True, silent=(), name="fake"):
        self.prompt, self.lenient, self.silent, self.name = prompt, lenient, silent, name

    def met(self, task, response, c):
        if STRICT in self.prompt:
            return "good" in response.text
        return self.lenient

    def readings(self, task, response, criteria):
        Fake.count += len(criteria)
        out = []
        for c in criteria:
            p = float(self.met(task, response, c))
            status, failure = ("met" if p else "unmet"), None
            if any(word in response.text for word in self.silent):
                status, p, failure = "unknown", None, "parse"
            reason = f"because {p}"
            out.append({"status": status, "p": p, "failure": failure, "reason": reason})
        return out


def labels(prompts=40, answers=2, text="{} answer <script>alert({})</script>"):
    """Each prompt has a good answer and bad ones, with labels of people on two criteria."""
    criteria = (Criterion(id="a", text="Is right."), Criterion(id="b", text="Is clear."))
    tasks = [Task(id=f"t{i}", prompt=f"Question {i}?", criteria=criteria) for i in range(prompts)]
    made, verdicts = [], []
    for i, t in enumerate(tasks):
        for k in range(answers):
            good = (i + k) % 2 == 0
            r = Response(task_id=t.id, id=f"r{k}", text=text.format("good" if good else "bad", i))
            made.append(r)
            for c in criteria:
                ids = {"task_id": t.id, "response_id": r.id, "criterion_id": c.id}
                verdicts.append(Verdict(**ids, status="met" if good else "unmet", judge="human"))
    return TaskSet(tasks=tasks, responses=made, verdicts=verdicts)
