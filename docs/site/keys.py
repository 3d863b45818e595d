"""The page of all keys of specifications, from the JSON Schema that the program prints."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

from program import said, told

# Keys that every question has; they are explained once.
COMMON = ("kind", "title", "seed")
LARGEST = 10**15


def markdown() -> str:
    """Every question: its sentence, its keys, an example that runs."""
    parts = []
    for entry in told("list", "questions")["entries"]:
        name = entry["name"]
        schema = json.loads(said("schema", name))
        rows = [row for row in _rows(schema, "") if row[0] not in COMMON]
        keys = "\n\n".join(_definition(*row) for row in rows)
        parts.append(f"## {name} {{ #{name} }}\n\n{entry['summary']}\n\n{keys}")
        example = told("example", name)["specification"].strip()
        parts.append(f'??? example "An example: `esscher example {name}`"\n\n' + _indented(f"```toml\n{example}\n```"))
    return "\n\n".join(parts)


def _definition(key: str, text: str, values: str, default: str) -> str:
    sentence = text if text.endswith((".", "?", "!")) else f"{text}."
    return f'`{key}` <span class="values">{values}{default}</span>\n:   {sentence}'


def _rows(schema: dict[str, Any], prefix: str) -> Iterator[tuple[str, str, str, str]]:
    """Key, sentence, values and default of every key, those of tables behind the table's own."""
    required = schema.get("required", [])
    keys = schema["properties"].items()
    for key, rule in sorted(keys, key=lambda item: (item[0] not in required, "properties" in item[1], item[0])):
        inner = rule.get("items", rule)
        is_table = "properties" in inner and "format" not in inner
        name = f"{prefix}{key}" + ("[]" if is_table and "items" in rule else "")
        yield name, rule.get("description", ""), _values(rule), _default(rule, key in required)
        if is_table:
            yield from _rows(inner, f"{name}.")


def _values(rule: dict[str, Any]) -> str:
    if "const" in rule:
        return _code(rule["const"])
    if "enum" in rule:
        return ", ".join(_code(value) for value in rule["enum"])
    if rule.get("format") == "law":
        return "[a law](../specifications.md#keys-of-every-kind)"
    if rule.get("format") == "matrix":
        return "a number or rows"
    if "oneOf" in rule or "anyOf" in rule:
        return " or ".join(_values(one) for one in rule.get("oneOf", rule.get("anyOf")))
    kinds = rule.get("type", "any")
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if "items" in rule:
        if "properties" in rule["items"] and "format" not in rule["items"]:
            return "a list of tables"
        grid = " or a grid" if "object" in kinds else ""
        alone = " or one" if {"integer", "number", "string"} & set(kinds) else ""
        return f"a list: {_values(rule['items'])}{alone}{grid}"
    words = {
        "integer": "whole number", "number": "number", "string": "text", "boolean": "`true`, `false`",
        "object": "table", "array": "list", "null": "nothing", "any": "any",
    }  # fmt: skip
    return " or ".join(words[kind] for kind in kinds) + _range(rule)


def _range(rule: dict[str, Any]) -> str:
    low, high = (rule.get(name) for name in ("minimum", "maximum"))
    above, below = (rule.get(name) for name in ("exclusiveMinimum", "exclusiveMaximum"))
    if high is not None and high >= LARGEST:
        high = None
    words = [
        f"from {_number(low)}" if low is not None else "",
        f"above {_number(above)}" if above is not None else "",
        f"to {_number(high)}" if high is not None else "",
        f"below {_number(below)}" if below is not None else "",
    ]
    return " ".join(["", *filter(None, words)])


def _number(value: float) -> str:
    """A number as a person writes it."""
    power = round(math.log10(value)) if value > 0 else 0
    if abs(power) > 3 and math.isclose(value, 10.0**power):
        return "10" + str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{value:,.0f}" if value == int(value) else f"{value:.10g}"


def _default(rule: dict[str, Any], required: bool) -> str:
    if "default" in rule:
        return f", default {_code(json.dumps(rule['default'], ensure_ascii=False))}"
    return ", required" if required else ""


def _code(text: object) -> str:
    return f"`{text}`"


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" if line else "" for line in text.splitlines())
