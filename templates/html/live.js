// Reloads the page when what it shows has changed. `capstone open --serve` adds it to what it serves; no file of
// a report has a script.
const shown = document.currentScript.dataset.version;
const ended = document.createElement("p");
ended.className = "note bad";
ended.setAttribute("role", "status");
ended.style.cssText = "position: sticky; bottom: 0";
ended.textContent = "capstone open --serve has ended: this page no longer follows your files.";
let events;

function follow() {
  events?.close();
  if (document.hidden) return;  // browsers hold six connections to a server: pages that are seen need them
  events = new EventSource("events");
  events.onopen = () => ended.remove();
  events.onerror = () => document.body.append(ended);
  events.onmessage = (version) => { if (version.data !== shown) location.reload(); };
}

document.addEventListener("visibilitychange", follow);
follow();
