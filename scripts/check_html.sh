#!/usr/bin/env bash
# Checks a rendered worklog in headless Chromium: the five sections, visible plots, no network requests.
#
#   scripts/check_html.sh FILE.html [SCREENSHOT.png]
#
# Exit codes: 0 the page is correct · 1 something is wrong with the page · 2 usage · 3 no Chromium.
set -euo pipefail

[ $# -ge 1 ] && [ -f "$1" ] || { echo "usage: scripts/check_html.sh FILE.html [SCREENSHOT.png]" >&2; exit 2; }
page=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
shot=$(realpath -m "${2:-$work/page.png}")

. "$(dirname "$0")/chromium.sh"
need_chromium

failed=0
wrong() { echo "wrong: $1" >&2; failed=1; }

# The page runs no script. The probe is appended to a copy, and only the copy has no security policy.
probe='<script>
const box = e => { const b = e.getBoundingClientRect(); return Math.round(b.width) + "x" + Math.round(b.height); };
const out = [];
document.querySelectorAll("section[id]").forEach(s => out.push("section " + s.id + " " + box(s)));
const shown = s => getComputedStyle(s).display !== "none";
[...document.querySelectorAll("svg.plot")].filter(shown).forEach(s => out.push("plot " + box(s) + " " + s.querySelectorAll("path,use,circle,polygon").length));
performance.getEntriesByType("resource").forEach(r => out.push("request " + r.name));
[...document.querySelectorAll("svg.map")].forEach(s => out.push("map " + box(s)));
out.push("overflow " + (document.documentElement.scrollWidth - document.documentElement.clientWidth));
if (parent !== window) parent.postMessage(out.join("\n"), "*");
const pre = document.createElement("pre"); pre.id = "probe"; pre.textContent = out.join("\n"); document.body.append(pre);
</script>'
# A window is at least 500 pixels wide; a phone is 390. A frame can be.
phone='<iframe src="probed.html" style="width: 390px; height: 3000px"></iframe><script>
onmessage = e => { const pre = document.createElement("pre"); pre.id = "probe"; pre.textContent = e.data; document.body.append(pre); }
</script>'
{ sed 's/<meta http-equiv="Content-Security-Policy"[^>]*>//' "$page"; printf '%s' "$probe"; } \
  > "$work/probed.html"

browse "$work" --window-size=1200,3000 --dump-dom "file://$work/probed.html" > "$work/wide.dom"
printf '%s' "$phone" > "$work/phone.html"
browse "$work" --window-size=500,3000 --dump-dom "file://$work/phone.html" > "$work/narrow.dom"
facts() { sed -n '/<pre id="probe">/,/<\/pre>/p' "$1" | sed 's/.*<pre id="probe">//; s/<\/pre>.*//'; }
facts "$work/wide.dom" > "$work/facts"
[ -s "$work/facts" ] ||
  { echo "error: Chromium did not render the page" >&2; tail -3 "$work/browser.log" >&2; exit 3; }

order=$(awk '$1 == "section" { printf "%s ", $2 }' "$work/facts")
[ "$order" = "section-1 section-2 section-3 section-4 section-5 " ] || wrong "sections are: ${order:-none}"
awk '$1 == "section" && $3 ~ /(^0x|x0$)/ { exit 1 }' "$work/facts" || wrong "a section is empty"

plots=$(grep -c '^plot ' "$work/facts" || true)
if grep -q 'install gnuplot to see the plots' "$page"; then
  echo "note: rendered without gnuplot, plots not checked"
else
  [ "$plots" -ge "${MIN_PLOTS:-1}" ] || wrong "$plots plots on the page"
  awk '$1 == "plot" && ($2 ~ /(^0x|x0$)/ || $3 < 5) { exit 1 }' "$work/facts" || wrong "a plot is empty"
fi
if grep '^request ' "$work/facts"; then wrong "the page makes requests"; fi
[ "$(facts "$work/narrow.dom" | grep -c '^plot ')" -eq "$plots" ] || wrong "a phone does not show each plot once"
[ "$(facts "$work/narrow.dom" | grep -c '^map [1-9].*x[1-9]')" -eq "$(grep -c '^map ' "$work/facts")" ] ||
  wrong "a phone does not show each map"
facts "$work/narrow.dom" | awk '$1 == "overflow" && $2 > 0 { exit 1 }' ||
  wrong "the page is wider than a phone"

grep -q "Content-Security-Policy\" content=\"default-src 'none'" "$page" || wrong "no content security policy"
if grep -qiE '<(script|iframe|object|embed|img|link)[ >]' "$page"; then
  wrong "the page has an element that runs code or loads a file"
fi

browse "$work" --window-size=1200,3000 --screenshot="$shot" "file://$page" >/dev/null
[ "$(stat -c %s "$shot" 2>/dev/null || echo 0)" -gt 20000 ] || wrong "the screenshot is blank"

[ "$failed" -eq 0 ] && echo "ok: five sections, $plots plots, no requests"
exit "$failed"
