import assert from "node:assert/strict";
import type { Action } from "../../src/domain/action.ts";
import type { Store } from "../../src/store/store.ts";
import { attemptIn, type ReadSession, readPages } from "./read-session.ts";
import { actionIdOf, conversationIdOf, guidanceOf, keyOf, takesGuidance } from "./written-history.ts";

/** Every action agrees with the session that has its guidance or the step that used it, and there are no others. */
export function verifyActions({ session, steps, actions, commits }: ReadSession): void {
  const { session_id } = session;
  const open = new Map(actions.map((action) => [action.action_id, action]));
  assert.equal(open.size, actions.length, `${session_id} lists each action once`);

  for (const step of steps.filter((each) => each.status === "ok")) {
    const expected = takesGuidance(step.iteration) ? [actionIdOf(session_id, step.iteration)] : [];
    const where = `${session_id} at ${step.iteration}`;
    assert.deepEqual(step.action_ids, expected, `${where}: actions`);
    const guidance = expected.map(() => guidanceOf(session_id, step.iteration));
    assert.deepEqual(step.guidance, guidance, `${where}: guidance`);
    for (const action_id of expected) {
      const action = open.get(action_id);
      assert.equal(action?.receipt, "consumed", `${where}: the receipt of ${action_id}`);
      assert.equal(action.consumed_iteration, step.iteration, `${where}: the consumer of ${action_id}`);
      assert.equal(action.metadata["consumed"], attemptIn(step.data), `${where}: step and receipt are of one commit`);
      verifyAction(action, commits);
      open.delete(action_id);
    }
  }

  const next = actionIdOf(session_id, session.iteration + 1);
  const waiting = open.get(next);
  const delivered = waiting?.receipt === "delivered";
  assert.deepEqual(session.pending_action_ids, delivered ? [next] : [], `${session_id}: what is delivered is pending`);
  const guidance = delivered ? [guidanceOf(session_id, session.iteration + 1)] : [];
  assert.deepEqual(session.pending_guidance, guidance, `${session_id}: pending guidance`);
  if (waiting) {
    assert.ok(takesGuidance(session.iteration + 1), `${next} was never sent`);
    assert.equal(waiting.consumed_iteration, null, `${next} is not consumed yet`);
    verifyAction(waiting, commits);
    open.delete(next);
  }
  assert.deepEqual([...open.keys()], [], `${session_id} has actions that belong to nothing`);
}

function verifyAction(action: Action, commits: Map<string, string>): void {
  const { action_id, receipt, metadata } = action;
  const accepted = receipt === "accepted";
  assert.equal(action.processed, !accepted, `${action_id} is processed once it is delivered`);
  assert.equal(action.outcome, accepted ? null : "ok", `${action_id}: outcome`);
  commits.set(keyOf.submission(action_id), metadata["submitted"] as string);
  if (!accepted) commits.set(keyOf.delivery(action_id), metadata["delivered"] as string);
}

/** One agent message for each step with text, one user message for each action, and no others. Returns how many. */
export async function verifyMessages(store: Store, { session, steps, actions }: ReadSession): Promise<number> {
  const { session_id } = session;
  const conversation_id = conversationIdOf(session_id);
  const messages = await readPages((page) => store.listMessages({ conversation_id, ...page }));
  const ids = new Set(messages.map((message) => message.message_id));
  assert.equal(ids.size, messages.length, `${session_id} lists each message once`);

  const said = messages.filter((message) => message.sender_type === "agent");
  const spoken = steps.filter((step) => step.status === "ok" && step.text !== null);
  const attempts = said.map((message) => [message.iteration, message.text, attemptIn(message.data)]);
  const expected = spoken.map((step) => [step.iteration, step.text, attemptIn(step.data)]);
  assert.deepEqual(attempts, expected, `${session_id}: one message of the same commit for each step with text`);

  const heard = messages.filter((message) => message.sender_type === "user").map((message) => message.notes);
  const submitted = actions.map((action) => action.metadata["submitted"] as string);
  assert.equal(heard.length, submitted.length, `${session_id}: one message for each action`);
  assert.deepEqual(new Set(heard), new Set(submitted), `${session_id}: each action's message is of its commit`);

  const cursor = await store.getCursor({ session_id, conversation_id });
  assert.equal(cursor?.message_id, said.at(-1)?.message_id, `${session_id}: its cursor is of its last message`);
  return messages.length;
}
