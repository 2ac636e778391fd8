#!/usr/bin/env python3
"""Prints how long eight styles of kernels take in the emulator, and as loops of g++ -O2, on one core.

    scripts/bench_emulator.py [--capstone PROGRAM] [--cxx COMPILER] [--repeats N]
                              [--variant fast|races|memory]

The kernels are in tests/bench/emulator_styles.cu. Both run on one core (taskset). Times are processor time of
the best repeat; results are compared. With --variant races or memory, that build is timed, too, and its factor
is of the fast one. Exit code: 1 where results differ or a program fails.
"""

import argparse
import datetime
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
SOURCE = ROOT / "tests/bench/emulator_styles.cu"
TOLERANCE = 0.02  # sums of floats in another order, and other random numbers


def answer(words):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def processor():
    names = [line.split(":")[1].strip() for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
             if line.startswith("model name")]
    return names[0] if names else "unknown processor"


def milliseconds(seconds):
    return f"{1000 * seconds:.1f} ms" if seconds < 0.1 else f"{1000 * seconds:.0f} ms"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--capstone", default=ROOT / "build/release/bin/capstone")
    parser.add_argument("--cxx", default="g++")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--variant", choices=["fast", "races", "memory"], default="fast")
    options = parser.parse_args()
    one_core = [shutil.which("taskset") or sys.exit("taskset is missing: install util-linux"), "-c", "0"]
    emulated = [*one_core, options.capstone, "run", "--timeout", "600"]
    programs = [[*emulated, SOURCE, "--"]]
    columns = ["g++ -O2", "emulator", "factor"]
    if options.variant != "fast":
        programs.append([*emulated, "--check", options.variant, SOURCE, "--"])
        columns += [options.variant, "factor"]
    wrong = False
    with tempfile.TemporaryDirectory() as folder:
        plain = f"{folder}/plain"
        answer([options.cxx, "-O2", "-std=c++17", "-DPLAIN", "-x", "c++", SOURCE, "-o", plain])
        print(f"{datetime.date.today()}, one core of {processor()}\n")
        print(f"| program | {' | '.join(columns)} |\n|---|{'---|' * len(columns)}")
        for name in answer([plain]).splitlines():
            times = []
            sums = []
            for words in ([*one_core, plain], *programs):
                seconds, value = answer([*words, name, str(options.repeats)]).split()
                times.append(float(seconds))
                sums.append(float(value))
            differs = any(abs(sums[0] - each) > TOLERANCE * abs(sums[0]) for each in sums)
            wrong |= differs
            cells = [milliseconds(times[0])]
            for before, after in zip(times, times[1:]):
                cells += [milliseconds(after), f"{after / before:.1f}"]
            print(f"| {name} | {' | '.join(cells)} |{f'  results differ: {sums}' if differs else ''}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
