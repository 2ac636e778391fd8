#!/usr/bin/env python3
"""A grader and the owner of a cohort in headless Chromium, and a server that is killed.

    scripts/check_desk_together.py COHORT CAPSTONE GRADER_TOKEN OWNER_TOKEN

Starts CAPSTONE serve on the folder COHORT, which has at least two sheets that wait for marks. Checks that both
get a sheet of their own when they ask for the next one at once, that words typed before and after the server
was killed are there when it is back, and that the owner publishes what was chosen, after a preview.

Exit codes: 0 all is right; 1 something is wrong; 2 usage; 3 no Chromium.
"""
import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time

from desk_browser import mark_sheet, open_browser


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    def __init__(self, capstone, cohort):
        self.port = free_port()
        self.base = f"http://127.0.0.1:{self.port}"
        self.argv = [capstone, "serve", cohort, "--port", str(self.port), "--names"]
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                        start_new_session=True)
        for _ in range(600):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return
            if self.process.poll() is not None:
                sys.exit("wrong: the server ended: " + self.process.stderr.read().decode())
            time.sleep(0.05)
        sys.exit("wrong: the server does not answer")

    def kill(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def log_in(browser, server, token):
    browser.call("Page.navigate", url=f"{server.base}/login#{token}")
    browser.wait("location.pathname === '/' && document.querySelector('#next') !== null", "the list of sheets")


def next_sheets(browsers):
    """All ask before anyone has an answer."""
    for browser in browsers:
        browser.value("document.querySelector('#next').click()")
    for browser in browsers:
        browser.wait("location.pathname.startsWith('/sheet/')", "a sheet")
    return [browser.value("location.pathname") for browser in browsers]


def check_race(browsers):
    sheets = next_sheets(browsers)
    if len(set(sheets)) != len(sheets):
        sys.exit(f"wrong: two graders are in one sheet: {sheets}")


def check_kill(browser, server):
    said = "document.querySelector('#status').textContent"
    browser.key("r", "KeyR", 0, 82)
    browser.type("half a sentence")
    browser.wait(f"{said}.startsWith('draft saved')", "the first draft")
    server.kill()
    browser.type(" and <b>more</b>")
    browser.wait(f"{said}.startsWith('NOT SAVED')", "the word that nothing was saved")
    server.start()
    browser.wait(f"{said}.startsWith('draft saved')", "the draft after the server was back")
    browser.forget_page()
    browser.call("Page.reload")
    text = "document.querySelector('textarea').value"
    browser.wait_for_next(f"{text} !== ''", "the words after the page was loaded again")
    if browser.value(text) != "half a sentence and <b>more</b>":
        sys.exit("wrong: of what was typed there is: " + browser.value(text))
    browser.value(f"{text} = ''")


def check_publishing(browser, server):
    browser.call("Page.navigate", url=server.base + "/publish")
    pick = "[...document.querySelectorAll('input[name^=pick_]')]"
    browser.wait(f"{pick}.filter(box => box.checked).length >= 2", "two sheets to publish")
    path = "document.querySelector('td a[href^=\"/publish/\"]')"
    browser.value(f"{path}.click()")
    browser.wait("location.pathname.startsWith('/publish/')", "the preview")
    text = browser.value("document.body.innerText")
    if not re.search(r"criterion 0, by keys", text):
        sys.exit("wrong: the preview does not show the reasons: " + text[:300])
    browser.call("Page.navigate", url=server.base + "/publish")
    browser.wait(f"{pick}.length >= 2", "the list again")
    left_out = browser.value(f"{pick}[0].name")
    browser.value(f"{pick}[0].click()")
    browser.forget_page()
    browser.value("document.querySelector('button.main').click()")
    browser.wait_for_next(f"{pick}.filter(box => box.checked).length === 1", "what was left out")
    still = browser.value(f"{pick}.find(box => box.checked).name")
    if still != left_out:
        sys.exit(f"wrong: {still} waits to be published, not {left_out}")


def check_width(browser, server):
    """The owner's pages, which have more links than a grader's."""
    browser.call("Emulation.setDeviceMetricsOverride", width=390, height=844, deviceScaleFactor=1, mobile=True)
    for page in ("/", "/progress", "/second", "/publish"):
        browser.call("Page.navigate", url=server.base + page)
        browser.wait(f"location.pathname === '{page}'", page)
        if browser.value("document.documentElement.scrollWidth > innerWidth"):
            sys.exit(f"wrong: the owner's {page} is wider than 390 pixels")


def main():
    if len(sys.argv) != 5:
        print(__doc__, file=sys.stderr)
        return 2
    cohort, capstone, *tokens = sys.argv[1:]
    with open_browser() as grader, open_browser() as owner:
        server = Server(capstone, cohort)
        try:
            for browser, token in zip((grader, owner), tokens):
                log_in(browser, server, token)
            check_race((grader, owner))
            check_kill(grader, server)
            for browser in (grader, owner):
                mark_sheet(browser)
            check_publishing(owner, server)
            check_width(owner, server)
        finally:
            server.kill()
    print("ok: two sheets for two graders, no word lost, one sheet published")
    return 0


sys.exit(main())
