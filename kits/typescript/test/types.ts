// The compiler checks this file against index.d.ts: npm run types.
import { ApiError, start, type FaultSpec, type Server } from "../index.js";

export async function example(): Promise<number> {
  const server: Server = await start({ crds: "crds" });
  const fork = await server.fork({ webhooks: "None" });
  const spec: FaultSpec = { verbs: ["update"], resources: ["configmaps"], effect: { type: "status", code: 409 } };
  const fault = await fork.inject(spec);
  try {
    await fork.request("GET", "/version");
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    console.log(error.status.reason);
  }
  // @ts-expect-error: a delay has a duration.
  await fork.inject({ effect: { type: "delay" } });
  // @ts-expect-error: POST is no verb of Kubernetes.
  await fork.inject({ verbs: ["POST"], effect: { type: "hangUp" } });
  const count = await fault.count();
  await fork.stop();
  await server.stop();
  return count;
}
