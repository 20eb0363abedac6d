import { z } from "zod";
import { ClientError, EverstepClient, type Query, type SessionFollowOptions } from "../../../client/client.ts";
import { type Action, actionSchema } from "../../../domain/action.ts";
import { redactUrl } from "../../../domain/redact.ts";
import { type Session, sessionSchema } from "../../../domain/session.ts";
import { type Step, stepSchema } from "../../../domain/step.ts";
import type { CostGroup } from "../state/jobs.ts";
import {
  type Costs,
  type ForkRequest,
  PlatformError,
  type ResetOutcome,
  type StartRequest,
} from "./platform-client.ts";

const LIMIT_MS = 5000;
const STEPS_AT_ONCE = 20;
const PAGE = 500;
const INBOX = 20;

/** The person behind a request, and the id by which its action can be found again. */
type Sender = { user_id?: string; request_id?: string };
type Verb = Parameters<EverstepClient["act"]>[1];

const sumSchema = z.object({ sessions: z.int(), tokens_used: z.number(), cost_usd: z.number() });
const costsSchema = z.object({
  since: z.string(),
  total: sumSchema,
  costs: z.array(sumSchema.extend({ key: z.string().nullable() })),
});

/** The part of the HTTP API of the runtime that the bot needs. It does not retry: jobs do. */
export class RuntimeHttp {
  readonly #client: EverstepClient;

  constructor(url: string, token: string | undefined) {
    this.#client = new EverstepClient({ url, token, timeout_ms: LIMIT_MS, retries: 0 });
  }

  async reset(): Promise<ResetOutcome> {
    try {
      await this.#client.request("POST /reset");
      return { kind: "reset" };
    } catch (error) {
      if (!(error instanceof ClientError)) throw error;
      if (error.status === 404) return { kind: "missing" };
      if (error.code === "server_timeout") return { kind: "timeout" };
      return { kind: "refused", reason: error.what };
    }
  }

