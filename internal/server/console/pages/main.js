// The frame of all pages: the bar, the kinds at the side, and the view of the address.
import {choose, enter, keep, own, state} from "./api.js";
import {access} from "./access.js";
import {changes} from "./changes.js";
import {clock} from "./clock.js";
import {create} from "./create.js";
import {fill, h, toast} from "./dom.js";
import {home} from "./home.js";
import {keys, shortcuts} from "./keys.js";
import {kind} from "./kind.js";
import {list} from "./list.js";
import {namespaces} from "./namespaces.js";
import {object} from "./object.js";
import {go, link, opening} from "./route.js";
import {definition} from "./review.js";
import {search} from "./search.js";
import {side} from "./side.js";

const views = {"": home, list, object, kind, changes, access, new: create, definition};
let leave = new AbortController(); // ends the requests of the view
let shown = ""; // the context that is loaded

// open shows the view of the address.
async function open() {
  leave.abort();
  leave = new AbortController();
  const {signal} = leave;
  const at = opening();
  const main = document.getElementById("main");
  try {
    const wanted = at.query.get("context") ?? "";
    state.at = at.query.get("at") ?? "";
    if (wanted !== shown || !state.version) {
      fill(main, h("p", {class: "quiet pad"}, "Connecting…"));
      shown = null; // if it fails, the next view begins here again
      await choose(wanted, signal);
      shown = wanted;
    }
    if (signal.aborted) return;
    bar();
    side(document.getElementById("side"));
    document.title = "anykind console";
    const view = views[at.name];
    if (!view) throw new Error("there is no such page");
    main.className = "view-" + (at.name || "home");
    const content = await view(at, signal);
    if (!signal.aborted) fill(main, content);
  } catch (e) {
    if (signal.aborted) return;
    if (state.contexts.length) bar(); // the way to another context
    if (e.code === 401 && (!state.contexts.length || e.session)) return ask(main, e);
    if (e.code == null) console.error(e); // a defect of the page, and not an answer of the server
    fill(main, failure(e));
  }
}

// failure shows an error with its next step.
function failure(e) {
  const hint = {
    401: "The API server rejects the credentials of this context. Choose another context, or renew them.",
    403: "Ask an administrator for the right that the message names, or choose a namespace in which you have it.",
    404: "It does not exist, or no longer. Search for it, or go back.",
    410: "The server does not remember this time. Choose a later one.",
    502: "The API server cannot be reached. The console tries again when you reload.",
  }[e.code];
  return h("div", {class: "failure", role: "alert"},
    h("h1", null, e.code === 401 ? "Unauthorized" : e.code === 403 ? "Forbidden" : e.code === 404 ? "Not found" : e.code === 410 ? "Too old" : "That did not work"),
    h("p", null, e.message), hint && h("p", {class: "quiet"}, hint),
    h("button", {click: () => location.reload()}, "Try again"));
}

// ask asks for a credential: the token of a user, or the link of anykind console.
function ask(main, e) {
  const local = e.session;
  const input = h("input", {type: "password", autocomplete: "off", "aria-label": "Bearer token", required: true});
  fill(main, h("form", {
    class: "failure",
    submit: async event => {
      event.preventDefault();
      keep(input.value.trim());
      location.reload();
    },
  }, h("h1", null, "Sign in"), h("p", null, state.token || local ? e.message : "The console sends requests with your bearer token."),
    !local && [h("p", null, input), h("button", {class: "main"}, "Sign in"), h("p", {class: "quiet"}, "The token stays in this browser.")]));
}

// bar draws the top of the page.
function bar() {
  const contexts = h("select", {"aria-label": "Context", title: "Context", change: e => go([], {context: e.target.value, namespace: "", at: ""})},
    state.contexts.map(c => h("option", {value: c.name, selected: c === state.context}, c.name)));
  fill(document.getElementById("bar"),
    h("button", {class: "menu", "aria-label": "Kinds", click: () => document.body.classList.toggle("aside")}, "☰"),
    h("a", {class: "brand", href: link([], {namespace: ""})}, "anykind"),
    state.contexts.length > 1 && contexts,
    namespaces(),
    h("button", {class: "find", click: search}, h("span", null, "Search everything"), h("kbd", null, /Mac/.test(navigator.platform) ? "⌘K" : "Ctrl K")),
    own() && clock(),
    h("a", {class: "tab", href: link(["changes"])}, "All changes"),
    h("a", {class: "tab", href: link(["access"])}, "Rights"),
    h("button", {class: "icon", "aria-label": "Keys", title: "Keys (?)", click: shortcuts}, "?"),
    h("button", {class: "icon", "aria-label": "Dark or light", title: "Dark or light", click: theme}, "◐"),
    state.user && h("span", {class: "quiet who", title: "Groups: " + (state.user.groups ?? []).join(", ")}, state.user.username));
}


// theme changes between dark and light, and remembers it.
function theme() {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const next = (document.documentElement.dataset.theme ?? (dark ? "dark" : "light")) === "dark" ? "light" : "dark";
  document.documentElement.dataset.theme = next;
  localStorage.setItem("theme", next);
}

async function start() {
  const chosen = localStorage.getItem("theme");
  if (chosen) document.documentElement.dataset.theme = chosen;
  keys({
    "mod+k": search, "/": () => document.querySelector("[data-filter]")?.focus(), "?": shortcuts, "g h": () => go([]), "g c": () => go(["changes"]), "g r": () => go(["access"]),
  });
  try {
    await enter();
  } catch (e) {
    return ask(document.getElementById("main"), e);
  }
  addEventListener("hashchange", open);
  addEventListener("unhandledrejection", e => e.reason?.name !== "AbortError" && toast(e.reason?.message ?? String(e.reason), true));
  await open();
}

start();
