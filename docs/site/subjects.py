"""The table of Python's subjects and names, from the pages that describe them."""

from __future__ import annotations

import re
from pathlib import Path

PAGES = Path(__file__).parents[1] / "reference" / "python"


def table(navigation: str) -> str:
    """A row per page, in the order in which the navigation has them: its title, and links to what it describes."""
    rows = []
    for name in re.findall(r"reference/python/([\w-]+)\.md", navigation):
        page = PAGES / f"{name}.md"
        if name == "index":
            continue
        text = page.read_text(encoding="utf-8")
        title = text.partition("\n")[0].removeprefix("# ")
        links = [
            f"[`{name.removeprefix('esscher.')}`]({page.name}#{name})"
            for name in re.findall(r"^::: (\S+)$", text, re.MULTILINE)
        ]
        rows.append(f"| [{title}]({page.name}) | {', '.join(links)} |")
    return "\n".join(["| subject | names |", "|---|---|", *rows])
