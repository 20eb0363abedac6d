import assert from "node:assert/strict";
import { test } from "node:test";
import type { Message } from "../../src/domain/conversation.ts";
import { CommitFeed, follow } from "../../src/store/follow.ts";
import { aMessage } from "./fixtures.ts";

test("a follower does not get a message again from a feed that lags behind what was read", async () => {
  const conversation_id = "talk";
  const rows: Message[] = Array.from({ length: 5 }, (_, at) => aMessage({ conversation_id, message_id: `m${at + 1}` }));
  const feed = new CommitFeed();
  const reads = {
    listSteps: () => Promise.resolve([]),
    listMessages: ({ after }: { after?: string }) =>
      Promise.resolve(rows.slice(rows.findIndex(({ message_id }) => message_id === after) + 1)),
    messageNumber: (id: string) => Promise.resolve(rows.findIndex(({ message_id }) => message_id === id) + 1),
  };
  const leaving = new AbortController();
  const events = follow(reads, feed, { conversation_id, after: "m3" }, leaving.signal);
  const ids: string[] = [];
  const next = async (): Promise<void> => {
    const { value } = await events.next();
    ids.push(value?.kind === "message" ? value.message.message_id : "nothing");
  };
  await next();
  await next();
  const sixth = aMessage({ conversation_id, message_id: "m6" });
  for (const [at, message] of [...rows, sixth].entries()) feed.publish({ kind: "message", message }, at + 1);
  await next();
  leaving.abort();
  assert.deepEqual(ids, ["m4", "m5", "m6"]);
});
