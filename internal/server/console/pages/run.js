// Commands in the containers of a pod, one after the other. It is no terminal: programs that draw need one.
import {decode, socket} from "./api.js";
import {h} from "./dom.js";
import {clean} from "./logs.js";

const kept = 5000; // parts of the output
const [stdout, stderr, status] = [1, 2, 3]; // channels of the protocol

// run returns the tab with commands.
export function run(view, signal) {
  const all = (view.object.spec?.containers ?? []).map(c => c.name);
  const choice = h("select", {"aria-label": "Container"}, all.map(c => h("option", {value: c}, c)));
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
  const stop = h("button", {disabled: true, click: () => current?.close()}, "Stop");
  signal.addEventListener("abort", () => current?.close());
  const put = (words, tone) => {
    out.append(tone ? h("span", {class: tone}, words) : words);
    while (out.childNodes.length > kept) out.firstChild.remove();
    out.scrollTop = out.scrollHeight;
  };
  const start = command => {
    current?.close();
    put(`$ ${command}\n`, "quiet");
    const q = new URLSearchParams([["container", choice.value], ["stdout", "true"], ["stderr", "true"], ["command", "sh"], ["command", "-c"], ["command", command]]);
    const s = (current = socket(`${view.path}/exec?${q}`, ["v5.channel.k8s.io", "v4.channel.k8s.io"]));
    const decoders = {[stdout]: new TextDecoder(), [stderr]: new TextDecoder()};
    stop.disabled = false;
    s.onmessage = ({data}) => {
      const [channel] = new Uint8Array(data, 0, 1);
      if (channel === stdout || channel === stderr) put(clean(decoders[channel].decode(data.slice(1), {stream: true})), channel === stderr && "bad");
      if (channel !== status) return;
      const end = decode(new TextDecoder().decode(data.slice(1)));
      if (end.status !== "Success") put(end.message + "\n", "bad");
    };
    s.onclose = e => {
      stop.disabled = current === s;
      if (!e.wasClean && !signal.aborted) put("The connection ended. A right, or a kubelet, may be missing.\n", "bad");
    };
  };
  return h("div", {class: "logview"}, h("p", {class: "tools"}, choice, input, stop), out);
}
