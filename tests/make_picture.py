"""Draws the picture of the README from shipped data: `python tests/make_picture.py` (needs Chromium).

Left: P(met) of a recorded judge. Right: rewards of five stored runs and of a control with shuffled rewards.
"""

import json

import pandas as pd
from make_notebooks import DRAW, ROOT, Painter

import kit
from kit.data import recorded_judges
from kit.plots import lines
from kit.system import paths

PICTURE = ROOT / ".github" / "images" / "results.png"
WIDTH, HEIGHT, SCALE = 480, 400, 1.6  # of one panel
THRESHOLD = 3.0  # a human score of at least this counts as met


def reliability():
    """Reliability diagram of gpt-4o's P(met), by prompts."""
    tasks = recorded_judges().taskset()
    judge = {"replay": "gpt-4o/bare", "threshold": THRESHOLD}
    table = kit.judge(tasks, judge=judge, progress=False).table(human=tasks, tasks=tasks)
    met = (table["human"] >= (THRESHOLD - 1) / 4).astype(float)
    table = table.assign(met=met.where(table["human"].notna())).dropna(subset=["p", "met"])
    return kit.plot(
        kit.reliability(table, "p", "met", cluster="group"),
        title="Can a judge's probability be trusted?",
        subtitle="",
        x="P(met) of the judge (gpt-4o)",
        y="share that people call met",
    )


def learning():
    """Mean reward by step of the stored runs: mean of the seeds, their range, and the control."""
    rewards = json.loads(paths.data("learning.json").read_text("utf-8"))["rewards"]
    curves = pd.DataFrame(rewards).rolling(5, min_periods=1).mean()
    seeds = curves.drop(columns="control")
    name = f"GRPO, mean of {seeds.shape[1]} seeds"
    return lines(
        {name: seeds.mean(axis=1), "control: shuffled rewards": curves["control"]},
        title="Does a 135M model learn from a rubric?",
        x_title="training step",
        y_title="mean reward",
        bands={name: (seeds.min(axis=1), seeds.max(axis=1))},
    ).update_layout(legend={"orientation": "h", "y": -0.2})


def main() -> None:
    """Draw both figures side by side."""
    painter, tags = Painter(), ""
    for figure in (reliability(), learning()):
        panel = kit.records.tables.plain(figure.to_plotly_json())
        image = painter.page.evaluate(DRAW, [panel, WIDTH, HEIGHT, SCALE])
        tags += f'<img src="{image}" width="{WIDTH}">'
    painter.page.set_viewport_size({"width": 2 * WIDTH, "height": HEIGHT})
    painter.page.set_content(f'<body style="margin:0;white-space:nowrap;font-size:0">{tags}</body>')
    painter.page.screenshot(path=PICTURE)
    painter.close()


if __name__ == "__main__":
    main()
