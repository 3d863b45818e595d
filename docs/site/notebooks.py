"""Notebooks as pages: executed in a fresh kernel, each cell followed by what it showed."""

from __future__ import annotations

import base64
import hashlib
import html
import os
import re
import tempfile
from collections.abc import Iterator
from importlib import metadata
from itertools import groupby
from pathlib import Path
from typing import Any

import nbclient
import nbformat

SECONDS = 900
ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
# What a notebook says where a checkpoint is out of reach: the next build tries again.
NOT_FETCHED = "could not be fetched"
# Drawings are sharp at any size; the kernel speaks of errors only.
SETTINGS = ["--InlineBackend.figure_formats={'svg'}", "--IPKernelApp.log_level=40"]


def page(source: Path, cache: Path) -> tuple[str, dict[str, bytes]]:
    """A notebook as Markdown, and the figures that it refers to by their names.

    ``ESSCHER_NOTEBOOKS=stored`` shows the outputs that the file has, without executing it. An execution is kept in
    ``cache`` under the checksum of the notebook and of the installed package.
    """
    notebook = nbformat.read(source, as_version=4)
    if os.environ.get("ESSCHER_NOTEBOOKS") != "stored":
        kept = cache / f"{source.stem}-{_checksum(source)}.ipynb"
        if kept.exists():
            notebook = nbformat.read(kept, as_version=4)
        else:
            stored = _shown(notebook)
            _execute(notebook)
            said = [output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", [])]
            if any(NOT_FETCHED in text for text in said):
                if os.environ.get("ESSCHER_MODELS"):
                    raise ValueError(f"{source.name}: the checkpoint could not be fetched, though others could")
                print(f"{source.name}: NOT executed, its checkpoint could not be fetched; its stored outputs are shown")
                notebook = nbformat.read(source, as_version=4)
            elif _shown(notebook) != stored:
                raise ValueError(f"{source.name}: not the figures that it was committed with: {_shown(notebook)}")
            else:
                cache.mkdir(parents=True, exist_ok=True)
                nbformat.write(notebook, kept)
    figures: dict[str, bytes] = {}
    parts = [part for cell in notebook.cells for part in _cell(cell, source.stem, figures)]
    title, rest = parts[0].split("\n", 1) if parts[0].startswith("# ") else (f"# {source.stem}", parts[0])
    download = f'<p class="download"><a href="{source.name}" download>Download this notebook</a></p>'
    return "\n\n".join([title, download, rest, *parts[1:]]), figures


def _shown(notebook: nbformat.NotebookNode) -> list[int]:
    """How many figures each cell shows."""
    is_figure = lambda output: any(kind.startswith("image/") for kind in output.get("data", {}))  # noqa: E731
    return [sum(map(is_figure, cell.get("outputs", []))) for cell in notebook.cells]


def _checksum(source: Path) -> str:
    checksum = hashlib.sha256(source.read_bytes())
    for file in sorted(metadata.files("esscher") or [], key=str):
        checksum.update(f"{file} {file.hash.value if file.hash else ''}".encode())
    return checksum.hexdigest()[:16]


def _execute(notebook: nbformat.NotebookNode) -> None:
    with tempfile.TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        nbclient.NotebookClient(notebook, timeout=SECONDS, resources=resources, extra_arguments=SETTINGS).execute()


def _cell(cell: nbformat.NotebookNode, stem: str, figures: dict[str, bytes]) -> Iterator[str]:
    if cell.cell_type == "markdown":
        yield cell.source
    elif cell.cell_type == "code" and "remove-cell" not in cell.metadata.get("tags", []):
        yield f"```python\n{cell.source}\n```"
        for (kind, name), outputs in groupby(cell.outputs, lambda one: (one.output_type, one.get("name"))):
            if kind == "stream":
                # A kernel sends what is printed in pieces.
                yield _text("".join(one.text for one in outputs)) if name == "stdout" else ""
            else:
                yield from (_output(one, stem, figures) for one in outputs)


def _output(output: nbformat.NotebookNode, stem: str, figures: dict[str, bytes]) -> str:
    if output.output_type == "error":
        return _text(f"{output.ename}: {output.evalue}")
    data: dict[str, Any] = output.data
    for kind, ending in (("image/svg+xml", "svg"), ("image/png", "png")):
        if kind in data:
            name = f"{stem}-{len(figures) + 1}.{ending}"
            figures[name] = data[kind].encode() if ending == "svg" else base64.b64decode(data[kind])
            return f"![Figure {len(figures)}]({name}){{ .figure }}"
    if "text/html" in data:
        return f'<div class="output" markdown="0">\n{_one_block(data["text/html"])}\n</div>'
    if "text/markdown" in data:
        return str(data["text/markdown"])
    return _text(data.get("text/plain", ""))


def _one_block(markup: str) -> str:
    """Markup without empty lines, which would end it as a block of Markdown, and without styles of its own."""
    markup = re.sub(r"<style\b.*?</style>", "", markup, flags=re.DOTALL)
    return "\n".join(line for line in markup.splitlines() if line.strip())


def _text(text: str) -> str:
    text = html.escape(ESCAPES.sub("", text).rstrip(), quote=False)
    if not text:
        return ""
    lines = text.replace("\n\n", "\n&#8203;\n")
    return f'<pre class="output"><code>{lines}</code></pre>'
