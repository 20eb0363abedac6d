import { setTimeout as wait } from "node:timers/promises";
import type { Socket } from "socket.io-client";
import { z } from "zod";
import { actionSchema } from "../../../domain/action.ts";
import type { Message } from "../../../domain/conversation.ts";
import { idSchema } from "../../../domain/ids.ts";
import type { ApiClient } from "../client.ts";
import { coloured, printable } from "../output.ts";

/** What is printed is what is sent. */
const WORD = "penguins";

type Delta = { iteration: number; event_seq: number; text: string };

/** A joke agent in a conversation, guided after a few jokes, paused, resumed, ended: half a minute worth watching. */
export async function demo(client: ApiClient, { fast }: { fast?: boolean }): Promise<void> {
  const say = (text: string) => console.log(coloured("gray", text));
  const pace = fast ? 150 : 2000;
  const { conversation_id } = await client.post(z.object({ conversation_id: idSchema }), "/api/conversations", {
    title: "Demo",
    created_by: "you",
  });
  const { session_id } = await client.post(z.object({ session_id: idSchema }), "/api/agents", {
    agent_id: "demo-joker",
    moniker: "joke",
    conversation_id,
    params: { subject: "databases" },
    options: { step_interval_ms: pace },
  });
  const session = `/api/sessions/${session_id}`;
  say(`An agent tells jokes about databases in a conversation. Its session is ${session_id}.`);
  const told = new Transcript(await client.socket(), conversation_id, session_id);
  await told.jokes(2);
  say("You are in the same conversation. What you say reaches the agent's next step:");
  console.log(`${coloured("cyan", "you")}    ${WORD}`);
  const { action_ids } = await client.post(
    z.object({ action_ids: z.array(idSchema) }),
    `/api/conversations/${conversation_id}/messages`,
    {
      user_id: "you",
      text: WORD,
    },
  );
  await told.jokes(2);
  const receipt = await client.get(actionSchema, `/api/actions/${action_ids[0]}`);
  say(`The receipt of your word: ${receipt.receipt} by step ${receipt.consumed_iteration}.`);
  await client.post(z.object({ action_id: idSchema }), `${session}/pause`);
  say("Paused: a step that was running is kept, and no other starts…");
  await wait(pace * 1.5);
  say("…and resumed:");
  await client.post(z.object({ action_id: idSchema }), `${session}/resume`);
  await told.jokes(1);
  await client.post(z.object({ action_id: idSchema }), `${session}/destroy`);
  told.end();
  say(`Ended. All of it stays: everstep logs ${session_id}`);
}

/** Prints the agent's messages as they come, word by word. */
class Transcript {
  readonly #socket: Socket;
  readonly #waiting: (() => void)[] = [];
  #fresh = 0;
  #streamed = false;

  constructor(socket: Socket, conversation_id: string, session_id: string) {
    this.#socket = socket;
    this.#socket.on("connect", () => this.#socket.emit("subscribe", { conversation_id, after: "" }));
    this.#socket.on("conversation_message_delta", ({ event_seq, text }: Delta) => {
      if (event_seq === 0) process.stdout.write(`${coloured("green", "joker")}  `);
      this.#streamed = true;
      process.stdout.write(printable(text));
    });
    this.#socket.on("conversation_message", (message: Message) => {
      if (message.session_id !== session_id) return;
      console.log(this.#streamed ? "" : `${coloured("green", "joker")}  ${printable(message.text ?? "")}`);
      this.#streamed = false;
      this.#fresh += 1;
      for (const wake of this.#waiting.splice(0)) wake();
    });
  }

  async jokes(count: number): Promise<void> {
    this.#fresh = 0;
    while (this.#fresh < count) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  end(): void {
    this.#socket.disconnect();
  }
}
