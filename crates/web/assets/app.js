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
  const [choice, path, input] = ["operation", "path", "input"].map((name) => form?.elements[name]);
  choice?.addEventListener("change", () => {
    const [method, place] = choice.value.split(" ");
    path.value = place;
    input.value = method === "GET" || method === "DELETE" ? "" : "{}";
  });
  form?.addEventListener("submit", async (event) => {
    event.preventDefault();
    const said = new FormData(form);
    const answer = document.getElementById("answer");
    answer.textContent = "…";
    try {
      const [method] = said.get("operation").split(" ");
      const place = new URL(said.get("path"), window.location.origin);
      if (place.origin !== window.location.origin) throw new Error("only this server is asked");
      const bare = method === "GET" || method === "DELETE";
      const reply = await fetch(place, {
        method,
        credentials: "omit",
        headers: { authorization: `Bearer ${said.get("token")}`, ...(bare ? {} : { "content-type": "application/json" }) },
        body: bare ? undefined : said.get("input"),
      });
      if (/event-stream/.test(reply.headers.get("content-type"))) {
        answer.textContent = `${reply.status}\nThe answer goes on and on; use a program that follows it.`;
        await reply.body.cancel();
        return;
      }
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

// Passkeys: bytes go to and fro as text. Browsers know no passkeys for bare addresses.
const unpacked = (text) => Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (one) => one.charCodeAt(0));
const packed = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer)))
  .replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");

async function made(form) {
  const asked = await (await fetch("/app/passkeys/ask", { method: "POST", body: new URLSearchParams(new FormData(form)) })).json();
  const { rawId, response } = await navigator.credentials.create({ publicKey: {
    challenge: unpacked(asked.challenge),
    rp: { id: asked.host, name: "Yore" },
    user: { id: unpacked(asked.user), name: asked.name, displayName: asked.name },
    pubKeyCredParams: asked.algorithms.map((alg) => ({ type: "public-key", alg })),
    excludeCredentials: asked.known.map((id) => ({ type: "public-key", id: unpacked(id) })),
    authenticatorSelection: { residentKey: "required", requireResidentKey: true, userVerification: "required" },
    attestation: "none",
  } });
  return { id: rawId, client: response.clientDataJSON, attestation: response.attestationObject };
}

async function signed() {
  const asked = await (await fetch("/app/login/ask", { method: "POST" })).json();
  const { rawId, response } = await navigator.credentials.get({ publicKey: {
    challenge: unpacked(asked.challenge), rpId: asked.host, userVerification: "required",
  } });
  return {
    id: rawId, client: response.clientDataJSON, data: response.authenticatorData,
    signature: response.signature, user: response.userHandle ?? new ArrayBuffer(0),
  };
}

function passkeys() {
  const bare = /^[\d.]+$|^\[/.test(window.location.hostname);
  if (!window.PublicKeyCredential || !window.isSecureContext || bare) return;
  for (const [name, act] of [["passkey", signed], ["passkey-new", made]]) {
    const form = document.getElementById(name);
    if (!form) continue;
    form.hidden = false;
    document.getElementById("passkey-not")?.remove();
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const said = form.querySelector("[role=status]");
      said.textContent = "";
      try {
        for (const [field, bytes] of Object.entries(await act(form))) {
          const input = form.querySelector(`[name="${field}"]`) ?? document.createElement("input");
          Object.assign(input, { type: "hidden", name: field, value: packed(bytes) });
          form.append(input);
        }
        form.submit();
      } catch {
        said.textContent = "That did not work, or you let it be.";
      }
    });
  }
}

// On a phone the pages stand in a row that is longer than the screen.
document.querySelector(".top nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });

follow();
passkeys();
upload();
travel();
console_();
