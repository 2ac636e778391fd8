#!/usr/bin/env python3
"""Ten graders mark 300 submissions at once in `capstone serve`, while the gradebook is backed up.

    scripts/load_desk.py COHORT NAME [--capstone build/release/bin/capstone] [--count 300] [--graders 10]
                         [--terminals 0]

With --terminals, so many more mark with `capstone mark --next` at the same time.

Works on a copy of COHORT in a temporary folder, with COUNT copies of its submission NAME. Each grader opens a sheet,
looks at four views, saves four drafts, gives marks and goes on, with a pause of --pause seconds before each request.
Prints how long pages took [ms], and checks that every submission has exactly the marks that one grader was told were
kept.

Exit codes: 0 all is right; 1 a mark is lost, an answer is wrong, or the 99th percentile is above --limit.
"""
import argparse
import http.client
import json
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

CRITERIA = ("correctness", "depth", "head_to_head", "honesty")


def make_cohort(source, name, count, target):
    target.mkdir()
    shutil.copy(source / "rubric.yaml", target)
    shutil.copy(source / "gradebook.sqlite", target)
    book = sqlite3.connect(target / "gradebook.sqlite")
    row = list(book.execute("SELECT * FROM submission WHERE name=?", (name,)).fetchone())
    for table in ("mark", "attempt", "claim", "draft", "assignment", "sheet_code", "session", "grader", "member",
                  "line_comment", "blind", "second_mark", "submission"):
        book.execute("DELETE FROM " + table)
    for i in range(count):
        row[0] = f"s{i:04}"
        book.execute("INSERT INTO submission VALUES (" + ",".join("?" * len(row)) + ")", row)
        book.execute("INSERT INTO member VALUES (?,0,?,?,'')", (row[0], f"Student {i}", str(10_000 + i)))
        shutil.copytree(source / "submissions" / name, target / "submissions" / row[0])
    book.commit()
    book.close()


class Grader(threading.Thread):
    def __init__(self, port, token, number, pause):
        super().__init__()
        self.port, self.token, self.number, self.pause = port, token, number, pause
        self.times, self.wrong, self.given = [], [], 0
        self.cookie, self.form = "", ""

    def ask(self, method, path, fields=None, expected=(200,)):
        headers, body = {"Cookie": self.cookie}, None
        if fields is not None:
            parts = [f'--b\r\nContent-Disposition: form-data; name="{k}"\r\n\r\n{v}\r\n' for k, v in fields.items()]
            body = ("".join(parts) + "--b--\r\n").encode()
            headers["Content-Type"] = "multipart/form-data; boundary=b"
        time.sleep(self.pause)
        begin = time.perf_counter()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        text = answer.read().decode("utf-8", "replace")
        connection.close()
        self.times.append((1000 * (time.perf_counter() - begin), f"{method} {re.sub('[0-9a-f]{6}', 'CODE', path)}"))
        if answer.status not in expected:
            self.wrong.append(f"{method} {path}: {answer.status} {text[:200]}")
        return answer, text

    def run(self):
        answer, _ = self.ask("POST", "/login", {"secret": self.token}, (303,))
        self.cookie = answer.getheader("Set-Cookie").split(";")[0]
        _, text = self.ask("GET", "/")
        self.form = re.search('name="token" value="([0-9a-f]+)"', text)[1]
        answer, _ = self.ask("POST", "/next", {"token": self.form}, (303,))
        while (sheet := answer.getheader("Location") or "/") != "/" and not self.wrong:
            _, text = self.ask("GET", sheet)
            seen = dict(re.findall('name="seen_([a-z_]+)" value="([^"]*)"', text))
            for view in ("/worklog", "/source", "/versions", "/machine"):
                self.ask("GET", sheet + view)
            fields = {"token": self.form}
            for i, criterion in enumerate(CRITERIA):
                fields |= {f"points_{criterion}": "5", f"reason_{criterion}": f"grader {self.number}",
                           f"seen_{criterion}": seen.get(criterion, "-")}
                self.ask("POST", sheet + "/draft", fields)
            self.ask("POST", sheet + "/beat", {"token": self.form})
            answer, _ = self.ask("POST", sheet + "/save", fields | {"then": "next"}, (303,))
            self.given += 1


def backups(capstone, cohort, folder, stop, wrong):
    number = 0
    while not stop.is_set():
        copy = folder / f"backup{number}.sqlite"
        for command in (["backup", copy, "--cohort", cohort], ["verify", copy]):
            done = subprocess.run([capstone, "gradebook", *command], capture_output=True, text=True)
            if done.returncode:
                wrong.append(done.stderr)
        number += 1
        stop.wait(5)
    print(f"{number} backups while marking, each verified")


