// The logs of a pod, as they are written.
import {stream} from "./api.js";
import {fill, h} from "./dom.js";

const kept = 5000; // parts

// logs returns the tab with the logs of a pod.
export function logs(view, signal) {
  const spec = view.object.spec ?? {};
  const all = [...(spec.initContainers ?? []), ...(spec.containers ?? [])].map(c => c.name);
  const out = h("pre", {class: "logs", tabindex: 0, "aria-label": "Log"});
  const choice = h("select", {"aria-label": "Container", change: () => run()}, all.map(c => h("option", {value: c, selected: c === spec.containers?.[0]?.name}, c)));
  const previous = h("input", {type: "checkbox", change: () => run()});
  let stop;
  signal.addEventListener("abort", () => stop?.abort());
  const run = async () => {
    stop?.abort();
    stop = new AbortController();
    fill(out, "");
    const q = new URLSearchParams({container: choice.value, tailLines: "1000", ...(previous.checked ? {previous: "true"} : {follow: "true"})});
    try {
      await stream(`${view.path}/log?${q}`, {signal: stop.signal, each: words => {
        const end = out.scrollTop + out.clientHeight > out.scrollHeight - 40;
        out.append(clean(words));
        while (out.childNodes.length > kept) out.firstChild.remove();
        if (end) out.scrollTop = out.scrollHeight;
      }});
    } catch (e) {
      if (!stop.signal.aborted) out.append(h("span", {class: "bad"}, e.message));
    }
  };
  run();
  return h("div", {class: "logview"}, h("p", {class: "tools"}, choice, h("label", {class: "check"}, previous, "previous run")), out);
}

// clean removes the escape sequences of terminals, and control characters.
export const clean = s => s.replace(/\u001b(\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(\u0007|\u001b\\)?|[@-_])/g, "").replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, "");
