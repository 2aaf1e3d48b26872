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

// Import: a file can be dropped, and its way to the server is shown.
function upload() {
  const form = document.getElementById("upload");
  if (!form) return;
  const [drop, field] = [form.querySelector(".drop"), form.querySelector("[type=file]")];
  for (const name of ["dragenter", "dragover", "dragleave", "drop"]) {
    drop.addEventListener(name, (event) => {
      event.preventDefault();
      drop.classList.toggle("over", name.startsWith("dragen") || name === "dragover");
      if (name === "drop" && event.dataTransfer.files.length > 0) field.files = event.dataTransfer.files;
    });
  }
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const [bar, said] = [document.getElementById("sent"), document.getElementById("sending")];
    const request = new XMLHttpRequest();
    bar.hidden = false;
    said.textContent = "Sending…";
    request.upload.addEventListener("progress", ({ loaded, total }) => { bar.value = (100 * loaded) / total; });
    request.addEventListener("load", () => {
      if (request.status === 200) window.location.assign(request.responseURL);
      else said.textContent = new DOMParser().parseFromString(request.responseText, "text/html").querySelector("main")?.innerText ?? "It was refused.";
    });
    request.addEventListener("error", () => { said.textContent = "The connection broke. Try again."; });
    request.open("POST", form.action);
    request.send(new FormData(form));
  });
}

// Search: a slider moves the day as of which things are shown.
function travel() {
  const [place, back] = [document.getElementById("travel"), document.getElementById("back")];
  if (!place) return;
  const [day, then] = [document.getElementById("as_of"), document.getElementById("then")];
  const DAY = 86400000;
  const tell = () => {
    then.textContent = day.value === "" ? "now" : day.value;
    back.setAttribute("aria-valuetext", then.textContent);
  };
  const place_it = () => {
    back.value = day.value === "" ? 0 : Math.round((Date.parse(day.value) - Date.now()) / DAY);
    tell();
  };
  back.addEventListener("input", () => {
    const at = Number(back.value);
    day.value = at === 0 ? "" : new Date(Date.now() + at * DAY).toISOString().slice(0, 10);
    tell();
  });
  day.addEventListener("change", place_it);
  place.hidden = false;
  place_it();
}

follow();
upload();
travel();
console_();
