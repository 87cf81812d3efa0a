// A shell in a container of a pod, in a terminal.
import {fill, h, toast} from "./dom.js";
import {Command, containers} from "./exec.js";
import {Screen} from "./screen.js";

const shell = "TERM=xterm-256color; export TERM; command -v bash >/dev/null 2>&1 && exec bash; exec sh";

// terminal returns the tab with a shell. The shell ends with the tab.
export function terminal(view, signal) {
  const choice = containers(view.object, () => current && start());
  const box = h("div");
  let current = null;
  signal.addEventListener("abort", () => current?.end());
  const start = () => {
    current?.end();
    current = new Shell(view, choice.value);
    fill(box, current.node);
    current.area.focus();
  };
  const begin = h("button", {class: "main", click: () => ((begin.textContent = "Start again"), start())}, "Start a shell");
  return h("div", {class: "logview"}, h("p", {class: "tools"}, choice, begin, h("span", {class: "quiet"}, "Shift Escape leaves the terminal; Ctrl Shift C copies, Ctrl Shift V pastes.")), box);
}

class Shell {
  constructor(view, container) {
    this.area = h("textarea", {class: "keys-of-terminal", "aria-label": `Terminal of the container ${container}`, autocapitalize: "off", autocomplete: "off", spellcheck: "false",
      input: e => e.isComposing || this.typed(), compositionend: () => this.typed(), paste: e => this.paste(e)});
    this.lines = h("div", {class: "screen"});
    // The box has the focus while text is selected. Its keys are those of the terminal, too.
    this.node = h("div", {class: "term", tabindex: -1, keydown: e => this.key(e), mouseup: () => getSelection().isCollapsed && this.area.focus()}, this.lines, this.area);
    this.screen = new Screen(80, 24, text => this.command.send(text));
    this.rows = new Map(); // elements of lines
    this.resizes = new ResizeObserver(() => this.measure());
    this.resizes.observe(this.node);
    this.command = new Command(view, container, shell, {
      terminal: true, opened: () => this.measure(true), each: text => this.write(text), ended: reason => this.say(reason || "The shell has ended."),
    });
  }

  end() {
    this.resizes.disconnect();
    this.command.close();
  }

  say(words) {
    this.write(`\x1b[0m\r\n\x1b[2m${words}\x1b[0m\r\n`);
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
    this.command?.resize(columns, rows); // none before the first measurement
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
    for (const [line, e] of this.rows) if (next.get(line) !== e) e.remove();
    let before = null;
    for (const e of next.values()) {
      if (e.parentNode !== this.lines || e.previousSibling !== before) this.lines.insertBefore(e, before ? before.nextSibling : this.lines.firstChild);
      before = e;
    }
    this.rows = next;
    if (end) node.scrollTop = node.scrollHeight;
    const at = next.get(s.lines[s.y]);
    if (at) this.area.style.top = at.offsetTop + "px"; // where an input method shows its window
  }

  // Input

  key(e) {
    e.stopPropagation();
    if (e.isComposing) return;
    if (e.key === "Escape" && e.shiftKey) {
      e.preventDefault();
      return document.activeElement.blur();
    }
    if (e.metaKey || /^(Control|Shift|Alt|Meta|CapsLock|AltGraph)$/.test(e.key)) return;
    if (e.ctrlKey && e.shiftKey && /^[cv]$/i.test(e.key)) return this.clipboard(e);
    this.area.focus(); // the text of the key goes there
    const text = sequenceOf(e, this.screen.modes);
    if (text === null) return;
    e.preventDefault();
    this.node.scrollTop = this.node.scrollHeight;
    this.command.send(text);
  }

  // typed sends the text that a keyboard or an input method has composed.
  typed() {
    if (!this.area.value) return;
    this.command.send(this.area.value);
    this.area.value = "";
  }

  paste(e) {
    e.preventDefault();
    this.pasted(e.clipboardData.getData("text"));
  }

  // pasted sends pasted text. A program that asks for it can distinguish that from typed text.
  pasted(words) {
    const text = words.replace(/\r?\n/g, "\r").replaceAll("\x1b", "");
    this.command.send(this.screen.modes.paste ? `\x1b[200~${text}\x1b[201~` : text);
  }

  async clipboard(e) {
    e.preventDefault();
    try {
      const selected = String(getSelection());
      if (/c/i.test(e.key)) {
        if (selected) await navigator.clipboard.writeText(selected);
      } else this.pasted(await navigator.clipboard.readText());
    } catch (problem) {
      toast(problem.message, true);
    }
  }
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

const composes = /Mac|iPhone|iPad/.test(navigator.platform); // the key Option, with another one, is a character

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
  if (e.key.length !== 1 || !e.ctrlKey && (!e.altKey || composes)) return null;
  if (!e.ctrlKey) return /^[\x20-\x7e]$/.test(e.key) ? alt + e.key : null;
  if (e.altKey && !/^[a-z]$/i.test(e.key)) return null; // AltGr composes other characters
  const code = e.key === " " || e.key === "2" ? 0 : e.key === "/" ? 31 : e.key.toUpperCase().charCodeAt(0) & 31;
  return /^[a-z@[\\\]^_ 2/]$/i.test(e.key) ? alt + String.fromCharCode(code) : null;
}
