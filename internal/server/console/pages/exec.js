// A command in a container of a pod, over a WebSocket.
import {decode, socket} from "./api.js";
import {h} from "./dom.js";

const [stdin, stdout, stderr, status, size] = [0, 1, 2, 3, 4]; // channels of the protocol

// containers returns the choice of a container of a pod.
export function containers(pod, change) {
  return h("select", {"aria-label": "Container", change}, (pod.spec?.containers ?? []).map(c => h("option", {value: c.name}, c.name)));
}

// A Command runs in a container. each gets its output, with true for that of errors; ended gets the reason if it has failed, or else "".
export class Command {
  constructor(view, container, command, {terminal, opened = () => {}, each, ended}) {
    const q = new URLSearchParams([["container", container], ["stdout", "true"], ...(terminal ? [["stdin", "true"], ["tty", "true"]] : [["stderr", "true"]]), ["command", "sh"], ["command", "-c"], ["command", command]]);
    this.socket = socket(`${view.path}/exec?${q}`, ["v5.channel.k8s.io", "v4.channel.k8s.io"]);
    const decoders = {[stdout]: new TextDecoder(), [stderr]: new TextDecoder()};
    let reason = "";
    this.socket.onopen = opened;
    this.socket.onmessage = ({data}) => {
      const [channel] = new Uint8Array(data, 0, 1);
      if (decoders[channel]) each(decoders[channel].decode(data.slice(1), {stream: true}), channel === stderr);
      if (channel !== status) return;
      const end = decode(new TextDecoder().decode(data.slice(1)));
      if (end.status !== "Success") reason = end.message;
    };
    this.socket.onclose = e => this.closed || ended(reason || (e.wasClean ? "" : "The connection ended. A right, a kubelet, or a shell in the image may be missing."));
  }

  // close ends the command. ended is not called.
  close() {
    this.closed = true;
    this.socket.close();
  }

  send(text) {
    this.write(stdin, text);
  }

  resize(Width, Height) {
    this.write(size, JSON.stringify({Width, Height}));
  }

  write(channel, text) {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(new Uint8Array([channel, ...new TextEncoder().encode(text)]));
  }
}
