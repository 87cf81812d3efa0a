import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { after, afterEach, before, beforeEach, describe, test } from "node:test";

import { ApiError, start } from "../index.js";

const client = await import("@kubernetes/client-node").catch(() => null);

const configMaps = "/api/v1/namespaces/default/configmaps";
const crd = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "widgets.example.com" },
  spec: {
    group: "example.com",
    scope: "Namespaced",
    names: { plural: "widgets", kind: "Widget" },
    versions: [{ name: "v1", served: true, storage: true, schema: { openAPIV3Schema: {
      type: "object", properties: { spec: { type: "object", properties: { size: { type: "integer" } } } },
    } } }],
  },
};
const widget = (name, size) => ({ apiVersion: "example.com/v1", kind: "Widget", metadata: { name }, spec: { size } });

describe("a server", () => {
  let server, fork, crds;

  before(async () => {
    crds = mkdtempSync(join(tmpdir(), "crds-"));
    writeFileSync(join(crds, "widgets.json"), JSON.stringify(crd));
    server = await start({ crds });
  });
  after(async () => {
    await server?.stop();
    rmSync(crds, { recursive: true });
  });
  beforeEach(async () => { fork = await server.fork(); });
  afterEach(async () => { await fork.stop(); });

  test("serves definitions", async () => {
    const widgets = "/apis/example.com/v1/namespaces/default/widgets";
    assert.deepEqual((await fork.request("POST", widgets, widget("a", 1))).spec, { size: 1 });
    await assert.rejects(fork.request("POST", widgets, widget("b", "large")), (error) => error instanceof ApiError && error.code === 422 && error.status.reason === "Invalid");
  });

  test("does not see the changes of its forks", async () => {
    await fork.request("POST", configMaps, { metadata: { name: "a" } });
    const other = await server.fork();
    for (const apart of [server, other]) await assert.rejects(apart.request("GET", `${configMaps}/a`), { code: 404 });
    await other.stop();
  });

  test("fails a request with a status", async () => {
    const fault = await fork.inject({ verbs: ["create"], resources: ["configmaps"], effect: { type: "status", code: 409, message: "not now" } });
    await assert.rejects(fork.request("POST", configMaps, { metadata: { name: "a" } }), { code: 409, message: "409: not now" });
    await fork.request("POST", configMaps, { metadata: { name: "a" } });
    assert.equal(await fault.count(), 1);
    await fault.remove();
    assert.deepEqual(await fork.faults(), []);
  });

  test("loses connections", async () => {
    for (const [type, exists] of [["hangUp", false], ["loseAnswer", true]]) {
      const name = type.toLowerCase();
      await fork.inject({ verbs: ["create"], resources: ["configmaps"], effect: { type } });
      await assert.rejects(fork.request("POST", configMaps, { metadata: { name } }), { code: "ECONNRESET" });
      const { items } = await fork.request("GET", configMaps);
      assert.equal(items.some((o) => o.metadata.name === name), exists);
    }
  });

  test("delays a request", async () => {
    await fork.inject({ resources: ["secrets"], effect: { type: "delay", duration: "200ms" } });
    const began = performance.now();
    await fork.request("GET", "/api/v1/secrets");
    assert.ok(performance.now() - began >= 199);
    await fork.clearFaults();
  });

  test("rejects an invalid fault", async () => {
    await assert.rejects(fork.inject({ effect: { type: "explode" } }), (error) => error.code === 422 && error.status.details.causes[0].field === "effect.type");
  });

  test("works with @kubernetes/client-node", { skip: !client && "@kubernetes/client-node is not installed" }, async () => {
    const config = new client.KubeConfig();
    config.loadFromFile(fork.kubeconfig);
    const api = config.makeApiClient(client.CoreV1Api);
    const namespace = "default";
    const body = await api.createNamespacedConfigMap({ namespace, body: { metadata: { name: "a" }, data: { k: "v" } } });
    const fault = await fork.inject({ verbs: ["update"], resources: ["configmaps"], effect: { type: "status", code: 409 } });
    await assert.rejects(api.replaceNamespacedConfigMap({ name: "a", namespace, body }), { code: 409 });
    body.data.k = "w";
    assert.deepEqual((await api.replaceNamespacedConfigMap({ name: "a", namespace, body })).data, { k: "w" });
    assert.equal(await fault.count(), 1);

    let watch;
    const seen = new Promise((resolve) => {
      watch = new client.Watch(config).watch(configMaps, { fieldSelector: "metadata.name=a" }, (type, object) => resolve([type, object.data.k]), () => {});
    });
    assert.deepEqual(await seen, ["ADDED", "w"]);
    (await watch).abort();
  });
});

test("stop removes the server and its files", async () => {
  const server = await start();
  await server.stop();
  await server.stop();
  assert.equal(existsSync(dirname(server.kubeconfig)), false);
  await assert.rejects(server.request("GET", "/version"), { code: "ECONNREFUSED" });
});

test("a failed start has the log", async () => {
  await assert.rejects(start({ args: ["--no-such-flag"] }), /unknown flag: --no-such-flag/);
  await assert.rejects(start({ program: join(tmpdir(), "no-such-program") }), /install anykind/);
});

test("the server ends with its process, even if that is killed", async () => {
  const code = `import { start } from ${JSON.stringify(new URL("../index.js", import.meta.url).href)};
    const server = await start(); console.log(server.url, server.log); setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", code], { stdio: ["ignore", "pipe", "inherit"] });
  const [line] = await once(createInterface({ input: child.stdout }), "line");
  const [url, log] = line.split(" ");
  child.kill("SIGKILL");
  for (;;) {
    const socket = net.connect(Number(new URL(url).port), "127.0.0.1");
    const refused = await new Promise((resolve) => socket.once("connect", () => resolve(false)).once("error", () => resolve(true)));
    socket.destroy();
    if (refused) break;
  }
  rmSync(dirname(log), { recursive: true });
});

test("a forgotten server does not keep its process alive", async () => {
  const code = `import { start } from ${JSON.stringify(new URL("../index.js", import.meta.url).href)};
    const server = await start(); console.log(server.log);`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", code], { stdio: ["ignore", "pipe", "inherit"] });
  const [[line], [exit]] = await Promise.all([once(createInterface({ input: child.stdout }), "line"), once(child, "exit")]);
  assert.equal(exit, 0);
  assert.equal(existsSync(line), false);
});
