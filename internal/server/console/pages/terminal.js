// A shell in a container of a pod, in a terminal.
import {decode, socket} from "./api.js";
import {fill, h, toast} from "./dom.js";
import {Screen} from "./screen.js";

const [input, output, problems, status, size] = [0, 1, 2, 3, 4]; // channels of the protocol
const shell = "TERM=xterm-256color; export TERM; command -v bash >/dev/null 2>&1 && exec bash; exec sh";

// terminal returns the tab with a shell. The shell ends with the tab.
export function terminal(view, signal) {
  const all = (view.object.spec?.containers ?? []).map(c => c.name);
  const choice = h("select", {"aria-label": "Container", change: () => start()}, all.map(c => h("option", {value: c}, c)));
  const box = h("div");
  let current = null;
  signal.addEventListener("abort", () => current?.end());
  const start = () => {
    current?.end();
    current = new Shell(view, choice.value);
    fill(box, current.node);
    current.area.focus();
  };
  setTimeout(() => signal.aborted || start());
  return h("div", {class: "logview"}, h("p", {class: "tools"}, choice, h("button", {click: start}, "Start again"), h("span", {class: "quiet"}, "Shift Escape leaves the terminal; Ctrl Shift C copies, Ctrl Shift V pastes.")), box);
}

class Shell {
  constructor(view, container) {
    this.area = h("textarea", {class: "keys-of-terminal", "aria-label": `Terminal of the container ${container}`, autocapitalize: "off", autocomplete: "off", spellcheck: "false",
      keydown: e => this.key(e), input: () => this.typed(), compositionend: () => this.typed(), paste: e => this.paste(e)});
    this.lines = h("div", {class: "screen"});
    this.node = h("div", {class: "term", mouseup: () => getSelection().isCollapsed && this.area.focus()}, this.lines, this.area);
    this.screen = new Screen(80, 24, text => this.send(text));
    this.rows = new Map(); // elements of lines
    this.resizes = new ResizeObserver(() => this.measure());
    this.resizes.observe(this.node);
    const q = new URLSearchParams([["container", container], ["stdin", "true"], ["stdout", "true"], ["tty", "true"], ["command", "sh"], ["command", "-c"], ["command", shell]]);
    this.socket = socket(`${view.path}/exec?${q}`, ["v5.channel.k8s.io", "v4.channel.k8s.io"]);
    this.decoder = new TextDecoder();
    this.socket.onopen = () => this.measure(true);
    this.socket.onmessage = ({data}) => this.received(data);
    this.socket.onclose = e => this.ended || this.say(e.wasClean ? "The shell has ended." : "The connection ended. A right, a kubelet, or a shell in the image may be missing.");
  }

  end() {
    this.ended = true;
    this.resizes.disconnect();
    this.socket.close();
  }

  received(data) {
    const [channel] = new Uint8Array(data, 0, 1);
    if (channel === output || channel === problems) this.write(this.decoder.decode(data.slice(1), {stream: true}));
    if (channel !== status) return;
    const end = decode(new TextDecoder().decode(data.slice(1)));
    if (end.status !== "Success") this.say(end.message);
  }

  say(words) {
    this.write(`\x1b[0m\r\n\x1b[2m${words}\x1b[0m\r\n`);
  }

  send(text) {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(new Uint8Array([input, ...new TextEncoder().encode(text)]));
  }

  // measure gives the program the number of cells that fit into the window.
  measure(first) {
    const probe = h("div", {class: "probe"}, "W".repeat(100));
    this.lines.append(probe);
    const {width, height} = probe.getBoundingClientRect();
    probe.remove();
    if (!width) return;
    const columns = Math.max(20, Math.floor((this.node.clientWidth - 24) / (width / 100))), rows = Math.max(5, Math.floor((this.node.clientHeight - 16) / height));
    if (!first && columns === this.screen.columns && rows === this.screen.rows) return;
    this.screen.resize(columns, rows);
    this.draw();
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(new Uint8Array([size, ...new TextEncoder().encode(JSON.stringify({Width: columns, Height: rows}))]));
  }

  // Output

  write(text) {
    this.screen.write(text);
    if (this.drawing) return;
    this.drawing = true;
    requestAnimationFrame(() => {
      this.drawing = false;
      this.draw();
    });
  }

  draw() {
    const s = this.screen, {node} = this;
    const end = node.scrollTop + node.clientHeight > node.scrollHeight - 40;
    const all = [...s.above, ...s.lines], cursor = s.modes.visible ? s.lines[s.y] : null;
    const next = new Map();
    for (const line of all) {
      let e = this.rows.get(line);
      if (!e || line.dirty || line === cursor || line === this.cursor) e = fill(e ?? h("div"), runs(line, line === cursor ? s.x : -1));
      line.dirty = false;
      next.set(line, e);
    }
    this.cursor = cursor;
    if (next.size !== this.rows.size || !same(next.keys(), this.rows.keys())) this.lines.replaceChildren(...next.values());
    this.rows = next;
    if (end) node.scrollTop = node.scrollHeight;
    const at = next.get(s.lines[s.y]);
    if (at) this.area.style.top = at.offsetTop + "px"; // where an input method shows its window
  }

  // Input

