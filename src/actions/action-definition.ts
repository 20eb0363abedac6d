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
 * Everything that is particular to one type of action. A new type is a file in `types/`, its name in
 * `domain/action-type.ts` and a line in `action-table.ts`.
 */
export type ActionDefinition<Schema extends z.ZodObject = z.ZodObject> = {
  payload: Schema;
  /** Whether it is for a session that is there, by its id or as the agent's latest, or makes one. */
  target: "existing" | "new";
  /** Where surfaces offer it beside `POST /api/actions`; null: nowhere, or by a route that is written by hand. */
  route: Route | null;
  /**
   * Whether its effect is written together with the request where the session runs in this process, instead of by way of the
   * queue. What people say is not: its receipt shows them every stage.
   */
  takes_effect_at_once: boolean;
  /** Looks up what the request needs and refuses what cannot be done. */
  prepare(request: CheckedRequest<z.infer<Schema>>, target: Target, parts: RequestParts): Promise<Prepared | Refusal>;
  /**
   * Decides, and nothing more: it sees the session in its turn, and what it returns is committed with the action. `stepping` are the
   * actions whose guidance the step under way has been given; null where none is.
   */
  handle(
    action: ActionWith<z.infer<Schema>>,
    session: Session,
    moniker: Moniker,
    stepping: readonly string[] | null,
  ): Outcome;
  /** What becomes of it where the session is done or stopped; null where `handle` has to decide. */
  handleEnded(session: Session): Outcome | null;
};

/** `POST /api/sessions/:session_id/<verb>`, and the same under `/api/agents/:agent_id` for an agent's latest session. */
type Route = {
  verb: string;
  summary: string;
  /** A body, for the documentation. */
  example: JsonObject;
  targets: readonly ("session_id" | "agent_id")[];
  /** Whether a request may contradict what is there. */
  may_conflict?: true;
};
export const SESSION_OR_AGENT = ["session_id", "agent_id"] as const;

/** Why no session can have such options, though each of them is well-formed; null where one can. */
export type CheckOptions = (options: SessionOptions) => { path: string; message: string } | null;

/** What preparing a request may look at. */
export type RequestParts = {
  store: Store;
  catalog: Catalog;
  checkOptions: CheckOptions;
  /** Whether params that the moniker does not know are left out instead of being refused. */
  ignores_unknown_params?: true;
};

/** The rows are made when it is the request's turn: so ids and times are in the order in which requests were admitted. */
export type Prepared = { kind: "prepared"; rows: () => RequestRows };

/** What a request writes: its action, or a new session with all that belongs to it. */
export type RequestRows =
  | { kind: "action"; action: Action; target: Target }
  | {
      kind: "session";
      session: Session;
      batch: Pick<Batch, "actions" | "participants">;
      /** The moniker, where the request itself names it. */
      named_moniker: string | undefined;
    };

type ActionWith<Payload> = Omit<Action, "payload"> & { payload: Payload };

/** What the runner does beside looking at the session again. */
export type Effect = "interrupt" | "destroy";

/** What a handler makes of an action: a new row of the session, or why not. */
export type Outcome =
  | {
      kind: "ok";
      session?: Session;
      effect?: Effect;
      /** An action whose guidance is not in the session any more: it ends with this one. */
      dropped?: string;
    }
  | Exclude<Verdict, { kind: "ok" }>;

/** Gives `handle` and `prepare` the payload's type. */
export const defineAction = <Schema extends z.ZodObject>(
  definition: ActionDefinition<Schema>,
): ActionDefinition<Schema> => definition;

/** Prepares a request that only enters the queue of its session. */
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
