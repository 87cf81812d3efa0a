// Elements. A string is always a text node, never markup: objects have names and messages of any content.

// h creates an element. Properties are attributes, except for functions, which listen to the event of their name,
// and for class, which may be a list with false for none. A child may be an element, a string, a list or null.
export function h(tag, properties, ...children) {
  const e = document.createElement(tag);
  set(e, properties);
  add(e, children);
  return e;
}

const drawing = "http://www.w3.org/2000/svg";

// svg creates an element of a drawing.
export function svg(tag, properties, ...children) {
  const e = document.createElementNS(drawing, tag);
  set(e, properties);
  add(e, children);
  return e;
}

function set(e, properties) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (typeof value === "function") e.addEventListener(name, value);
    else if (name === "class") e.setAttribute("class", [value].flat().filter(Boolean).join(" "));
    else if (name === "value") e.value = value;
    else if (value === true) e.setAttribute(name, "");
    else if (value !== false && value != null) e.setAttribute(name, value);
  }
}

function add(e, children) {
  for (const c of children.flat(Infinity)) if (c != null && c !== false) e.append(c);
}

// fill replaces the children of an element.
export function fill(e, ...children) {
  e.replaceChildren();
  add(e, children);
  return e;
}

// table returns a table with titles.
export const table = (titles, rows) => h("div", {class: "scroll", tabindex: 0, role: "group", "aria-label": titles.join(", ")}, h("table", null, h("thead", null, h("tr", null, titles.map(t => h("th", {scope: "col"}, t)))), h("tbody", null, rows.map(r => h("tr", null, r.map(c => h("td", null, c)))))));

// counted returns a number with its noun.
export const counted = (n, noun) => `${n.toLocaleString("en")} ${noun}${n === 1 ? "" : "s"}`;

// text sets the text of an element, if it is another one.
export function text(e, value) {
  if (e.textContent !== value) e.textContent = value;
}

// debounce returns a function that calls f once calls have paused.
export function debounce(f, milliseconds) {
  let timer;
  return (...args) => {
    clearTimeout(timer);
    timer = setTimeout(f, milliseconds, ...args);
  };
}

// every calls f each so many milliseconds until the signal, while the page is visible.
export function every(milliseconds, signal, f) {
  if (signal.aborted) return;
  const timer = setInterval(() => document.hidden || f(), milliseconds);
  signal.addEventListener("abort", () => clearInterval(timer));
}

const minute = 60, hour = 60 * minute, day = 24 * hour, year = 365 * day;

// ages has, for ages below a limit, the unit, and the smaller unit that is shown beside it.
const ages = [
  [2 * minute, "s", 1], [10 * minute, "m", minute, "s", 1], [3 * hour, "m", minute], [8 * hour, "h", hour, "m", minute], [2 * day, "h", hour],
  [8 * day, "d", day, "h", hour], [2 * year, "d", day], [8 * year, "y", year, "d", day], [Infinity, "y", year],
];

// age returns the time since a timestamp as kubectl prints it.
export function age(timestamp, now = Date.now()) {
  const seconds = Math.max(0, Math.floor((now - Date.parse(timestamp)) / 1000));
  if (Number.isNaN(seconds)) return "<unknown>";
  const [, unit, size, next, part] = ages.find(([limit]) => seconds < limit);
  const rest = next && Math.floor((seconds % size) / part);
  return Math.floor(seconds / size) + unit + (rest ? rest + next : "");
}

// moment returns a timestamp for people, in the time zone of the browser.
export function moment(timestamp) {
  const t = new Date(timestamp);
  const two = n => String(n).padStart(2, "0");
  return `${t.getFullYear()}-${two(t.getMonth() + 1)}-${two(t.getDate())} ${two(t.getHours())}:${two(t.getMinutes())}:${two(t.getSeconds())}`;
}

// toast shows a message for some seconds, and reads it to screen readers.
export function toast(message, failed) {
  const box = document.getElementById("toasts");
  const note = h("div", {class: ["toast", failed && "bad"]}, message);
  box.append(note);
  setTimeout(() => note.remove(), failed ? 9000 : 4000);
}

// copy puts text on the clipboard.
export async function copy(words) {
  try {
    await navigator.clipboard.writeText(words);
    toast("Copied: " + words.split("\n")[0].slice(0, 120));
  } catch (e) {
    toast(e.message, true);
  }
}

// dialog shows content over the page, and returns a function that closes it. The element keeps the focus inside.
export function dialog(title, ...content) {
  const d = h("dialog", {"aria-label": title, close: () => d.remove(), click: e => e.target === d && d.close()},
    h("div", {class: "dialog"}, h("h2", null, title), content));
  document.body.append(d);
  d.showModal();
  return () => d.close();
}
