"""What SFT and DPO rows became, by the role of an answer."""


def demonstrations(tasks):
    """(task, answer to be imitated)."""
    rows = ((t, r) for t in tasks for r in tasks.answers(t.id))
    return [(t, r) for t, r in rows if r.meta.get("role") == "demonstration"]


def pairs(tasks):
    """(task, chosen, rejected) of every task that has both."""
    roles = ((t, {r.meta.get("role"): r for r in tasks.answers(t.id)}) for t in tasks)
    return [
        (t, by["chosen"], by["rejected"]) for t, by in roles if {"chosen", "rejected"} <= by.keys()
    ]
