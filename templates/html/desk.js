"use strict";
// Everything works without this script. It saves what is typed, keeps the claim alive, and adds keys.
const login = document.querySelector("#login");
if (login && location.hash.length > 1) {
  login.elements.secret.value = location.hash.slice(1);
  history.replaceState(null, "", location.pathname);
  login.submit();
}

const sheet = document.querySelector("#sheet"), status = document.querySelector("#status");
if (sheet) {
  const base = sheet.dataset.base, criteria = [...sheet.querySelectorAll(".criterion")];
  const say = text => { status.textContent = text; };
  const post = (path, body) => fetch(base + path, {method: "POST", body, headers: {"X-Desk": "script"}});
  let timer = 0, dirty = false, saving = Promise.resolve();

  const save = () => {
    clearTimeout(timer);
    if (!dirty) return saving;
    dirty = false;
    const body = new FormData(sheet);
    saving = saving.then(async () => {
      try {
        const answer = await post("/draft", body);
        if (!answer.ok) throw new Error(answer.status === 401 ? "log in again in another tab" : "error " + answer.status);
        say("draft saved " + new Date().toLocaleTimeString());
      } catch (error) {
        dirty = true;
        say("NOT SAVED: " + error.message);
        timer = setTimeout(save, 3000);
      }
    });
    return saving;
  };
  const changed = () => { dirty = true; say("…"); clearTimeout(timer); timer = setTimeout(save, 600); sums(); };
  sheet.addEventListener("input", changed);
  sheet.addEventListener("change", save);
  addEventListener("pagehide", () => { if (dirty) navigator.sendBeacon(base + "/draft", new FormData(sheet)); });
  sheet.addEventListener("submit", () => { clearTimeout(timer); dirty = false; });

  const sums = () => {
    for (const criterion of criteria) {
      const items = [...criterion.querySelectorAll("input[type=checkbox]:checked")];
      const own = criterion.querySelector("input[name^=points_]").value.replace(",", ".");
      const sum = items.reduce((all, item) => all + Number(item.dataset.points), Number(own) || 0);
      const within = Math.min(Math.max(sum, 0), Number(criterion.dataset.weight));
      criterion.querySelector(".sum").textContent = items.length ? "with items: " + within : "";
    }
  };
  sums();

  const beat = async () => {
    try {
      const body = new FormData();
      body.append("token", sheet.elements.token.value);
      const answer = await post("/beat", body), holder = (await answer.json()).holder;
      if (holder) say(holder + " has taken this sheet over");
    } catch { say("the server does not answer"); }
  };
  setInterval(beat, 30000);

  let now = -1;
  const go = (to, scroll = true) => {
    if (now >= 0) criteria[now].classList.remove("now");
    now = Math.max(0, Math.min(criteria.length - 1, to));
    criteria[now].classList.add("now");
    criteria[now].focus({preventScroll: true});
    if (scroll) criteria[now].scrollIntoView({block: "nearest"});
  };
  criteria.forEach((criterion, i) => criterion.addEventListener("focusin", event => {
    if (event.target !== criterion && now !== i) {
      if (now >= 0) criteria[now].classList.remove("now");
      now = i;
      criterion.classList.add("now");
    }
  }));
  const press = async selector => { await save(); sheet.requestSubmit(sheet.querySelector(selector)); };
  const keys = event => {
    const field = event.target.matches?.("input:not([type=checkbox]), textarea");
    if (event.key === "Enter" && event.ctrlKey) { event.preventDefault(); press("[value=next]"); return; }
    if (event.key === "Escape" && field) { event.target.blur(); go(Math.max(now, 0)); return; }
    const digit = /^(?:Digit|Numpad)([1-9])$/.exec(event.code);
    if (digit && (event.altKey || !field) && !event.ctrlKey && !event.metaKey) {
      const item = now < 0 ? null : criteria[now].querySelector(`[data-key="${digit[1]}"]`);
      if (item) { event.preventDefault(); item.checked = !item.checked; changed(); save(); }
      return;
    }
    if (field || event.altKey || event.ctrlKey || event.metaKey) return;
    const view = document.querySelector(`.views [data-key="${event.key}"]`);
    if (view) { view.click(); return; }
    switch (event.key) {
      case "j": go(now + 1); break;
      case "k": go(now - 1); break;
      case "p": case "r":
        if (now < 0) go(0);
        event.preventDefault();
        criteria[now].querySelector(event.key === "p" ? "input[name^=points_]" : "textarea").focus();
        break;
      case "u": press("[formaction$=undo]"); break;
    }
  };
  addEventListener("keydown", keys);
  const view = document.querySelector("iframe");
  view.addEventListener("load", () => view.contentWindow.addEventListener("keydown", keys));
  go(0, false);
}
