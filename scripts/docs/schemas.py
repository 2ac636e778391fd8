#!/usr/bin/env python3
"""Writes the reference pages of the file formats from their JSON Schemas.

    scripts/docs/schemas.py [--check]

    problems/problem.schema.json  → docs/reference/problem_yaml.md
    rubric/result.schema.json     → docs/reference/result_json.md
    harness/machine/traces.schema.json → docs/reference/traces_jsonl.md

--check writes nothing: exit code 1 where a page is out of date. Only the standard library of Python 3 is
needed.
"""

import argparse
import difflib
import json
import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [
    (
        "problems/problem.schema.json",
        "docs/reference/problem_yaml.md",
        "How to choose the values, with examples: [Write a problem](../how-to/write-a-problem.md).",
    ),
    (
        "rubric/result.schema.json",
        "docs/reference/result_json.md",
        "`capstone grade` writes one such file for each submission: `OUT/submissions/NAME/result.json`.",
    ),
    (
        "harness/machine/traces.schema.json",
        "docs/reference/traces_jsonl.md",
        "`capstone machine export` writes one such object a line: [Search with a language "
        "model](../how-to/search-with-a-model.md).",
    ),
]


def cell(text):
    return " ".join(str(text).split()).replace("|", "\\|")


def words(values):
    return ", ".join('`""`' if value == "" else f"`{value}`" for value in values)


def anchor(title):
    return re.sub(r"[^a-z0-9 _-]", "", title.lower()).replace(" ", "-")


class Page:
    """Renders one schema: a section for each object that has keys of its own."""

    def __init__(self, schema):
        self.schema = schema
        self.sections = []  # (title, schema) still to be written, in order
        self.titles = set()

    def resolve(self, node):
        if "$ref" not in node:
            return node
        target = self.target(node)
        return {
            **target,
            **{key: value for key, value in node.items() if key != "$ref"},
            "title": target.get("title", ""),
        }

    def target(self, node):
        found = self.schema
        for part in node["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        return found

    def later(self, title, node):
        if title not in self.titles:
            self.titles.add(title)
            self.sections.append((title, node))
        return f"[{title}](#{anchor(title)})"

    def value(self, name, raw):
        """What a value may be, in one cell."""
        node = self.resolve(raw)
        title = node.get("title") or name
        if "const" in node:
            return f"`{node['const']}`" if node["const"] != "" else "empty"
        if "enum" in node:
            return words(node["enum"])
        if "anyOf" in node:
            return " or ".join(self.value(name, each) for each in node["anyOf"])
        if "examples" in node:
            return words(node["examples"])
        kind = node.get("type")
        if kind == "object":
            if node.get("properties"):
                own = self.target(raw).get("description", "") if "$ref" in raw else ""
                return self.later(title, {**node, "description": own})
            if node.get("title"):
                return node["title"]
            if isinstance(node.get("additionalProperties"), dict):
                return f"mapping: name → {self.value(name, node['additionalProperties'])}"
            return "mapping"
        if kind == "array":
            items = node.get("items")
            return f"list of {self.value(name, items)}" if items else "list"
        if isinstance(kind, list):
            return " or ".join(kind) + (" (expression)" if kind == ["string", "number"] else "")
        limits = []
        if "minimum" in node and "maximum" in node:
            limits.append(f"{node['minimum']} to {node['maximum']}")
        elif "minimum" in node:
            limits.append(f"at least {node['minimum']}")
        if "maxLength" in node:
            limits.append(f"at most {node['maxLength']} characters")
        if raw.get("$ref", "").endswith("/digest"):
            limits.append("SHA-256, or empty")
        if raw.get("$ref", "").endswith("/time"):
            limits.append("UTC, `2026-11-20T23:59:00Z`")
        return (kind or "any") + (f", {', '.join(limits)}" if limits else "")

    def table(self, node):
        required = node.get("required", [])
        out = ["| key | required | value | meaning |", "|---|---|---|---|"]
        for key, raw in node["properties"].items():
            text = raw.get("description") or self.resolve(raw).get("description", "")
            needed = "yes" if key in required else ""
            out.append(
                f"| `{key}` | {needed} | {cell(self.value(key, raw))} | {cell(text)} |"
            )
        return out

    def render(self, source, remark):
        out = [
            f"# {self.schema['title'].split(':')[0]}",
            "",
            f"<!-- Generated by scripts/docs/schemas.py from {source}. Do not edit. -->",
            "",
        ]
        if self.schema.get("description"):
            out += [wrap(self.schema["description"]), ""]
        out += [wrap(f"The JSON Schema: `{source}`. {remark}"), "", *self.table(self.schema), ""]
        while self.sections:
            title, node = self.sections.pop(0)
            out += [f"## {title}", ""]
            if node.get("description"):
                out += [wrap(node["description"]), ""]
            out += [*self.table(node), ""]
        return "\n".join(out).rstrip() + "\n"


def wrap(text):
    return "\n".join(textwrap.wrap(text, 110, break_long_words=False, break_on_hyphens=False))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    stale = 0
    for source, target, remark in PAGES:
        schema = json.loads((ROOT / source).read_text(encoding="utf-8"))
        fresh = Page(schema).render(source, remark)
        path = ROOT / target
        stored = path.read_text(encoding="utf-8") if path.exists() else ""
        if stored == fresh:
            continue
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(fresh, encoding="utf-8")
            continue
        stale = 1
        sys.stdout.writelines(
            list(difflib.unified_diff(stored.splitlines(True), fresh.splitlines(True), target, source))[:60]
        )
        print(f"error: {target} is out of date\n  hint: run scripts/docs/schemas.py", file=sys.stderr)
    return stale


if __name__ == "__main__":
    sys.exit(main())
