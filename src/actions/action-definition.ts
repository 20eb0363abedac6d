import type { z } from "zod";
import type { Action } from "../domain/action.ts";
import type { JsonObject } from "../domain/json.ts";
import type { Verdict } from "../domain/receipt.ts";
import type { Session, SessionOptions } from "../domain/session.ts";
import type { Catalog } from "../monikers/catalog.ts";
import type { Moniker } from "../monikers/moniker.ts";
import type { Batch, Store } from "../store/store.ts";
import { actionOf, type CheckedRequest, type Target } from "./action-request.ts";
import { invalidField, type Refusal } from "./refusal.ts";

/**
 * Everything specific to one action type. To add a type: a file in `types/`, its name in `domain/action-type.ts` and a line in
 * `action-table.ts`.
 */
export type ActionDefinition<Schema extends z.ZodObject = z.ZodObject> = {
  payload: Schema;
  /** Whether it acts on an existing session (by id, or the agent's latest) or creates one. */
  target: "existing" | "new";
  /** The route beside `POST /api/actions`; null: none, or one written by hand. */
  route: Route | null;
  /**
   * Whether its effect is committed together with the request if the session runs in this process, bypassing the queue.
   * Messages from people do not, so that their receipts show every stage.
   */
  takes_effect_at_once: boolean;
  /** Looks up what the request needs and refuses what cannot be done. */
  prepare(request: CheckedRequest<z.infer<Schema>>, target: Target, parts: RequestParts): Promise<Prepared | Refusal>;
  /**
   * Decides without side effects: it sees the session under its lock, and its result is committed with the action. `stepping`
   * lists the actions whose guidance the running step received; null if no step runs.
   */
  handle(
    action: ActionWith<z.infer<Schema>>,
    session: Session,
    moniker: Moniker,
    stepping: readonly string[] | null,
  ): Outcome;
  /** The outcome for a session that is done or stopped; null if `handle` must decide. */
  handleEnded(session: Session): Outcome | null;
};

/** `POST /api/sessions/:session_id/<verb>`, and the same under `/api/agents/:agent_id` for an agent's latest session. */
type Route = {
  verb: string;
  summary: string;
  /** An example body, for the documentation. */
  example: JsonObject;
  targets: readonly ("session_id" | "agent_id")[];
  /** Whether a request may conflict with existing data. */
  may_conflict?: true;
};
export const SESSION_OR_AGENT = ["session_id", "agent_id"] as const;

/** Why a session cannot have these options although each is well-formed; null if it can. */
export type CheckOptions = (options: SessionOptions) => { path: string; message: string } | null;

/** What `prepare` may use. */
export type RequestParts = {
  store: Store;
  catalog: Catalog;
  checkOptions: CheckOptions;
  /** Drop params that the moniker does not know, instead of refusing them. */
  ignores_unknown_params?: true;
};

/** The rows are built when it is the request's turn, so that ids and times follow the order of admission. */
export type Prepared = { kind: "prepared"; rows: () => RequestRows };

/** What a request writes: its action, or a new session with its related rows. */
export type RequestRows =
  | { kind: "action"; action: Action; target: Target }
  | {
      kind: "session";
      session: Session;
      batch: Pick<Batch, "actions" | "participants">;
      /** The moniker, if the request itself names it. */
      named_moniker: string | undefined;
    };

type ActionWith<Payload> = Omit<Action, "payload"> & { payload: Payload };

/** What the runner must do beyond rereading the session. */
export type Effect = "interrupt" | "destroy";

/** A handler's result: a new session row, or the reason for none. */
export type Outcome =
  | {
      kind: "ok";
      session?: Session;
      effect?: Effect;
      /** An earlier action whose guidance was removed from the session: it bounces in the same commit. */
      dropped?: string;
    }
  | Exclude<Verdict, { kind: "ok" }>;

/** Infers the payload type for `handle` and `prepare`. */
export const defineAction = <Schema extends z.ZodObject>(
  definition: ActionDefinition<Schema>,
): ActionDefinition<Schema> => definition;

/** For a request that only enters its session's queue. */
export const enqueue = async (request: CheckedRequest, target: Target): Promise<Prepared> => ({
  kind: "prepared",
  rows: () => ({ kind: "action", action: actionOf(request, target), target }),
});

export const rejectEnded = ({ status }: Session): Outcome => ({ kind: "rejected", reason: `the session is ${status}` });

export function refusedOptions(
  options: SessionOptions,
  { checkOptions }: Pick<RequestParts, "checkOptions">,
): Refusal | null {
  const problem = checkOptions(options);
  return problem && invalidField(`options.${problem.path}`, problem.message);
}
