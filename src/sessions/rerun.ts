import { isDeepStrictEqual } from "node:util";
import { Semaphore } from "../concurrency/semaphore.ts";
import type { Message } from "../domain/conversation.ts";
import { EverstepError } from "../domain/errors.ts";
import { isObject, type JsonObject, type JsonValue } from "../domain/json.ts";
import { type RerunOutcome, type RerunRequest, recordedFrame } from "../domain/rerun.ts";
import type { Session, SessionOptions } from "../domain/session.ts";
import type { Step } from "../domain/step.ts";
import type { FrameOut } from "../domain/step-frame.ts";
import type { Catalog, VersionedMoniker } from "../monikers/catalog.ts";
import type { Store } from "../store/store.ts";
import type { ToolFactory } from "../tools/tool.ts";
import { describeError } from "./retry.ts";
import { runStep, type StepOutcome } from "./run-step.ts";
import type { RunnerDependencies } from "./runner-dependencies.ts";
import { stateVersion } from "./state-version.ts";

/** The most reruns at once. */
const MOST_AT_ONCE = 16;
const MOST_MESSAGES = 500;

export type RerunDependencies = Pick<RunnerDependencies, "watch" | "llm"> & {
  store: Store;
  catalog: Catalog;
  /** Tools whose calls leave no trace in a rerun. */
  tools: ToolFactory;
};

/** What is known about the step to rerun. */
type Recorded = {
  step: Step;
  previous: Step | null;
  owner: Session;
  state: JsonObject;
  /** The version that produced the state; undefined if no version did. */
  state_version: string | null | undefined;
  guidance: JsonValue[];
};

/**
 * Runs recorded steps again on the current code.
 *
 * RERUN-1  Nothing is written or published: no row, no workspace file, no event. Tools with side effects refuse to run (TOOLS-3
 *          in `tool-registry.ts`). Side effects of the moniker outside its tools happen again, unless it checks `is_rerun`.
 * RERUN-2  The step gets what it got when it was recorded, except what the request replaces: the token, the state before it,
 *          its guidance, the parameters, and the messages that had arrived since the step before.
 * RERUN-3  It runs beside the session and does not affect it.
 */
export class Rerunner {
  readonly #dependencies: RerunDependencies;
  readonly #semaphore = new Semaphore(MOST_AT_ONCE);

  constructor(dependencies: RerunDependencies) {
    this.#dependencies = dependencies;
  }

  readonly rerun = async (
    session_id: string,
    iteration: number,
    request: RerunRequest,
    signal: AbortSignal,
  ): Promise<RerunOutcome> => {
    const { store, catalog } = this.#dependencies;
    const session = await store.getSession(session_id);
    if (!session) return { kind: "unknown", what: "session" };
    const recorded = await readRecorded(store, session, iteration);
    if (!recorded) return { kind: "unknown", what: "step" };
    const { owner } = recorded;
    const moniker = catalog.get(owner.moniker);
    if (!moniker) return { kind: "invalid", path: "moniker", message: `no moniker is named ${owner.moniker} here` };
    const options = withModel(owner.options, request.model);
    try {
      await this.#dependencies.llm(options);
    } catch (error) {
      if (error instanceof EverstepError) return { kind: "invalid", path: "model", message: error.message };
      throw error;
    }
    const outcome = await this.#semaphore.run(() => this.#run(recorded, request, { moniker, options, signal }));
    return { kind: "ran", rerun: { ...compared(recorded.step, outcome), moniker_version: moniker.version ?? null } };
  };

  #run(
    { step, previous, owner, state, state_version, guidance }: Recorded,
    request: RerunRequest,
    {
      moniker,
      options: allOptions,
      signal,
    }: { moniker: VersionedMoniker; options: SessionOptions; signal: AbortSignal },
  ): Promise<StepOutcome> {
    const { store, watch, llm, tools } = this.#dependencies;
    const newGuidance = request.guidance === undefined ? guidance : [request.guidance].flat();
    // RERUN-2. The session may have reached its time limit long ago; the rerun gets a fresh one.
    const { max_runtime_s: _, ...options } = allOptions;
    const session: Session = {
      ...owner,
      options,
      iteration: step.iteration - 1,
      next_step_token: step.step_token,
      context: request.state ?? state,
      pending_guidance: newGuidance,
      pending_action_ids: [],
    };
    const messages = messagesBetween(store, owner, previous, step);
    let read = 0;
    const unread = async (limit = 100) => (await messages()).slice(read, (read += limit));
    const unreadMessages = { unread, cursor: null };
    const running = runStep(session, moniker, {
      llm,
      tools,
      attempt: { number: 1, after: null },
      watch,
      keep_calls: false,
      unreadMessages,
      // A state from the request needs no migration.
      stateVersion: async () => (request.state === undefined ? state_version : undefined),
      onOutput() {},
      is_rerun: true,
    });
    if (signal.aborted) running.cut("interrupted");
    else signal.addEventListener("abort", () => running.cut("interrupted"), { once: true });
    return running.outcome;
  }
}

