import type { AgentConfig } from "../domain/agent.ts";
import { newId, now } from "../domain/ids.ts";
import type { JsonObject } from "../domain/json.ts";
import type { Session, SessionOptions, SessionStatus } from "../domain/session.ts";
import type { Step } from "../domain/step.ts";
import type { Catalog } from "../monikers/catalog.ts";
import type { Moniker } from "../monikers/moniker.ts";
import type { Problem } from "./action-queue.ts";

type Wanted = { agent_id: string; session_id?: string | undefined; payload: JsonObject };

/** A session as it is before its first step. What the request leaves out comes from the agent's configuration, then the moniker. */
export function newSession(
  { agent_id, session_id, payload }: Wanted,
  config: AgentConfig | null,
  catalog: Catalog,
): { session: Session } | { errors: Problem[] } {
  const name = (payload["moniker"] as string | undefined) ?? config?.moniker;
  if (name === undefined)
    return { errors: [{ path: "moniker", message: "is required: the agent has no configuration that names one" }] };
  const moniker = catalog.get(name);
  if (!moniker)
    return {
      errors: [
        { path: "moniker", message: `no moniker is named ${JSON.stringify(name)}; GET /api/monikers lists them` },
      ],
    };
  const given = {
    ...(config?.moniker === name ? config.params : {}),
    ...(payload["params"] as JsonObject | undefined),
  };
  const params = moniker.params.safeParse(given);
  if (!params.success)
    return {
      errors: params.error.issues.map(({ path, message }) => ({ path: ["params", ...path].join("."), message })),
    };
  const options = {
    ...defaultOptions(moniker),
    ...config?.options,
    ...(payload["options"] as SessionOptions | undefined),
  };
  const at = now();
  return {
    session: {
      agent_id,
      session_id: session_id ?? newId(),
      conversation_id: (payload["conversation_id"] as string | undefined) ?? null,
      moniker: name,
      params: params.data as JsonObject,
      options,
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
      ended_at: null,
      pause_reason: null,
      started_attempt: null,
    },
  };
}

/** A session that goes on from one of another's steps. It speaks for itself: it is not in its parent's conversation. */
export function newFork(
  parent: Session,
  step: Step,
  moniker: Moniker | undefined,
  session_id: string | undefined,
): Session {
  const at = now();
  return {
    ...parent,
    session_id: session_id ?? newId(),
    conversation_id: null,
    status: moniker ? firstStatus(moniker) : "running",
    stop_reason: null,
    iteration: step.iteration,
    step_token: step.step_token,
    next_step_token: step.next_step_token,
    result: step.text ?? step.data,
    context: step.state,
    pending_guidance: [],
    pending_action_ids: [],
    last_error: null,
    tokens_used: 0,
    created_action_id: newId(),
    parent_session_id: parent.session_id,
    parent_iteration: step.iteration,
    created_at: at,
    updated_at: at,
    ended_at: null,
    pause_reason: null,
    started_attempt: null,
  };
}

/** Until it is told something, a reactive session has nothing to do. */
const firstStatus = ({ kind }: Moniker): SessionStatus => (kind === "reactive" ? "waiting" : "running");

/** A finite task stops when it is done; the others go on. */
const defaultOptions = ({ kind, options }: Moniker): SessionOptions => ({
  stop_on_done: kind === "finite",
  ...options,
});
