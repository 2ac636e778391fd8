"""Headless Chromium over its DevTools pipe, and a sheet of `capstone serve` marked in it by keys."""
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time


def chromium():
    """The program; without one the script ends with code 3."""
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if not program:
        print("error: no Chromium found\n  hint: apt-get install chromium", file=sys.stderr)
        sys.exit(3)
    return program


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

    def forget_page(self):
        """What wait_for_next() waits for is not found in the page that is shown now."""
        self.value("window.isOld = true")

    def wait_for_next(self, expression, what):
        self.wait(f"!window.isOld && ({expression})", what)

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


@contextlib.contextmanager
def open_browser():
    folder = tempfile.mkdtemp()
    browser = Browser(chromium(), folder)
    try:
        yield browser
    finally:
        browser.process.kill()
        browser.process.wait()
        shutil.rmtree(folder, ignore_errors=True)
