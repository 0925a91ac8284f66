// Page of a link that requests files: uploads by tus, with progress, pause, retry and resumption after a reload. The page
// of a presigned token sends all files by one request. Without this script the form itself uploads.

const CHUNK_BYTES = 32 * 1024 * 1024;
const CONCURRENT = 3;
const TRIES = 5;

const element = (id) => document.getElementById(id);
const form = element("upload");
/** Without `tus`, the page is for one upload. */
const { tus, files: filesMax, bytes: bytesMax, fileBytes, types } = form.dataset;
const [list, status, pause, retry, progress, thanks] =
  ["list", "status", "pause", "retry", "progress", "thanks"].map(element);
const name = form.elements.uploadedBy;
const choice = form.elements.file;
const submit = form.querySelector("button");

let items = [];
let isPaused = false;
let isClosed = "";

function size(bytes) {
  const [unit, label] = [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"]].find(([least]) => bytes >= least) ?? [1, "B"];
  return `${(bytes / unit).toFixed(unit === 1 ? 0 : 1).replace(/\.0$/, "")} ${label}`;
}

function make(tag, text, className) {
  const made = document.createElement(tag);
  made.textContent = text ?? "";
  made.className = className ?? "";
  return made;
}

const count = (number) => `${number} file${number === 1 ? "" : "s"}`;
const of = (...states) => items.filter((item) => states.includes(item.state));
/** Key under which the id of an unfinished upload is kept. */
const keyOf = ({ name, size, lastModified }) => `${tus} ${name} ${size} ${lastModified}`;

function isAccepted(type) {
  const matches = (allowed) => (allowed.endsWith("/*") ? type.startsWith(allowed.slice(0, -1)) : type === allowed);
  return types === "" || type === "" || types.split(" ").some(matches);
}

function show(item) {
  const texts = { waiting: tus ? "Waiting" : "", done: "Done", sending: `${Math.floor((100 * item.sent) / (item.file.size || 1))}%` };
  item.label.textContent = texts[item.state] ?? item.why;
  item.row.className = item.state;
  item.bar.value = item.sent;
  item.bar.hidden = item.state !== "sending";
  item.cancel.hidden = item.state === "done";
  const [done, open] = [of("done"), of("waiting", "sending")];
  const wanted = [...done, ...open];
  const total = wanted.reduce((sum, { file }) => sum + file.size, 0);
  const sent = wanted.reduce((sum, { state, file, sent }) => sum + (state === "done" ? file.size : sent), 0);
  const part = total === 0 ? 100 : Math.floor((100 * sent) / total);
  const isChosen = !tus && open.length > 0 && of("sending").length === 0;
  status.textContent = isClosed || (isChosen ? `${count(open.length)} chosen, ${size(total)}` : open.length > 0
    ? `${isPaused ? "Paused" : "Uploading"} ${Math.min(done.length + 1, wanted.length)} of ${wanted.length} · ${part}%`
    : `${done.length} of ${count(items.length)} uploaded`);
  pause.hidden = !tus || open.length === 0;
  submit.hidden = tus !== undefined || of("waiting").length === 0 || isClosed !== "";
  retry.hidden = of("failed").length === 0 || isClosed !== "";
  if (open.length === 0 && done.length > 0 && done.length === items.length) finish(done.length);
}

function finish(number) {
  element("thanks-text").textContent = `${count(number)} uploaded. You can close this page.`;
  form.hidden = progress.hidden = true;
  thanks.hidden = false;
  thanks.querySelector("h1").focus();
}

/** Sends a request of tus; resolves to it, with status 0 if the connection failed. */
function send(item, method, url, headers, body) {
  return new Promise((resolve) => {
    const request = item.request = new XMLHttpRequest();
    request.open(method, url);
    for (const [key, value] of Object.entries({ "Tus-Resumable": "1.0.0", ...headers })) request.setRequestHeader(key, value);
    const start = item.sent;
    if (body) request.upload.onprogress = (event) => { item.sent = start + event.loaded; show(item); };
    request.onloadend = () => resolve(request);
    request.send(body);
  });
}

const encoded = (text) => btoa(String.fromCharCode(...new TextEncoder().encode(text)));

/** Creates an upload; resolves to the last request. */
async function create(item) {
  const metadata = { filename: item.file.name, filetype: item.file.type, uploadedBy: name?.value.trim() ?? "" };
  const pairs = Object.entries(metadata).filter(([, value]) => value !== "").map(([key, value]) => `${key} ${encoded(value)}`);
  const request = await send(item, "POST", tus, { "Upload-Length": item.file.size, "Upload-Metadata": pairs.join(",") });
  if (request.status === 201) {
    item.id = request.getResponseHeader("Location").split("/").at(-1);
    item.sent = 0;
    item.isStored = item.file.size === 0;
    localStorage.setItem(keyOf(item.file), item.id);
  }
  return request;
}

/** Continues an upload from the offset of the server; resolves to the last request. */
async function resume(item) {
  const request = await send(item, "HEAD", `${tus}/${item.id}`, {});
  if (request.status === 200) {
    item.sent = Number(request.getResponseHeader("Upload-Offset"));
    item.isStored = item.sent === item.file.size;
  }
  return request;
}

async function append(item) {
  const headers = { "Upload-Offset": item.sent, "Content-Type": "application/offset+octet-stream" };
  const request = await send(item, "PATCH", `${tus}/${item.id}`, headers, item.file.slice(item.sent, item.sent + CHUNK_BYTES));
  if (request.status === 204) {
    item.sent = Number(request.getResponseHeader("Upload-Offset"));
    item.isStored = item.sent === item.file.size;
  }
  return request;
}

const wait = (seconds) => new Promise((resolve) => setTimeout(resolve, 1000 * seconds));

/** Why a file is refused for good; undefined if another attempt may succeed. */
function refusal(request, limit) {
  let code = "";
  try { code = JSON.parse(request.responseText).code; } catch { /* The response of a proxy, or none. */ }
  if (request.status === 413) return `Too large${limit ? ` (limit ${size(limit)})` : ""}`;
  if (request.status === 415) return "Type not accepted";
  if (code === "token_used") isClosed = "This link was already used.";
  if (["token_expired", "token_revoked", "token_not_found"].includes(code)) isClosed = "This link is no longer available.";
  if (isClosed) return "Not uploaded";
  if (code === "link_full") return "This request is full";
  if (code === "link_expired" || code === "link_not_found" || code === "link_locked") {
    isClosed = code === "link_locked" ? "Reload the page, and enter the password." : "This link is no longer available.";
    return "Not uploaded";
  }
  return request.status === 507 ? "No space for this file" : request.status === 400 ? "Not accepted" : undefined;
}

async function upload(item) {
  const run = item.run = {};
  item.state = "sending";
  item.id ??= localStorage.getItem(keyOf(item.file)) ?? undefined;
  let isKnown = false;
  let tries = 0;
  while (item.state === "sending" && item.run === run && !item.isStored) {
    show(item);
    const step = item.id === undefined ? create : isKnown ? append : resume;
    const request = await step(item);
    if (item.state !== "sending" || item.run !== run) return;
    if (request.status >= 200 && request.status < 300) {
      [isKnown, tries] = [true, step === append ? 0 : tries];
      continue;
    }
    const why = refusal(request, request.status === 413 ? Number(fileBytes) : 0);
    if (why !== undefined) {
      [item.state, item.why] = ["refused", why];
      localStorage.removeItem(keyOf(item.file));
    } else if (item.id !== undefined && [404, 410].includes(request.status)) {
      localStorage.removeItem(keyOf(item.file));
      [item.id, item.sent, tries] = [undefined, 0, tries + 1];
    } else if (++tries < TRIES) {
      await wait(Number(request.getResponseHeader("Retry-After")) || 2 ** (tries - 1));
    }
    if (tries >= TRIES) [item.state, item.why] = ["failed", "Not uploaded"];
    isKnown = false;
  }
  if (item.run !== run) return;
  if (item.state === "sending") {
    item.state = "done";
    localStorage.removeItem(keyOf(item.file));
  }
  show(item);
  start();
}

/** Sends all files by one request, which uses up the token of the page. */
async function sendTogether() {
  const chosen = of("waiting");
  if (chosen.length === 0 || of("sending").length > 0 || isClosed !== "") return;
  const body = new FormData();
  for (const item of chosen) {
    body.append("file", item.file);
    item.state = "sending";
  }
  const total = chosen.reduce((sum, { file }) => sum + file.size, 0) || 1;
  const request = new XMLHttpRequest();
  request.upload.onprogress = ({ loaded }) => {
    for (const item of chosen) item.sent = Math.min(item.file.size, Math.floor((item.file.size * loaded) / total));
    show(chosen[0]);
    for (const { bar, sent } of chosen) bar.value = sent;
  };
  request.onloadend = () => {
    const why = request.status === 200 ? "" : refusal(request, Number(fileBytes)) ?? "Not uploaded";
    for (const item of chosen) {
      if (item.state !== "sending") continue;
      [item.state, item.why] = why === "" ? ["done", ""] : [isClosed ? "refused" : "failed", why];
    }
    for (const item of items) show(item);
    if (why === "") finish(chosen.length);
  };
  for (const item of chosen) {
    item.request = request;
    show(item);
  }
  request.open("POST", form.action.split("?")[0]);
  request.send(body);
}

function start() {
  if (!tus || isPaused || isClosed !== "" || of("waiting").length === 0 || (name && !name.reportValidity())) return;
  for (const item of of("waiting").slice(0, CONCURRENT - of("sending").length)) upload(item);
}

function cancel(item) {
  if (item.state === "sending") item.request?.abort();
  if (item.id !== undefined && item.state !== "done") send(item, "DELETE", `${tus}/${item.id}`, {});
  localStorage.removeItem(keyOf(item.file));
  items = items.filter((other) => other !== item);
  item.state = "cancelled";
  item.row.remove();
  progress.hidden = items.length === 0;
  if (items.length > 0) show(items[0]);
  start();
}

function add(file) {
  const item = { file, state: "waiting", sent: 0, why: "", row: make("li"), label: make("b"), bar: make("progress"), cancel: make("button", "×", "plain") };
  const shown = make("bdi", file.name);
  const taken = of("waiting", "sending", "done");
  const bytes = taken.reduce((sum, { file }) => sum + file.size, file.size);
  if (fileBytes !== "" && file.size > Number(fileBytes)) item.why = `Too large (limit ${size(Number(fileBytes))})`;
  else if (!isAccepted(file.type)) item.why = "Type not accepted";
  else if (taken.length >= Number(filesMax)) item.why = "Too many files";
  else if (bytes > Number(bytesMax)) item.why = `Too large (${size(Number(bytesMax))} together)`;
  if (item.why !== "") item.state = "refused";
  item.bar.max = file.size || 1;
  item.bar.ariaLabel = `Progress of ${file.name}`;
  item.cancel.type = "button";
  item.cancel.ariaLabel = `Remove ${file.name}`;
  item.cancel.onclick = () => cancel(item);
  item.row.append(shown, make("small", size(file.size)), item.label, item.cancel, item.bar);
  list.append(item.row);
  items.push(item);
  show(item);
}

function choose(files) {
  if (files.length === 0 || isClosed !== "") return;
  progress.hidden = false;
  for (const file of files) add(file);
  start();
}

form.classList.add("script");
submit.hidden = true;
choice.required = false;
choice.onchange = () => {
  choose([...choice.files]);
  choice.value = "";
};
name?.addEventListener("change", start);
form.onsubmit = (event) => {
  event.preventDefault();
  if (tus) start();
  else sendTogether();
};
document.ondragover = (event) => {
  event.preventDefault();
  form.classList.add("over");
};
document.ondragleave = () => form.classList.remove("over");
document.ondrop = (event) => {
  event.preventDefault();
  form.classList.remove("over");
  if (!form.hidden) choose([...event.dataTransfer.files]);
};
pause.onclick = () => {
  isPaused = !isPaused;
  pause.textContent = isPaused ? "Resume" : "Pause";
  for (const item of isPaused ? of("sending") : []) {
    item.state = "waiting";
    item.request?.abort();
    show(item);
  }
  if (items.length > 0) show(items[0]);
  start();
};
retry.onclick = () => {
  for (const item of of("failed")) {
    item.state = "waiting";
    show(item);
  }
  if (tus) start();
  else sendTogether();
};
