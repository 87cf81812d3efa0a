// Requests to an API server: the session, errors, discovery, lists and watches.

// state is shared by all views: the context, the kinds of its server, and the time to look at.
export const state = {
  token: localStorage.getItem("token") ?? "",
  contexts: [], // below /contexts/NAME; none on an API server itself
  context: null,
  base: "", // of the paths of the API server
  version: null, // of the server; it has anykindVersion on anykind
  kinds: [],
  user: null,
  reviews: false, // the console reviews definitions
  at: "", // the past time to show; empty for now
};

// A Refusal is an answer with an error.
class Refusal extends Error {
  constructor(code, status) {
    super(status?.message || `the server answers with ${code}`);
    this.code = code;
    this.reason = status?.reason;
    this.causes = status?.details?.causes ?? [];
    this.session = code === 401 && status?.reason === "Console"; // the console rejects it, and not the API server
  }
}

// enter exchanges the secret of a link for the token of the session, and reads the configuration of the console.
export async function enter() {
  const secret = /^#secret=(\w+)$/.exec(location.hash)?.[1];
  if (secret) {
    history.replaceState(null, "", "#/");
    const {token} = await json("session", {method: "POST", body: JSON.stringify({secret}), type: "application/json", own: true});
    keep(token);
  }
  const config = await json("config", {own: true});
  state.contexts = config.contexts ?? [];
  state.reviews = Boolean(config.reviews);
}

// keep stores the token for this origin: this host and port.
export function keep(token) {
  state.token = token;
  if (token) localStorage.setItem("token", token);
  else localStorage.removeItem("token");
}

// choose makes a context the one of all following requests, and reads its kinds and its user. If the signal is aborted
// meanwhile, nothing changes.
export async function choose(name, signal) {
  const all = state.contexts;
  const context = all.length ? all.find(c => (name ? c.name === name : c.current)) : {name: "", namespace: "default"};
  if (!context) throw new Refusal(404, {message: `the kubeconfig has no context ${name}`});
  if (context.error) throw new Refusal(0, {message: context.error});
  const base = all.length ? "/contexts/" + encodeURIComponent(context.name) : "";
  const [version, user] = await Promise.all([json("/version", {base, signal}), whoAmI(base, signal)]);
  if (!all.length && (!user || user.username === "system:anonymous")) throw new Refusal(401, {message: "the server does not know you"});
  const kinds = await kindsOf(base, signal);
  signal.throwIfAborted();
  Object.assign(state, {context, base, version, user, kinds});
}

