// YAML for people: objects as lines that know their path, and the paths of lines that a user writes. The server
// parses YAML; nothing here does.

const first = ["apiVersion", "kind", "metadata", "spec", "data"];
const names = ["name", "namespace"];

// sorted returns the keys of an object in the order of manuals: what it is, its names, the rest, its status.
function sorted(value, path) {
  const rank = k => {
    if (path.length === 0) return first.includes(k) ? first.indexOf(k) : k === "status" ? 99 : 50;
    return names.includes(k) ? names.indexOf(k) : 50;
  };
  return Object.keys(value).filter(k => value[k] !== undefined).sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
}

const plain = /^[A-Za-z0-9_./$(^+][\w ./$()<>=~^+@,;%:-]*$/;
const special = /^(y|n|yes|no|true|false|on|off|null|~|[-+]?\.?\d[\w.,:+-]*|[-+]?\.(inf|nan)|\d{4}-\d\d?-\d\d?.*|=|<<)$/i; // texts that YAML may read as another type

// scalar writes a value that is no list and no map.
function scalar(value) {
  if (typeof value !== "string") return typeof value === "bigint" ? String(value) : JSON.stringify(value);
  const simple = plain.test(value) && !special.test(value) && !/: |:$|\s#|\s$/.test(value);
  return simple ? value : JSON.stringify(value).replace(unprintable, c => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
}

// unprintable are the characters that JSON may have as they are, and YAML may not.
const unprintable = /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g;

// write returns an object as lines: {text, path, leaf}. leaf is true for lines with a value.
export function write(object) {
  const lines = [];
  const put = (prefix, value, path, indent) => {
    const line = (text, leaf) => lines.push({text, path, leaf});
    if (Array.isArray(value) && value.length) {
      line(prefix, false);
      value.forEach((v, i) => item(v, [...path, i], indent)); // elements stand below the first letter of their key
    } else if (value && typeof value === "object" && Object.keys(value).length) {
      line(prefix, false);
      map(value, path, indent + "  ");
    } else if (typeof value === "string" && value.includes("\n") && !/^[\s]|[^\S\n]\n|[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029\ufeff]|\n\n$/.test(value) && value !== "\n") {
      line(`${prefix} |${value.endsWith("\n") ? "" : "-"}`, true);
      for (const l of value.replace(/\n$/, "").split("\n")) lines.push({text: l && indent + "  " + l, path, leaf: false});
    } else {
      line(`${prefix} ${Array.isArray(value) ? "[]" : value && typeof value === "object" ? "{}" : scalar(value)}`, true);
    }
  };
  const map = (value, path, indent) => sorted(value, path).forEach(k => put(indent + scalar(k) + ":", value[k], [...path, k], indent));
  const item = (value, path, indent) => {
    const start = lines.length;
    if (value && typeof value === "object" && !Array.isArray(value) && Object.keys(value).length) {
      map(value, path, indent + "  ");
      lines[start].text = indent + "- " + lines[start].text.slice(indent.length + 2);
    } else if (Array.isArray(value) && value.length) {
      put(indent + "-", value, path, indent + "  ");
    } else {
      put(indent + "-", value, path, indent);
    }
  };
  map(object, [], "");
  return lines;
}

// text returns an object as one text.
export const toText = object => write(object).map(l => l.text).join("\n") + "\n";

// paths returns the path of each line of a text in block style. Lines without a key have the path of their map or list.
export function paths(text) {
  const open = []; // {indent, path} of maps, {indent, path, list, index} of lists
  let block = -1; // the indentation of a key with a text of several lines
  return text.split("\n").map(line => {
    let indent = /^ */.exec(line)[0].length;
    const top = () => open[open.length - 1];
    if (!line.trim() || line.trimStart().startsWith("#") || (block >= 0 && indent > block)) return top()?.path ?? [];
    block = -1;
    let rest = line.slice(indent);
    while (open.length && (top().indent > indent || (top().indent === indent && top().list && !/^-( |$)/.test(rest)))) open.pop();
    let path;
    while (/^-( |$)/.test(rest)) {
      while (open.length && (top().indent > indent || (top().indent === indent && !top().list))) {
        if (top().indent === indent && top().key) break;
        open.pop();
      }
      let of = top();
      if (!of?.list || of.indent !== indent) {
        of = {indent, list: true, index: -1, of: of?.key ?? of?.path ?? []};
        open.push(of);
      }
      of.index++;
      of.path = path = [...of.of, of.index];
      const dash = /^- */.exec(rest)[0].length;
      indent += dash;
      rest = rest.slice(dash);
      if (rest) open.push({indent, path: of.path});
    }
    const key = /^("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s#"'[{][^#]*?)\s*:(?: (.*)|$)/.exec(rest);
    if (!key) return path ?? top()?.path ?? [];
    let map = top();
    if (!map || map.indent !== indent || map.list) {
      map = {indent, path: map?.key ?? map?.path ?? []};
      open.push(map);
    }
    map.key = [...map.path, unquoted(key[1])];
    if (/^[|>]/.test(key[2] ?? "")) block = indent;
    return map.key;
  });
}

function unquoted(key) {
  if (key[0] === '"') {
    try {
      return JSON.parse(key);
    } catch {
      return key;
    }
  }
  return key[0] === "'" ? key.slice(1, -1).replaceAll("''", "'") : key;
}

// fieldPath parses a path of an error, such as spec.containers[0].env[name="a"] or metadata.labels[a/b].
export function fieldPath(field) {
  const out = [];
  for (const m of field.matchAll(/\.?([^.[\]]+)|\[("(?:[^"\\]|\\.)*"|[^\]]*)\]/g)) {
    if (m[1] != null) out.push(m[1]);
    else if (/^\d+$/.test(m[2])) out.push(+m[2]);
    else out.push(m[2][0] === '"' ? JSON.parse(m[2]) : m[2]);
  }
  return out;
}

// dotted writes a path as errors have it.
export const dotted = path => path.reduce((s, p) => (typeof p === "number" ? `${s}[${p}]` : /^[\w-]+$/.test(p) ? (s ? s + "." : "") + p : `${s}[${p}]`), "");

// lineOf returns the index of the line for a path: the longest beginning of the path that has one.
export function lineOf(lines, path) {
  let best = 0, most = -1;
  lines.forEach((at, i) => {
    const n = at.findIndex((p, j) => String(p) !== String(path[j]));
    const common = n < 0 ? at.length : n;
    if (common === at.length && common > most) [best, most] = [i, common];
  });
  return best;
}
