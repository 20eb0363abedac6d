import { z } from "zod";
import { ClientError, EverstepClient, type Query, type SessionFollowOptions } from "../../../client/client.ts";
import { type Action, actionSchema } from "../../../domain/action.ts";
import { redactUrl } from "../../../domain/redact.ts";
import { type Session, sessionSchema } from "../../../domain/session.ts";
import { type Step, stepSchema } from "../../../domain/step.ts";
import { PlatformError, type ResetOutcome } from "./platform-client.ts";

const LIMIT_MS = 5000;
const STEPS_AT_ONCE = 20;
const PAGE = 500;

/** The person behind a request, and the id under which its action can be found again. */
type Sender = { user_id?: string; request_id?: string };
type Verb = Parameters<EverstepClient["act"]>[1];

/** The HTTP API of the runtime behind the agent, as far as the bot needs it. The bot has its own retries, by job. */
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

  /** Who asked, and under which id, is kept with the action, so that its receipt says so. With an id it is done once, however often it is asked for. */
  async submit(session_id: string, verb: Verb, payload: object, sender: Sender): Promise<string> {
    const { user_id, request_id } = sender;
    const metadata = { surface: "matrix", ...(request_id === undefined ? {} : { request_id }) };
    const body = { ...payload, ...(user_id === undefined ? {} : { user_id }), metadata };
    return (await told(() => this.#client.act(session_id, verb, body))).action_id;
  }

  action(action_id: string): Promise<Action> {
    return this.#read(actionSchema, `/api/actions/${encodeURIComponent(action_id)}`);
  }

  /** The newest ones, newest first. */
  async actions(session_id: string): Promise<Action[]> {
    const list = z.object({ actions: z.array(actionSchema) });
    return (await this.#read(list, "/api/actions", { session_id, limit: PAGE })).actions;
  }

  /** The steps of an answer that begins with this iteration: it goes on while they say so. Null while it is not complete. */
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
      if (error instanceof PlatformError && error.cause instanceof ClientError && error.cause.status === 404)
        return null;
      throw error;
    }
  }

  /** Every runtime has its lists: where one is missing there is none. */
  async #list<Shape>(schema: z.ZodType<Shape>, path: string, query: Query = {}): Promise<Shape> {
    try {
      return await this.#read(schema, path, query);
    } catch (error) {
      if (error instanceof PlatformError && error.cause instanceof ClientError && error.cause.status === 404)
        throw new PlatformError("the agent behind this bot has no runtime that can be steered", { cause: error });
      throw error;
    }
  }

  async #read<Shape>(schema: z.ZodType<Shape>, path: string, query: Query = {}): Promise<Shape> {
    const parsed = schema.safeParse(await told(() => this.#client.call("GET", path, { query })));
    if (parsed.success) return parsed.data;
    throw new PlatformError(`${redactUrl(this.#client.url)} answers in a way that this version does not know`);
  }
}

/** A failed call in words for a person. */
async function told<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
  try {
    return await ask();
  } catch (error) {
    if (!(error instanceof ClientError)) throw error;
    throw new PlatformError(error.what, { cause: error });
  }
}
