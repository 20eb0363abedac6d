import { z } from "zod";
import type { Action } from "../domain/action.ts";
import { carriesGuidance } from "../domain/action-type.ts";
import { jsonBytes } from "../domain/guidance-amount.ts";
import { newId } from "../domain/ids.ts";
import type { JsonObject } from "../domain/json.ts";
import { type Session, type SessionOptions, sessionOptionsSchema } from "../domain/session.ts";
import type { Catalog } from "../monikers/catalog.ts";
import type { Store } from "../store/store.ts";
import { inRequestSpan, type TraceRequest } from "../tracing/request-spans.ts";
import {
  type CheckOptions,
  type Prepared,
  type RequestParts,
  type RequestRows,
  refusedOptions,
} from "./action-definition.ts";
import { type CheckedRequest, submitSchema, type Target } from "./action-request.ts";
import { ACTIONS } from "./action-table.ts";
import { type Full, GuidanceLimit, type Room } from "./guidance-limit.ts";
import { OrderedAdmission } from "./ordered-admission.ts";
import { fieldErrors, invalidField, type Refusal } from "./refusal.ts";

type Accepted = { kind: "accepted"; action_id: string; agent_id: string; session_id: string };
export type SubmitOutcome = Accepted | Refusal;

/** Commits a request together with its effect; false: it must go through the queue. */
type ApplyAtOnce = (action: Action) => Promise<boolean>;
type QueueOptions = {
  applyAtOnce?: ApplyAtOnce;
  limit?: GuidanceLimit;
  checkOptions?: CheckOptions;
  /** Absent if tracing is off. */
  traceRequest?: TraceRequest | undefined;
};

/** A request ready to be written; for guidance, with the room reserved for it. */
export type Ready = Prepared & { room: Room | null };

/**
 * The only way to submit a request: it is checked, gets its ids, is written and answered. Once the answer is `accepted` it
 * survives any crash, and its commit has already woken the dispatcher.
 *
 * QUEUE-1  A request for an unknown session or agent writes nothing.
 * QUEUE-2  A creation writes the session together with the action, so its id can be used at once. The same id again gets the
 *          first answer again, or is refused if agent or moniker differ.
 * QUEUE-3  Requests for a session enter the queue, or take effect at once, in the order they arrived here.
 * QUEUE-4  Guidance is refused while a session has too much unused guidance; nothing else is.
 */
export class ActionQueue {
  readonly traceRequest: TraceRequest | undefined;
  readonly #store: Store;
  readonly #parts: RequestParts;
  readonly #applyAtOnce: ApplyAtOnce;
  readonly #limit: GuidanceLimit;
  readonly #admission = new OrderedAdmission();

  constructor(
    store: Store,
    catalog: Catalog,
    {
      applyAtOnce = async () => false,
      limit = new GuidanceLimit(store),
      checkOptions = () => null,
      traceRequest,
    }: QueueOptions = {},
  ) {
    this.#store = store;
    this.#parts = { store, catalog, checkOptions };
    this.#applyAtOnce = applyAtOnce;
    this.#limit = limit;
    this.traceRequest = traceRequest;
  }

  /** What setting an agent's defaults may use. */
  get parts(): RequestParts {
    return this.#parts;
  }

