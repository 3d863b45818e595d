"""README and docs/ as GitHub shows them: formulas survive, links lead somewhere, commands exist, no code scrolls."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

markdown_it = pytest.importorskip("markdown_it")

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), ROOT / "python" / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
# What strangers read first.
DOORS = [ROOT / "README.md", ROOT / "python" / "README.md", ROOT / "docs" / "index.md"]
# Columns that a block of code has on GitHub before it scrolls.
WIDEST = 100
# Pages that docs/build makes.
MADE = {"docs/papers/report.html"}
# Stands for markup inside of text.
MARK = "\ufffc"


def tokens_of(text):
    return markdown_it.MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)


def shown(inline):
    """The text of a paragraph without its code, with a mark wherever emphasis or a link begins or ends."""
    parts = []
    for token in inline.children or []:
        if token.type in ("text", "text_special"):
            parts.append(token.content)
        elif token.type in ("softbreak", "hardbreak"):
            parts.append("\n")
        elif token.type != "code_inline":
            parts.append(MARK)
    return "".join(parts)


def wrong_formulas(text):
    """Formulas that are not whole any more, or whose signs GitHub does not take for those of a formula."""
    for token in tokens_of(text):
        if token.type != "inline":
            continue
        words = shown(token)
        displayed = re.compile(r"\$\$(.+?)\$\$", re.DOTALL)
        found = displayed.findall(words)
        words = displayed.sub("", words)
        inside = re.findall(r"(?<![\\$])\$([^$]*)\$(?!\$)", words)
        found += inside
        yield from (f"markup inside of ${formula}$" for formula in found if MARK in formula)
        yield from (
            f"a space beside the sign: ${formula}$" for formula in inside if formula != formula.strip() or not formula
        )
        if words.count("$") % 2:
            yield f"a formula without its end: {words[:80]!r}"


def links_of(text):
    for token in tokens_of(text):
        for child in token.children or []:
            if child.type == "link_open":
                yield child.attrGet("href")
            elif child.type == "image":
                yield child.attrGet("src")


def name(page):
    return str(page.relative_to(ROOT))


def test_a_formula_that_markdown_eats_is_found():
    broken = ["The map $T[μ](z)$ is.", "It is $a_1 *b* c$.", "Half $x of it.", "Here $ x $ is."]
    assert all(list(wrong_formulas(text)) for text in broken)
    assert not list(wrong_formulas("The map $T_\\mu(z)$ of `T[μ](z)`, and\n\n$$a = b.$$"))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_formulas_survive(page):
    assert list(wrong_formulas(page.read_text())) == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_to_files_that_are_there(page):
    missing = []
    for link in links_of(page.read_text()):
        parts = urlsplit(link)
        if parts.scheme or parts.netloc or not parts.path:
            continue
        target = (page.parent / unquote(parts.path)).resolve()
        if not target.exists() and str(target.relative_to(ROOT)) not in MADE:
            missing.append(link)
    assert missing == []


@pytest.mark.parametrize("page", DOORS, ids=name)
def test_no_code_scrolls(page):
    blocks = [token for token in tokens_of(page.read_text()) if token.type == "fence"]
    wide = [
        line for block in blocks if block.info != "math" for line in block.content.splitlines() if len(line) > WIDEST
    ]
    assert wide == []


@pytest.mark.parametrize("page", DOORS, ids=name)
def test_no_scaffolding_of_tests_is_shown(page):
    blocks = [token for token in tokens_of(page.read_text()) if token.type == "fence" and token.info.startswith("rust")]
    assert not [line for block in blocks for line in block.content.splitlines() if line.startswith("# ")]


def commands_of(page):
    """What the shell blocks of a page say, line by line, without comments."""
    # Tabs of the site indent their blocks.
    text = re.sub(r"^ {4}", "", page.read_text(), flags=re.MULTILINE) if page.name == "index.md" else page.read_text()
    blocks = [token for token in tokens_of(text) if token.type == "fence" and token.info == "sh"]
    lines = [line.partition(" #")[0].strip() for block in blocks for line in block.content.splitlines()]
    return [line for line in lines if line]


def esscher_words(line):
    """The arguments that a line gives to the program, and where its output goes; nothing if it calls something else."""
    words = shlex.split(line)
    if words[:4] == ["cargo", "run", "--release", "--"]:
        words = words[3:]
    elif words[0].rpartition("/")[2] != "esscher":
        return None
    target = words[words.index(">") + 1] if ">" in words else None
    return words[1 : words.index(">")] if ">" in words else words[1:], target


@pytest.mark.parametrize("page", DOORS, ids=name)
def test_commands_exist_with_their_options_and_files(page, binary):
    made = set()
    for line in commands_of(page):
        called = esscher_words(line)
        if called is None:
            continue
        (command, *rest), target = called
        ended = subprocess.run([binary, "help", command], capture_output=True, text=True, check=False)
        assert ended.returncode == 0, f"{line}: {ended.stderr}"
        known = set(re.findall(r"--[a-z][a-z-]*", ended.stdout))
        assert {word.partition("=")[0] for word in rest if word.startswith("--")} <= known, line
        files = [
            word for word in rest if re.search(r"\.(toml|npy|npz|html|txt|gguf)$", word) or word.startswith("runs/")
        ]
        assert [file for file in files if file not in made and not (ROOT / file).exists()] == [], line
        if target:
            made.add(target)
        if command == "run":
            made |= {f"runs/{Path(file).stem}" for file in files}


@pytest.mark.parametrize("page", DOORS, ids=name)
def test_named_programs_and_packages_are_there(page):
    for line in commands_of(page):
        words = shlex.split(line)
        if words[0] == "make":
            rules = re.findall(r"^([a-z]+)", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
            assert set(words[1:]) <= set(rules), line
        elif words[:2] == ["cargo", "install"]:
            assert (ROOT / words[words.index("--path") + 1] / "Cargo.toml").is_file(), line
