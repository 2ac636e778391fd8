#!/usr/bin/env python3
"""Marks a whole cohort in `capstone serve` by keys alone, in headless Chromium.

    scripts/check_desk.py http://127.0.0.1:8040 TOKEN [--second | --student] [--shots FOLDER]

Logs in with TOKEN and gives every sheet that waits the same marks. Checks that no dialog opens, that no page
breaks its security policy, that nothing but the server is asked, and that no page is wider than its window.

--second: the second markings instead. --student: TOKEN is a student's, of `serve --students`, and the page
with the marks is looked at. --shots: pictures of the pages, 1280 and 390 pixels wide, light and dark.

Exit codes: 0 all is right; 1 something is wrong; 2 usage; 3 no Chromium.
"""
import argparse
import base64
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time


class Browser:
    """Chromium over its DevTools pipe: JSON messages that end with a zero byte, on descriptors 3 and 4."""

    def __init__(self, program, folder):
        to_read, self.out = os.pipe()
        self.inp, to_write = os.pipe()

        def pipes():
            read, write = os.dup(to_read), os.dup(to_write)
            os.dup2(read, 3)
            os.dup2(write, 4)

        self.process = subprocess.Popen(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync",
             "--disable-background-networking", "--disable-component-update", "--disable-extensions",
             f"--user-data-dir={folder}", "--remote-debugging-pipe", "about:blank"],
            preexec_fn=pipes, pass_fds=(3, 4, to_read, to_write), stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.buffer, self.number, self.events = b"", 0, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(domain + ".enable")

    def read(self):
        while b"\0" not in self.buffer:
            part = os.read(self.inp, 1 << 20)
            if not part:
                sys.exit("error: Chromium has ended")
            self.buffer += part
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if hasattr(self, "session"):
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.read()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def value(self, expression):
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                         awaitPromise=True)["result"].get("value")

    def wait(self, expression, what):
        """A navigation in progress answers with an error: asked again."""
        for _ in range(600):
            try:
                if self.value(f"document.readyState === 'complete' && ({expression})"):
                    return
            except RuntimeError:
                pass
            time.sleep(0.05)
        where = self.value("location.href + ' ' + document.body.innerText.slice(0, 600)")
        sys.exit(f"wrong: waited 30 s for {what} at {where}")

    def key(self, key, code=None, modifiers=0, number=0):
        types = (len(key) == 1 or key == "Enter") and not modifiers
        text = {"text": "\r" if key == "Enter" else key} if types else {}
        common = {"key": key, "code": code or key, "modifiers": modifiers, "windowsVirtualKeyCode": number}
        self.call("Input.dispatchKeyEvent", type="keyDown", **common, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def type(self, text):
        self.call("Input.insertText", text=text)


def enter(browser, modifiers=0):
    browser.key("Enter", "Enter", modifiers, 13)


def mark_sheet(browser):
    """Keys only: p points, r reason, Esc out of the field, j the next criterion, Ctrl+Enter all of them."""
    count = browser.value("document.querySelectorAll('.criterion').length")
    for i in range(count):
        browser.key("p", "KeyP", 0, 80)
        browser.type("5")
        browser.key("Escape", "Escape", 0, 27)
        browser.key("r", "KeyR", 0, 82)
        browser.type(f"criterion {i}, by keys")
        browser.key("Escape", "Escape", 0, 27)
        browser.key("j", "KeyJ", 0, 74)
    filled = browser.value("[...document.querySelectorAll('[name^=points_]')].map(f => f.value).join()")
    if filled != ",".join(["5"] * count):
        sys.exit(f"wrong: the keys filled in {filled}")
    before = browser.value("location.pathname")
    enter(browser, modifiers=2)
    browser.wait(f"location.pathname !== '{before}'", "the sheet after " + before)


def shots(browser, folder, base, paths):
    """With folder None: no pictures, only the check of the width."""
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
    wrong = 0
    for width, height in ((1280, 900), (390, 844)):
        for scheme in ("light", "dark"):
            browser.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                         deviceScaleFactor=1, mobile=width < 500)
            browser.call("Emulation.setEmulatedMedia",
                         features=[{"name": "prefers-color-scheme", "value": scheme}])
            for name, path in paths.items():
                browser.call("Page.navigate", url=base + path)
                browser.wait("true", path)
                time.sleep(0.3)
                if browser.value("document.documentElement.scrollWidth > innerWidth"):
                    print(f"wrong: {path} is wider than {width} pixels")
                    wrong += 1
                if not folder:
                    continue
                picture = browser.call("Page.captureScreenshot", format="png")["data"]
                (folder / f"{name}-{width}-{scheme}.png").write_bytes(base64.b64decode(picture))
    return wrong