  async sessions(): Promise<Session[]> {
    const agents = z.object({ agents: z.array(z.object({ latest: sessionSchema })) });
    return (await this.#list(agents, "/api/agents")).agents.map(({ latest }) => latest);
  }

  session(session_id: string): Promise<Session | null> {
    return this.#find(sessionSchema, `/api/sessions/${encodeURIComponent(session_id)}`);
  }

  async findSessions(name: string): Promise<Session[]> {
    const exact = await this.session(name);
    if (exact) return [exact];
    const agent = await this.#find(z.object({ latest: sessionSchema }), `/api/agents/${encodeURIComponent(name)}`);
    if (agent) return [agent.latest];
    const list = z.object({ sessions: z.array(sessionSchema) });
    const { sessions } = await this.#list(list, "/api/sessions", { limit: PAGE });
    return sessions.filter(({ session_id }) => session_id.startsWith(name));
  }

  /** The sender and the request's id are stored with the action. A request with an id is carried out once, however often it is submitted. */
  async submit(session_id: string, verb: Verb, payload: object, sender: Sender): Promise<string> {
    return (await withReadableError(() => this.#client.act(session_id, verb, { ...payload, ...bySender(sender) })))
      .action_id;
  }

  /** Starting and forking happen once per `session_id`. */
  async start(request: StartRequest, sender: Sender): Promise<string> {
    const create = () => withReadableError(() => this.#client.create({ ...request, ...bySender(sender) }));
    try {
      return (await ofRuntime(create)).action_id;
    } catch (error) {
      const monikers = await this.#monikers();
      if (monikers.length === 0 || monikers.includes(request.moniker)) throw error;
      const what = `no moniker is named ${JSON.stringify(request.moniker)}; there are ${monikers.join(", ")}`;
      throw new PlatformError(what, { cause: error });
    }
  }

  async fork(session_id: string, request: ForkRequest, sender: Sender): Promise<string> {
    return (await withReadableError(() => this.#client.fork(session_id, { ...request, ...bySender(sender) })))
      .action_id;
  }

  /** Their names; empty if they cannot be listed. */
  async #monikers(): Promise<string[]> {
    const list = z.object({ monikers: z.array(z.object({ name: z.string() })) });
    const { monikers } = await this.#read(list, "/api/monikers").catch(() => ({ monikers: [] }));
    return monikers.map(({ name }) => name);
  }

  async inbox(): Promise<Session[]> {
    const list = z.object({ sessions: z.array(sessionSchema) });
    return (await this.#list(list, "/api/sessions", { needs_person: true, limit: INBOX })).sessions;
  }

  async costs(by: CostGroup): Promise<Costs> {
    const { since, total, costs } = await this.#list(costsSchema, "/api/costs", { by });
    return { since, total, groups: costs };
  }

  /** Null if the runtime does not know it (any more). */
  findAction(action_id: string): Promise<Action | null> {
    return this.#find(actionSchema, `/api/actions/${encodeURIComponent(action_id)}`);
  }

  action(action_id: string): Promise<Action> {
    return this.#read(actionSchema, `/api/actions/${encodeURIComponent(action_id)}`);
  }

  /** The most recent actions, newest first. */
  async actions(session_id: string): Promise<Action[]> {
    const list = z.object({ actions: z.array(actionSchema) });
    return (await this.#read(list, "/api/actions", { session_id, limit: PAGE })).actions;
  }

  /** The steps of the answer that begins with this iteration. Null while it is not complete. */
  async answerFrom(session_id: string, iteration: number): Promise<Step[] | null> {
    const answer: Step[] = [];
    for (;;) {
      const first = iteration + answer.length;
      const range = { session_id, min_iteration: first, max_iteration: first + STEPS_AT_ONCE - 1, status: "ok" };
      const { steps } = await this.#read(z.object({ steps: z.array(stepSchema) }), "/api/agent-steps", range);
      const last = steps.findIndex(({ directives }) => !directives?.go_on);
      if (last !== -1) return [...answer, ...steps.slice(0, last + 1)];
      if (steps.length < STEPS_AT_ONCE) return null;
      answer.push(...steps);
    }
  }

  events(session_id: string, options: SessionFollowOptions): ReturnType<EverstepClient["events"]> {
    return this.#client.events(session_id, options);
  }

  async #find<Shape>(schema: z.ZodType<Shape>, path: string): Promise<Shape | null> {
    try {
      return await this.#read(schema, path);
    } catch (error) {
      if (isMissing(error)) return null;
      throw error;
    }
  }

  #list<Shape>(schema: z.ZodType<Shape>, path: string, query: Query = {}): Promise<Shape> {
    return ofRuntime(() => this.#read(schema, path, query));
  }

  async #read<Shape>(schema: z.ZodType<Shape>, path: string, query: Query = {}): Promise<Shape> {
    const parsed = schema.safeParse(await withReadableError(() => this.#client.call("GET", path, { query })));
    if (parsed.success) return parsed.data;
    throw new PlatformError(`${redactUrl(this.#client.url)} answers in a way that this version does not know`);
  }
}

function bySender({ user_id, request_id }: Sender): { user_id?: string; metadata: Record<string, string> } {
  const metadata = { surface: "matrix", ...(request_id === undefined ? {} : { request_id }) };
  return { ...(user_id === undefined ? {} : { user_id }), metadata };
}

const isMissing = (error: unknown): boolean =>
  error instanceof PlatformError && error.cause instanceof ClientError && error.cause.status === 404;

/** For endpoints that every runtime has: where one is missing, there is no runtime. */
async function ofRuntime<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
  try {
    return await ask();
  } catch (error) {
    if (!isMissing(error)) throw error;
    throw new PlatformError("the agent behind this bot has no runtime that can be steered", { cause: error });
  }
}

/** Turns a failed call into an error with words for a person. */
async function withReadableError<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
  try {
    return await ask();
  } catch (error) {
    if (!(error instanceof ClientError)) throw error;
    throw new PlatformError(error.what, { cause: error });
  }
}
