#!/usr/bin/env python3
"""Every command that the documents show is one that the program takes.

In each fenced ```console block, a line that begins with `$ capstone` or `$ scripts/` is looked at: the
command exists, it has each option, and a value that has choices is one of them. A block after the line
`<!-- docs-test: run -->` is run for real, in a scratch folder of its page. Every command must end with 0;
after `<!-- docs-test: run, exit N -->` the last one must end with N.

    check_commands.py --capstone PROGRAM [--show]
"""

import argparse
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

from pages import ROOT, all_pages, lines_of

OPERATORS = {"&&", "||", "|", ";", ">", ">>", "<", "2>", "2>&1", "&"}
RUN = re.compile(r"^<!-- docs-test: run(?:, exit (\d+))? -->$")


class Program:
    """What a program's help says that it takes."""

    def __init__(self, path):
        self.path = path
        self.known = {}

    def help_of(self, words):
        """(options with their choices or None, subcommands); nothing where there is no such command."""
        if words not in self.known:
            done = subprocess.run([self.path, *words, "--help"], capture_output=True, text=True, timeout=30)
            options, subcommands, section = {}, [], ""
            for line in done.stdout.splitlines():
                if re.fullmatch(r"[A-Z][A-Za-z ]*:", line):
                    section = line
                elif section == "Subcommands:" and re.match(r"^  \S", line):  # "  syllabus, map   the course …"
                    subcommands += re.match(r"^  ([^\s,]+(?:, [^\s,]+)*)", line).group(1).split(", ")
                elif section == "Options:" and re.match(r"^  -", line):
                    names, _, rest = line.strip().partition(" ")
                    choices = re.match(r"^(?:TEXT:)?\{([^}]*)\}|^(\w+(?:\|[\w-]+)+)", rest)
                    words_of_choice = (
                        re.split(r"[,|]", choices.group(1) or choices.group(2)) if choices else None
                    )
                    takes = bool(re.match(r"^(?:[A-Z]+\b|\{|\w+\|)", rest)) and not re.match(
                        r"^(?:Excludes|Needs):", rest
                    )
                    for name in names.split(","):
                        options[name] = (words_of_choice, takes)
            self.known[words] = (options, subcommands) if done.returncode == 0 else None
        return self.known[words]

    def error_in(self, words):
        """What is wrong with `capstone WORDS`; None: nothing."""
        options, subcommands = self.help_of(())
        allowed, command = dict(options), ()
        rest = list(words)
        while rest and subcommands and rest[0] in subcommands:
            command += (rest.pop(0),)
            options, subcommands = self.help_of(command)
            allowed.update(options)
        if rest and not command and not rest[0].startswith("-"):
            return f"no command `{rest[0]}`"
        allowed.update({"--help": (None, False), "-h": (None, False)})
        while rest:
            word = rest.pop(0)
            if word == "--":
                break
            if not re.match(r"^--?[A-Za-z]", word):
                continue
            name, equals, value = word.partition("=")
            if re.match(r"^-[A-Za-z]\d+$", name):  # -j4
                name = name[:2]
            if name not in allowed:
                return f"`capstone {' '.join(command)}` has no option {name}"
            choices, takes = allowed[name]
            if takes and not equals:
                value = rest.pop(0) if rest else ""
            for one in value.split(",") if choices else []:
                if one not in choices and not re.fullmatch(r"[A-Z]+", one):
                    return f"{name} takes {', '.join(choices)}, not {one}"
        return None


def script_error(words):
    """What is wrong with `scripts/NAME OPTIONS`: there is no such script, or it never mentions an option."""
    script = ROOT / words[0]
    if not script.exists():
        return f"no script {words[0]}"
    if not os.access(script, os.X_OK):
        return f"{words[0]} cannot be executed"
    text = script.read_text(encoding="utf-8")
    for word in words[1:]:
        if word.startswith("--") and word not in text:
            return f"{words[0]} knows no option {word}"
    return None