EDITOR = """#!/usr/bin/env python3
import pathlib, re, sys, time
sheet = pathlib.Path(sys.argv[1])
text = re.sub(r"^(\\s*points:).*$", r"\\1 5", sheet.read_text(), flags=re.M)
time.sleep({pause})
sheet.write_text(re.sub(r"^(\\s*reason:).*$", r"\\1 {reason}", text, flags=re.M))
"""


def mark_in_a_terminal(capstone, cohort, folder, number, pause, wrong):
    editor = folder / f"editor{number}"
    editor.write_text(EDITOR.format(pause=pause, reason=f"terminal {number}"))
    editor.chmod(0o755)
    done = subprocess.run([capstone, "mark", "--next", "--cohort", cohort, "--grader", f"t{number}"],
                          env=os.environ | {"VISUAL": str(editor)}, capture_output=True, text=True)
    if done.returncode:
        wrong.append(done.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cohort", type=pathlib.Path)
    parser.add_argument("name")
    parser.add_argument("--capstone", default="build/release/bin/capstone")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--graders", type=int, default=10)
    parser.add_argument("--terminals", type=int, default=0)
    parser.add_argument("--pause", type=float, default=0.2, help="before each request [s] (default 0.2)")
    parser.add_argument("--limit", type=float, default=200, help="99th percentile of a page [ms] (default 200)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        cohort = folder / "graded"
        make_cohort(arguments.cohort, arguments.name, arguments.count, cohort)
        capstone = str(pathlib.Path(arguments.capstone).resolve())
        tokens = [subprocess.run([capstone, "grader", "add", f"g{i}", "--cohort", cohort], capture_output=True,
                                 text=True, check=True).stdout.strip() for i in range(arguments.graders)]
        for i in range(arguments.terminals):
            subprocess.run([capstone, "grader", "add", f"t{i}", "--cohort", cohort], capture_output=True, check=True)
        server = subprocess.Popen([capstone, "serve", cohort, "--port", "0"], stdout=subprocess.PIPE, text=True)
        try:
            port = int(re.search(r":(\d+)/", server.stdout.readline())[1])
            stop, wrong = threading.Event(), []
            backup = threading.Thread(target=backups, args=(capstone, cohort, folder, stop, wrong))
            graders = [Grader(port, token, i, arguments.pause) for i, token in enumerate(tokens)]
            terminals = [threading.Thread(target=mark_in_a_terminal,
                                          args=(capstone, cohort, folder, i, arguments.pause, wrong))
                         for i in range(arguments.terminals)]
            begin = time.perf_counter()
            for thread in (backup, *graders, *terminals):
                thread.start()
            for thread in (*graders, *terminals):
                thread.join()
            seconds = time.perf_counter() - begin
            busy = [int(text) for text in pathlib.Path(f"/proc/{server.pid}/stat").read_text().split()[13:15]]
            stop.set()
            backup.join()
        finally:
            server.terminate()
            server.wait()
        for grader in graders:
            wrong += grader.wrong
        rows = json.loads(subprocess.run([capstone, "gradebook", cohort, "--format", "json"], capture_output=True,
                                         text=True, check=True).stdout)["rows"]
        author = {f"grader {i}": f"g{i}" for i in range(arguments.graders)}
        author |= {f"terminal {i}": f"t{i}" for i in range(arguments.terminals)}
        by_terminals = 0
        for row in rows:
            marks = {(mark["reason"], mark["grader"]) for mark in row["marks"].values()}
            reason, by = next(iter(marks), ("", ""))
            by_terminals += reason.startswith("terminal")
            if row["total"] != 20 or len(marks) != 1 or author.get(reason) != by:
                wrong.append(f"{row['name']}: {row['total']} points by {marks}")
        given = sum(grader.given for grader in graders)
        if given + by_terminals != arguments.count:
            wrong.append(f"{given} sheets were given in the browser, {by_terminals} in terminals")
        if arguments.terminals:
            print(f"{given} sheets in the browser, {by_terminals} in {arguments.terminals} terminals")
        times = sorted(sum((grader.times for grader in graders), []))
        at = [times[min(len(times) - 1, int(len(times) * share))][0] for share in (0.5, 0.9, 0.99)]
        busy_ms = 1000 * sum(busy) / os.sysconf("SC_CLK_TCK") / len(times)
        print(f"{len(times)} requests in {seconds:.1f} s, {busy_ms:.1f} ms of the server's processor time for each; median {at[0]:.1f}, 90 % {at[1]:.1f}, 99 % {at[2]:.1f}, "
              f"longest {times[-1][0]:.1f} ms ({times[-1][1]})")
        for complaint in wrong[:10]:
            print("wrong:", complaint)
        return 1 if wrong or at[2] > arguments.limit else 0


sys.exit(main())
