"use strict";
// The tree is readable without this script. It searches, filters, and unpacks the texts of a node when it is opened.
const rows = [...document.querySelectorAll(".tree > li")];
const words = new Map(rows.map(row => [row, row.textContent.toLowerCase()]));
const search = document.querySelector("#search"), filter = document.querySelector("#filter");
const count = document.querySelector("#count");

const show = () => {
  const wanted = search.value.toLowerCase().split(/\s+/).filter(Boolean), tones = filter.value.split(" ");
  let shown = 0;
  for (const row of rows) {
    const text = words.get(row);
    row.hidden = !wanted.every(word => text.includes(word)) || (filter.value && !tones.includes(row.dataset.tone));
    shown += !row.hidden;
  }
  count.textContent = shown + " of " + rows.length;
};
search.addEventListener("input", show);
filter.addEventListener("change", show);
show();

const unpack = async () => {
  const bytes = Uint8Array.from(atob(document.querySelector("#data").textContent), c => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
};
let data = null;

const part = (body, title, text, wraps) => {
  const details = document.createElement("details"), head = document.createElement("summary");
  const pre = document.createElement("pre");
  head.textContent = title;
  if (wraps) pre.className = "words";
  pre.append(...(title.startsWith("Difference") ? text.split("\n").map(line => {
    const kind = line.startsWith("+") ? "ins" : line.startsWith("-") ? "del" : "span";
    const part = document.createElement(kind);
    part.textContent = line + "\n";
    return part;
  }) : [text]));
  details.append(head, pre);
  details.open = title.startsWith("What the judge");
  body.append(details);
};
const fill = async details => {
  const body = details.querySelector(".body");
  if (body.dataset.filled) return;
  body.dataset.filled = "yes";
  data ??= unpack();
  const {nodes, texts} = await data, node = nodes[Number(details.parentNode.dataset.place)];
  const titles = {judge: "What the judge said", diff: "Difference from its parent", code: "Code", prompt: "Prompt",
                  reply: "Reply"};
  for (const [key, title] of Object.entries(titles))
    if (node[key] >= 0) part(body, title, texts[node[key]], key === "prompt" || key === "reply" || key === "judge");
};
document.querySelector(".tree").addEventListener("toggle", event => {
  if (event.target.open && event.target.parentNode.matches(".tree > li")) fill(event.target);
}, true);
document.querySelector("#unfold").addEventListener("click", () => {
  for (const row of rows) if (!row.hidden) row.querySelector("details").open = true;
});
