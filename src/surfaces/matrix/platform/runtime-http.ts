import { z } from "zod";
import { type Action, actionSchema } from "../../../domain/action.ts";
import { redactUrl } from "../../../domain/redact.ts";
import { type Session, sessionSchema } from "../../../domain/session.ts";
import { type Step, stepSchema } from "../../../domain/step.ts";
import { PlatformError } from "./platform-client.ts";

const LIMIT_MS = 5000;
const STEPS_AT_ONCE = 20;
/** An error as the runtime tells it. */
export const problemSchema = z.object({ detail: z.string() });

/** The person behind a request, and the id under which its action can be found again. */
type Sender = { user_id?: string; request_id?: string };

export type HttpAnswer = { status: number; body: unknown };

/** The HTTP API of the runtime behind the agent, as far as the bot needs it. */
export class RuntimeHttp {
  readonly #base: string;
  readonly #token: string | undefined;

  constructor(base: string, token: string | undefined) {
    this.#base = base.replace(/\/$/, "");
    this.#token = token;
  }

  /** Throws only where there is no answer at all: `TimeoutError`, or what the network says. */
  async call(method: "GET" | "POST", path: string, body?: unknown): Promise<HttpAnswer> {
    const response = await fetch(`${this.#base}${path}`, {
      method,
      headers: {
        ...(this.#token === undefined ? {} : { authorization: `Bearer ${this.#token}` }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(LIMIT_MS),
    });
    return { status: response.status, body: parse(await response.text()) };
  }

  async sessions(): Promise<Session[]> {
    const agents = z.object({ agents: z.array(z.object({ latest: sessionSchema })) });
    return (await this.#read(agents, "GET", "/api/agents")).agents.map(({ latest }) => latest);
  }

  async findSessions(name: string): Promise<Session[]> {
    const exact = await this.#find(sessionSchema, `/api/sessions/${encodeURIComponent(name)}`);
    if (exact) return [exact];
    const agent = await this.#find(z.object({ latest: sessionSchema }), `/api/agents/${encodeURIComponent(name)}`);
    if (agent) return [agent.latest];
    const list = z.object({ sessions: z.array(sessionSchema) });
    const { sessions } = await this.#read(list, "GET", "/api/sessions?limit=500");
    return sessions.filter(({ session_id }) => session_id.startsWith(name));
  }

  /** Who asked, and under which id, is kept with the action, so that its receipt says so. */
  async submit(session_id: string, verb: string, payload: object, sender: Sender): Promise<string> {
    const path = `/api/sessions/${encodeURIComponent(session_id)}/${verb}`;
    const { user_id, request_id } = sender;
    const metadata = { surface: "matrix", ...(request_id === undefined ? {} : { request_id }) };
    const body = { ...payload, ...(user_id === undefined ? {} : { user_id }), metadata };
    return (await this.#read(z.object({ action_id: z.string() }), "POST", path, body)).action_id;
  }

  action(action_id: string): Promise<Action> {
    return this.#read(actionSchema, "GET", `/api/actions/${encodeURIComponent(action_id)}`);
  }

  /** The newest ones, newest first. */
  async actions(session_id: string): Promise<Action[]> {
    const path = `/api/actions?session_id=${encodeURIComponent(session_id)}&limit=500`;
    return (await this.#read(z.object({ actions: z.array(actionSchema) }), "GET", path)).actions;
  }

  /** The steps of an answer that begins with this iteration: it goes on while they say so. Null while it is not complete. */
  async answerFrom(session_id: string, iteration: number): Promise<Step[] | null> {
    const answer: Step[] = [];
    for (;;) {
      const first = iteration + answer.length;
      const path = `/api/agent-steps?session_id=${encodeURIComponent(session_id)}&min_iteration=${first}&max_iteration=${first + STEPS_AT_ONCE - 1}&status=ok`;
      const { steps } = await this.#read(z.object({ steps: z.array(stepSchema) }), "GET", path);
      const last = steps.findIndex(({ directives }) => !directives?.go_on);
      if (last !== -1) return [...answer, ...steps.slice(0, last + 1)];
      if (steps.length < STEPS_AT_ONCE) return null;
      answer.push(...steps);
    }
  }

  async #find<Shape>(schema: z.ZodType<Shape>, path: string): Promise<Shape | null> {
    const { status, body } = await this.#answer("GET", path);
    if (status === 404) return null;
    const parsed = schema.safeParse(body);
    if (status === 200 && parsed.success) return parsed.data;
    throw problem(status, body);
  }

  async #read<Shape>(schema: z.ZodType<Shape>, method: "GET" | "POST", path: string, body?: unknown): Promise<Shape> {
    const answer = await this.#answer(method, path, body);
    const parsed = schema.safeParse(answer.body);
    if (answer.status < 300 && parsed.success) return parsed.data;
    throw problem(answer.status, answer.body);
  }

  async #answer(method: "GET" | "POST", path: string, body?: unknown): Promise<HttpAnswer> {
    try {
      return await this.call(method, path, body);
    } catch (error) {
      throw new PlatformError(`${redactUrl(this.#base)} does not answer`, { cause: error });
    }
  }
}

function problem(status: number, body: unknown): PlatformError {
  const parsed = problemSchema.safeParse(body);
  return new PlatformError(parsed.success ? parsed.data.detail : `the server answered ${status}`);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
