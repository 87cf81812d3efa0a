// Differences of two objects, field by field.
import {encode} from "./api.js";

const keys = ["name", "type", "key", "containerPort", "port", "ip", "uid", "mountPath", "devicePath", "topologyKey", "id"];
const ignored = new Set(["metadata.managedFields", "metadata.resourceVersion", "metadata.generation"]);

// diff returns the differences: {path, before, after}. An absent value is undefined. Elements of a list are matched
// by a key that all of them have, else by their index.
export function diff(before, after, path = [], out = []) {
  if (ignored.has(path.join("."))) return out;
  if (same(before, after)) return out;
  if (isMap(before) && isMap(after)) {
    for (const k of new Set([...Object.keys(before), ...Object.keys(after)])) diff(own(before, k), own(after, k), [...path, k], out);
  } else if (Array.isArray(before) && Array.isArray(after)) {
    elements(before, after, path, out);
  } else {
    out.push({path, before, after});
  }
  return out;
}

// keyOf returns the field that tells the elements of lists apart; undefined for none.
const keyOf = (...lists) => keys.find(k => lists.flat().every(v => isMap(v) && k in v) && lists.every(l => new Set(l.map(v => v[k])).size === l.length));

// keyed returns the path of a field of an object as diff has it: with the keys of elements in place of their indexes.
export function keyed(object, path) {
  let value = object;
  return path.map(p => {
    const key = typeof p === "number" && keyOf(value);
    value = value?.[p];
    return key ? `${key}=${value[key]}` : p;
  });
}

function elements(before, after, path, out) {
  const key = keyOf(before, after);
  if (!key) {
    for (let i = 0; i < Math.max(before.length, after.length); i++) diff(before[i], after[i], [...path, i], out);
    return;
  }
  const index = l => new Map(l.map(v => [v[key], v]));
  const b = index(before), a = index(after);
  for (const k of new Set([...b.keys(), ...a.keys()])) diff(b.get(k), a.get(k), [...path, `${key}=${k}`], out);
}

// own returns a field of a map; undefined for none. Maps have fields of any name, such as constructor.
const own = (map, key) => (Object.hasOwn(map, key) ? map[key] : undefined);

const isMap = v => v !== null && typeof v === "object" && !Array.isArray(v);

// same reports whether two JSON values are equal.
export function same(a, b) {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  const ka = Object.keys(a);
  return Array.isArray(a) === Array.isArray(b) && ka.length === Object.keys(b).length && ka.every(k => k in b && same(a[k], b[k]));
}

// merge returns an object with the changes of both sides, and mine where both changed the same field. Elements of lists
// are matched as in diff. An absent value is undefined.
export function merge(base, mine, theirs) {
  if (same(mine, base)) return theirs;
  if (same(theirs, base) || same(mine, theirs)) return mine;
  if (isMap(mine) && isMap(theirs)) {
    const before = isMap(base) ? base : {};
    const all = [...new Set([...Object.keys(theirs), ...Object.keys(mine)])].map(k => [k, merge(own(before, k), own(mine, k), own(theirs, k))]);
    return Object.fromEntries(all.filter(([, v]) => v !== undefined));
  }
  const lists = [Array.isArray(base) ? base : [], mine, theirs];
  const key = Array.isArray(mine) && Array.isArray(theirs) && keyOf(...lists);
  if (!key) return mine;
  const [b, m, t] = lists.map(l => new Map(l.map(v => [v[key], v])));
  const [first, second] = inOrder(b, m) ? [t, m] : [m, t]; // my order counts if I changed it
  return joined([...first.keys()], [...second.keys()]).map(k => merge(b.get(k), m.get(k), t.get(k))).filter(v => v !== undefined);
}

// inOrder reports whether the keys that two maps share have one order.
function inOrder(a, b) {
  const of = (x, y) => [...x.keys()].filter(k => y.has(k));
  return same(of(a, b), of(b, a));
}

// joined adds the keys of another list to a list, each after the one that it follows there.
function joined(keys, others) {
  const out = [...keys];
  others.forEach((k, i) => out.includes(k) || out.splice(i ? out.indexOf(others[i - 1]) + 1 : 0, 0, k));
  return out;
}

// short writes a value on one line.
export function short(value, most = 160) {
  const s = value === undefined ? "–" : typeof value === "string" ? value || '""' : encode(value);
  return s.length > most ? s.slice(0, most - 1) + "…" : s;
}
