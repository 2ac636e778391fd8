#!/usr/bin/env python3
"""Writes docs/reference/commands.md from the help texts of the program itself.

    scripts/docs/commands.py [--capstone PROGRAM] [--check]

PROGRAM defaults to build/release/bin/capstone. --check writes nothing: exit code 1 where the page is out of
date.
Only the standard library of Python 3 is needed.
"""

import argparse
import difflib
import pathlib
import re
import subprocess
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/reference/commands.md"
WIDTH = 110
DESCRIPTION = 30  # the column at which the parser's help prints descriptions

GROUPS = [
    (
        "For students",
        "problems lab init status predict try watch measure diff hint explain llm report open check "
        "checkin submit "
        "ledger replay",
    ),
    ("For lectures", "ladder profile bench demo syllabus book run fast-p kernelbench"),
    ("For mentors", "grade mark gradebook appeal export leaderboard present handout certificate"),
    ("The machine and the judge", "doctor calibrate selftest help completion"),
]


def help_of(program, words):
    """The help text of `capstone WORDS`, as lines."""
    done = subprocess.run(
        [program, *words, "--help"], capture_output=True, text=True, check=True, timeout=30
    )
    return done.stdout.splitlines()


def entries(lines):
    """(head, description) of each entry of one section of a help text."""
    found = []
    for number, line in enumerate(lines):
        if line.startswith(" " * DESCRIPTION):
            head, text = found[-1]
            found[-1] = (head, (text + " " + line.strip()).strip())
            continue
        following = lines[number + 1] if number + 1 < len(lines) else ""
        one_line = len(line) > DESCRIPTION and line[DESCRIPTION - 1] == " " and line[DESCRIPTION] != " "
        wide = line[DESCRIPTION - 2 : DESCRIPTION - 1] not in (
            "",
            " ",
        )  # the head reaches the last column but one
        if one_line and not (wide and following.startswith(" " * DESCRIPTION)):
            found.append((line[:DESCRIPTION].strip(), line[DESCRIPTION:].strip()))
        else:
            found.append((line.strip(), ""))
    return found


def parse(lines):
    """A help text as a dictionary: description, usage, footer and the entries of each section."""
    page = {"description": [], "usage": "", "footer": "", "sections": {}}
    section = None
    for line in lines:
        if line.startswith("Usage: "):
            page["usage"] = line[len("Usage: ") :]
        elif re.fullmatch(r"[A-Z][A-Za-z ]*:", line):
            section = line[:-1]
            page["sections"][section] = []
        elif section and line.startswith("  "):
            page["sections"][section].append(line)
        elif line.startswith("Exit codes"):
            page["footer"] = line
            section = None
        elif line and not page["usage"]:
            page["description"].append(line)
    page["sections"] = {name: entries(body) for name, body in page["sections"].items()}
    return page


def split_head(head):
    """An option's head as the parser prints it → (names, value, notes)."""
    notes = []
    for note in re.findall(r"(Excludes: [^A-Z]*|Needs: [^A-Z]*)", head):
        kind, names = note.strip().split(": ", 1)
        names = ", ".join(f"`{name}`" for name in names.split())
        notes.append(("not with " if kind == "Excludes" else "only with ") + names)
        head = head.replace(note, "")
    if "REQUIRED" in head:
        notes.insert(0, "required")
        head = head.replace("REQUIRED", "")
    names, _, value = " ".join(head.split()).partition(" ")
    value = re.sub(r"^(?:TEXT|INT|UINT|FLOAT):(\{[^}]*\})", r"\1", value)
    value = re.sub(r"^([A-Z]+):(?:INT|FLOAT|UINT) in \[(\S+) - (\S+)\]", r"\1 from \2 to \3", value)
    value = re.sub(r"=(\S+)$", r" [\1]", value)  # CLI11 before 2.4 writes a default as "=8"
    value = re.sub(r"^([A-Z]+):POSITIVE", r"\1 above 0", value)
    value = re.sub(r"^([A-Z]+):DIR", r"DIR", value)
    return names.split(","), value, notes


def wrapped(text, first="", rest=""):
    return "\n".join(
        textwrap.wrap(
            text,
            WIDTH,
            initial_indent=first,
            subsequent_indent=rest,
            break_long_words=False,
            break_on_hyphens=False,
        )
    )


def item(head, text):
    names, value, notes = split_head(head)
    label = ", ".join(f"`{name}`" for name in names)
    if value:
        label = ", ".join(f"`{name}`" for name in names[:-1] + [f"{names[-1]} {value}"])
    tail = f" ({'; '.join(notes)})" if notes else ""
    text = text.replace("<", "&lt;").replace("*", "\\*")
    return wrapped(f"{label}: {text}{tail}" if text else label + tail, "- ", "  ")


def command(program, words, level):
    page = parse(help_of(program, words))
    name = "capstone " + " ".join(words)
    out = [
        f"{'#' * level} {name}",
        "",
        wrapped(sentence(" ".join(page["description"]))),
        "",
        "```text",
        page["usage"],
        "```",
        "",
    ]
    listed = page["sections"].get("Positionals", []) + page["sections"].get("Options", [])
    listed = [item(head, text) for head, text in listed if not head.startswith("-h,")]
    out += listed + [""] if listed else []
    for head, _ in page["sections"].get("Subcommands", []):
        out += command(program, words + [head.split(", ")[0]], level + 1)
    return out


def sentence(text):
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "?", "!")) else ".")


def render(program):
    top = parse(help_of(program, []))
    says, also = {}, {}  # "syllabus, map": a command and its other names
    for head, text in top["sections"]["Subcommands"]:
        name, *others = head.split(", ")
        says[name], also[name] = text, others
    known = list(says)
    grouped = [(title, [name for name in names.split() if name in known]) for title, names in GROUPS]
    others = [name for name in known if not any(name in names for _, names in grouped)]
    if others:
        grouped.append(("Others", others))
    out = [
        "# Commands",
        "",
        "<!-- Generated by scripts/docs/commands.py from the program's own help texts. Do not edit. -->",
        "",
        "`capstone COMMAND --help` prints the same text. Exit codes are on [their own page](exit_codes.md).",
        "",
        "These options work with every command:",
        "",
    ]
    out += [item(head, text) for head, text in top["sections"]["Options"] if not head.startswith("-h,")]
    out += ["", "| command | what it does |", "|---|---|"]
    for _, names in grouped:
        out += [
            f"| [{name}](#capstone-{name}) | {says[name].replace('|', chr(92) + '|')} |" for name in names
        ]
    out.append("")
    for title, names in grouped:
        out += [f"## {title}", ""]
        for name in names:
            section = command(program, [name], 3)
            if also[name]:
                section[3:3] = ["", "Also called " + ", ".join(f"`capstone {one}`" for one in also[name]) + "."]
            out += section
    return "\n".join(out).rstrip() + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--capstone", default=str(ROOT / "build/release/bin/capstone"))
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    if not pathlib.Path(arguments.capstone).exists():
        print(
            f"error: no program at {arguments.capstone}\n  hint: build it, or name another with --capstone",
            file=sys.stderr,
        )
        return 3
    fresh = render(arguments.capstone)
    if not arguments.check:
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        PAGE.write_text(fresh, encoding="utf-8")
        return 0
    stored = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    if stored == fresh:
        return 0
    sys.stdout.writelines(
        list(
            difflib.unified_diff(stored.splitlines(True), fresh.splitlines(True), str(PAGE), "the program")
        )[:60]
    )
    print(
        f"error: {PAGE.relative_to(ROOT)} is out of date\n  hint: run scripts/docs/commands.py",
        file=sys.stderr,
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
