import { Backoff } from "../concurrency/backoff.ts";
import type { Routes, Schemas } from "./api-types.ts";
import { ClientError } from "./client-error.ts";
import { EventStream, type FollowOptions } from "./event-stream.ts";
import type { ServerEvent, SessionEvent } from "./events.ts";
import { newId } from "./new-id.ts";
import { type CallOptions, type Query, type TokenSource, Transport } from "./transport.ts";

export type { JsonValue, Routes, Schemas } from "./api-types.ts";
export { ClientError, type FieldError } from "./client-error.ts";
export type { FollowOptions } from "./event-stream.ts";
export type { ServerEvent, SessionEvent, StepDelta } from "./events.ts";
export type { CallOptions, Query } from "./transport.ts";

export type ClientOptions = {
  /** Default `http://127.0.0.1:4180`; in a browser the page's origin. */
  url?: string;
  token?: TokenSource;
  /** Time limit of a call in milliseconds. Default 30 000; 0: no limit. */
  timeout_ms?: number;
  /** How often a call is retried if no response came and repeating it is safe. Default 2. */
  retries?: number;
};

/** A call of the API: `GET /api/sessions/{session_id}`. */
export type Route = keyof Routes;
type Input<Name extends Route> = Omit<Routes[Name], "answer">;
type Arguments<Name extends Route> =
  Partial<Input<Name>> extends Input<Name> ? [input?: Input<Name> & CallOptions] : [input: Input<Name> & CallOptions];
export type Answer<Name extends Route> = Routes[Name]["answer"];
type Body<Name extends Route> = Routes[Name] extends { body: infer Sent }
  ? Sent
  : Routes[Name] extends { body?: infer Sent }
    ? NonNullable<Sent>
    : never;

type Accepted = Answer<"POST /api/agents">;
type Verb = "pause" | "resume" | "destroy" | "interrupt" | "answer";
type Request = { user_id?: string; metadata?: { [key: string]: unknown }; [field: string]: unknown };

export type SessionFollowOptions = FollowOptions & {
  /** The last known iteration; -1 for the beginning of a session. By default only new events are delivered. */
  after?: number;
  /** Ends with the session: after its last step and its last row. */
  until_ended?: boolean;
};

const TIMEOUT_MS = 30_000;
const RETRIES = 2;
const RETRY_MS = 100;
const LONGEST_RETRY_MS = 2000;
const PAGE = 500;

/**
 * A server's API: every call typed by its OpenAPI document, and its events.
 *
 * CLIENT-4  A call is retried only if that does nothing twice. `create`, `fork` and `say` choose the id that makes them
 *           idempotent; a request to a session carries `metadata.request_id`, which is looked up before it is sent again.
 * CLIENT-5  `events` yields each step once, including failed attempts, which the server repeats after a reconnect.
 */
export class EverstepClient {
  readonly #transport: Transport;

  constructor({ url = defaultUrl(), token, timeout_ms = TIMEOUT_MS, retries = RETRIES }: ClientOptions = {}) {
    this.#transport = new Transport({ url, token, timeout_ms, retries });
  }

  get url(): string {
    return this.#transport.url;
  }

