import { z } from "zod";
import { type Action, type ActionType, actionTypeSchema, GUIDANCE_TYPES, newAction } from "../domain/action.ts";
import type { Participant } from "../domain/conversation.ts";
import { idSchema, newId } from "../domain/ids.ts";
import { type JsonObject, type JsonValue, jsonObjectSchema } from "../domain/json.ts";
import type { Session } from "../domain/session.ts";
import type { Catalog } from "../monikers/catalog.ts";
import { jsonBytes } from "../store/guidance-amount.ts";
import type { Batch, Store } from "../store/store.ts";
import { type Full, GuidanceLimit, type Room } from "./guidance-limit.ts";
import { newFork, newSession } from "./new-session.ts";
import { OrderedAdmission } from "./ordered-admission.ts";
import { PAYLOADS } from "./payloads.ts";

export const submitSchema = z.object({
  action_type: actionTypeSchema,
  agent_id: idSchema.optional(),
  session_id: idSchema.optional(),
  payload: jsonObjectSchema.optional(),
  metadata: jsonObjectSchema.optional(),
  urgency: z.int().min(0).max(9).optional(),
});
export type SubmitRequest = z.infer<typeof submitSchema>;

export type Problem = { path: string; message: string };
export type SubmitOutcome =
  | { kind: "accepted"; action_id: string; agent_id: string; session_id: string }
  | { kind: "invalid"; errors: Problem[] }
  | { kind: "unknown"; what: string }
  | { kind: "conflict"; detail: string }
  | Full;

/** Writes a request together with what it does, or answers false: then it has to queue. */
type ApplyAtOnce = (action: Action) => Promise<boolean>;

type Target = Pick<Session, "agent_id" | "session_id">;
/** Whom a request means, and for guidance whether there is room for it. */
type Found = { target: Target | null; room: Room | Full | null };
type QueueOptions = { applyAtOnce?: ApplyAtOnce; limit?: GuidanceLimit };

/** What has to take effect fast. What people say goes through the queue: its receipt shows them every state of it. */
const AT_ONCE: ReadonlySet<ActionType> = new Set(["agent_pause", "agent_resume", "agent_destroy"]);

/**
 * The one write door for requests: checks, mints ids, writes, answers. Once it answered `accepted` the request survives
 * any crash, and the dispatcher was woken by the commit itself.
 *
 * Q1  A request that names no known session or agent writes nothing.
 * Q2  A creation writes the session together with the action, so that its id can be used at once; the same id again is
 *     answered as the first time, or refused where it means another agent or moniker.
 * Q3  Requests for a session enter the queue, or take effect at once, in the order they were made here.
 * Q4  Guidance for a session that was told too much already is refused, and nothing else is.
 */
export class ActionQueue {
  readonly #store: Store;
  readonly #catalog: Catalog;
  readonly #applyAtOnce: ApplyAtOnce;
  readonly #limit: GuidanceLimit;
  readonly #admission = new OrderedAdmission();

  constructor(
    store: Store,
    catalog: Catalog,
    { applyAtOnce = async () => false, limit = new GuidanceLimit(store) }: QueueOptions = {},
  ) {
    this.#store = store;
    this.#catalog = catalog;
    this.#applyAtOnce = applyAtOnce;
    this.#limit = limit;
  }

