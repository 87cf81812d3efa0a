// Commands in the containers of a pod, one after the other. It is no terminal: programs that draw need one.
import {h} from "./dom.js";
import {Command, containers} from "./exec.js";
import {clean} from "./logs.js";

const kept = 5000; // parts of the output

// run returns the tab with commands.
export function run(view, signal) {
  const choice = containers(view.object);
  const out = h("pre", {class: "logs", tabindex: 0, "aria-label": "Output", role: "log"});
  const before = [];
  let shown = 0;
  const input = h("input", {class: "command", placeholder: "Command, Enter", "aria-label": "Command", autocomplete: "off", spellcheck: "false", keydown: e => {
    const step = {ArrowUp: -1, ArrowDown: 1}[e.key];
    if (step && before.length) {
      shown = Math.max(0, Math.min(before.length - 1, shown + step));
      input.value = before[shown];
    }
    if (e.key !== "Enter" || !input.value.trim()) return;
    start(input.value);
    shown = before.push(input.value);
    input.value = "";
  }});
  let current = null;
  const stop = h("button", {disabled: true, click: () => ((stop.disabled = true), current.close())}, "Stop");
  signal.addEventListener("abort", () => current?.close());
  const put = (words, tone) => {
    out.append(tone ? h("span", {class: tone}, words) : words);
    while (out.childNodes.length > kept) out.firstChild.remove();
    out.scrollTop = out.scrollHeight;
  };
  const start = command => {
    current?.close();
    put(`$ ${command}\n`, "quiet");
    stop.disabled = false;
    current = new Command(view, choice.value, command, {
      each: (text, bad) => put(clean(text), bad && "bad"),
      ended: reason => {
        stop.disabled = true;
        if (reason) put(reason + "\n", "bad");
      },
    });
  };
  return h("div", {class: "logview"}, h("p", {class: "tools"}, choice, input, stop), out);
}
