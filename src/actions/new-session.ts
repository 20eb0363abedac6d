import type { AgentConfig } from "../domain/agent.ts";
import { newId, now } from "../domain/ids.ts";
import type { JsonObject } from "../domain/json.ts";
import { askedInState } from "../domain/question.ts";
import { NEW_SESSION_HISTORY, type Session, type SessionOptions, type SessionStatus } from "../domain/session.ts";
import type { Step } from "../domain/step.ts";
import type { VersionedMoniker } from "../monikers/catalog.ts";
import type { Moniker } from "../monikers/moniker.ts";
import { restAfter } from "../sessions/rest-after.ts";
import type { RequestParts } from "./action-definition.ts";
import type { Target } from "./action-request.ts";
import { unknownParams } from "./params-schema.ts";
import { fieldErrors, invalidField, type Refusal } from "./refusal.ts";

type NewSessionParts = Pick<RequestParts, "catalog" | "ignores_unknown_params">;
type SessionRequest = Target & {
  moniker?: string | undefined;
  params?: JsonObject | undefined;
  options?: SessionOptions | undefined;
  conversation_id?: string | undefined;
};

/** A session before its first step. Defaults come from the agent's configuration, then from the moniker. */
export function newSession(
  request: SessionRequest,
  config: AgentConfig | null,
  { catalog, ignores_unknown_params }: NewSessionParts,
): { kind: "session"; session: Session } | Refusal {
  const { agent_id, session_id, conversation_id } = request;
  const name = request.moniker ?? config?.moniker;
  if (name === undefined) return invalidField("moniker", "is required: the agent has no configuration that names one");
  const moniker = catalog.get(name);
  if (!moniker) return unknownMoniker(name);
  const unknown = ignores_unknown_params ? null : refusedParams(moniker, request.params);
  if (unknown) return unknown;
  const defaults = config?.moniker === name ? config.params : {};
  const params = moniker.params.safeParse({ ...defaults, ...request.params });
  if (!params.success) return { kind: "invalid", errors: fieldErrors(params.error, "params") };
  const at = now();
  return {
    kind: "session",
    session: {
      agent_id,
      session_id,
      conversation_id: conversation_id ?? null,
      moniker: name,
      params: params.data as JsonObject,
      options: { ...defaultOptions(moniker), ...config?.options, ...request.options },
      status: firstStatus(moniker),
      stop_reason: null,
      iteration: -1,
      step_token: null,
      next_step_token: moniker.first_step ?? "0",
      result: null,
      context: {},
      pending_guidance: [],
      pending_action_ids: [],
      last_error: null,
      tokens_used: 0,
      created_action_id: newId(),
      parent_session_id: null,
      parent_iteration: null,
      created_at: at,
      updated_at: at,
      ...NEW_SESSION_HISTORY,
    },
  };
}

type ForkFields = Partial<Pick<Session, "context" | "params" | "options" | "moniker">>;
type ForkRequest = {
  state?: JsonObject | undefined;
  params?: JsonObject | undefined;
  options?: SessionOptions | undefined;
  moniker?: string | undefined;
};

/** The fields in which a fork differs from its parent. Params are checked by the fork's moniker. */
export function forkChanges(
  parent: Session,
  { state, params, options, moniker: name }: ForkRequest,
  { catalog, ignores_unknown_params }: NewSessionParts,
): { kind: "changes"; moniker: Moniker | undefined; fields: ForkFields } | Refusal {
  const moniker = catalog.get(name ?? parent.moniker);
  if (name !== undefined && !moniker) return unknownMoniker(name);
  const unknown = moniker && !ignores_unknown_params ? refusedParams(moniker, params) : null;
  if (unknown) return unknown;
  const needsCheck = moniker && (params !== undefined || name !== undefined);
  const checked = needsCheck ? moniker.params.safeParse(params ?? parent.params) : null;
  if (checked?.error) return { kind: "invalid", errors: fieldErrors(checked.error, "params") };
  const fields: ForkFields = {
    ...(state && { context: state }),
    ...(checked ? { params: checked.data as JsonObject } : params && { params }),
    ...(options && { options: moniker ? { ...defaultOptions(moniker), ...options } : options }),
    ...(name !== undefined && { moniker: name }),
  };
  return { kind: "changes", moniker, fields };
}

/**
 * Refuses params that the moniker does not know. Only those of the request: an agent's configuration may be older than the
 * moniker.
 */
export function refusedParams(moniker: VersionedMoniker, params: JsonObject | undefined): Refusal | null {
  const problem = unknownParams(moniker, params ?? {});
  return problem === null ? null : invalidField("params", problem);
}

const unknownMoniker = (name: string): Refusal =>
  invalidField("moniker", `no moniker is named ${JSON.stringify(name)}; GET /api/monikers lists them`);

/** A session that continues from one of another's steps. It is not in its parent's conversation. */
export function newFork(
  parent: Session,
  step: Step,
  { session_id, moniker, fields }: { session_id: string | undefined; moniker: Moniker | undefined; fields: ForkFields },
): Session {
  const at = now();
  const context = fields.context ?? step.state;
  const rest = restAfter(step.directives, { at, iteration: step.iteration }, askedInState(context));
  return {
    ...parent,
    session_id: session_id ?? newId(),
    conversation_id: null,
    status:
      rest.rests_since !== null
        ? "waiting"
        : moniker && !rest.started_attempt?.is_due
          ? firstStatus(moniker)
          : "running",
    stop_reason: null,
    iteration: step.iteration,
    step_token: step.step_token,
    next_step_token: step.next_step_token,
    result: step.text ?? step.data,
    ...fields,
    context,
    pending_guidance: [],
    pending_action_ids: [],
    last_error: null,
    tokens_used: 0,
    created_action_id: newId(),
    parent_session_id: parent.session_id,
    parent_iteration: step.iteration,
    created_at: at,
    updated_at: at,
    ...NEW_SESSION_HISTORY,
    ...rest,
  };
}

/** A reactive session has nothing to do until guidance arrives. */
const firstStatus = ({ kind }: Moniker): SessionStatus => (kind === "reactive" ? "waiting" : "running");

/** A finite task stops when it is done; other kinds keep running. */
const defaultOptions = ({ kind, options }: Moniker): SessionOptions => ({
  stop_on_done: kind === "finite",
  ...options,
});
