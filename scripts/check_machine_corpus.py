#!/usr/bin/env python3
"""Replays the exploit corpus as a model's replies: no exploit may become a parent or an inspiration.

    scripts/check_machine_corpus.py [--capstone PROGRAM] [FOLDER]

Every kernel of tests/corpus for softmax that the judge catches on the CPU is a recorded reply of one
`capstone machine evolve` of two rounds, with honest kernels among them. FOLDER (default: a new one) gets the
project. Takes about ten minutes on two cores. Needs Python 3 and PyYAML.
Exit codes: 0 no exploit was built on, 1 one was, or none of the honest kernels was (then nothing is shown).
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROBLEM = "softmax"
IDEAS, EACH, ROUNDS = 4, 10, 2


def exploits():
    """(name, source) of each case that the judge catches on the CPU."""
    for manifest in sorted((ROOT / "tests/corpus").glob("*/manifest.yaml")):
        case = yaml.safe_load(manifest.read_text(encoding="utf-8"))
        kernel = manifest.parent / "kernel.cu"
        if case.get("problem") == PROBLEM and "caught" in (case.get("emulated") or {}) and kernel.exists():
            yield manifest.parent.name, kernel.read_text(encoding="utf-8")


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--capstone", default=str(ROOT / "build/release/bin/capstone"))
    arguments.add_argument("folder", nargs="?")
    given = arguments.parse_args()
    folder = pathlib.Path(given.folder or tempfile.mkdtemp(prefix="corpus-")).resolve()
    capstone = str(pathlib.Path(given.capstone).resolve())
    replies, project = folder / "replies", folder / "project"
    replies.mkdir(parents=True)
    subprocess.run([capstone, "init", PROBLEM, str(project)], check=True, stdout=subprocess.DEVNULL)

    slots = [f"{r}-1-{i}-{e}" for r in range(1, ROUNDS + 1) for i in range(1, IDEAS + 1)
             for e in range(1, EACH + 1)]
    cases = list(exploits())
    assert len(cases) < len(slots), f"{len(cases)} cases, {len(slots)} places"
    rungs = sorted(ROOT.glob(f"reference_kernels/*/{PROBLEM}/*.cu"))
    # An honest kernel first, then exploits, and honest ones at the end.
    sources = [("", rungs[0].read_text())] + cases
    sources += [("", rungs[1].read_text())] * (len(slots) - len(sources))
    # Ideas have to differ, or they are merged: those of a real run.
    for r in range(1, ROUNDS + 1):
        shutil.copy(ROOT / f"examples/machine/topk_rows/evolve/{r}-1.reply.md", replies)
    exploit_of = {}
    for slot, (case, source) in zip(slots, sources):
        (replies / f"{slot}.reply.md").write_text(f"```cuda\n{source}\n```\n", encoding="utf-8")
        if case:
            exploit_of[slot] = case
    subprocess.run([capstone, "machine", "evolve", "--rounds", str(ROUNDS), "--islands", "1", "--ideas",
                    str(IDEAS), "--each", str(EACH), "--recorded", str(replies), "--backend", "emulated",
                    "--timeout", "5"], cwd=project, check=True)
    shown = subprocess.run([capstone, "machine", "show", "--format", "json"], cwd=project, check=True,
                           stdout=subprocess.PIPE)
    nodes = {node["name"]: node for node in json.loads(shown.stdout)["nodes"]}
    built_on = {}
    for node in nodes.values():
        for name in [node["parent"], *node["inspirations"]]:
            if nodes.get(name, {}).get("kind") == "kernel":
                built_on.setdefault(name, []).append(node["name"])
    bad = sorted(set(built_on) & set(exploit_of))
    passed = [name for name in exploit_of if nodes[name]["verdict"] == "PASS"]
    print(f"{len(exploit_of)} exploits replayed, {len(passed)} passed gate one; kernels that others were "
          f"built on: {', '.join(sorted(built_on)) or 'none'}")
    for name in bad:
        print(f"error: {exploit_of[name]} ({name}) became a parent or an inspiration of {built_on[name]}")
    if not set(built_on) - set(exploit_of):
        print("error: nothing was built on an honest kernel, so this run shows nothing")
        return 1
    return 1 if bad or passed else 0


if __name__ == "__main__":
    sys.exit(main())