async function whoAmI(base, signal) {
  const body = JSON.stringify({apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview"});
  try {
    return (await json("/apis/authentication.k8s.io/v1/selfsubjectreviews", {method: "POST", body, type: "application/json", base, signal})).status.userInfo;
  } catch (e) {
    if (e.code === 401) throw e;
    return null; // older servers, or no right to it
  }
}

// own reports whether the server is anykind, with paths that other servers do not have.
export const own = () => Boolean(state.version?.anykindVersion);

// fetched sends a request and returns its answer, which is no error.
async function fetched(path, {method = "GET", body, type, accept = "application/json", signal, base = state.base, own} = {}) {
  const headers = {Accept: accept};
  if (state.token) headers.Authorization = "Bearer " + state.token;
  if (type) headers["Content-Type"] = type;
  const answer = await fetch(own ? path : base + path, {method, body, headers, signal, cache: "no-store", credentials: "omit", redirect: "error"});
  if (!answer.ok) {
    const words = await answer.text();
    let status;
    try {
      status = JSON.parse(words);
    } catch {
      status = {message: words.slice(0, 500)};
    }
    throw new Refusal(answer.status, status);
  }
  return answer;
}

// json sends a request and decodes the answer.
export async function json(path, options) {
  return decode(await (await fetched(path, options)).text());
}

const long = /[[:,]\s*-?\d{16}/; // an integer that a number of JavaScript may not hold

// decode parses JSON. Integers that are no exact numbers of JavaScript become BigInts.
export function decode(text) {
  if (!long.test(text)) return JSON.parse(text);
  return JSON.parse(text, (_, v, {source} = {}) => (typeof v === "number" && Number.isInteger(v) && !Number.isSafeInteger(v) && /^-?\d+$/.test(source) ? BigInt(source) : v));
}

// encode writes JSON, BigInts as numbers.
export const encode = value => JSON.stringify(value, (_, v) => (typeof v === "bigint" ? JSON.rawJSON(String(v)) : v));

// words sends a request and returns the answer as text, with the warnings of the server.
export async function words(path, options) {
  const answer = await fetched(path, options);
  return {text: await answer.text(), warnings: warnings(answer)};
}

// stream calls each with the parts of an answer as they arrive.
export async function stream(path, {signal, each}) {
  const answer = await fetched(path, {accept: "*/*", signal});
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let r; !(r = await reader.read()).done; ) each(r.value);
}

// socket opens a WebSocket. Its bearer token is a protocol, as in all clients of Kubernetes in browsers.
export function socket(path, protocols) {
  const token = btoa(state.token).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
  const s = new WebSocket(location.origin.replace(/^http/, "ws") + state.base + path, state.token ? [...protocols, "base64url.bearer.authorization.k8s.io." + token] : protocols);
  s.binaryType = "arraybuffer";
  return s;
}

// warnings returns the texts of the Warning headers.
function warnings(answer) {
  return [...(answer.headers.get("Warning") ?? "").matchAll(/299 \S+ "((?:[^"\\]|\\.)*)"/g)].map(m => m[1].replace(/\\(.)/g, "$1"));
}

// send sends an object.
export const send = (method, path, object, type = "application/json") => json(path, {method, body: encode(object), type});

// with adds parameters to a path, and the time to look at.
export function withQuery(path, parameters = {}) {
  const q = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) if (value !== "" && value != null) q.set(name, value);
  return String(q) ? path + (path.includes("?") ? "&" : "?") + q : path;
}

// past adds the time to look at to a read.
export const past = path => (state.at ? withQuery(path, {asOf: state.at}) : path);

// Kinds

const discovery = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

// kindsOf reads all kinds of a server, each in its preferred version.
async function kindsOf(base, signal) {
  const [core, groups] = await Promise.all(["/api", "/apis"].map(path => json(path, {accept: discovery, base, signal})));
  if (!core.items || !groups.items) throw new Refusal(0, {message: "this server has no aggregated discovery (apidiscovery.k8s.io/v2): it is older than Kubernetes 1.30"});
  const kinds = [];
  for (const g of [...core.items, ...groups.items]) {
    const seen = new Map();
    for (const v of g.versions) {
      for (const r of v.resources ?? []) {
        const known = seen.get(r.resource);
        if (known) {
          known.versions.push(v.version);
          continue;
        }
        const k = {
          group: g.metadata.name ?? "", version: v.version, versions: [v.version], resource: r.resource, kind: r.responseKind?.kind ?? r.resource,
          singular: r.singularResource || r.resource, namespaced: r.scope === "Namespaced", verbs: r.verbs ?? [], short: r.shortNames ?? [],
          categories: r.categories ?? [], subresources: (r.subresources ?? []).map(s => s.subresource),
        };
        k.title = k.resource + (k.group && "." + k.group);
        seen.set(r.resource, k);
        kinds.push(k);
      }
    }
  }
  return kinds;
}

// find returns the kind of an address. An unknown one may be new, so the kinds are read again.
export async function find(at, signal) {
  const group = at.parts[0] === "-" ? "" : at.parts[0];
  if (!kindOf(group, at.parts[1])) {
    const kinds = await kindsOf(state.base, signal);
    signal.throwIfAborted();
    state.kinds = kinds;
  }
  const k = kindOf(group, at.parts[1]);
  if (!k) throw new Refusal(404, {message: `this server has no kind ${at.parts[1]} in the group ${at.parts[0]}`});
  return k;
}

// listed reports whether objects of a kind can be listed.
export const listed = k => k.verbs.includes("list");

// kindOf returns the kind of a group and resource.
export const kindOf = (group, resource) => state.kinds.find(k => k.group === group && k.resource === resource);

