#!/usr/bin/env python3
"""Runs the public programs of programs.tsv on the CPU and compares each outcome with the one in the list.

    tests/emulator/drawing/run.py [--capstone PROGRAM] [--timeout SECONDS] [--class NAME] [--keep FOLDER]

The list holds repository, commit, path and SHA-256 of each file, not its code: git fetches that from GitHub
into FOLDER (default: a temporary one). It is no test of the suite, which has no network.
Exit code: 1 where a program that was right is not, or a file is another one than in the list.
"""

import argparse
import csv
import hashlib
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
LIST = pathlib.Path(__file__).with_name("programs.tsv")


def git(folder, *words):
    return subprocess.run(["git", "-C", folder, *words], capture_output=True)


def fetch(folder, repository, commit):
    """The folder of a clone that has the commit; its files are fetched when they are read."""
    clone = folder / repository.replace("/", "+")
    if not clone.exists():
        clone.mkdir(parents=True)
        git(clone, "init", "-q", "--bare")
        git(clone, "remote", "add", "origin", f"https://github.com/{repository}.git")
        git(clone, "config", "remote.origin.promisor", "true")
        git(clone, "config", "remote.origin.partialclonefilter", "blob:none")
    if git(clone, "cat-file", "-e", commit).returncode:
        answer = git(clone, "fetch", "-q", "--depth", "1", "--filter=blob:none", "origin", commit)
        if answer.returncode:
            sys.exit(f"{repository}: {answer.stderr.decode().strip()}")
    return clone


def run(capstone, source, timeout):
    """The exit code and the first line of what it says about a mistake."""
    # capstone stops the program itself; a loaded machine gets eight times as long.
    words = [capstone, "run", source, "--timeout", str(timeout)]
    try:
        done = subprocess.run(words, capture_output=True, stdin=subprocess.DEVNULL, timeout=8 * timeout + 60)
    except subprocess.TimeoutExpired:
        return 1, "did not end"
    messages = [line for line in done.stderr.decode(errors="replace").splitlines() if line.strip()]
    return done.returncode, messages[0] if messages else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--capstone", default=ROOT / "build/release/bin/capstone")
    parser.add_argument("--timeout", type=int, default=60)
    parser.add_argument("--class", dest="only")
    parser.add_argument("--keep", type=pathlib.Path)
    options = parser.parse_args()
    bad = total = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or pathlib.Path(temporary)
        for row in csv.DictReader(LIST.open(), delimiter="\t"):
            if options.only and row["class"] != options.only:
                continue
            total += 1
            clone = fetch(folder, row["repository"], row["commit"])
            text = git(clone, "show", f"{row['commit']}:{row['path']}").stdout
            if hashlib.sha256(text).hexdigest() != row["sha256"]:
                bad += 1
                print(f"OTHER FILE  {row['repository']} {row['path']}")
                continue
            source = pathlib.Path(temporary) / "program.cu"
            source.write_bytes(text)
            code, message = run(options.capstone, source, options.timeout)
            worse = row["class"] == "right" and code != 0
            bad += worse
            print(f"{'WORSE' if worse else 'as listed' if row['class'] == 'right' else 'seen'}  exit {code}  "
                  f"{row['class']}  {row['repository']} {row['path']}  {message}")
    print(f"{total} programs, {bad} worse or other files")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
