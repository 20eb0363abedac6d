import type { Action } from "../../src/domain/action.ts";
import type { Message } from "../../src/domain/conversation.ts";
import type { JsonObject } from "../../src/domain/json.ts";
import { NEW_SESSION_HISTORY, type Session } from "../../src/domain/session.ts";
import type { Step } from "../../src/domain/step.ts";
import type { Batch, Ownership, Store } from "../../src/store/store.ts";
import { randomText, seededRandom } from "../stats.ts";

/**
 * The load shares the event loop with the store's front end, so it must cost next to nothing: texts are built once, ids are a
 * counter, and the time is formatted once per millisecond.
 */
const random = seededRandom(1);
const TEXTS = Array.from({ length: 256 }, () => randomText(random, 230));
const MEMORIES = Array.from({ length: 256 }, () => randomText(random, 100));
const DATA: JsonObject = { score: 0.73, tags: ["bench", "load"], source: "generated" };
const PAYLOAD: JsonObject = { guidance: { text: TEXTS[0] as string } };
const EMPTY: JsonObject = {};
const NOTHING: never[] = [];

const WORKER = "bench";
/** Each step is one write of its session, so the revision equals the iteration. */
export const ownerAfter = ({ iteration }: Session): Ownership => ({ worker: WORKER, epoch: 1, revision: iteration });

export type LoadSession = { session: Session };

let minted = 0;
const nextId = (): string => `01BENCH${(minted++).toString(36).padStart(19, "0")}`;

let stamped = 0;
let stamp = "";
function time(): string {
  const milliseconds = Date.now();
  if (milliseconds !== stamped) {
    stamped = milliseconds;
    stamp = new Date(milliseconds).toISOString();
  }
  return stamp;
}

export function newLoadSession(): LoadSession {
  const created_at = time();
  const session_id = nextId();
  return {
    session: {
      agent_id: `agent-${minted % 50}`,
      session_id,
      conversation_id: `conversation-${session_id}`,
      moniker: "count",
      params: { subject: "benchmarks" },
      options: EMPTY,
      status: "running",
      stop_reason: null,
      iteration: -1,
      step_token: null,
      next_step_token: "0",
      result: null,
      context: EMPTY,
      pending_guidance: NOTHING,
      pending_action_ids: NOTHING,
      last_error: null,
      tokens_used: 0,
      parent_session_id: null,
      parent_iteration: null,
      created_action_id: `action-${session_id}`,
      created_at,
      updated_at: created_at,
      ...NEW_SESSION_HISTORY,
    },
  };
}

/** Creates the sessions and their conversations, a few hundred per commit. */
export async function createSessions(store: Store, loads: readonly LoadSession[]): Promise<void> {
  for (let start = 0; start < loads.length; start += 500) {
    const some = loads.slice(start, start + 500).map((load) => load.session);
    await commitOrThrow(store, {
      sessions: some.map((session) => ({ kind: "create", session, worker: WORKER })),
      conversations: some.map(({ conversation_id, created_at }) => ({
        kind: "create",
        conversation: {
          conversation_id: conversation_id as string,
          title: "bench",
          created_by: null,
          status: "open",
          tags: NOTHING,
          created_at,
        },
      })),
    });
  }
}

/** The rows of one step of a session in a conversation: the step, the session, its message. */
export function nextCommit(load: LoadSession): Batch {
  return commitOf(load, nextStep(load, NOTHING));
}

/** The same for a step that received guidance: it consumes an action, which is settled with it. */
export function nextSteeredCommit(load: LoadSession): Batch {
  const action_id = nextId();
  const step = nextStep(load, [action_id]);
  return { ...commitOf(load, step), actions: [settledAction(step, action_id)] };
}

const commitOf = ({ session }: LoadSession, step: Step): Batch => ({
  sessions: [{ kind: "update", session, owner: ownerAfter(session) }],
  steps: [step],
  messages: [messageOf(step, session.conversation_id as string)],
});

/** One step of each of these sessions and nothing else: the fast way to a long history. */
export function nextSteps(loads: readonly LoadSession[]): Batch {
  const steps = loads.map((load) => nextStep(load, NOTHING));
  return { steps, sessions: loads.map(({ session }) => ({ kind: "update", session, owner: ownerAfter(session) })) };
}

/** Rows are created anew each time, since the store may keep them. */
export function nextStep(load: LoadSession, action_ids: string[], state?: JsonObject): Step {
  const { session } = load;
  const iteration = session.iteration + 1;
  const created_at = time();
  const text = TEXTS[(minted + iteration) % TEXTS.length] as string;
  const context = state ?? { n: iteration, memory: MEMORIES[(minted + iteration) % MEMORIES.length] as string };
  const next_step_token = String(iteration + 1);
  const step: Step = {
    id: nextId(),
    created_at,
    agent_id: session.agent_id,
    session_id: session.session_id,
    iteration,
    step_token: session.next_step_token,
    next_step_token,
    status: "ok",
    text,
    data: DATA,
    state: context,
    guidance: NOTHING,
    notes: null,
    latency_ms: 12,
    tokens_used: 90,
    error: null,
    action_ids,
    moniker_version: null,
    cost_usd: 0,
    attempts: 1,
    calls: [],
    directives: null,
    crashes: 0,
  };
  const { step_token } = step;
  load.session = { ...session, iteration, step_token, next_step_token, result: text, context, updated_at: created_at };
  return step;
}

function messageOf(step: Step, conversation_id: string): Message {
  const { created_at, agent_id, session_id, iteration, step_token, next_step_token, text } = step;
  const row = { message_id: nextId(), conversation_id, created_at, sender_type: "agent", user_id: null } as const;
  const rest = { data: null, status: "ok", event_type: "step", notes: null, action_ids: [] };
  return { ...row, agent_id, session_id, text, iteration, step_token, next_step_token, ...rest };
}

function settledAction(step: Step, action_id: string): Action {
  return {
    action_id,
    created_at: step.created_at,
    action_type: "agent_interrupt",
    agent_id: step.agent_id,
    session_id: step.session_id,
    payload: PAYLOAD,
    metadata: EMPTY,
    urgency: 0,
    processed: true,
    processed_at: step.created_at,
    outcome: "ok",
    error: null,
    attempts: 1,
    run_at: null,
    receipt: "consumed",
    consumed_iteration: step.iteration,
  };
}

export async function commitOrThrow(store: Pick<Store, "commit">, batch: Batch): Promise<void> {
  const outcome = await store.commit(batch);
  if (outcome.kind !== "committed") throw new Error(`a commit of the bench was answered ${JSON.stringify(outcome)}`);
}