  /** Any call of the API. */
  request<Name extends Route>(route: Name, ...[input]: Arguments<Name>): Promise<Answer<Name>> {
    const {
      path = {},
      query,
      body,
      ...options
    } = (input ?? {}) as CallOptions & {
      path?: Record<string, string | number>;
      query?: Query;
      body?: unknown;
    };
    const space = route.indexOf(" ");
    const filled = route
      .slice(space + 1)
      .replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(path[name] ?? ""));
    return this.call(route.slice(0, space), filled, { ...options, query, body }) as Promise<Answer<Name>>;
  }

  /** A call by its path, for what has no type. */
  call(
    method: string,
    path: string,
    options: CallOptions & { query?: Query | undefined; body?: unknown } = {},
  ): Promise<unknown> {
    return this.#transport.call(method, path, options);
  }

  /** Starts a session. */
  create(request: Body<"POST /api/agents">, options: CallOptions = {}): Promise<Accepted> {
    return this.#repeatable("/api/agents", { ...request, session_id: request.session_id ?? newId() }, options);
  }

  /** A new session that continues from another's step. */
  fork(
    session_id: string,
    request: Body<"POST /api/sessions/{session_id}/fork">,
    options: CallOptions = {},
  ): Promise<Accepted> {
    const body = { ...request, session_id: request.session_id ?? newId() };
    return this.#repeatable(sessionPath(session_id, "fork"), body, options);
  }

  /** Says something in a conversation. */
  say(
    conversation_id: string,
    message: Body<"POST /api/conversations/{conversation_id}/messages">,
    options: CallOptions = {},
  ): Promise<Answer<"POST /api/conversations/{conversation_id}/messages">> {
    const path = `/api/conversations/${encodeURIComponent(conversation_id)}/messages`;
    return this.#repeatable(path, { ...message, message_id: message.message_id ?? newId() }, options);
  }

  pause(session_id: string, request: Body<"POST /api/sessions/{session_id}/pause"> = {}): Promise<Accepted> {
    return this.act(session_id, "pause", request);
  }

  resume(session_id: string, request: Body<"POST /api/sessions/{session_id}/resume"> = {}): Promise<Accepted> {
    return this.act(session_id, "resume", request);
  }

  destroy(session_id: string, request: Body<"POST /api/sessions/{session_id}/destroy"> = {}): Promise<Accepted> {
    return this.act(session_id, "destroy", request);
  }

  /** Sends guidance to the next step; with `mode: "now"` the running step is aborted and runs again with it. */
  guide(
    session_id: string,
    guidance: unknown,
    request: Omit<Body<"POST /api/sessions/{session_id}/interrupt">, "guidance"> = {},
  ): Promise<Accepted> {
    return this.act(session_id, "interrupt", { ...request, guidance });
  }

  answer(
    session_id: string,
    answer: unknown,
    request: Omit<Body<"POST /api/sessions/{session_id}/answer">, "answer"> = {},
  ): Promise<Accepted> {
    return this.act(session_id, "answer", { ...request, answer });
  }

  /** CLIENT-4. With the caller's own `request_id` in the metadata it also does nothing twice across restarts of the caller. */
  async act(session_id: string, verb: Verb, request: Request, options: CallOptions = {}): Promise<Accepted> {
    const request_id = request.metadata?.["request_id"];
    const id = typeof request_id === "string" ? request_id : newId();
    const body = { ...request, metadata: { ...request.metadata, request_id: id } };
    const backoff = new Backoff(RETRY_MS, LONGEST_RETRY_MS);
    let before = id === request_id ? await this.#findRequest(session_id, id, options) : null;
    for (let left = this.#transport.retries; ; left -= 1) {
      if (before) return before;
      try {
        return (await this.call("POST", sessionPath(session_id, verb), { ...options, body })) as Accepted;
      } catch (error) {
        if (left === 0 || !(error instanceof ClientError && error.isInDoubt)) throw error;
      }
      await backoff.wait(options.signal);
      before = await this.#findRequest(session_id, id, options);
    }
  }

  async #findRequest(session_id: string, request_id: string, options: CallOptions): Promise<Accepted | null> {
    const query = { session_id, limit: PAGE };
    const { actions } = await this.request("GET /api/actions", { query, ...options });
    const action = actions.find(({ metadata }) => metadata["request_id"] === request_id);
    return action ? { action_id: action.action_id, agent_id: action.agent_id ?? "", session_id } : null;
  }

  async #repeatable<Accepting>(path: string, body: object, options: CallOptions): Promise<Accepting> {
    return (await this.#transport.call("POST", path, { ...options, body, is_repeatable: true })) as Accepting;
  }

  /** A session's steps after an iteration, page by page. */
  async *steps(
    session_id: string,
    after = -1,
    options: CallOptions = {},
  ): AsyncGenerator<Schemas["Step"], void, undefined> {
    for (let offset = 0; ; offset += PAGE) {
      const query = { session_id, after_iteration: after, limit: PAGE, offset };
      const { steps } = await this.request("GET /api/agent-steps", { query, ...options });
      yield* steps as Schemas["Step"][];
      if (steps.length < PAGE) return;
    }
  }

  /** A session's events, starting with its current row, across lost connections and restarts of the server. */
  async *events(session_id: string, options: SessionFollowOptions = {}): AsyncGenerator<SessionEvent, void, undefined> {
    const { after, until_ended = false, ...follow } = options;
    const once = new StepsOnce(after ?? null);
    const cursor = after === undefined ? null : String(after);
    const stream = new EventStream(this.#transport, sessionPath(session_id, "events"), cursor, follow);
    for await (const block of stream.events()) {
      const event = { type: block.event, data: JSON.parse(block.data), id: block.id } as SessionEvent;
      if (event.type === "agent_step" && !once.isNew(event.data)) continue;
      const isOver = until_ended && event.type === "agent_state_update" && event.data.ended_at !== null;
      // The row may overtake the last steps, which were committed with it or before.
      if (isOver && !once.isWhole(event.data)) yield* this.#lastSteps(event.data, once, follow);
      yield event;
      if (isOver) return;
    }
  }

  async *#lastSteps(
    session: Schemas["Session"],
    once: StepsOnce,
    { signal }: FollowOptions,
  ): AsyncGenerator<SessionEvent> {
    for await (const data of this.steps(session.session_id, once.last ?? session.iteration, { signal }))
      if (once.isNew(data)) yield { type: "agent_step", data, id: null };
  }

  /** All events of the server. `after` is the `id` of the last known event; rows around it may be repeated. */
  async *allEvents({
    after,
    ...follow
  }: FollowOptions & { after?: string } = {}): AsyncGenerator<ServerEvent, void, undefined> {
    const stream = new EventStream(this.#transport, "/api/events", after ?? null, follow);
    for await (const { event, data, id } of stream.events())
      yield { type: event, data: JSON.parse(data), id } as ServerEvent;
  }
}

/** CLIENT-5. */
class StepsOnce {
  /** The last committed iteration; null if none was requested and none arrived. */
  last: number | null;
  /** Failed attempts at the iteration after that. */
  readonly #failed = new Set<string>();

  constructor(after: number | null) {
    this.last = after;
  }

  /** Whether there can be no further step: only a session that is done has no failed attempt after its last one. */
  isWhole({ status, iteration }: Schemas["Session"]): boolean {
    return status === "done" && this.last === iteration;
  }

  isNew({ id, iteration, status }: Schemas["Step"]): boolean {
    if ((this.last !== null && iteration <= this.last) || this.#failed.has(id)) return false;
    if (status === "ok") {
      this.last = iteration;
      this.#failed.clear();
    } else this.#failed.add(id);
    return true;
  }
}

const sessionPath = (session_id: string, rest: string): string =>
  `/api/sessions/${encodeURIComponent(session_id)}/${rest}`;

/** The page's own origin, if there is a page. */
function defaultUrl(): string {
  const { location } = globalThis as { location?: { origin: string } };
  return location?.origin ?? "http://127.0.0.1:4180";
}
