"use strict";
const table = document.querySelector("table.grades"), body = table.tBodies[0], rows = [...body.rows];
const texts = new Map(rows.map(row => [row, row.textContent.toLowerCase()]));
const count = document.querySelector("#count"), search = document.querySelector("#search");
search.addEventListener("input", () => {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const row of rows) {
    row.hidden = !words.every(word => texts.get(row).includes(word));
    shown += !row.hidden;
  }
  count.textContent = shown + " of " + rows.length;
});
const compare = (a, b) => {
  if (!a || !b) return !a - !b;
  const x = Number(a), y = Number(b);
  return Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b, undefined, {numeric: true}) : x - y;
};
table.tHead.addEventListener("click", event => {
  const head = event.target.closest("th");
  if (!head) return;
  const down = head.getAttribute("aria-sort") === "ascending", at = head.cellIndex;
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const keyed = rows.map(row => [row.cells[at].textContent.trim(), row]);
  keyed.sort(([a], [b]) => !a || !b ? compare(a, b) : down ? compare(b, a) : compare(a, b));
  body.append(...keyed.map(([, row]) => row));
});