/** If a model is requested, no fallback may answer instead. */
function withModel(options: SessionOptions, model: string | undefined): SessionOptions {
  if (model === undefined) return options;
  const { fallback_models: _, ...others } = options;
  return { ...others, model };
}

/** RERUN-2. A failed attempt is used if no later one succeeded. */
async function readRecorded(store: Store, session: Session, iteration: number): Promise<Recorded | null> {
  const { session_id } = session;
  const rows = (status: Step["status"]): Promise<Step[]> =>
    store.listSteps({
      session_id,
      status,
      min_iteration: Math.max(0, iteration - 1),
      max_iteration: iteration,
      limit: 500,
      offset: 0,
    });
  const committed = await rows("ok");
  const previous = committed.find((row) => row.iteration === iteration - 1) ?? null;
  const succeeded = committed.find((row) => row.iteration === iteration);
  const step = succeeded ?? (await rows("error")).findLast((row) => row.iteration === iteration);
  if (!step) return null;
  // A fork's earlier steps are its parent's, with the parent's parameters.
  const owner = step.session_id === session_id ? session : await store.getSession(step.session_id);
  if (!owner) return null;
  const state = (await forkedState(store, owner, iteration)) ?? previous?.state ?? {};
  // The guidance of a failed attempt is still pending.
  const guidance =
    step.status === "ok" ? step.guidance : session.iteration === iteration - 1 ? session.pending_guidance : [];
  const before = { ...owner, iteration: iteration - 1 };
  return { step, previous, owner, state, state_version: await stateVersion(store, before), guidance };
}

/** A fork's first step starts from the state in the fork request, if any. */
async function forkedState(store: Store, owner: Session, iteration: number): Promise<JsonObject | null> {
  if (owner.parent_iteration !== iteration - 1) return null;
  const [action] = await store.getActions([owner.created_action_id]);
  const payload = action?.payload;
  return isObject(payload) && isObject(payload["state"]) ? payload["state"] : null;
}

/** Other participants' messages between the two steps, read on first use. */
function messagesBetween(
  store: Store,
  { conversation_id, session_id }: Session,
  previous: Step | null,
  step: Step,
): () => Promise<Message[]> {
  let reading: Promise<Message[]> | undefined;
  return async () => {
    if (conversation_id === null) return [];
    const since = previous === null ? {} : { since: previous.created_at };
    reading ??= store.listMessages({ conversation_id, ...since, limit: MOST_MESSAGES, offset: 0 });
    return (await reading).filter(
      (message) => message.session_id !== session_id && message.created_at < step.created_at,
    );
  };
}

function compared(recorded: Step, outcome: StepOutcome) {
  const tokens_used = outcome.spent.tokens;
  if (outcome.kind === "done") {
    const { frame, latency_ms } = outcome;
    const differences = recorded.status === "error" ? ["error"] : differencesFrom(recorded, frame);
    return { frame, error: null, latency_ms, tokens_used, differs: differences.length > 0, differences };
  }
  const error = outcome.kind === "failed" ? describeError(outcome.error) : "the request was cancelled";
  const latency_ms = outcome.kind === "failed" ? outcome.latency_ms : 0;
  const differs = recorded.error !== error;
  return { frame: null, error, latency_ms, tokens_used, differs, differences: differs ? ["error"] : [] };
}

/** The fields in which a frame differs from the recorded step. */
function differencesFrom(recorded: Step, frame: FrameOut): string[] {
  // As it would be stored: `once: false` is the same as absent.
  const now = JSON.parse(JSON.stringify({ ...frame, once: frame.once || undefined })) as Record<string, JsonValue>;
  return Object.entries(recordedFrame(recorded))
    .filter(([field, value]) => !isDeepStrictEqual(now[field] ?? null, JSON.parse(JSON.stringify(value))))
    .map(([field]) => field);
}
