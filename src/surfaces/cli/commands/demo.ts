import { setTimeout as wait } from "node:timers/promises";
import { z } from "zod";
import { actionSchema } from "../../../domain/action.ts";
import { idSchema } from "../../../domain/ids.ts";
import type { ApiClient } from "../client.ts";
import { coloured, printable } from "../output.ts";
import { acceptedSchema } from "../sessions.ts";

/** What is printed is what is sent. */
const WORD = "penguins";

/** A joke agent in a conversation, guided after a few jokes, paused, resumed, ended: half a minute worth watching. */
export async function demo(client: ApiClient, { fast }: { fast?: boolean }): Promise<void> {
  const say = (text: string) => console.log(coloured("gray", text));
  const pace = fast ? 150 : 2000;
  const { conversation_id } = await client.post(z.object({ conversation_id: idSchema }), "/api/conversations", {
    title: "Demo",
    created_by: "you",
  });
  const { session_id } = await client.submit(acceptedSchema, (server) =>
    server.create({
      agent_id: "demo-joker",
      moniker: "joke",
      conversation_id,
      params: { subject: "databases" },
      options: { step_interval_ms: pace },
    }),
  );
  const act = (verb: "pause" | "resume" | "destroy") =>
    client.submit(acceptedSchema, (server) => server.act(session_id, verb, {}));
  say(`An agent tells jokes about databases in a conversation. Its session is ${session_id}.`);
  await using transcript = new Transcript(client, session_id);
  await transcript.jokes(2);
  say("You are in the same conversation. What you say reaches the agent's next step:");
  console.log(`${coloured("cyan", "you")}    ${WORD}`);
  const { action_ids } = await client.submit(z.object({ action_ids: z.array(idSchema) }), (server) =>
    server.say(conversation_id, { user_id: "you", text: WORD }),
  );
  await transcript.jokes(2);
  const receipt = await client.get(actionSchema, `/api/actions/${action_ids[0]}`);
  say(`The receipt of your word: ${receipt.receipt} by step ${receipt.consumed_iteration}.`);
  await act("pause");
  say("Paused: a step that was running is kept, and no other starts…");
  await wait(pace * 1.5);
  say("…and resumed:");
  await act("resume");
  await transcript.jokes(1);
  await act("destroy");
  say(`Ended. All of it stays: ${client.hint("logs", session_id)}`);
}

/** Prints the agent's jokes as they come, word by word. */
class Transcript implements AsyncDisposable {
  readonly #leaving = new AbortController();
  readonly #printing: Promise<void>;
  readonly #waiting: PromiseWithResolvers<void>[] = [];
  #fresh = 0;

  constructor(client: ApiClient, session_id: string) {
    this.#printing = this.#print(client, session_id);
    this.#printing.catch((error: unknown) => {
      for (const { reject } of this.#waiting.splice(0)) reject(error);
    });
  }

  async jokes(count: number): Promise<void> {
    this.#fresh = 0;
    while (this.#fresh < count) {
      const next = Promise.withResolvers<void>();
      this.#waiting.push(next);
      await Promise.race([next.promise, this.#printing]);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#leaving.abort();
    await this.#printing;
  }

  async #print(client: ApiClient, session_id: string): Promise<void> {
    let isStreamed = false;
    for await (const event of client.events(session_id, { after: -1, signal: this.#leaving.signal })) {
      if (event.type === "agent_step_delta") {
        if (event.data.event_seq === 0) process.stdout.write(`${coloured("green", "joker")}  `);
        isStreamed = true;
        process.stdout.write(printable(event.data.text));
      } else if (event.type === "agent_step") {
        console.log(isStreamed ? "" : `${coloured("green", "joker")}  ${printable(event.data.text ?? "")}`);
        isStreamed = false;
        this.#fresh += 1;
        for (const { resolve } of this.#waiting.splice(0)) resolve();
      }
    }
  }
}
