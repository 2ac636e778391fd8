#!/usr/bin/env python3
"""The page of a machine's run in headless Chromium: searched, filtered, unfolded.

    scripts/check_machine_page.py PAGE NODE WORD

Opens PAGE, searches for NODE, opens it, and expects WORD in what it unfolds.
Exit codes: 0 all is right; 1 something is wrong; 2 usage; 3 no Chromium.
"""
import os
import sys

from desk_browser import complaints, open_browser


def main():
    if len(sys.argv) != 4:
        print(__doc__, file=sys.stderr)
        return 2
    page, node, word = sys.argv[1:]
    url = "file://" + os.path.abspath(page)
    with open_browser() as browser:
        browser.call("Page.navigate", url=url)
        shown = "document.querySelectorAll('.tree > li:not([hidden])').length"
        browser.wait("document.querySelector('#count').textContent !== ''", "the script")
        every = browser.value(shown)
        browser.value(f"(s => {{ s.value = '{node}'; s.dispatchEvent(new Event('input')); }})"
                      "(document.querySelector('#search'))")
        found = browser.value(shown)
        if not 1 <= found < every:
            sys.exit(f"wrong: {found} of {every} nodes are shown for {node}")
        browser.value("document.querySelector('#unfold').click()")
        browser.wait(f"document.querySelector('.tree').textContent.includes('{word}')", f"{word} in {node}")
        browser.call("Emulation.setDeviceMetricsOverride", width=390, height=844, deviceScaleFactor=1, mobile=True)
        if browser.value("document.documentElement.scrollWidth > innerWidth"):
            sys.exit("wrong: it is wider than 390 pixels")
        for complaint in complaints(browser.events, "file://"):
            sys.exit("wrong: " + complaint)
    print(f"ok: {every} nodes, {found} found, {word} unfolded")
    return 0


sys.exit(main())
