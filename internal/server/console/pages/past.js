// The changes of an object, as the history of anykind has them.
import {json, state, withQuery} from "./api.js";
import {age, h, moment} from "./dom.js";
import {diff, short} from "./diff.js";
import {confidential} from "./document.js";
import {link} from "./route.js";
import {dotted} from "./yaml.js";

const page = 50; // changes that are shown at first

// past returns the tab with the changes of an object.
export async function past(view, limit = page) {
  let list;
  try {
    list = await json(withQuery(view.path, {history: "true", limit}), {signal: view.signal});
  } catch (e) {
    if (e.code === 400 || e.code === 404 || e.code === 410) return h("p", {class: "quiet pad"}, "This server keeps no history of the object: ", e.message, ". anykind serve --history=30d keeps it.");
    throw e;
  }
  const all = list.items.filter(c => !state.at || c.time <= state.at).toReversed();
  const more = list.items.length === limit && h("button", {click: async e => e.target.closest(".past").replaceWith(await past(view, limit * 4))}, "Show earlier changes");
  return h("div", {class: "past"}, all.map(c => entry(view, c)), more, !all.length && h("p", {class: "quiet pad"}, "No change is known."));
}

// entry shows a change.
function entry(view, c) {
  const back = c.object && !state.at && !view.gone && view.k.verbs.includes("update") && h("button", {click: () => restore(view, c)}, "Edit from this state");
  return h("article", {class: "entry"},
    h("header", null, h("b", null, verb(c)), " by ", h("b", null, c.user || "unknown"), c.manager && h("span", {class: "quiet"}, ` (${c.manager})`), h("span", {class: "grow"}),
      h("a", {class: "quiet", href: link(["object", ...location.hash.split("?")[0].split("/").slice(2).map(decodeURIComponent)], {at: c.time}), title: "Look at everything as it was then"}, `${moment(c.time)} · ${age(c.time)} ago`), back),
    differences(c.before, c.object));
}

// verb names the change.
export const verb = c => ({ADDED: "created", DELETED: "deleted"}[c.type] ?? {patch: "patched", apply: "applied"}[c.verb] ?? "updated") + (c.subresource ? ` (${c.subresource})` : "");

// differences shows the fields that differ between two states.
export function differences(before, after, most = 40) {
  if (!before || !after) return h("p", {class: "quiet"}, before ? "The object is gone." : "The object is new.");
  const secret = after.kind === "Secret" && after.apiVersion === "v1";
  const all = diff(before, after).map(d => (secret && confidential(d.path) ? {path: d.path, before: d.before && "•••", after: d.after && "•••"} : d));
  return h("ul", {class: "differences"}, all.slice(0, most).map(d => h("li", null, h("code", null, dotted(d.path)), " ",
    d.before !== undefined && h("del", null, short(d.before)), d.before !== undefined && d.after !== undefined && " → ", d.after !== undefined && h("ins", null, short(d.after)))),
  all.length > most && h("li", {class: "quiet"}, `${all.length - most} more fields`), !all.length && h("li", {class: "quiet"}, "No field that people write has changed."));
}

// restore opens the editor with a past state. Owners and finalizers stay those of now: others may be gone.
function restore(view, c) {
  const {labels, annotations} = c.object.metadata;
  const now = view.document.visible();
  view.open("yaml");
  view.document.edit({...c.object, metadata: {...now.metadata, labels, annotations}});
}
