#!/usr/bin/env python3
"""problems/problem.schema.json says what the loader says: the same keys, the same required keys, the same
choices; and every problem.yaml of the repository is valid under it."""

import json
import re
import sys

from pages import ROOT

try:
    import jsonschema
    import yaml
except ImportError as missing:
    print(f"skipped: {missing}; apt-get install python3-jsonschema python3-yaml")
    sys.exit(77)

LOADER = ROOT / "harness/model/loader.cpp"
DTYPES = ROOT / "harness/model/dtype.h"
# The loader's name of a mapping → where the schema describes it.
MAPPINGS = {
    "a problem": [],
    "a parameter": ["$defs", "parameter"],
    "normal": ["$defs", "normal"],
    "uniform": ["$defs", "uniform"],
    "integer": ["$defs", "integer"],
    "permutation": ["$defs", "permutation"],
    "offsets": ["$defs", "offsets"],
    "lengths": ["$defs", "lengths"],
    "counts": ["$defs", "counts"],
    "top_k": ["$defs", "top_k"],
    "pages": ["$defs", "pages"],
    "sizes": ["$defs", "sizes"],
    "tolerance": ["$defs", "tolerance"],
    "cost": ["$defs", "cost"],
    "vary of `{}`": ["$defs", "vary"],
}


def balanced(text, start):
    """The text from the bracket at `start` to the one that closes it."""
    pairs = {"(": ")", "{": "}"}
    depth, at = 0, start
    while True:
        if text[at] == '"':
            at = re.compile(r'"(?:[^"\\]|\\.)*"').match(text, at).end()
            continue
        depth += (text[at] == text[start]) - (text[at] == pairs[text[start]])
        at += 1
        if depth == 0:
            return text[start:at]


def loader_mappings(source):
    """name of a mapping → {key: required}, of every call of keys() with a list of keys."""
    found = {}
    for call in re.finditer(r"\bkeys\(", source):
        body = balanced(source, call.end() - 1)
        name = re.search(r'"([^"]+)"', body)
        listed = re.findall(r'\{"(\w+)"(?:,\s*(true|false))?\}', body)
        if name and listed:
            found[name.group(1)] = {key: required != "false" for key, required in listed}
    return found


def loader_choices(source):
    """Every list of words in braces."""
    lists = re.findall(r'\{\s*("(?:[^"\\]|\\.)*"(?:\s*,\s*"(?:[^"\\]|\\.)*")+)\s*,?\s*\}', source)
    return [frozenset(re.findall(r'"([^"]*)"', one)) for one in lists]


def schema_choices(node):
    if isinstance(node, dict):
        if "enum" in node:
            yield frozenset(node["enum"])
        for value in node.values():
            yield from schema_choices(value)
    elif isinstance(node, list):
        for value in node:
            yield from schema_choices(value)


def main():
    schema = json.loads((ROOT / "problems/problem.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    source = LOADER.read_text(encoding="utf-8")
    errors = []

    mappings = loader_mappings(source)
    for name in sorted(set(mappings) ^ set(MAPPINGS)):
        errors.append(f"the mapping “{name}” is known to one of loader.cpp and this test alone")
    for name in set(mappings) & set(MAPPINGS):
        node = schema
        for part in MAPPINGS[name]:
            node = node[part]
        keys, described = mappings[name], set(node["properties"])
        if set(keys) != described:
            errors.append(f"{name}: the loader and the schema differ in {sorted(set(keys) ^ described)}")
        required = {key for key, needed in keys.items() if needed}
        if required != set(node.get("required", [])):
            errors.append(f"{name}: required differ in {sorted(required ^ set(node.get('required', [])))}")

    choices = loader_choices(source + DTYPES.read_text(encoding="utf-8"))
    for words in schema_choices(schema):
        if words not in choices:
            errors.append(f"no list of choices in the loader is {sorted(words)}")
    for name in (
        "init",
        "because",
        "outside_domain",
    ):  # mappings whose keys the loader keeps as lists of words
        if frozenset(schema["$defs"][name]["properties"]) not in choices:
            errors.append(f"{name}: the loader knows other keys")

    validator = jsonschema.Draft202012Validator(schema)
    files = sorted(ROOT.glob("problems/*/problem.yaml")) + sorted(
        ROOT.glob("tests/corpus/problems/*/problem.yaml")
    )
    if len(files) < 20:
        errors.append(f"only {len(files)} definitions found")
    for file in files:
        for error in validator.iter_errors(yaml.safe_load(file.read_text(encoding="utf-8"))):
            errors.append(f"{file.relative_to(ROOT)}: {'/'.join(map(str, error.path))}: {error.message}")
    print("\n".join(errors) or f"{len(files)} definitions are valid; loader and schema agree")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