def commands_in(line):
    """The simple commands of a shell line, each as words; comments are left out."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="&|;<>")
    lexer.whitespace_split = True
    lexer.commenters = ""
    commands, words = [], []
    for word in lexer:
        if word.startswith("#"):
            break
        if word in OPERATORS or re.fullmatch(r"[&|;<>]+", word):
            if words:
                commands.append(words)
            words = []
        else:
            words.append(word)
    if words:
        commands.append(words)
    return commands


def blocks_of(page):
    """(first line's number, lines, whether it is run, expected exit code) of each console block."""
    run, code, body, start = False, 0, None, 0
    for number, line, fence in lines_of(page):
        found = RUN.match(line)
        if found:
            run, code = True, int(found.group(1) or 0)
        elif fence == "console":
            body.append((number, line)) if body is not None else None
        elif fence == "" and re.match(r"^\s*```+\s*console", line):
            body, start = [], number
        elif fence == "" and body is not None:
            yield start, body, run, code
            body, run, code = None, False, 0


def joined(body):
    """(number, command) of each line with a prompt; a backslash at the end goes on in the next line."""
    lines = iter(body)
    for number, line in lines:
        if not line.lstrip().startswith("$ "):
            continue
        command = line.lstrip()[2:]
        while command.endswith("\\"):
            command = command[:-1] + " " + next(lines)[1].strip().removeprefix("> ")
        yield number, command


def run_block(commands, code, folder, environment):
    """Runs the commands in one shell, in `folder` or where the page's earlier blocks went. Returns errors."""
    script = 'set -e\ncd "$(cat .cwd)"\n' + "\n".join(commands[:-1])
    script += f'\nset +e\n{commands[-1]}\ncode=$?\npwd > "$DOCS_FOLDER/.cwd"\n'
    script += f'[ $code -eq {code} ] || {{ echo "exit code $code, expected {code}"; exit 1; }}\n'
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env={**environment, "DOCS_FOLDER": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=240,
        stdin=subprocess.DEVNULL,
    )
    return None if done.returncode == 0 else "\n".join(done.stdout.splitlines()[-15:])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--capstone", required=True)
    parser.add_argument("--show", action="store_true", help="print every command that is looked at")
    arguments = parser.parse_args()
    capstone = pathlib.Path(arguments.capstone).resolve()
    program = Program(capstone)
    errors, looked_at, ran = [], 0, 0
    for page in all_pages():
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, ".cwd").write_text(folder, encoding="utf-8")
            shims = pathlib.Path(folder, ".bin")
            shims.mkdir()
            (shims / "capstone").symlink_to(capstone)
            environment = {
                **os.environ,
                "PATH": f"{shims}:{os.environ['PATH']}",
                "CAPSTONE_REPOSITORY": str(ROOT),
                "XDG_STATE_HOME": f"{folder}/.state",
                "NO_COLOR": "1",
            }
            for start, body, run, code in blocks_of(page):
                lines = list(joined(body))
                for number, line in lines:
                    for words in commands_in(line):
                        if words[0] == "capstone":
                            error = program.error_in(words[1:])
                        elif words[0].startswith("scripts/"):
                            error = script_error(words)
                        else:
                            continue
                        looked_at += 1
                        if arguments.show:
                            print(f"{page}:{number}: {' '.join(words)}")
                        if error:
                            errors.append(f"{page}:{number}: {error}\n    {line}")
                if run and not any(error.startswith(f"{page}:") for error in errors):
                    ran += len(lines)
                    failed = run_block([line for _, line in lines], code, folder, environment)
                    if failed:
                        errors.append(f"{page}:{start}: the block fails:\n{failed}")
    print("\n".join(errors))
    print(f"{looked_at} commands looked at, {ran} lines run, {len(errors)} wrong")
    return 1 if errors or looked_at == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
