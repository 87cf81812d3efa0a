// The part of CEL that filters need, for rows in the browser: operators, conditions, fields, indexes, lists, maps, the
// macros has, all, exists, exists_one, map and filter, and functions of strings. A test compares it with cel-go.

const lexeme = /\s+|\/\/[^\n]*|(\d+\.\d+(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+)|(0x[\da-fA-F]+|\d+)|("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')|([A-Za-z_]\w*)|(\|\||&&|[=!<>]=|[-+*\/%!<>?:.,()[\]{}])/y;

// compile returns a function from an object to whether the expression is true for it. An expression with an error of syntax
// throws; one with an error for an object is not true for it.
export function compile(source) {
  const f = parse(source, ["object", "self"]);
  return object => {
    try {
      return f({object, self: object}) === true;
    } catch {
      return false;
    }
  };
}

// evaluate returns the value of an expression, or throws its error.
export const evaluate = (source, variables) => plainOf(parse(source, Object.keys(variables))(variables));

// A Double is a number of type double. Other numbers are of type int.
class Double {
  constructor(n) {
    this.n = n;
  }
}

const plainOf = v => (v instanceof Double ? v.n : Array.isArray(v) ? v.map(plainOf) : v && typeof v === "object" ? Object.fromEntries(Object.entries(v).map(([k, x]) => [k, plainOf(x)])) : v);

function lex(source) {
  const out = [];
  lexeme.lastIndex = 0;
  while (lexeme.lastIndex < source.length) {
    const at = lexeme.lastIndex;
    const m = lexeme.exec(source);
    if (!m) throw new SyntaxError(`unexpected ${JSON.stringify(source[at])} at ${at + 1}`);
    const [, double, int, string, word, sign] = m;
    if (double != null) out.push({value: new Double(+double)});
    else if (int != null) out.push({value: narrow(BigInt(int))});
    else if (string != null) out.push({value: unquote(string)});
    else if (word != null) out.push({word});
    else if (sign != null) out.push({sign});
  }
  return out;
}

const escapes = {n: "\n", t: "\t", r: "\r", a: "\u0007", b: "\b", f: "\f", v: "\v", "\\": "\\", "'": "'", '"': '"', "`": "`", "?": "?"};

const unquote = s => s.slice(1, -1).replace(/\\(u[\da-fA-F]{4}|x[\da-fA-F]{2}|.)/g, (_, e) => {
  if (e.length > 1) return String.fromCharCode(parseInt(e.slice(1), 16));
  if (!(e in escapes)) throw new SyntaxError(`unknown escape \\${e}`);
  return escapes[e];
});

const levels = [["||"], ["&&"], ["==", "!=", "<", "<=", ">", ">=", "in"], ["+", "-"], ["*", "/", "%"]];

function parse(source, variables) {
  const tokens = lex(source);
  const known = [...variables]; // in scope
  let i = 0;
  const sign = s => tokens[i]?.sign === s && (i++, true);
  const expect = s => {
    if (!sign(s)) throw new SyntaxError(`expected ${s}${tokens[i] ? ", found " + (tokens[i].sign ?? tokens[i].word ?? JSON.stringify(tokens[i].value)) : " at the end"}`);
  };
  const many = end => {
    const all = [];
    while (!sign(end)) {
      if (all.length) expect(",");
      all.push(conditional());
    }
    return all;
  };
  const conditional = () => {
    const test = binary(0);
    if (!sign("?")) return test;
    const yes = binary(0);
    expect(":");
    const no = conditional();
    return v => (bool(test(v)) ? yes(v) : no(v));
  };
  const binary = level => {
    if (level === levels.length) return unary();
    let left = binary(level + 1);
    for (;;) {
      const t = tokens[i];
      const op = levels[level].find(o => t && (t.sign === o || t.word === o));
      if (!op) return left;
      i++;
      left = operators[op](left, binary(level + 1));
    }
  };
  const unary = () => {
    if (sign("!")) {
      const of = unary();
      return v => !bool(of(v));
    }
    if (sign("-")) {
      const of = unary();
      return v => {
        const n = of(v);
        return n instanceof Double ? new Double(-n.n) : narrow(-BigInt(int(n)));
      };
    }
    return member();
  };
  const member = () => {
    let of = primary();
    for (;;) {
      if (sign(".")) {
        const name = tokens[i++]?.word;
        if (!name) throw new SyntaxError("expected a name after .");
        const on = of;
        if (!sign("(")) of = Object.assign(v => field(on(v), name), {on, part: name});
        else of = macros[name] && tokens[i]?.word && tokens[i + 1]?.sign === "," ? macro(name, on) : method(name, on, many(")"));
      } else if (sign("[")) {
        const on = of, key = conditional();
        expect("]");
        of = v => index(on(v), key(v));
      } else return of;
    }
  };
  const macro = (name, on) => {
    const variable = tokens[i++].word;
    const args = [];
    known.push(variable);
    while (sign(",")) args.push(conditional());
    known.pop();
    expect(")");
    return v => macros[name](on(v), args.map(f => x => f({...v, [variable]: x})));
  };
  const primary = () => {
    const t = tokens[i++];
    if (!t) throw new SyntaxError("the expression ends too early");
    if ("value" in t) return () => t.value;
    if (t.sign === "(") {
      const inner = conditional();
      expect(")");
      return v => inner(v);
    }
    if (t.sign === "[") {
      const all = many("]");
      return v => all.map(f => f(v));
    }
    if (t.sign === "{") return map();
    if (t.word === "true" || t.word === "false") return () => t.word === "true";
    if (t.word === "null") return () => null;
    if (!t.word || t.word === "in") throw new SyntaxError(`unexpected ${t.sign ?? t.word}`);
    if (!sign("(")) {
      if (!known.includes(t.word)) throw new SyntaxError(`undeclared reference to ${t.word}; the object is called object`);
      return v => v[t.word];
    }
    const args = many(")");
    if (t.word === "has") {
      const [of] = args;
      if (!of?.part) throw new SyntaxError("has needs a field, such as has(object.spec.replicas)");
      return v => {
        const on = of.on(v);
        if (Array.isArray(on)) fail("no such overload");
        return isMap(on) && Object.hasOwn(on, of.part);
      };
    }
    const f = functions[t.word];
    if (!f) throw new SyntaxError(`there is no function ${t.word} here`);
    return v => f(...args.map(a => a(v)));
  };
  const map = () => {
    const entries = [];
    while (!sign("}")) {
      if (entries.length) expect(",");
      const key = conditional();
      expect(":");
      entries.push([key, conditional()]);
    }
    return v => Object.fromEntries(entries.map(([k, x]) => [k(v), x(v)]));
  };
  const whole = conditional();
  if (i < tokens.length) throw new SyntaxError(`unexpected ${tokens[i].sign ?? tokens[i].word ?? JSON.stringify(tokens[i].value)}`);
  return whole;
}

function fail(message) {
  throw new Error(message);
}

const isMap = v => v !== null && typeof v === "object" && !Array.isArray(v) && !(v instanceof Double);
const bool = v => (typeof v === "boolean" ? v : fail("no such overload"));
const int = v => (typeof v === "number" || typeof v === "bigint" ? v : fail("no such overload"));

// narrow returns an int as a number, if a number can hold it.
const narrow = n => (typeof n === "bigint" && n >= BigInt(Number.MIN_SAFE_INTEGER) && n <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(n) : n);
const string = v => (typeof v === "string" ? v : fail("no such overload"));

// A number of an object is an int if it is whole, as JSON does not tell 1 from 1.0.
const from = v => (typeof v === "number" && !Number.isInteger(v) ? new Double(v) : v);

function field(on, name) {
  if (!isMap(on)) fail("no such overload");
  return Object.hasOwn(on, name) ? from(on[name]) : fail(`no such key: ${name}`);
}

function index(on, key) {
  if (Array.isArray(on)) {
    const i = key instanceof Double ? key.n : int(key);
    return Number.isInteger(i) && i >= 0 && i < on.length ? from(on[i]) : fail(`index out of bounds: ${i}`);
  }
  return field(on, typeof key === "string" ? key : fail("no such key"));
}

const number = v => (v instanceof Double ? v.n : typeof v === "number" || typeof v === "bigint" ? v : null);

function equal(a, b) {
  a = from(a), b = from(b);
  const n = number(a), m = number(b);
  if (n !== null || m !== null) return n !== null && m !== null && n == m; // also a number and a BigInt
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((x, i) => equal(x, b[i]));
  if (isMap(a) && isMap(b)) {
    const keys = Object.keys(a);
    return keys.length === Object.keys(b).length && keys.every(k => Object.hasOwn(b, k) && equal(a[k], b[k]));
  }
  return a === b;
}

// compare orders two values of one type, or two numbers.
function compare(a, b) {
  const n = number(a), m = number(b);
  if (n !== null && m !== null) return n < m ? -1 : n > m ? 1 : 0;
  if (typeof a !== typeof b || (typeof a !== "string" && typeof a !== "boolean")) fail("no such overload");
  return a < b ? -1 : a > b ? 1 : 0;
}

// arithmetic calculates with two ints or two doubles.
const arithmetic = (whole, double) => (l, r) => v => {
  const a = l(v), b = r(v);
  if (a instanceof Double && b instanceof Double && double) return new Double(double(a.n, b.n));
  const n = whole(BigInt(int(a)), BigInt(int(b)));
  return BigInt.asIntN(64, n) === n ? narrow(n) : fail("integer overflow");
};

const compared = test => (l, r) => v => test(compare(l(v), r(v)));

// either evaluates || and &&: an error counts only if the other side does not decide.
const either = decides => (l, r) => v => {
  let error;
  for (const side of [l, r]) {
    try {
      if (bool(side(v)) === decides) return decides;
    } catch (e) {
      error ??= e;
    }
  }
  if (error) throw error;
  return !decides;
};

const divisor = n => (n === 0n ? fail("division by zero") : n);

const operators = {
  "||": either(true), "&&": either(false),
  "==": (l, r) => v => equal(l(v), r(v)), "!=": (l, r) => v => !equal(l(v), r(v)),
  "<": compared(c => c < 0), "<=": compared(c => c <= 0), ">": compared(c => c > 0), ">=": compared(c => c >= 0),
  in: (l, r) => v => {
    const x = l(v), of = r(v);
    if (Array.isArray(of)) return of.some(e => equal(e, x));
    return isMap(of) ? typeof x === "string" && Object.hasOwn(of, x) : fail("no such overload");
  },
  "+": (l, r) => v => {
    const a = l(v), b = r(v);
    if (typeof a === "string" && typeof b === "string") return a + b;
    if (Array.isArray(a) && Array.isArray(b)) return [...a, ...b];
    return arithmetic((x, y) => x + y, (x, y) => x + y)(() => a, () => b)();
  },
  "-": arithmetic((a, b) => a - b, (a, b) => a - b), "*": arithmetic((a, b) => a * b, (a, b) => a * b),
  "/": arithmetic((a, b) => a / divisor(b), (a, b) => a / b), "%": arithmetic((a, b) => a % divisor(b)),
};

// size counts characters, elements, or entries.
const size = v => (typeof v === "string" ? [...v].length : Array.isArray(v) ? v.length : isMap(v) ? Object.keys(v).length : fail("no such overload"));

const functions = {
  size,
  int: v => (v instanceof Double ? Math.trunc(v.n) : typeof v === "string" && /^[-+]?\d+$/.test(v) ? narrow(BigInt(v.replace("+", ""))) : int(v)),
  double: v => (typeof v === "string" ? (v.trim() === v && v && !Number.isNaN(+v) ? new Double(+v) : fail("no double")) : v instanceof Double ? v : new Double(Number(int(v)))),
  string: v => (typeof v === "boolean" || typeof v === "number" || typeof v === "bigint" ? String(v) : v instanceof Double ? String(v.n) : string(v)),
};

const methods = {
  size, contains: (s, t) => string(s).includes(string(t)), startsWith: (s, t) => string(s).startsWith(string(t)), endsWith: (s, t) => string(s).endsWith(string(t)),
  matches: (s, t) => new RegExp(string(t), "u").test(string(s)), lowerAscii: s => string(s).toLowerCase(),
};

function method(name, on, args) {
  const f = methods[name];
  if (!f || f.length !== args.length + 1) throw new SyntaxError(`there is no function ${name} here`);
  return v => f(on(v), ...args.map(a => a(v)));
}

const range = v => (Array.isArray(v) ? v.map(from) : isMap(v) ? Object.keys(v) : fail("no such overload"));

// some reports whether a predicate decides for an element. An error counts only if no element decides.
function some(list, predicate, decides) {
  let error;
  for (const x of list) {
    try {
      if (bool(predicate(x)) === decides) return decides;
    } catch (e) {
      error = e;
    }
  }
  if (error) throw error;
  return !decides;
}

const macros = {
  exists: (of, [f]) => some(range(of), f, true),
  all: (of, [f]) => some(range(of), f, false),
  exists_one: (of, [f]) => range(of).filter(x => bool(f(x))).length === 1,
  filter: (of, [f]) => range(of).filter(x => bool(f(x))),
  map: (of, [f, g]) => (g ? range(of).filter(x => bool(f(x))).map(g) : range(of).map(f)),
};
