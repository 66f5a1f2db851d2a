"""Draws the picture of the README from shipped data: `python tests/make_picture.py` (needs Chromium).

Left: agreement of the small judge with people before and after tuning. Right: what three looks see of the trainings
that this judge paid.
"""

import json

from make_notebooks import DRAW, ROOT, Painter
from msgspec.structs import replace

import kit
from kit import stats
from kit.plots import forest
from kit.system import paths

PICTURE = ROOT / ".github" / "images" / "results.png"
WIDTH, HEIGHT, SCALE = 480, 400, 1.6  # of one panel
ARMS = {"SFT": "SFT", "judge paid": "tuned", "coin paid": "control"}


def agreement():
    """Kappa on the sealed test: with reasons, one word, one word with the learned cutoff."""
    labels = kit.load(paths.data("sealed_labels.jsonl"))
    short = paths.data("judge_prompts", "word_short.txt").read_text("utf-8").strip()
    word = {"replay": "small", "system": short, "how": "word"}
    judges = {
        "with reasons": "replay:small",
        "one word": word,
        "one word, tuned": {"cutoff": word, "at": 0.43},
    }
    found = {}
    for name, judge in judges.items():
        table = kit.judge(labels, judge=judge, progress=False).table(human=labels, tasks=labels)
        found[name] = stats.kappa(table, "value", "human", cluster="task")
    return forest(
        found,
        title="Does the judge agree with people?",
        x="kappa on the sealed test, 60 prompts",
        zero=0,
    )


def gains():
    """Held-out reward after GRPO less after SFT, by three looks."""
    tasks = kit.load(paths.data("support.jsonl")).halves()[1]
    checks = json.loads(paths.data("support_checks.json").read_text("utf-8"))
    by_code = [
        replace(t, criteria=tuple(replace(c, check=checks[c.id]) for c in t.criteria))
        for t in tasks
    ]
    file = paths.data("support_run_verdicts.jsonl.gz")
    looks = {
        "tuned judge": (tasks, {"replay": file, "judge": "tuned"}),
        "untuned": (tasks, {"replay": file, "judge": "second"}),
        "code": (by_code, "code"),
    }
    replies = kit.load(paths.data("support_run_answers.jsonl")).responses
    models = {name: [r for r in replies if r.source.startswith(arm)] for name, arm in ARMS.items()}
    found = {}
    for look, (rows, judge) in looks.items():
        differences = kit.compare(rows, models, judge=judge, progress=False).differences
        found |= {f"{name}: {look}": gain for name, gain in differences.items()}
    return forest(
        found, title="Does its reward improve a model?", x="held-out reward, GRPO less SFT", zero=0
    )


def main() -> None:
    """Draw both figures side by side."""
    painter, tags = Painter(), ""
    for figure in (agreement(), gains()):
        panel = kit.records.tables.plain(figure.to_plotly_json())
        image = painter.page.evaluate(DRAW, [panel, WIDTH, HEIGHT, SCALE])
        tags += f'<img src="{image}" width="{WIDTH}">'
    painter.page.set_viewport_size({"width": 2 * WIDTH, "height": HEIGHT})
    painter.page.set_content(f'<body style="margin:0;white-space:nowrap;font-size:0">{tags}</body>')
    painter.page.screenshot(path=PICTURE)
    painter.close()


if __name__ == "__main__":
    main()
