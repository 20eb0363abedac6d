import assert from "node:assert/strict";
import type { z } from "zod";
import { z as zod } from "zod";
import { actionSchema } from "../../src/domain/action.ts";
import { agentConfigSchema, agentSchema } from "../../src/domain/agent.ts";
import { conversationSchema, messageSchema, participantSchema } from "../../src/domain/conversation.ts";
import { idSchema } from "../../src/domain/ids.ts";
import type { JsonObject, JsonValue } from "../../src/domain/json.ts";
import { searchHitSchema } from "../../src/domain/search.ts";
import { sessionSchema } from "../../src/domain/session.ts";
import { stepSchema } from "../../src/domain/step.ts";

export type Answer = { status: number; headers: Headers; text: string };

/** The rows exactly as in the contract, without further fields. */
export const SHAPES = {
  accepted: zod.strictObject({ action_id: idSchema, agent_id: idSchema, session_id: idSchema }),
  action: actionSchema.strict(),
  agent: agentSchema.extend({ latest: sessionSchema.strict() }).strict(),
  config: agentConfigSchema.strict(),
  conversation: conversationSchema.strict(),
  message: messageSchema.strict(),
  participant: participantSchema.strict(),
  session: sessionSchema.strict(),
  step: stepSchema.strict(),
  hit: searchHitSchema.strict(),
  problem: zod.strictObject({
    type: zod.string(),
    title: zod.string().min(1),
    status: zod.int(),
    detail: zod.string().min(1),
    errors: zod.array(zod.strictObject({ path: zod.string(), message: zod.string().min(1) })).optional(),
  }),
};
export type Accepted = z.infer<typeof SHAPES.accepted>;
export type Problem = z.infer<typeof SHAPES.problem>;

/** Lists of sessions also say where the next page begins, searches how much they skipped. */
export const listOf = <Row extends z.ZodType>(name: string, row: Row) =>
  zod.strictObject({
    [name]: zod.array(row),
    ...(name === "sessions" && { next: zod.string().nullable() }),
    ...(name === "hits" && { archives_skipped: zod.int() }),
  }) as unknown as z.ZodType<Record<string, z.infer<Row>[]>>;

export type Query = Record<string, string | number | boolean | undefined>;

/** A client of the HTTP API. */
export class Api {
  readonly url: string;
  readonly #headers: Record<string, string>;

  constructor(url: string, headers: Record<string, string> = {}) {
    this.url = url;
    this.#headers = headers;
  }

  async send(method: string, path: string, body?: string | Uint8Array, headers: Record<string, string> = {}) {
    const response = await fetch(this.url + path, {
      method,
      headers: { ...this.#headers, ...headers },
      ...(body === undefined ? {} : { body: body as string }),
    });
    return { status: response.status, headers: response.headers, text: await response.text() };
  }

  async get(path: string, query: Query = {}): Promise<Answer> {
    const pairs = Object.entries(query).filter(([, value]) => value !== undefined);
    const search = new URLSearchParams(pairs.map(([key, value]): [string, string] => [key, String(value)])).toString();
    return this.send("GET", search ? `${path}?${search}` : path);
  }

  async post(path: string, body: JsonValue = {}): Promise<Answer> {
    return this.send("POST", path, JSON.stringify(body), JSON_BODY);
  }

  async put(path: string, body: JsonValue): Promise<Answer> {
    return this.send("PUT", path, JSON.stringify(body), JSON_BODY);
  }

  async patch(path: string, body: JsonValue): Promise<Answer> {
    return this.send("PATCH", path, JSON.stringify(body), JSON_BODY);
  }

  async delete(path: string): Promise<Answer> {
    return this.send("DELETE", path);
  }

  /** Starts a session and resolves with its ids. */
  async create(moniker: string, more: JsonObject = {}): Promise<Accepted> {
    return read(
      await this.post("/api/agents", { agent_id: `agent of ${moniker}`, moniker, ...more }),
      202,
      SHAPES.accepted,
    );
  }

  /** Every row of a list, page by page. */
  async all<Row extends z.ZodType>(path: string, name: string, row: Row, query: Query = {}): Promise<z.infer<Row>[]> {
    const rows: z.infer<Row>[] = [];
    for (;;) {
      const answer = await this.get(path, { ...query, limit: 500, offset: rows.length });
      const page = read(answer, 200, listOf(name, row))[name] ?? [];
      rows.push(...page);
      if (page.length < 500) return rows;
    }
  }

  async steps(session_id: string) {
    return this.all("/api/agent-steps", "steps", SHAPES.step, { session_id });
  }

  async messages(conversation_id: string) {
    return this.all(pathOf("conversations", conversation_id, "messages"), "messages", SHAPES.message);
  }

  async session(session_id: string) {
    return read(await this.get(pathOf("sessions", session_id)), 200, SHAPES.session);
  }

  async action(action_id: string) {
    return read(await this.get(pathOf("actions", action_id)), 200, SHAPES.action);
  }

  async conversation(more: JsonObject = {}): Promise<string> {
    return read(await this.post("/api/conversations", more), 201, SHAPES.conversation).conversation_id;
  }
}

export const JSON_BODY = { "content-type": "application/json" };

/** A path under /api whose parts are escaped. */
export const pathOf = (...parts: string[]): string => `/api/${parts.map(encodeURIComponent).join("/")}`;

/** The body of a successful response: the status, JSON, and exactly the shape. */
export function read<Schema extends z.ZodType>(answer: Answer, status: number, schema: Schema): z.infer<Schema> {
  assert.equal(answer.status, status, answer.text.slice(0, 2000));
  assert.match(answer.headers.get("content-type") ?? "", /^application\/json\b/);
  const parsed = schema.safeParse(JSON.parse(answer.text));
  assert.ok(parsed.success, `${parsed.error?.message} in ${answer.text.slice(0, 2000)}`);
  return parsed.data;
}

/** The body of a problem response, as defined in RFC 9457; a 400 says where the problem is. */
export function problemOf(answer: Answer, status: number): Problem {
  assert.equal(answer.status, status, answer.text.slice(0, 2000));
  assert.match(answer.headers.get("content-type") ?? "", /^application\/problem\+json\b/);
  const problem = SHAPES.problem.parse(JSON.parse(answer.text));
  assert.equal(problem.status, status);
  assert.equal(problem.errors !== undefined, status === 400, answer.text);
  return problem;
}

/** The distinct paths that a 400 complains about. */
export const wrongPaths = (answer: Answer): string[] => [
  ...new Set((problemOf(answer, 400).errors ?? []).map(({ path }) => path)),
];
