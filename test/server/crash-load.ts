import assert from "node:assert/strict";
import { setTimeout as wait } from "node:timers/promises";
import { newId } from "../../src/domain/ids.ts";
import type { JsonObject } from "../../src/domain/json.ts";
import type { Random } from "../store/random.ts";
import { type Accepted, type Answer, Api, pathOf } from "./api.ts";

export const COUNT_TO = 20;
const RETRY_MS = 20;

type Created = { body: JsonObject; answer: Accepted };
type Said = { conversation_id: string; message_id: string; text: string; action_ids: string[] };
/** A text sent once: with its action if the server responded, without if its outcome is unknown. */
type Interrupt = { session_id: string; word: string; action_id: string | null };

/** What clients were promised. */
export class Ledger {
  readonly created: Created[] = [];
  readonly said: Said[] = [];
  readonly interrupts: Interrupt[] = [];
  readonly titles = new Map<string, string>();
  readonly subjects = new Map<string, string>();
  /** Requests that broke off after they were sent. */
  lost_answers = 0;

  get answers(): number {
    return (
      this.created.length + this.said.length + this.interrupts.filter(({ action_id }) => action_id !== null).length
    );
  }
}

/** Clients of a server that dies while they use it: they choose their own ids, and retry until they get a response. */
export class Clients {
  readonly ledger = new Ledger();
  readonly #api: Api;
  readonly #random: Random;
  readonly #conversations: string[];
  readonly #echoes: { session_id: string; conversation_id: string }[] = [];
  #stopping = false;
  #working: Promise<unknown> = Promise.resolve();

  constructor(url: string, random: Random) {
    this.#api = new Api(url);
    this.#random = random;
    this.#conversations = Array.from({ length: 3 }, (_, n) => `conversation ${n}`);
  }

  /** Creates conversations with two agents each. */
  async prepare(): Promise<void> {
    for (const conversation_id of this.#conversations) {
      await this.#api.post("/api/conversations", { conversation_id });
      for (const n of [1, 2]) {
        const session_id = `echo ${n} of ${conversation_id}`;
        await this.#create({ agent_id: "echo", moniker: "echo", session_id, conversation_id });
        this.#echoes.push({ session_id, conversation_id });
      }
    }
  }

  start(): void {
    const each = [
      () => this.#countUp(),
      () => this.#countUp(),
      () => this.#tell(),
      () => this.#say(),
      () => this.#say(),
      () => this.#rename(),
      () => this.#configure(),
    ];
    this.#working = Promise.all(
      each.map(async (work) => {
        while (!this.#stopping) await work();
      }),
    );
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    await this.#working;
  }

  async #countUp(): Promise<void> {
    const n = this.#random.below(20);
    await this.#create({
      agent_id: `counter ${n}`,
      moniker: "count",
      session_id: newId(),
      params: { to: COUNT_TO, delay_ms: 2 },
    });
    await wait(5);
  }

  async #create(body: JsonObject): Promise<void> {
    const answer = JSON.parse((await this.#insist("POST", "/api/agents", body, 202)).text) as Accepted;
    this.ledger.created.push({ body, answer });
    // Now and then a client repeats a request that was answered.
    if (this.#random.chance(0.2)) {
      const again = await this.#insist("POST", "/api/agents", body, 202);
      assert.deepEqual(JSON.parse(again.text), answer, "the same call again answers the same ids");
    }
  }

  async #say(): Promise<void> {
    const conversation_id = this.#random.pick(this.#conversations);
    const message_id = newId();
    const text = `said ${message_id}`;
    const path = pathOf("conversations", conversation_id, "messages");
    const answer = await this.#insist("POST", path, { user_id: "ann", text, message_id }, 201);
    const { action_ids } = JSON.parse(answer.text) as { action_ids: string[] };
    this.ledger.said.push({ conversation_id, message_id, text, action_ids });
  }

  /** An interrupt has no client-chosen id, so each attempt sends a different text. */
  async #tell(): Promise<void> {
    const { session_id } = this.#random.pick(this.#echoes);
    const word = `told ${newId()}`;
    const answer = await this.#try("POST", pathOf("sessions", session_id, "interrupt"), { guidance: word });
    if (answer) assert.equal(answer.status, 202, answer.text);
    const action_id = answer && (JSON.parse(answer.text) as Accepted).action_id;
    this.ledger.interrupts.push({ session_id, word, action_id });
    if (!answer) await wait(RETRY_MS);
  }

  async #rename(): Promise<void> {
    const conversation_id = this.#random.pick(this.#conversations);
    const title = newId();
    await this.#insist("PATCH", pathOf("conversations", conversation_id), { title }, 200);
    this.ledger.titles.set(conversation_id, title);
    await wait(5);
  }

  async #configure(): Promise<void> {
    const agent_id = `configured ${this.#random.below(5)}`;
    const subject = newId();
    await this.#insist("PUT", pathOf("agents", agent_id, "config"), { moniker: "joke", params: { subject } }, 200);
    this.ledger.subjects.set(agent_id, subject);
    await wait(5);
  }

  async #insist(method: string, path: string, body: JsonObject, status: number): Promise<Answer> {
    for (;;) {
      const answer = await this.#try(method, path, body);
      if (answer) {
        assert.equal(answer.status, status, `${method} ${path} was answered ${answer.status}: ${answer.text}`);
        return answer;
      }
      await wait(RETRY_MS);
    }
  }

  /** Null if the connection broke, so that the outcome is unknown. */
  async #try(method: string, path: string, body: JsonObject): Promise<Answer | null> {
    try {
      return await this.#api.send(method, path, JSON.stringify(body), { "content-type": "application/json" });
    } catch (error) {
      const refused = ((error as Error).cause as NodeJS.ErrnoException | undefined)?.code === "ECONNREFUSED";
      if (!refused) this.ledger.lost_answers += 1;
      return null;
    }
  }
}