  key(e) {
    e.stopPropagation();
    if (e.isComposing) return;
    if (e.key === "Escape" && e.shiftKey) return this.area.blur();
    if (e.metaKey) return;
    if (e.ctrlKey && e.shiftKey && /^[cv]$/i.test(e.key)) return this.clipboard(e);
    const text = sequenceOf(e, this.screen.modes);
    if (text === null) return;
    e.preventDefault();
    this.node.scrollTop = this.node.scrollHeight;
    this.send(text);
  }

  // typed sends the text that a keyboard or an input method has composed.
  typed() {
    if (!this.area.value) return;
    this.send(this.area.value);
    this.area.value = "";
  }

  paste(e) {
    e.preventDefault();
    this.pasted(e.clipboardData.getData("text"));
  }

  // pasted sends pasted text. A program that asks for it can distinguish that from typed text.
  pasted(words) {
    const text = words.replace(/\r?\n/g, "\r").replaceAll("\x1b", "");
    this.send(this.screen.modes.paste ? `\x1b[200~${text}\x1b[201~` : text);
  }

  async clipboard(e) {
    e.preventDefault();
    try {
      if (/c/i.test(e.key)) await navigator.clipboard.writeText(String(getSelection()));
      else this.pasted(await navigator.clipboard.readText());
    } catch (problem) {
      toast(problem.message, true);
    }
  }
}

// same reports whether two iterators have the same values.
function same(a, b) {
  for (const v of a) if (b.next().value !== v) return false;
  return true;
}

// runs returns the cells of a line as spans, one for each style. Trailing blanks without a style are left out.
function runs(line, cursor) {
  const out = [];
  let end = line.chars.length;
  while (end > cursor + 1 && line.chars[end - 1] === " " && !Object.keys(line.styles[end - 1]).length) end--;
  for (let x = 0; x < end; ) {
    let text = line.chars[x], n = x + 1;
    while (n < end && line.chars[n] === "" || n < end && n !== cursor && x !== cursor && line.styles[n] === line.styles[x]) text += line.chars[n++];
    out.push(Object.keys(line.styles[x]).length || x === cursor ? span(text, line.styles[x], x === cursor) : text);
    x = n;
  }
  return out.length ? out : "\u00a0";
}

function span(text, style, cursor) {
  const {fg, bg, ...rest} = style, names = Object.keys(rest);
  const e = h("span", {class: [...names, cursor && "cursor", fg < 16 && "f" + fg, bg < 16 && "b" + bg]}, style.hidden ? " ".repeat(text.length) : text);
  if (fg >= 16 || typeof fg === "string") e.style.setProperty("--f", color(fg));
  if (bg >= 16 || typeof bg === "string") e.style.setProperty("--b", color(bg));
  return e;
}

// color returns a colour of the palette of 256, or one that is given as #rrggbb.
function color(c) {
  if (typeof c === "string") return c;
  if (c >= 232) return `rgb(${[0, 0, 0].map(() => 8 + 10 * (c - 232))})`;
  const part = n => (n ? 55 + 40 * n : 0);
  return `rgb(${[Math.floor((c - 16) / 36), Math.floor((c - 16) / 6) % 6, (c - 16) % 6].map(part)})`;
}

const finals = {ArrowUp: "A", ArrowDown: "B", ArrowRight: "C", ArrowLeft: "D", Home: "H", End: "F", F1: "P", F2: "Q", F3: "R", F4: "S"};
const numbers = {Insert: 2, Delete: 3, PageUp: 5, PageDown: 6, F5: 15, F6: 17, F7: 18, F8: 19, F9: 20, F10: 21, F11: 23, F12: 24};

// sequenceOf returns the bytes for a key, or null for one whose text the browser composes.
export function sequenceOf(e, modes) {
  const modifier = 1 + (e.shiftKey ? 1 : 0) + (e.altKey ? 2 : 0) + (e.ctrlKey ? 4 : 0);
  const alt = e.altKey ? "\x1b" : "";
  if (finals[e.key]) return modifier > 1 ? `\x1b[1;${modifier}${finals[e.key]}` : (modes.cursorKeys || /^F\d/.test(e.key) ? "\x1bO" : "\x1b[") + finals[e.key];
  if (numbers[e.key]) return `\x1b[${numbers[e.key]}${modifier > 1 ? ";" + modifier : ""}~`;
  switch (e.key) {
    case "Enter": return alt + "\r";
    case "Backspace": return alt + (e.ctrlKey ? "\x08" : "\x7f");
    case "Tab": return e.shiftKey ? "\x1b[Z" : alt + "\t";
    case "Escape": return alt + "\x1b";
  }
  if (e.key.length !== 1 || !e.ctrlKey && !e.altKey) return null;
  if (!e.ctrlKey) return /^[\x20-\x7e]$/.test(e.key) ? alt + e.key : null;
  if (e.altKey && !/^[a-z]$/i.test(e.key)) return null; // AltGr composes other characters
  const code = e.key === " " || e.key === "2" ? 0 : e.key === "/" ? 31 : e.key.toUpperCase().charCodeAt(0) & 31;
  return /^[a-z@[\\\]^_ 2/]$/i.test(e.key) ? alt + String.fromCharCode(code) : null;
}
