// A Kubernetes API server for tests: start, fork, inject faults. index.d.ts describes the API.
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import https from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

const startTimeout = 30_000;
const stopTimeout = 10_000;

export class ApiError extends Error {
  constructor(code, body) {
    let status = {};
    try {
      status = JSON.parse(body);
    } catch {
      // The answer is no Status.
    }
    super(`${code}: ${status.message ?? body}`);
    this.name = "ApiError";
    this.code = code;
    this.status = status;
  }
}

export class Fault {
  #server;

  constructor(server, id) {
    this.#server = server;
    this.id = id;
  }

  async count() {
    return (await this.#server.request("GET", `/faults/${this.id}`)).count;
  }

  async remove() {
    await this.#server.request("DELETE", `/faults/${this.id}`);
  }
}

export class Endpoint {
  constructor(url, ca, token, directory, name) {
    this.url = url;
    this.ca = ca;
    this.token = token;
    this.kubeconfig = join(directory, `${name}.kubeconfig`);
    const config = {
      apiVersion: "v1",
      kind: "Config",
      "current-context": name,
      clusters: [{ name, cluster: { server: url, "certificate-authority-data": Buffer.from(ca).toString("base64") } }],
      users: [{ name, user: { token } }],
      contexts: [{ name, context: { cluster: name, user: name } }],
    };
    writeFileSync(this.kubeconfig, JSON.stringify(config, null, 2), { mode: 0o600 });
  }

  request(method, path, body, contentType = "application/json") {
    return new Promise((resolve, reject) => {
      const headers = { Authorization: `Bearer ${this.token}`, Accept: "application/json", "Content-Type": contentType };
      const sent = https.request(this.url + path, { method, headers, ca: this.ca, agent: false }, (answer) => {
        const parts = [];
        answer.on("data", (part) => parts.push(part));
        answer.on("error", reject);
        answer.on("end", () => {
          const text = Buffer.concat(parts).toString();
          if (answer.statusCode >= 400) {
            reject(new ApiError(answer.statusCode, text));
            return;
          }
          try {
            resolve(JSON.parse(text));
          } catch (error) {
            reject(error);
          }
        });
      });
      sent.on("error", reject);
      sent.end(body === undefined ? undefined : JSON.stringify(body));
    });
  }

  async inject(fault) {
    return new Fault(this, (await this.request("POST", "/faults", fault)).id);
  }

  async faults() {
    return (await this.request("GET", "/faults")).items;
  }

  async clearFaults() {
    await this.request("DELETE", "/faults");
  }

  [Symbol.asyncDispose]() {
    return this.stop();
  }
}

export class Fork extends Endpoint {
  #server;

  constructor(server, directory, made) {
    super(server.url + made.path, server.ca, server.token, directory, made.name);
    this.name = made.name;
    this.#server = server;
  }

  async stop() {
    await this.#server.request("DELETE", `/forks/${this.name}`);
    rmSync(this.kubeconfig, { force: true });
  }
}

export class Server extends Endpoint {
  #process;
  #directory;
  #forks = 0;
  #stopped;

  constructor(process, url, ca, token, directory) {
    super(url, ca, token, directory, "anykind");
    this.log = logOf(directory);
    this.#process = process;
    this.#directory = directory;
  }

  async fork({ webhooks = "DryRun" } = {}) {
    const made = await this.request("POST", "/forks", { name: `test-${++this.#forks}`, webhooks });
    return new Fork(this, this.#directory, made);
  }

  stop() {
    this.#stopped ??= end(this.#process, this.#directory);
    return this.#stopped;
  }
}

const logOf = (directory) => join(directory, "server.log");

export async function start({ crds, args = [], program = process.env.ANYKIND || "anykind" } = {}) {
  const directory = mkdtempSync(join(tmpdir(), "anykind-"));
  const atExit = () => rmSync(directory, { recursive: true, force: true });
  process.once("exit", atExit);
  const token = randomBytes(16).toString("hex");
  const tokens = join(directory, "tokens.csv");
  writeFileSync(tokens, `${token},anykind-kit,anykind-kit,system:masters\n`, { mode: 0o600 });
  const flags = ["serve", "--in-memory", "--data-dir", directory, "--secure-port", "0", "--token-auth-file", tokens, "--fault-injection", "--stop-with-stdin"];
  if (crds) flags.push("--crds", crds);
  const log = openSync(logOf(directory), "w");
  // The pipe to the standard input ends with this process, and the server with the pipe.
  const child = spawn(program, [...flags, ...args], { stdio: ["pipe", "pipe", log] });
  closeSync(log);
  child.once("close", () => process.removeListener("exit", atExit));
  try {
    const url = await ready(child, directory);
    const ca = /certificate-authority-data: (\S+)/.exec(readFileSync(join(directory, "admin.kubeconfig"), "utf8"))[1];
    for (const part of [child, child.stdin, child.stdout]) part.unref(); // A forgotten server does not keep this process alive.
    return new Server(child, url, Buffer.from(ca, "base64").toString(), token, directory);
  } catch (error) {
    await end(child, directory);
    throw error;
  }
}

/** Wait for the line with the URL, which the server prints when it is ready. */
function ready(child, directory) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => child.kill("SIGKILL"), startTimeout);
    const ended = (code) => {
      clearTimeout(timer);
      reject(new Error(`anykind serve ended with code ${code}: ${readFileSync(logOf(directory), "utf8")}`));
    };
    child.once("close", ended);
    child.once("error", (error) => {
      clearTimeout(timer);
      child.removeListener("close", ended);
      const hint = error.code === "ENOENT" ? ": install anykind, or set the environment variable ANYKIND" : "";
      reject(new Error(`anykind serve did not start${hint}`, { cause: error }));
    });
    createInterface({ input: child.stdout }).on("line", (line) => {
      const found = /listens on (https:\/\/\S+)/.exec(line);
      if (!found) return;
      clearTimeout(timer);
      child.removeListener("close", ended);
      resolve(found[1]);
    });
  });
}

async function end(child, directory) {
  if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) {
    child.ref();
    const timer = setTimeout(() => child.kill("SIGKILL"), stopTimeout);
    const exited = once(child, "exit");
    child.stdin.end();
    await exited;
    clearTimeout(timer);
  }
  rmSync(directory, { recursive: true, force: true });
}
