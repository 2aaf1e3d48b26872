"use strict";
// Pages work without this file. It adds keys, live updates and the console.

const typing = (element) => element.closest("input, textarea, select, [contenteditable]");

// Review: j and k move, the other keys press what carries them.
function move(step) {
  const holds = [...document.querySelectorAll(".hold")];
  if (holds.length === 0) return;
  const at = holds.findIndex((hold) => hold.classList.contains("chosen"));
  const next = Math.min(Math.max(at + step, 0), holds.length - 1);
  if (at >= 0) holds[at].classList.remove("chosen");
  holds[next].classList.add("chosen");
  holds[next].focus();
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
  if (event.key === "/") {
    const box = document.getElementById("q");
    event.preventDefault();
    if (box) box.focus();
    else window.location.assign("/app/search");
    return;
  }
  const hold = document.querySelector(".hold.chosen");
  if (event.key === "j") move(1);
  else if (event.key === "k") move(-1);
  else if (hold && event.key === "x") hold.querySelector("input[type=checkbox]").click();
  else if (hold && "are".includes(event.key)) hold.querySelector(`[data-key="${event.key}"]`)?.click();
});

// Review: the queue is fetched anew when something changed, unless somebody writes in it.
function follow() {
  const queue = document.getElementById("queue");
  if (!queue) return;
  const events = new EventSource(queue.dataset.events);
  let due;
  events.addEventListener("holds", () => {
    clearTimeout(due);
    due = setTimeout(() => {
      const now = document.getElementById("queue");
      const busy = now.contains(document.activeElement) && typing(document.activeElement);
      if (!busy && !now.querySelector("details[open]")) htmx.trigger(now, "refresh");
    }, 150);
  });
}

// The console of the API page. The token goes nowhere but into the one request.
function console_() {
  const form = document.getElementById("console");
  form?.addEventListener("submit", async (event) => {
    event.preventDefault();
    const said = new FormData(form);
    const answer = document.getElementById("answer");
    answer.textContent = "…";
    try {
      const reply = await fetch(said.get("path"), {
        method: "POST",
        headers: { authorization: `Bearer ${said.get("token")}`, "content-type": "application/json" },
        body: said.get("input"),
      });
      const text = await reply.text();
      let shown = text;
      try { shown = JSON.stringify(JSON.parse(text), null, 2); } catch { /* not JSON: shown as it is */ }
      answer.textContent = `${reply.status}\n${shown}`;
    } catch (error) {
      answer.textContent = String(error);
    }
  });
}

// The choice of colours comes back to where it was made.
for (const form of document.querySelectorAll('form[action="/app/theme"]')) {
  const next = document.createElement("input");
  next.type = "hidden";
  next.name = "next";
  next.value = window.location.pathname + window.location.search;
  form.append(next);
}

follow();
console_();