// kindNamed returns the kind of an apiVersion and kind, as references have it.
export function kindNamed(apiVersion, kind) {
  const group = apiVersion?.includes("/") ? apiVersion.split("/")[0] : "";
  return state.kinds.find(k => k.kind === kind && (apiVersion == null || k.group === group) && k.verbs.includes("get"));
}

// pathOf returns the path of a collection, or of an object.
export function pathOf(k, namespace, name, version = k.version) {
  let p = k.group ? `/apis/${k.group}/${version}` : `/api/${version}`;
  if (k.namespaced && namespace) p += "/namespaces/" + encodeURIComponent(namespace);
  p += "/" + k.resource;
  return name ? p + "/" + encodeURIComponent(name) : p;
}

// Lists and watches

export const table = "application/json;as=Table;g=meta.k8s.io;v=v1,application/json";
export const metadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";

// pages reads a list in parts and calls each with every one of them. A list that has become too old begins again.
export async function pages(path, {accept, limit = 500, signal, each}) {
  let next = "", first = true;
  do {
    let page;
    try {
      page = await json(withQuery(past(path), {limit, continue: next}), {accept, signal});
    } catch (e) {
      if (e.code !== 410 || !next) throw e;
      next = "";
      first = true;
      continue;
    }
    await each(page, first);
    first = false;
    limit = 5000; // the first part is small, so that it is shown soon
    next = page.metadata?.continue ?? "";
    if (!next) return page.metadata?.resourceVersion;
  } while (true);
}

// watch calls event with each change after a resourceVersion, until the signal. It pauses while the page is hidden,
// and goes on where it was. If the server has forgotten that, watch returns, and the caller lists again. told gets
// "live", "paused", or the error of a lost connection.
export async function watch(path, {accept, version, signal, event, told}) {
  for (let wait = 500; !signal.aborted; ) {
    await visible(signal);
    const stop = new AbortController();
    const end = () => stop.abort();
    const hidden = () => document.hidden && end();
    signal.addEventListener("abort", end);
    document.addEventListener("visibilitychange", hidden);
    try {
      const answer = await fetched(withQuery(path, {watch: "true", allowWatchBookmarks: "true", resourceVersion: version}), {accept, signal: stop.signal});
      told("live");
      for await (const e of lines(answer.body)) {
        if (e.type === "ERROR") throw new Refusal(e.object.code, e.object);
        version = versionOf(e.object) ?? version;
        if (e.type !== "BOOKMARK") event(e);
        wait = 500;
      }
      await pause(250, signal); // a server may end each watch at once
    } catch (e) {
      if (e.code === 410 || signal.aborted) return;
      told(document.hidden ? "paused" : e);
      if (e.code >= 400 && e.code < 429) return aborted(signal); // no later attempt would be accepted
      if (!document.hidden) await pause(wait, signal);
      wait = Math.min(wait * 2, 30000);
    } finally {
      signal.removeEventListener("abort", end);
      document.removeEventListener("visibilitychange", hidden);
      stop.abort();
    }
  }
}

// versionOf returns the resourceVersion of an object, or of the row of a Table.
const versionOf = o => o?.rows?.[0]?.object?.metadata?.resourceVersion ?? o?.metadata?.resourceVersion;

export const pause = (milliseconds, signal) => new Promise(done => {
  const end = () => {
    clearTimeout(timer);
    signal?.removeEventListener("abort", end);
    done();
  };
  const timer = setTimeout(end, signal?.aborted ? 0 : milliseconds);
  signal?.addEventListener("abort", end);
});

const aborted = signal => new Promise(done => (signal.aborted ? done() : signal.addEventListener("abort", done, {once: true})));

const visible = signal => document.hidden && new Promise(done => {
  const seen = () => {
    if (document.hidden && !signal.aborted) return;
    document.removeEventListener("visibilitychange", seen);
    signal.removeEventListener("abort", seen);
    done();
  };
  document.addEventListener("visibilitychange", seen);
  signal.addEventListener("abort", seen);
});

// lines decodes a stream of JSON documents, one a line.
async function* lines(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const {done, value} = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n");
    rest = parts.pop();
    for (const p of parts) if (p) yield decode(p);
  }
}
