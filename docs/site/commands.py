"""The page of all commands, from the manual pages that the program prints."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from program import said

# Options that every command has; they are explained once.
COMMON = ("--json", "--quiet", "--threads", "--instruction-set", "--help")


@dataclass
class Manual:
    """A manual page, taken apart."""

    description: list[str] = field(default_factory=list)
    options: list[tuple[str, str]] = field(default_factory=list)
    arguments: list[tuple[str, str]] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    extra: str = ""


def markdown() -> str:
    """Every command with its usage, arguments and options, and before them the options of all."""
    program = read(said("manual"))
    commands = [name for name in program.commands if name != "help"]
    common = [option for option in program.options if _is_common(option[0])]
    parts = ["## Options of every command", _definitions(common)]
    for name in commands:
        parts += _command(name, read(said("manual", name)))
    return "\n\n".join(parts)


def _command(name: str, manual: Manual) -> list[str]:
    usage = next(line for line in said("help", name).splitlines() if line.startswith("Usage: "))
    own = [option for option in manual.options if not _is_common(option[0])]
    first, *rest = manual.description
    parts = [f"## esscher {name} {{ #{name} }}", _sentence(first), f"```text\n{usage.removeprefix('Usage: ')}\n```"]
    parts += [_linked(paragraph) for paragraph in rest]
    for definitions in (manual.arguments, own):
        if definitions:
            parts.append(_definitions(definitions))
    if manual.extra:
        parts.append(_extra(manual.extra))
    return parts


def read(roff: str) -> Manual:
    """Takes a manual page of `esscher manual` apart."""
    manual = Manual()
    sections = re.split(r"^\.SH ", roff, flags=re.MULTILINE)[1:]
    for section in sections:
        title, _, body = section.partition("\n")
        if title == "DESCRIPTION":
            manual.description = [_plain(part) for part in re.split(r"^\.PP$", body, flags=re.MULTILINE)]
        elif title == "EXTRA":
            manual.extra = _plain(body, joined=False)
        elif title in ("OPTIONS", "SUBCOMMANDS"):
            for entry in re.split(r"^\.TP$", body, flags=re.MULTILINE)[1:]:
                head, _, text = entry.strip().partition("\n")
                _enter(manual, title, _plain(head), _plain(text))
    if not manual.description:
        raise ValueError(
            "a manual page without a description: its layout has changed, and docs/site/commands.py with it"
        )
    return manual


def _enter(manual: Manual, section: str, head: str, text: str) -> None:
    if section == "SUBCOMMANDS":
        manual.commands.append(re.sub(r"^esscher-|\(1\)$", "", head))
        return
    # Manual pages write a default behind the name, we write it behind the sentence.
    name, _, default = head.partition(" [default: ")
    text = f"{text} [default: {default}" if default else text
    (manual.options if name.startswith("-") else manual.arguments).append((name, text))


def _plain(roff: str, joined: bool = True) -> str:
    values = r"(?:\n(?:\.br)?)*\n\\fIPossible values:\\fR\n\.RS 14\n((?:\.IP .*\n.*\n?)+)\.RE"
    text = re.sub(values, lambda found: f" [{', '.join(re.findall(r'^[^.].*', found[1], re.MULTILINE))}]", roff)
    text = re.sub(r"^\.(br|PP|RS|RE|ie|el).*$\n?", "", text, flags=re.MULTILINE)
    text = re.sub(r"\\f[BIR]", "", text).replace(r"\*(Aq", "'").replace(r"\-", "-").replace(r"\&", "")
    return " ".join(text.split()) if joined else text.strip("\n")


def _is_common(name: str) -> bool:
    return any(part in COMMON for part in re.split(r"[ ,]+", name))


def _sentence(text: str) -> str:
    return _linked(text if text.endswith((".", "?", "!")) else f"{text}.")


def _linked(text: str) -> str:
    text = re.sub(r"(?<!`)(<|\[)(?=[^`]*(?:`[^`]*`)*[^`]*$)", r"\\\1", text)
    return text.replace("(docs/command-line.md)", "([the page for programs](../command-line.md))")


def _definitions(entries: list[tuple[str, str]]) -> str:
    lines = []
    for name, text in entries:
        text, *defaults = re.split(r" \[(?=default: )", text)
        text, *words = re.split(r" \[(?=[a-z0-9-]+, [^\]]*\]$)", text)
        text = _sentence(text)
        if words:
            text += " One of " + ", ".join(f"`{word}`" for word in words[0].rstrip("]").split(", ")) + "."
        if defaults:
            default = defaults[0].removeprefix("default: ").rstrip("]")
            text += f" Default: {default}." if " " in default else f" Default: `{default}`."
        lines.append(f"`{name}`\n:   {text}")
    return "\n\n".join(lines)


def _extra(text: str) -> str:
    """Examples as code; other paragraphs as they are."""
    parts = []
    for paragraph in re.split(r"\n{2,}", text):
        title, *lines = paragraph.splitlines()
        if lines and all(line.startswith("  ") for line in lines):
            code = "\n".join(line[2:] for line in lines)
            parts.append(f"{title}\n\n```text\n{code}\n```")
        else:
            parts.append(_linked(" ".join(paragraph.split())))
    return "\n\n".join(parts)
