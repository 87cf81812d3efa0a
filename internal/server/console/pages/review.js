// The view in which a CustomResourceDefinition is written or pasted: its errors, the costs of its rules, changes that
// break clients, and stored objects that it would reject, before it is applied.
import {decode, encode, json, kindOf, past, pathOf, state, words} from "./api.js";
import {fill, h, table, toast} from "./dom.js";
import {Editor, writing} from "./editor.js";
import {go} from "./route.js";
import {toText} from "./yaml.js";

const version = /^ {2}resourceVersion: .*$/m; // its line

const template = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: widgets.example.com
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer, minimum: 1}
`;

// definition shows the editor for a definition: the one of the address, or a new one.
export async function definition(at, signal) {
  document.title = "Definition · anykind console";
  const k = kindOf("apiextensions.k8s.io", "customresourcedefinitions");
  const [name] = at.parts;
  let text = template;
  if (name) {
    const {status, metadata: {labels, annotations, resourceVersion}, ...o} = await json(past(pathOf(k, "", name)), {signal});
    text = toText({...o, metadata: {name, labels, annotations, resourceVersion}});
  }
  if (!state.reviews) return h("p", {class: "quiet pad"}, "This server does not review definitions. anykind console does, for any server.");
  const out = h("div", {class: "review"});
  const ask = async (body, parameters = "") => {
    const r = await reviewed(body.replace(version, ""), "application/yaml", parameters, signal);
    if (body === editor.area.value) fill(out, effects(r)); // else there is a newer text
    const {problems = [], message} = r.result;
    const all = problems.map(p => ({message: (p.field ? p.field + ": " : "") + p.message, line: p.line ? p.line - 1 : null}));
    return {problems: r.result.verdict === "accepted" ? [] : all.length ? all : [{message}], warnings: (r.result.warnings ?? []).map(w => w.message)};
  };
  const editor = new Editor({
    text, ask, signal, cancel: () => go(["list", "apiextensions.k8s.io", "customresourcedefinitions"]), hint: "Checked as you type, without the server.",
    save: async (body, type) => {
      // A definition of the server is replaced as a whole, if it is still the one that the text began with.
      const replaces = Boolean(name) && version.test(body);
      const answer = await words(writing(pathOf(k, "", replaces ? name : "")), {method: replaces ? "PUT" : "POST", body, type});
      const of = decode(answer.text).metadata.name;
      toast(`CustomResourceDefinition ${of} applied`);
      go(["object", k.group, k.resource, "-", of]);
      return answer;
    },
  });
  editor.save.hidden = Boolean(state.at);
  editor.save.textContent = "Apply";
  const tried = h("button", {click: async () => {
    tried.disabled = true;
    try {
      await ask(editor.area.value, "&try=true");
    } catch (e) {
      toast(e.message, true);
    }
    tried.disabled = false;
  }}, "Try against all stored objects");
  editor.save.after(tried);
  setTimeout(() => editor.focus());
  return h("section", null, h("header", {class: "top"}, h("h1", null, name ? ["Definition ", h("span", {class: "name"}, name)] : "New definition")), h("div", {class: "body columns"}, editor.node, out));
}

// effects shows a review.
function effects(r) {
  return [
    r.result.verdict !== "accepted" ? h("p", {class: "verdict bad"}, "A server would reject it")
      : r.new ? h("p", {class: "verdict good"}, "A server would accept it. The server has no such definition yet.")
      : r.changes.length ? [h("h2", null, "Changes"), r.changes.map(c => h("p", null, h("span", {class: "badge " + {breaking: "bad", caution: "wait"}[c.severity]}, c.severity), " ", [c.version, c.path].filter(Boolean).join(" "), " ", h("b", null, c.what), ". ", c.reason, " ", h("span", {class: "quiet"}, c.wayOut)))]
      : h("p", {class: "verdict good"}, "The schemas are as they are served."),
    r.outcome && [h("h2", null, `${r.outcome.objects.toLocaleString("en")} stored objects`),
      r.outcome.groups.length ? table(["Objects", "Effect", "Field", "Names"], r.outcome.groups.map(g => [String(g.objects), [g.what, g.message && h("p", {class: "quiet"}, g.message)], h("code", null, g.field ?? ""), g.names.join(", ") + (g.objects > g.names.length ? ", …" : "")])) : h("p", {class: "good"}, "Each of them stays valid and loses no field.")],
    costs(r),
  ];
}

// costs shows the estimated costs of the rules of a review.
function costs(r) {
  const rules = (r.result.schemas ?? []).flatMap(s => s.rules ?? []);
  return rules.length > 0 && [h("h2", null, "Costs of rules"), table(["Rule", "Cost of an object", "Share of the limit"], rules.map(x => [[h("code", null, x.expression), h("p", {class: "quiet"}, x.path)], x.cost.toLocaleString("en"), h("span", {class: x.tooExpensive ? "bad" : ""}, share(100 * Number(x.cost) / Number(x.limit)))]))];
}

const share = percent => (percent < 0.01 ? "under 0.01 %" : `${percent.toPrecision(2)} %`);

// costsOf returns the costs of the rules of a kind; null for a kind without a definition that the user may read.
export async function costsOf(k, signal) {
  const definitions = kindOf("apiextensions.k8s.io", "customresourcedefinitions");
  if (!state.reviews || !definitions || !k.group.includes(".")) return null;
  let o;
  try {
    o = await json(pathOf(definitions, "", k.title), {signal});
  } catch (e) {
    if (e.code === 403 || e.code === 404) return null;
    throw e;
  }
  const {status, ...definition} = o;
  return costs(await reviewed(encode({...definition, metadata: {name: k.title}}), "application/json", "", signal));
}

// reviewed asks for the review of a definition.
const reviewed = (body, type, parameters, signal) => json("review?context=" + encodeURIComponent(state.context.name) + parameters, {method: "POST", body, type, own: true, signal});
