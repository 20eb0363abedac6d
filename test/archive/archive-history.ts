import type { Operation } from "../../src/archive/archives.ts";
import type { Message } from "../../src/domain/conversation.ts";
import type { Step } from "../../src/domain/step.ts";
import type { Store } from "../../src/store/store.ts";

/** What a process is to do: a job, during which it is killed before its call number `at` or after so many milliseconds. */
export type ArchiveOrder = {
  url: string;
  folder: string;
  ids: string[];
  conversation_id: string;
  job: Operation;
  at: number | null;
  after_ms: number | null;
};

export type History = { steps: Step[][]; messages: Message[] };

export async function readHistory(
  store: Store,
  { ids, conversation_id }: Pick<ArchiveOrder, "ids" | "conversation_id">,
): Promise<History> {
  return {
    steps: await Promise.all(ids.map((session_id) => store.listSteps({ session_id, limit: 100, offset: 0 }))),
    messages: await store.listMessages({ conversation_id, limit: 100, offset: 0 }),
  };
}