  async submit(request: unknown): Promise<SubmitOutcome> {
    const checked = checkRequest(request);
    if (checked.kind !== "checked") return checked;
    const { request: valid } = checked;
    if (!this.traceRequest) return this.#submit(valid);
    return inRequestSpan(this.traceRequest, valid, (metadata) => this.#submit({ ...valid, metadata }));
  }

  async #submit(request: CheckedRequest<JsonObject>): Promise<SubmitOutcome> {
    const { target, takes_effect_at_once } = ACTIONS[request.action_type];
    if (target === "new") return this.#write(await this.#prepare(request), false);
    const full = this.#refusal(request);
    if (full) return full;
    const key = request.session_id ?? request.agent_id ?? "";
    const mode = takes_effect_at_once ? "exclusive" : "shared";
    return this.#admission.admit(key, mode, this.#prepare(request), (ready, isExclusive) =>
      this.#write(ready, isExclusive),
    );
  }

  /**
   * Prepares a step's request without writing it; the caller commits it with the step. `made` are sessions of the same commit.
   * Unknown options and params are dropped, so that a session started by an older version keeps running.
   */
  async prepare(request: unknown, made: ReadonlyMap<string, Target>): Promise<Ready | Refusal> {
    const checked = checkRequest(withKnownOptions(request));
    return checked.kind === "checked" ? this.#prepare(checked.request, made) : checked;
  }

  /** QUEUE-4. A flood costs almost nothing while the session is known to be full. */
  #refusal(request: CheckedRequest<JsonObject>): Full | null {
    if (request.session_id === undefined || !carriesGuidance(request)) return null;
    return this.#limit.refusal(request.session_id, jsonBytes(request.payload));
  }

  /** QUEUE-3: all awaiting is done before the request takes its place in the order. */
  async #prepare(request: CheckedRequest<JsonObject>, made?: ReadonlyMap<string, Target>): Promise<Ready | Refusal> {
    const definition = ACTIONS[request.action_type];
    const refusal = refusedOptions((request.payload["options"] ?? {}) as SessionOptions, this.#parts);
    if (refusal) return refusal;
    const target =
      definition.target === "new"
        ? newTarget(request)
        : (made?.get(request.session_id ?? "") ?? (await this.#findTarget(request)));
    if ("kind" in target) return target;
    const prepared = await definition.prepare(request, target, {
      ...this.#parts,
      ...(made && { ignores_unknown_params: true }),
    });
    if (prepared.kind !== "prepared") return prepared;
    if (!carriesGuidance(request)) return { ...prepared, room: null };
    const room = await this.#limit.take(target.session_id, jsonBytes(request.payload));
    return room.kind === "full" ? room : { ...prepared, room };
  }

  /** QUEUE-1. A request with only `agent_id` means the agent's latest session. */
  async #findTarget({ agent_id, session_id }: CheckedRequest): Promise<Target | Refusal> {
    if (session_id !== undefined) {
      const owner = this.#store.cachedSession(session_id)?.agent_id ?? (await this.#store.getSessionAgent(session_id));
      const isMatch = owner !== null && (agent_id ?? owner) === owner;
      return isMatch ? { agent_id: owner, session_id } : { kind: "unknown", what: "session" };
    }
    const latest = agent_id === undefined ? null : (await this.#store.getAgent(agent_id))?.latest;
    return latest ? { agent_id: latest.agent_id, session_id: latest.session_id } : { kind: "unknown", what: "agent" };
  }

  /** QUEUE-3: an exclusive request overtakes nothing that is entering the queue. */
  async #write(ready: Ready | Refusal, isExclusive: boolean): Promise<SubmitOutcome> {
    if (ready.kind !== "prepared") return ready;
    const rows = ready.rows();
    if (rows.kind === "session") return this.#writeSession(rows);
    const { action } = rows;
    const isApplied = isExclusive && (await this.#applyAtOnce(action));
    if (!isApplied) await this.#store.commit({ actions: [action] }).finally(() => ready.room?.written());
    return accepted(action.action_id, rows.target);
  }

  /**
   * QUEUE-2. The moniker is compared only if the request names it: the agent's configuration may have changed since the first
   * request.
   */
  async #writeSession({
    session,
    batch,
    named_moniker,
  }: Extract<RequestRows, { kind: "session" }>): Promise<SubmitOutcome> {
    const outcome = await this.#store.commit({ ...batch, sessions: [{ kind: "create", session, worker: null }] });
    if (outcome.kind === "committed") return acceptedSession(session);
    const existing = await this.existingSession(session, named_moniker);
    return existing.kind === "same" ? acceptedSession(existing.session) : conflict(session);
  }

  /** QUEUE-2. Whether a session with this id exists and matches the request. */
  async existingSession(session: Session, named_moniker: string | undefined): Promise<Existing> {
    const first = await this.#store.getSession(session.session_id);
    if (!first) return { kind: "none" };
    const isSame =
      first.agent_id === session.agent_id &&
      first.moniker === (named_moniker ?? first.moniker) &&
      first.parent_session_id === session.parent_session_id;
    return isSame ? { kind: "same", session: first } : conflict(session);
  }
}

type Conflict = Extract<Refusal, { kind: "conflict" }>;
type Existing = { kind: "none" } | { kind: "same"; session: Session } | Conflict;

const conflict = ({ session_id }: Session): Conflict => ({
  kind: "conflict",
  detail: `session ${session_id} belongs to another agent or moniker`,
});

function checkRequest(request: unknown): { kind: "checked"; request: CheckedRequest<JsonObject> } | Refusal {
  const parsed = submitSchema.safeParse(request);
  if (!parsed.success) return { kind: "invalid", errors: fieldErrors(parsed.error) };
  const payload = ACTIONS[parsed.data.action_type].payload.safeParse(parsed.data.payload ?? {});
  if (!payload.success) return { kind: "invalid", errors: fieldErrors(payload.error, "payload") };
  return { kind: "checked", request: { ...parsed.data, payload: withoutAbsent(payload.data) } };
}

function withKnownOptions(request: unknown): unknown {
  const parsed = z.looseObject({ payload: z.looseObject({ options: sessionOptionsSchema }) }).safeParse(request);
  return parsed.success ? parsed.data : request;
}

function newTarget({ agent_id, session_id }: CheckedRequest): Target | Refusal {
  if (agent_id === undefined) return invalidField("agent_id", "is required");
  return { agent_id, session_id: session_id ?? newId() };
}

const accepted = (action_id: string, { agent_id, session_id }: Target): Accepted => ({
  kind: "accepted",
  action_id,
  agent_id,
  session_id,
});
const acceptedSession = (session: Session): Accepted => accepted(session.created_action_id, session);

const withoutAbsent = (payload: object): JsonObject =>
  Object.fromEntries(Object.entries(payload).filter(([, value]) => value !== undefined));
