#!/usr/bin/env python3
"""Every row of docs/reference/what_shows_it.md does what it says.

A row has ids of the audit, the thing, a command, and texts in code quotes that its output holds. The commands
run from top to bottom in one scratch folder that has a copy of examples/; the same command runs once. A
command ends with 0, or with N where its cell says "exit N". Rows marked "slow" need `--slow` or `--only`.
A row without a command says "missing" in its place, and why.

With --demos it runs the one demo of each session in place of the rows, each with an empty cache: it ends within
the seconds of its sheet (reference_kernels/plans), and shows the text to point at.

    check_shows.py --capstone PROGRAM [--slow] [--only ID …] [--show]
    check_shows.py --capstone PROGRAM --demos [--only SESSION …] [--show]
"""

import argparse
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time

from pages import ROOT, lines_of

PAGE = "docs/reference/what_shows_it.md"
HEADINGS = ["The road", *(f"L{n}" for n in range(1, 9)), *(f"W{n}" for n in range(1, 7))]
HEADINGS += ["The machine", "The capstone", "The mentor"]
DEMO = re.compile(r"^demo: \{run: (.+), seconds: (\d+), shows: \"?(.+?)\"?\}$", re.MULTILINE)
CODE = re.compile(r"`([^`]+)`")


class Row:
    """One row of a table of the page."""

    def __init__(self, number, heading, cells):
        self.heading = heading
        self.where = f"{PAGE}:{number}"
        self.ids = [name.strip() for name in cells[0].split(",")]
        self.missing = cells[2].startswith("missing")
        commands = CODE.match(cells[2])
        self.command = commands.group(1) if commands else None
        words = cells[2][commands.end() :].split(";")[0] if commands else ""
        self.slow = "slow" in words
        found = re.search(r"exit (\d+)", words)
        self.code = int(found.group(1)) if found else 0
        self.shows = CODE.findall(cells[3])

    def error(self):
        """What is wrong with the row's form; None: nothing."""
        if self.missing:
            return None
        if not self.command:
            return "neither a command nor the word missing"
        return None if self.shows else "no text in code quotes to look for"


def rows_of_page():
    """(rows, errors of form): also that each session has rows and no id two of them."""
    rows, errors, heading, seen, ids = [], [], "", set(), set()
    for number, line, fence in lines_of(PAGE):
        if fence is None and line.startswith("## "):
            heading = line[3:].split(":")[0]
        if fence is not None or not line.startswith("| ") or line.startswith("| id "):
            continue
        cells = [cell.strip() for cell in re.findall(r"\|((?:[^|`]|`[^`]*`)*)", line)][:-1]
        if len(cells) != 4:
            errors.append(f"{PAGE}:{number}: {len(cells)} cells, expected 4")
            continue
        row = Row(number, heading, cells)
        rows.append(row)
        seen.add(heading)
        error = row.error() or next((f"{name} has a row already" for name in row.ids if name in ids), None)
        ids.update(row.ids)
        if error:
            errors.append(f"{row.where}: {error}")
    errors += [f"{PAGE}: no row under the heading {name}" for name in HEADINGS if name not in seen]
    return rows, errors


def errors_of_demos(folder, environment, only, show):
    """What is wrong with the sessions' demos: late, or the text is not shown."""
    errors = []
    for plan in sorted((ROOT / "reference_kernels/plans").glob("*.yaml")):
        if only and plan.stem not in only:
            continue
        demo = DEMO.search(plan.read_text())
        if not demo:
            errors.append(f"{plan.name}: no line `demo: {{run: …, seconds: …, shows: …}}`")
            continue
        command, limit, text = demo[1], int(demo[2]), demo[3]
        empty = {**environment, "CAPSTONE_CACHE": f"{folder}/.cache-{plan.stem}"}
        code, output, seconds = run(command, folder, empty)
        if show:
            print(f"{plan.stem}: {seconds:.1f} of {limit} s: {command}", flush=True)
        if code or text not in output:
            errors.append(f"{plan.name}: {command}: exit code {code}, or not shown: {text}\n{output}")
        if seconds > limit:
            errors.append(f"{plan.name}: {command}: {seconds:.1f} s, its sheet says {limit}")
    return errors


def run(command, folder, environment):
    """(exit code, output, seconds) of a shell line."""
    begun = time.monotonic()
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=600,
    )
    return done.returncode, done.stdout, time.monotonic() - begun


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--capstone", required=True)
    parser.add_argument("--slow", action="store_true", help="also rows that take longer than a second")
    parser.add_argument("--only", nargs="+", metavar="ID", help="these rows, and the quick ones before them under their heading")
    parser.add_argument("--show", action="store_true", help="print the seconds of each command")
    parser.add_argument("--demos", action="store_true", help="the sessions' demos and their seconds, not the rows")
    arguments = parser.parse_args()
    rows, errors = rows_of_page()
    wanted = {row.heading: row.where for row in rows if set(row.ids) & set(arguments.only or [])}
    if arguments.only:
        rows = [row for row in rows if row.heading in wanted]
    outputs = {}
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "examples", pathlib.Path(folder, "examples"))
        shims = pathlib.Path(folder, ".bin")
        shims.mkdir()
        (shims / "capstone").symlink_to(pathlib.Path(arguments.capstone).resolve())
        environment = {
            **os.environ,
            "PATH": f"{shims}:{os.environ['PATH']}",
            "XDG_STATE_HOME": f"{folder}/.state",
            "NO_COLOR": "1",
        }
        if arguments.demos:
            errors = errors_of_demos(folder, environment, arguments.only, arguments.show)
            print("\n".join(errors + [f"demos: {len(errors)} wrong"]))
            return 1 if errors else 0
        done = set()
        for row in rows:
            named = bool(set(row.ids) & set(arguments.only or []))
            if not row.command or row.heading in done or (row.slow and not (named or arguments.slow)):
                continue
            if row.where == wanted.get(row.heading):  # the last one that is wanted
                done.add(row.heading)
            if row.command not in outputs:
                outputs[row.command] = run(row.command, folder, environment)
            code, output, seconds = outputs[row.command]
            if arguments.show:
                print(f"{', '.join(row.ids)}: {seconds:.2f} s: {row.command}", flush=True)
            absent = [text for text in row.shows if text not in output]
            if code != row.code or absent:
                why = f"exit code {code}, expected {row.code}" if code != row.code else f"not shown: {absent}"
                tail = "\n    ".join(output.splitlines()[-12:])
                errors.append(f"{row.where}: {row.command}: {why}\n    {tail}")
    print("\n".join(errors))
    missing = sum(row.missing for row in rows)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{len(rows)} rows, {missing} missing, {len(outputs)} commands run, {len(errors)} wrong, "
          f"{used.ru_utime + used.ru_stime:.0f} s of CPU time")
    return 1 if errors or not outputs else 0


if __name__ == "__main__":
    sys.exit(main())
