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
import pathlib
import sys
import time

from desk_browser import complaints, enter, mark_sheet, open_browser


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
    with open_browser() as browser:
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


sys.exit(main())
