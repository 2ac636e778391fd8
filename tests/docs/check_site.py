#!/usr/bin/env python3
"""The site builds without a warning. Skipped (exit code 77) where mkdocs-material is not installed:
`pip install mkdocs-material`. MKDOCS names another mkdocs."""

import os
import shutil
import subprocess
import sys
import tempfile

from pages import ROOT


def main():
    mkdocs = os.environ.get("MKDOCS") or shutil.which("mkdocs")
    if not mkdocs:
        print("skipped: no mkdocs on PATH")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [
                mkdocs,
                "build",
                "--strict",
                "--config-file",
                ROOT / "mkdocs.yml",
                "--site-dir",
                folder,
            ],
            capture_output=True,
            text=True,
        )
    if done.returncode and "material" in done.stderr and "not installed" in done.stderr:
        print("skipped: mkdocs has no material theme")
        return 77
    print(done.stdout + done.stderr)
    return 1 if done.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
