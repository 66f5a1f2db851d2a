"""Figures, explorers and pages of what the kit computed; nothing is computed here.

The primitives take plain data, or anything with value, low, high and n.
"""

from .explore import explore
from .figures import (
    Figure,
    apply_theme,
    bars,
    forest,
    heatmap,
    lines,
    plot,
    reliability_figure,
)
from .page import Card, Html, Section, figure_html, page, template
from .side_by_side import side_by_side

__all__ = [
    "Card",
    "Figure",
    "Html",
    "Section",
    "apply_theme",
    "bars",
    "explore",
    "figure_html",
    "forest",
    "heatmap",
    "lines",
    "page",
    "plot",
    "reliability_figure",
    "side_by_side",
    "template",
]
