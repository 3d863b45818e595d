"""Drawings in the colours of the page, light or dark."""

from __future__ import annotations

import re
from pathlib import Path

FIGURES = Path(__file__).parents[1] / "figures"


def themed(svg: str) -> str:
    """A drawing of ours to stand inside a page: ink, grid and paper are those of the theme."""
    svg = re.sub(r'<rect [^>]*fill="#ffffff"/>', "", svg, count=1)
    for ink in ("#1a1a1a", "#333333"):
        svg = svg.replace(f'"{ink}"', '"currentColor"')
    svg = svg.replace('stroke="#e4e4e4"', 'class="grid"').replace('fill="#ffffff"', 'class="paper"')
    svg = svg.replace("<svg ", '<svg class="themed" ', 1)
    # An empty line would end the block for Markdown.
    return "\n".join(line for line in svg.splitlines() if line.strip())


def convergence() -> str:
    """The first figure of all, without its heading: the text beside it says the same."""
    svg = (FIGURES / "convergence.svg").read_text(encoding="utf-8")
    return themed(re.sub(r'<text [^>]*font-size="15">.*?</text>', "", svg))