def complaints(events, base):
    """Dialogs, breaches of a policy, requests to elsewhere."""
    for event in events:
        method, params = event.get("method", ""), event.get("params", {})
        if method == "Page.javascriptDialogOpening":
            yield "a dialog opened: " + params["message"]
        if method == "Network.requestWillBeSent":
            url = params["request"]["url"]
            if not url.startswith((base, "about:", "data:")):
                yield "a request to " + url
        if method == "Log.entryAdded" and params["entry"]["source"] == "security":
            yield params["entry"]["text"]
        if method == "Runtime.exceptionThrown":
            yield "a script failed: " + json.dumps(params["exceptionDetails"])[:300]


def check_student(browser, arguments):
    browser.call("Page.navigate", url=f"{arguments.base}/student#{arguments.token}")
    browser.wait("!document.querySelector('#login') && document.querySelector('form[action$=logout]')",
                 "the marks")
    wrong = shots(browser, arguments.shots, arguments.base, {"student": "/student"})
    for complaint in complaints(browser.events, arguments.base):
        print("wrong:", complaint)
        wrong += 1
    if not wrong:
        print("ok: the page of a student fits")
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base")
    parser.add_argument("token")
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--second", action="store_true")
    kind.add_argument("--student", action="store_true")
    parser.add_argument("--shots", type=pathlib.Path)
    arguments = parser.parse_args()
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if not program:
        print("error: no Chromium found\n  hint: apt-get install chromium", file=sys.stderr)
        return 3
    folder = tempfile.mkdtemp()
    browser = Browser(program, folder)
    try:
        if arguments.student:
            return check_student(browser, arguments)
        browser.call("Page.navigate", url=f"{arguments.base}/login#{arguments.token}")
        browser.wait("location.pathname === '/'", "the list of sheets")
        button, place = ("second", "/second/") if arguments.second else ("next", "/sheet/")
        first_shots = {"seconds-to-do": "/"} if arguments.second and arguments.shots else {}
        wrong = shots(browser, arguments.shots, arguments.base, first_shots)
        for _ in range(50):
            if browser.value(f"document.activeElement.id === '{button}'"):
                break
            browser.key("Tab", "Tab", 0, 9)
        enter(browser)
        browser.wait(f"location.pathname.startsWith('{place}') || document.querySelector('.note')", "a sheet")
        sheets = []
        while browser.value(f"location.pathname.startsWith('{place}')"):
            sheets.append(browser.value("location.pathname"))
            if arguments.second and len(sheets) == 1:
                # The page is looked at before the marks: then they are final and it is gone.
                wrong += shots(browser, arguments.shots, arguments.base, {"second-sheet": sheets[0]})
                browser.call("Emulation.clearDeviceMetricsOverride")
                browser.key("Escape", "Escape", 0, 27)
            mark_sheet(browser)
        if arguments.second:
            wrong += shots(browser, arguments.shots, arguments.base, {"seconds-done": "/"})
        elif arguments.shots and sheets:
            paths = {"list": "/", "sheet": sheets[0], "items": "/items", "progress": "/progress",
                     "source": sheets[0] + "/source?file=1&line=3", "machine": sheets[-1] + "/machine",
                     "versions": sheets[0] + "/versions"}
            wrong = shots(browser, arguments.shots, arguments.base, paths)
        for complaint in complaints(browser.events, arguments.base):
            print("wrong:", complaint)
            wrong += 1
        if not sheets:
            print("wrong: no sheet waits for marks")
            wrong += 1
        if not wrong:
            print(f"ok: {len(sheets)} sheets marked by keys")
        return 1 if wrong else 0
    finally:
        browser.process.kill()
        browser.process.wait()
        shutil.rmtree(folder, ignore_errors=True)


sys.exit(main())