  async submit(request: unknown): Promise<SubmitOutcome> {
    const parsed = submitSchema.safeParse(request);
    if (!parsed.success) return invalid(parsed.error);
    const payload = PAYLOADS[parsed.data.action_type].safeParse(parsed.data.payload ?? {});
    if (!payload.success) return invalid(payload.error, "payload");
    const checked = { ...parsed.data, payload: withoutAbsent(payload.data) };
    if (checked.action_type === "agent_create") return this.#create(checked);
    const full = this.#refusal(checked);
    if (full) return full;
    const key = checked.session_id ?? checked.agent_id ?? "";
    const mode = AT_ONCE.has(checked.action_type) ? "exclusive" : "shared";
    return this.#admission.admit(key, mode, this.#lookUp(checked), (context, isExclusive) =>
      this.#submitTo(checked, context, isExclusive),
    );
  }

  /** Q3: an exclusive request overtakes nothing that is on its way into the queue. */
  async #submitTo(request: Checked, { target, room }: Found, isExclusive: boolean): Promise<SubmitOutcome> {
    if (!target) return { kind: "unknown", what: request.session_id ? "session" : "agent" };
    if (request.action_type === "agent_fork") return this.#fork(request, target.session_id);
    const action = actionOf(request, target);
    if (room?.kind === "full") return room; // Q4
    const isApplied = isExclusive && (await this.#applyAtOnce(action));
    if (!isApplied) await this.#store.commit({ actions: [action] }).finally(() => room?.written());
    return accepted(action, target);
  }

  /** Q4. A flood costs next to nothing while the session is known to be full. */
  #refusal({ action_type, session_id, payload }: Checked): Full | null {
    if (session_id === undefined || !GUIDANCE_TYPES.has(action_type)) return null;
    return this.#limit.refusal(session_id, jsonBytes(payload));
  }

  /** Q3: whatever has to be waited for is found out before the request takes its place among the others. */
  async #lookUp(request: Checked): Promise<Found> {
    const target = await this.#target(request);
    const isTold = target !== null && GUIDANCE_TYPES.has(request.action_type);
    const room = isTold ? await this.#limit.take(target.session_id, jsonBytes(request.payload)) : null;
    return { target, room };
  }

  /** Control by `agent_id` alone means the agent's latest session. */
  async #target({ agent_id, session_id }: SubmitRequest): Promise<Target | null> {
    if (session_id !== undefined) {
      const owner = this.#store.atHand(session_id)?.agent_id ?? (await this.#store.getSessionAgent(session_id));
      return owner !== null && (agent_id ?? owner) === owner ? { agent_id: owner, session_id } : null;
    }
    return agent_id === undefined ? null : ((await this.#store.getAgent(agent_id))?.latest ?? null);
  }

  async #create(request: Checked): Promise<SubmitOutcome> {
    const { agent_id } = request;
    if (agent_id === undefined) return { kind: "invalid", errors: [{ path: "agent_id", message: "is required" }] };
    const config = await this.#store.getAgentConfig(agent_id);
    const made = newSession({ ...request, agent_id }, config, this.#catalog);
    if ("errors" in made) return { kind: "invalid", errors: made.errors };
    const { session } = made;
    if (session.conversation_id !== null && !(await this.#store.getConversation(session.conversation_id)))
      return { kind: "unknown", what: "conversation" };
    const action = actionOf(
      { ...request, payload: { ...request.payload, moniker: session.moniker } },
      session,
      session.created_action_id,
    );
    const batch = { actions: [action], participants: participantsOf(session) };
    return this.#commitNew(session, batch, request.payload["moniker"] as string | undefined);
  }

  async #fork(request: Checked, parent_session_id: string): Promise<SubmitOutcome> {
    const parent = await this.#store.getSession(parent_session_id);
    if (!parent) return { kind: "unknown", what: "session" };
    const iteration = request.payload["iteration"] as number;
    const [step] = await this.#store.listSteps({
      session_id: parent.session_id,
      min_iteration: iteration,
      max_iteration: iteration,
      status: "ok",
      limit: 1,
      offset: 0,
    });
    if (!step) {
      const message =
        parent.iteration < 0 ? "the session has no step yet" : `the session has iterations 0 to ${parent.iteration}`;
      return { kind: "invalid", errors: [{ path: "iteration", message }] };
    }
    const session = newFork(
      parent,
      step,
      this.#catalog.get(parent.moniker),
      request.payload["session_id"] as string | undefined,
    );
    const fork = actionOf(
      { ...request, payload: { ...request.payload, parent_session_id: parent.session_id } },
      session,
      session.created_action_id,
    );
    const guidance = request.payload["guidance"];
    if (guidance === undefined) return this.#commitNew(session, { actions: [fork] });
    const told = deliveredGuidance(session, guidance, request);
    const guided = {
      ...session,
      status: "running" as const,
      pending_guidance: [guidance],
      pending_action_ids: [told.action_id],
    };
    return this.#commitNew(guided, { actions: [fork, told] });
  }

  /** Q2. The moniker counts where the request itself names it: a configuration may have changed since the first time. */
  async #commitNew(session: Session, batch: Batch, moniker?: string): Promise<SubmitOutcome> {
    const outcome = await this.#store.commit({ ...batch, sessions: [{ kind: "create", session, worker: null }] });
    if (outcome.kind === "committed") return acceptedNew(session);
    const first = await this.#store.getSession(session.session_id);
    const isSame =
      first?.agent_id === session.agent_id &&
      first.moniker === (moniker ?? first.moniker) &&
      first.parent_session_id === session.parent_session_id;
    if (first && isSame) return acceptedNew(first);
    return { kind: "conflict", detail: `session ${session.session_id} belongs to another agent or moniker` };
  }
}

type Checked = Omit<SubmitRequest, "payload"> & { payload: JsonObject };

function actionOf(
  { action_type, payload, metadata, urgency }: Checked,
  { agent_id, session_id }: Target,
  action_id?: string,
): Action {
  const request = { action_type, agent_id, session_id, payload, metadata: metadata ?? {}, urgency: urgency ?? 0 };
  return newAction(request, action_id);
}

/** Guidance for a fork's first step is in the new session from its first moment on, so no step can miss it. */
function deliveredGuidance(session: Session, guidance: JsonValue, request: Checked): Action {
  const action = actionOf({ ...request, action_type: "agent_interrupt", payload: { guidance } }, session);
  return { ...action, processed: true, processed_at: action.created_at, outcome: "ok", receipt: "delivered" };
}

function participantsOf({ conversation_id, agent_id, session_id, created_at }: Session): Participant[] {
  if (conversation_id === null) return [];
  const member = { user_id: null, agent_id, session_id, role: null };
  return [{ participant_id: newId(), conversation_id, ...member, joined_at: created_at, left_at: null }];
}

const accepted = ({ action_id }: Action, { agent_id, session_id }: Target): SubmitOutcome => ({
  kind: "accepted",
  action_id,
  agent_id,
  session_id,
});
const acceptedNew = ({ created_action_id, agent_id, session_id }: Session): SubmitOutcome => ({
  kind: "accepted",
  action_id: created_action_id,
  agent_id,
  session_id,
});

function invalid(error: z.ZodError, within?: string): SubmitOutcome {
  const errors = error.issues.map(({ path, message }) => ({
    path: [within, ...path].filter((part) => part !== undefined).join("."),
    message,
  }));
  return { kind: "invalid", errors };
}

const withoutAbsent = (payload: object): JsonObject =>
  Object.fromEntries(Object.entries(payload).filter(([, value]) => value !== undefined));
