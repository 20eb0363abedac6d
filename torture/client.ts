import { setTimeout as wait } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import type { JsonObject } from "../src/domain/json.ts";
import type { Session } from "../src/domain/session.ts";
import { pathOf } from "../test/server/api.ts";
import type { Caller } from "./caller.ts";
import type { Followers } from "./followers.ts";
import type { Ledger } from "./ledger.ts";
import type { Operation, Timed } from "./plan/plan.ts";
import type { Violations } from "./violations.ts";

const RETRY_MS = 50;
/** Far longer than any fault lasts. */
const LONGEST_MS = 180_000;

type Request = { method: string; path: string; body?: JsonObject };
/** `insist`: the request carries an id chosen by the client, so it can be retried until it is answered. */
type Manner = { request: Request; insist: boolean; allowed: readonly number[] };

/** Carries out its part of the plan, one operation after another, and records the responses. */
export class Client {
  readonly #caller: Caller;
  readonly #ledger: Ledger;
  readonly #followers: Followers;
  readonly #violations: Violations;

  constructor(caller: Caller, ledger: Ledger, followers: Followers, violations: Violations) {
    this.#caller = caller;
    this.#ledger = ledger;
    this.#followers = followers;
    this.#violations = violations;
  }

  async run(operations: Timed<Operation>[], begun: number, signal: AbortSignal): Promise<void> {
    for (const { at_ms, what } of operations) {
      const ahead = begun + at_ms - performance.now();
      if (ahead > 0) await wait(ahead, undefined, { signal }).catch(() => {});
      if (signal.aborted) return;
      await this.do(what);
    }
  }

  async do(operation: Operation): Promise<void> {
    if (operation.kind === "cut") return this.#followers.cut(operation.follower);
    if (operation.kind === "answer") return this.#answer(operation);
    await this.#ask(operation, mannerOf(operation));
  }

  /** Reads the session's question and answers it. */
  async #answer(operation: Extract<Operation, { kind: "answer" }>): Promise<void> {
    const called = await this.#caller.call("GET", pathOf("sessions", operation.session_id));
    if (called.kind !== "answered" || called.status !== 200) return;
    const { question } = JSON.parse(called.text) as Session;
    if (!question?.choices) return;
    const answer = question.choices[operation.choice % question.choices.length]?.value ?? null;
    const body = { question_id: question.question_id, answer, user_id: "bob" };
    const path = pathOf("sessions", operation.session_id, "answer");
    // 409: answered meanwhile, or the question has changed.
    await this.#ask(operation, { request: { method: "POST", path, body }, insist: false, allowed: [202, 409] });
  }

  async #ask(operation: Exclude<Operation, { kind: "cut" }>, manner: Manner): Promise<void> {
    const { request, insist, allowed } = manner;
    const wasKnown = this.#isKnown(operation);
    const until = performance.now() + LONGEST_MS;
    let doubtful = false;
    for (;;) {
      const called = await this.#caller.call(request.method, request.path, request.body);
      doubtful ||= called.kind === "lost" || (called.kind === "answered" && called.status === 503);
      if (called.kind === "answered" && called.status !== 503) {
        if (!allowed.includes(called.status) || (called.status === 404 && wasKnown))
          this.#violations.add(`${request.method} ${request.path} was answered ${called.status}: ${called.text}`);
        if (operation.kind === "read") return;
        const went = called.status < 300;
        const answer = went ? (JSON.parse(called.text) as JsonObject) : null;
        this.#ledger.add({ operation, answer, refused: went ? null : called.status, doubtful });
        return answer ? this.#afterwards(operation, request, answer) : undefined;
      }
      if (!insist) {
        if (operation.kind !== "read") this.#ledger.add({ operation, answer: null, refused: null, doubtful });
        return;
      }
      if (performance.now() > until) return this.#violations.add(`${request.method} ${request.path} is never answered`);
      await wait(RETRY_MS);
    }
  }

  #isKnown(operation: Operation): boolean {
    if (operation.kind === "create" || operation.kind === "say") return true;
    return "session_id" in operation && this.#ledger.knows(operation.session_id);
  }

  async #afterwards(operation: Operation, request: Request, answer: JsonObject): Promise<void> {
    if (operation.kind === "create" && operation.followed)
      this.#followers.follow({ session_id: operation.body.session_id });
    if (!("again" in operation) || !operation.again) return;
    const again = await this.#caller.call(request.method, request.path, request.body);
    if (again.kind !== "answered" || again.status === 503) return;
    if (again.status >= 300 || !isDeepStrictEqual(JSON.parse(again.text), answer))
      this.#violations.add(
        `${request.path} asked again was answered ${again.status} ${again.text}, not ${JSON.stringify(answer)}`,
      );
  }
}

function mannerOf(operation: Exclude<Operation, { kind: "cut" | "answer" }>): Manner {
  const post = (path: string, body: object): Request => ({ method: "POST", path, body: body as JsonObject });
  switch (operation.kind) {
    case "create":
      return { request: post("/api/agents", operation.body), insist: true, allowed: [202] };
    case "fork": {
      const { session_id, iteration, fork_id, word } = operation;
      const body = { iteration, session_id: fork_id, ...(word === null ? {} : { guidance: word }) };
      // 400: the parent has not reached that iteration.
      return { request: post(pathOf("sessions", session_id, "fork"), body), insist: true, allowed: [202, 400, 404] };
    }
    case "say": {
      const { conversation_id, message_id, text, mode } = operation;
      const path = pathOf("conversations", conversation_id, "messages");
      return { request: post(path, { user_id: "ann", text, message_id, mode }), insist: true, allowed: [201] };
    }
    case "control": {
      const path = pathOf("sessions", operation.session_id, operation.verb);
      return { request: post(path, {}), insist: false, allowed: [202, 404] };
    }
    case "interrupt": {
      const { session_id, word, mode } = operation;
      const request = post(pathOf("sessions", session_id, "interrupt"), { guidance: word, mode });
      return { request, insist: false, allowed: [202, 404] };
    }
    case "rename": {
      const { conversation_id, title } = operation;
      const request = { method: "PATCH", path: pathOf("conversations", conversation_id), body: { title } };
      return { request, insist: true, allowed: [200] };
    }
    case "read":
      return { request: { method: "GET", path: operation.path }, insist: false, allowed: [200, 404] };
  }
  return operation satisfies never;
}
