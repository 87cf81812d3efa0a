/** Start a server, and wait until it is ready. It ends with stop() and with this process. */
export function start(options?: StartOptions): Promise<Server>;

export interface StartOptions {
  /** File or folder with CustomResourceDefinitions. */
  crds?: string;
  /** Further flags of anykind serve. */
  args?: string[];
  /** Path of the program; default: the environment variable ANYKIND, then anykind in PATH. */
  program?: string;
}

/** A server or a fork. */
export abstract class Endpoint {
  readonly url: string;
  /** The CA certificate, PEM. */
  readonly ca: string;
  /** Bearer token of an administrator. */
  readonly token: string;
  /** Path of a kubeconfig of the administrator. */
  readonly kubeconfig: string;
  /** Send a request as the administrator, and return the decoded answer. The body becomes JSON. */
  request(method: string, path: string, body?: unknown, contentType?: string): Promise<any>;
  inject(fault: FaultSpec): Promise<Fault>;
  /** All faults, with their counts. */
  faults(): Promise<FaultState[]>;
  /** End all faults. */
  clearFaults(): Promise<void>;
  /** Stop the server, or delete the fork with its objects. */
  stop(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export class Server extends Endpoint {
  /** Path of the log. */
  readonly log: string;
  /** Copy the server in a millisecond. Neither sees the changes of the other. */
  fork(options?: { webhooks?: "DryRun" | "None" }): Promise<Fork>;
}

export class Fork extends Endpoint {
  readonly name: string;
}

export class Fault {
  readonly id: string;
  /** The number of affected requests. */
  count(): Promise<number>;
  remove(): Promise<void>;
}

export type Verb =
  | "*" | "read" | "write"
  | "create" | "delete" | "deletecollection" | "get" | "list" | "patch" | "update" | "watch";

export type Effect =
  | { type: "status"; code: number; reason?: string; message?: string; retryAfterSeconds?: number }
  | { type: "delay"; duration: string }
  | { type: "hangUp" }
  | { type: "loseAnswer" }
  | { type: "staleView"; resourceVersion: string }
  | { type: "holdEvents" };

/** Selected requests and their fault. An empty list selects everything, except that of subresources. */
export interface FaultSpec {
  verbs?: Verb[];
  groups?: string[];
  resources?: string[];
  subresources?: string[];
  namespaces?: string[];
  names?: string[];
  users?: string[];
  /** Prefixes of the header User-Agent. */
  userAgents?: string[];
  /** Number of first requests without the fault. */
  skip?: number;
  /** Number of requests with the fault; default 1, -1 for all. */
  times?: number;
  effect: Effect;
}

export interface FaultState extends FaultSpec {
  id: string;
  /** Number of selected requests. */
  matched: number;
  /** Number of affected requests. */
  count: number;
}

/** The server rejected a request. */
export class ApiError extends Error {
  readonly code: number;
  /** The Status of the answer. */
  readonly status: { reason?: string; message?: string; details?: any; [field: string]: unknown };
}
