"""What MkDocs calls while it builds the site: generated pages, executed notebooks, and files that stand elsewhere."""

from __future__ import annotations

import os
import re
from functools import partial
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

import claims
import commands
import drawings
import keys
import notebooks
import subjects

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
KATEX = ROOT / "crates" / "esscher-report" / "assets"
STATIC = [
    *(HERE / "assets" / name for name in ("formulas.js", "favicon.svg", "style.css", "iframe-worker.js")),
    *(HERE / "assets" / name for name in ("LICENSE-iframe-worker",)),
    *(KATEX / name for name in ("katex.min.js", "katex.min.css", "LICENSE-katex")),
]
CLAIMS = {
    "claims": claims.markdown,
    "headline": claims.headline,
    "tally": claims.tally,
    "undecided": claims.undecided,
}
# Documents of the repository's root that are pages too, and where.
FROM_ROOT = {"ARCHITECTURE.md": "decisions/architecture.md", "CONTRIBUTING.md": "decisions/contributing.md"}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Lists the decisions in the navigation, newest first."""
    pages = [{_title(file): f"decisions/{file.name}"} for file in _dated(config)]
    (section,) = [entry for entry in config.nav or [] if "Decisions" in entry]
    section["Decisions"] = [*section["Decisions"], *pages]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds what stands elsewhere or is made here."""
    for file in STATIC:
        _add(files, config, f"static/{file.name}", file.read_bytes())
    for name, uri in FROM_ROOT.items():
        _add(files, config, uri, (ROOT / name).read_text(encoding="utf-8"))
    found, report = claims.judged(TARGET / "docs-cache" / "papers")
    _add(files, config, "papers/report.html", report)
    config.extra["generated"] = {
        **{part: partial(write, found) for part, write in CLAIMS.items()},
        "commands": commands.markdown,
        "convergence": drawings.convergence,
        "decisions": partial(_decisions, config),
        "keys": keys.markdown,
        "names": partial(subjects.table, str(config.nav)),
    }
    for file in list(files):
        if not file.src_uri.endswith(".ipynb"):
            continue
        text, figures = notebooks.page(Path(file.abs_src_path), TARGET / "docs-cache" / "notebooks")
        uri = Path(file.src_uri)
        _add(files, config, str(uri.with_suffix(".md")), text)
        for name, content in figures.items():
            _add(files, config, str(uri.with_name(name)), content)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Fills in `<!-- NAME -->` marks; links to notebooks lead to their pages, links of root documents into docs/."""
    generated = config.extra["generated"]
    if page.file.src_uri in FROM_ROOT.values():
        markdown = re.sub(r"\]\(docs/([^)]*)\)", r"](../\1)", markdown)
    markdown = re.sub(r"\.ipynb((?:#[^)\s]*)?\))", r".md\1", markdown)
    return re.sub(rf"<!-- ({'|'.join(generated)}) -->", lambda mark: generated[mark[1]](), markdown)


def on_post_build(config: MkDocsConfig) -> None:
    """Removes what makes sense only at a known address: the page of missing pages and the map for search engines."""
    for name in ("404.html", "sitemap.xml", "sitemap.xml.gz"):
        (Path(config.site_dir) / name).unlink(missing_ok=True)


def _add(files: Files, config: MkDocsConfig, uri: str, content: str | bytes) -> None:
    files.append(File.generated(config, uri, content=content, inclusion=InclusionLevel.INCLUDED))


def _dated(config: MkDocsConfig) -> list[Path]:
    return sorted((Path(config.docs_dir) / "decisions").glob("2*.md"), reverse=True)


def _decisions(config: MkDocsConfig) -> str:
    rows = [f"| {file.name[:10]} | [{_title(file)}]({file.name}) |" for file in _dated(config)]
    return "\n".join(["| when | what |", "|---|---|", *rows])


def _title(file: Path) -> str:
    return file.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
