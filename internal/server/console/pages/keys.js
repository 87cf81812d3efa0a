// Keys: one at a time, or two in a row such as "g h".
import {dialog, h} from "./dom.js";

const bound = {};
let first = "";

// keys binds keys for all pages. "mod" is Ctrl, or Command on a Mac.
export function keys(all) {
  Object.assign(bound, all);
}

// keysUntil binds keys until the signal.
export function keysUntil(signal, all) {
  if (signal.aborted) return;
  keys(all);
  signal.addEventListener("abort", () => Object.keys(all).forEach(k => bound[k] === all[k] && delete bound[k]));
}

addEventListener("keydown", e => {
  const mod = e.ctrlKey || e.metaKey;
  const typing = e.target.matches?.("input, textarea, select") || document.querySelector("dialog[open]");
  if ((typing && !mod) || e.altKey) return;
  if (e.key === "Enter" && e.target.closest?.("a, button, summary")) return; // Enter activates them
  const key = (mod ? "mod+" : "") + (e.key.length === 1 ? e.key.toLowerCase() : e.key);
  const f = bound[first + key] ?? (mod ? null : bound[key]);
  const starts = Object.keys(bound).some(k => k.startsWith(key + " "));
  first = !f && starts ? key + " " : "";
  if (!f) return;
  e.preventDefault();
  f();
});

const known = [
  ["Ctrl K", "search everything"], ["/", "filter this list"], ["j k, arrows", "next and previous row"], ["Enter", "open the row"], ["x", "select the row"],
  ["d", "delete the selected objects"], ["e", "edit the object"], ["1 … 9", "tabs of an object"], ["g h", "home"], ["g c", "changes"], ["g r", "rights"], ["?", "this list"], ["Esc", "close"], ["Shift Esc", "leave a terminal"],
];

// shortcuts shows the keys.
export function shortcuts() {
  const close = dialog("Keys", h("dl", {class: "keys"}, known.map(([k, what]) => [h("dt", null, k.split(" ").map(w => h("kbd", null, w))), h("dd", null, what)])),
    h("p", null, h("button", {click: () => close()}, "Close")));
}
