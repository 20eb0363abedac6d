import type { AgentOrder, PeerStart, Reply } from "../protocol.ts";
import type { OpenAgentPeer } from "./agent-peer.ts";
import { TOOL_FILE } from "./count-call.ts";
import { answerOf, sharedNow } from "./script.ts";

// Runs one contender's agents in a separate process, which executes the bench's orders one after another.
const { program, variant, place, work } = JSON.parse(process.argv[2] as string) as PeerStart;
if (!work) throw new Error("agents need a model");
process.env[TOOL_FILE] = work.tool_file;
const { open } = (await import(program)) as { open: OpenAgentPeer };
const peer = await open(place, work, variant);
let begun: Promise<void>[] = [];

async function ask(session_id: string, onText: (() => void) | null): Promise<void> {
  const answer = await peer.ask(session_id, onText);
  if (answer !== answerOf(session_id)) throw new Error(`${session_id} answered ${JSON.stringify(answer)}`);
}

async function follow(order: AgentOrder): Promise<Reply> {
  switch (order.kind) {
    case "ask": {
      const asked = sharedNow();
      let first_text: number | null = null;
      await ask(order.session_id, order.streamed ? () => (first_text ??= sharedNow()) : null);
      return { kind: "answered", asked, first_text, answered: sharedNow() };
    }
    case "begin":
      begun = order.session_ids.map((id) => ask(id, null));
      for (const one of begun) one.catch(() => {});
      return { kind: "begun" };
    case "finish":
      await Promise.all(begun);
      return { kind: "finished", questions: peer.questions ?? 0 };
    case "close":
      await peer.close();
      return { kind: "closed" };
  }
  return order satisfies never;
}

const reply = (message: Reply): void => void process.send?.(message);
process.on("message", (order: AgentOrder) => {
  const failed = (error: unknown): void => reply({ kind: "failed", message: (error as Error).message });
  follow(order).then(reply, failed).catch(failed);
});
process.once("disconnect", () => process.exit(1));
reply({ kind: "ready" });
