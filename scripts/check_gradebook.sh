#!/usr/bin/env bash
# Checks a gradebook page in headless Chromium: its script runs under its own security policy, search and sort
# work, and nothing else runs or loads.
#
#   scripts/check_gradebook.sh GRADEBOOK.html SUBMISSION ROWS [SCREENSHOT.png]
#
# SUBMISSION: one whose name no other row contains; ROWS: the number of people on the page.
#
# Exit codes: 0 the page is correct · 1 something is wrong with the page · 2 usage · 3 no Chromium.
set -euo pipefail

[ $# -ge 3 ] && [ -f "$1" ] ||
  { echo "usage: scripts/check_gradebook.sh GRADEBOOK.html SUBMISSION ROWS [SCREENSHOT.png]" >&2; exit 2; }
page=$(realpath "$1") wanted=$2 rows=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
shot=${4:+$(realpath -m "$4")}

. "$(dirname "$0")/chromium.sh"
need_chromium

failed=0
wrong() { echo "wrong: $1" >&2; failed=1; }

# The probe is a second script, so its hash is added to the page's policy. The page's own script keeps its
# hash.
cat > "$work/probe.js" <<'PROBE'
{  // a separate scope, because the page's script also has names
const out = [], table = document.querySelector("table.grades");
const visible = () => [...table.tBodies[0].rows].filter(r => !r.hidden).map(r => r.cells[0].textContent);
const type = text => { const s = document.querySelector("#search"); s.value = text; s.dispatchEvent(new Event("input")); };
const sortBy = name => [...table.tHead.rows[0].cells].find(c => c.textContent === name).querySelector("button").click();
const column = name => [...table.tHead.rows[0].cells].findIndex(c => c.textContent === name);
out.push("rows " + visible().length);
type("WANTED");
out.push("found " + visible().join(","));
type("nothing is called this");
out.push("none " + visible().length);
type("");
const totals = () => [...table.tBodies[0].rows].map(r => r.cells[column("Total")].textContent).filter(Boolean).map(Number);
const is = (list, better) => list.every((v, i) => i === 0 || better(list[i - 1], v));
sortBy("Total"); out.push("rising " + is(totals(), (a, b) => a <= b));
sortBy("Total"); out.push("falling " + is(totals(), (a, b) => a >= b));
sortBy("Submission"); out.push("names " + is(visible(), (a, b) => a.localeCompare(b, undefined, {numeric: true}) <= 0));
out.push("scripts " + document.scripts.length);
performance.getEntriesByType("resource").forEach(r => out.push("request " + r.name));
const pre = document.createElement("pre"); pre.id = "probe"; pre.textContent = out.join("\n"); document.body.append(pre);
}
PROBE
python3 - "$page" "$work/probe.js" "$wanted" > "$work/probed.html" <<'PY'
import base64, hashlib, json, sys
page, probe = open(sys.argv[1], encoding="utf-8").read(), open(sys.argv[2], encoding="utf-8").read().replace('"WANTED"', json.dumps(sys.argv[3]))
digest = base64.b64encode(hashlib.sha256(probe.encode()).digest()).decode()
page = page.replace("script-src ", f"script-src 'sha256-{digest}' ", 1)
print(page.replace("</body>", f"<script>{probe}</script></body>"), end="")
PY
browse "$work" --window-size=1400,1600 --dump-dom "file://$work/probed.html" > "$work/dom"
sed -n '/<pre id="probe">/,/<\/pre>/p' "$work/dom" | sed 's/.*<pre id="probe">//; s/<\/pre>.*//' \
  > "$work/facts"
[ -s "$work/facts" ] ||
  { echo "error: Chromium did not render the page" >&2; tail -3 "$work/browser.log" >&2; exit 3; }
for fact in "rows $rows" "found $wanted" "none 0" "rising true" "falling true" "names true" "scripts 2"; do
  grep -qx "$fact" "$work/facts" || wrong "expected \"$fact\", found: $(tr '\n' ';' < "$work/facts")"
done
if grep '^request ' "$work/facts"; then wrong "the page makes requests"; fi
[ -z "$shot" ] || browse "$work" --window-size=1400,1600 --screenshot="$shot" "file://$page" >/dev/null

[ "$failed" -eq 0 ] && echo "ok: $rows rows, search and sort work, no requests"
exit "$failed"
