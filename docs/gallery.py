"""A hook of MkDocs: runs the code of the gallery, and puts each figure before the lines that make it.

A figure is a comment `<!-- gallery: NAME -->` followed by a Python block that leaves a current figure. All blocks of
the page run in one namespace, from top to bottom, so that what stands before the first figure serves all of them.
"""

from __future__ import annotations

import io
import os
import re
from typing import Any

PAGE = "gallery.md"
_BLOCK = re.compile(r"^(?:<!-- gallery: (?P<name>[\w-]+) -->\n)?```python\n(?P<code>.*?)^```$", re.M | re.S)


def drawn(markdown: str) -> dict[str, str]:
    """The figures of the page by name, as SVG; a block that should draw and does not is a ValueError."""
    import matplotlib as mpl

    mpl.use("Agg")
    os.environ.setdefault("ESSCHER_PROGRESS", "0")
    import matplotlib.pyplot as plt

    figures: dict[str, str] = {}
    namespace: dict[str, Any] = {}
    for block in _BLOCK.finditer(markdown):
        name = block["name"]
        plt.close("all")
        exec(compile(block["code"], f"{PAGE}: {name or 'shared code'}", "exec"), namespace)
        if name is None:
            continue
        if not plt.get_fignums():
            raise ValueError(f"{PAGE}: the block {name} leaves no figure")
        if name in figures:
            raise ValueError(f"{PAGE}: two figures have the name {name}")
        page = io.StringIO()
        # The same code gives the same bytes: no date, and names of parts that do not change.
        with plt.rc_context({"svg.hashsalt": name, "svg.fonttype": "path"}):
            plt.gcf().savefig(
                page, format="svg", dpi=150, bbox_inches="tight", facecolor="white", metadata={"Date": None}
            )
        figures[name] = page.getvalue()
    plt.close("all")
    return figures


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """The page with its pictures, which become files of the site."""
    if page.file.src_uri != PAGE:
        return markdown
    from mkdocs.structure.files import File, InclusionLevel

    for name, picture in drawn(markdown).items():
        made = File.generated(config, f"gallery/{name}.svg", content=picture, inclusion=InclusionLevel.INCLUDED)
        files.append(made)
    return _BLOCK.sub(_with_picture, markdown)


def _with_picture(block: re.Match[str]) -> str:
    name = block["name"]
    code = f"```python\n{block['code']}```"
    # The heading above says what is seen.
    return code if name is None else f"![{name.replace('-', ' ')}](gallery/{name}.svg)\n\n{code}"
