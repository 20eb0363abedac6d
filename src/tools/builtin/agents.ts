import { z } from "zod";
import { idSchema } from "../../domain/ids.ts";
import { type JsonObject, jsonObjectSchema } from "../../domain/json.ts";
import { isLive, LIVE_STATUSES, SESSION_STATUSES, type SessionOptions } from "../../domain/session.ts";
import type { SessionSummary } from "../../domain/session-summary.ts";
import type { FrameAction } from "../../domain/step-frame.ts";
import { shorten } from "../../monikers/extract.ts";
import { type StepContext, StepError } from "../../monikers/moniker.ts";
import type { Store } from "../../store/store.ts";
import { timeAfter } from "../time-after.ts";
import type { ToolOutcome } from "../tool.ts";
import { type ToolCallContext, toolError, toolResult } from "../tool-server.ts";
import { type ZodTool, ZodToolServer, zodTool } from "../zod-tool-server.ts";

export type AgentsParts = {
  store: Pick<Store, "getSession" | "listSteps" | "summarizeSessions">;
  /** The available monikers with their descriptions. */
  monikers: () => Iterable<{ name: string; description: string }>;
  /** Throws a `StepError` if a frame with these actions would be refused. Writes nothing. */
  checkActions: (actions: FrameAction[], sender: StepContext["ids"]) => Promise<void>;
};

/** The most live sessions that one session may have started. */
const MOST_CHILDREN = 100;
/** The longest chain of sessions that started one another, including the first: stops a runaway chain. */
const MOST_GENERATIONS = 8;
const LONGEST_TEXT = 2000;

/**
 * Tools for other sessions.
 *
 * AGENTS-1  Starting or guiding a session is an action of the frame, committed together with the step. A call whose step was
 *           not committed did nothing and may be repeated.
 * AGENTS-2  Such an action is checked first: a refusal goes to the model and does not fail the step.
 * AGENTS-3  A session that an agent starts inherits its starter's tool restrictions, so that starting one does not bypass them.
 */
export const agentsServer = (parts: AgentsParts): ZodToolServer =>
  new ZodToolServer("agents", [start(parts), wait(parts), guide(parts), list(parts), read(parts)]);

const start = ({ store, monikers, checkActions }: AgentsParts): ZodTool =>
  zodTool({
    name: "start",
    description:
      "Starts another session that works on its own. You get its result when it ends; agents/wait waits for that.",
    input: z.object({
      task: z.string().min(1).optional().describe("Its task; the parameter `task` of its moniker."),
      moniker: z.string().min(1).default("agent").describe("The kind of task."),
      params: jsonObjectSchema.optional().describe("Further parameters of the moniker."),
      agent_id: idSchema.optional().describe("The agent it belongs to. Default: yours."),
      max_steps: z.int().min(1).optional(),
      max_tokens: z.int().min(1).optional(),
    }),
    idempotent: true, // AGENTS-1
    leaves_no_trace: true,
    async run({ task, moniker, params, agent_id, max_steps, max_tokens }, context): Promise<ToolOutcome> {
      const available = [...monikers()];
      if (!available.some(({ name }) => name === moniker))
        return toolError(
          `There is no moniker named ${moniker}. There are:\n${available.map(({ name, description }) => `- ${name}: ${description}`).join("\n")}`,
        );
      const refusal = await refusalToStart(store, context.ids);
      if (refusal !== null) return toolError(refusal);
      const { session_id: own, iteration } = context.ids;
      const session_id = `${own}.${iteration}.${context.call_number}`;
      const action: FrameAction = {
        action_type: "agent_create",
        agent_id: agent_id ?? context.ids.agent_id,
        session_id,
        moniker,
        params: { ...(task !== undefined && { task }), ...params },
        options: { ...inherited(context.options), ...(max_steps && { max_steps }), ...(max_tokens && { max_tokens }) },
      };
      return checked({ checkActions }, action, context, `Started session ${session_id}.`);
    },
  });

/** AGENTS-3. It also uses the same model. */
function inherited({ tools, model, model_settings, fallback_models }: SessionOptions): JsonObject {
  return JSON.parse(JSON.stringify({ tools, model, model_settings, fallback_models })) as JsonObject;
}

/** AGENTS-2. */
async function checked(
  { checkActions }: Pick<AgentsParts, "checkActions">,
  action: FrameAction,
  { ids }: ToolCallContext,
  text: string,
): Promise<ToolOutcome> {
  try {
    await checkActions([action], ids);
  } catch (error) {
    if (error instanceof StepError) return toolError(`Refused: ${error.message.replace(/^actions\[0\]: /, "")}.`);
    throw error;
  }
  return { kind: "result", text, is_error: false, actions: [action] };
}

async function refusalToStart(store: AgentsParts["store"], { session_id }: StepContext["ids"]): Promise<string | null> {
  const { total } = await store.summarizeSessions({
    spawned_by: session_id,
    statuses: [...LIVE_STATUSES],
    limit: 1,
    offset: 0,
  });
  if (total >= MOST_CHILDREN)
    return `${total} sessions that you started are still running. Wait for some of them first.`;
  let ancestor: string | undefined = session_id;
  for (let generation = 1; ancestor !== undefined; generation++) {
    if (generation > MOST_GENERATIONS) return "Too many sessions have started one another. Do it yourself.";
    ancestor = (await store.getSession(ancestor))?.spawned_by?.session_id;
  }
  return null;
}

const wait = ({ store }: AgentsParts): ZodTool =>
  zodTool({
    name: "wait",
    description: "Waits until sessions that you started have ended. A message from a person ends the wait.",
    input: z.object({
      session_ids: z
        .array(idSchema)
        .min(1)
        .max(MOST_CHILDREN)
        .optional()
        .describe("Default: all that are still running."),
      wait_s: z.number().positive().optional().describe("Seconds after which to continue anyway."),
    }),
    read_only: true,
    async run({ session_ids, wait_s }, { ids }): Promise<ToolOutcome> {
      const children = await childrenOf(store, ids.session_id, session_ids);
      const foreign = session_ids?.filter((id) => !children.some(({ session_id }) => session_id === id)) ?? [];
      if (foreign.length > 0) return toolError(`You did not start ${foreign.join(", ")}.`);
      const live = children.filter(({ status }) => isLive(status)).map(({ session_id }) => session_id);
      if (live.length > 0)
        return { kind: "wait", session_ids: live, ...(wait_s !== undefined && { until: timeAfter(wait_s) }) };
      if (session_ids === undefined) return toolResult("No session that you started is still running.");
      return toolResult(children.map(summaryText).join("\n"));
    },
  });

const childrenOf = async (
  store: AgentsParts["store"],
  spawned_by: string,
  session_ids: string[] | undefined,
): Promise<SessionSummary[]> => {
  const which = session_ids ? { session_ids } : { statuses: [...LIVE_STATUSES] };
  return (await store.summarizeSessions({ spawned_by, ...which, limit: MOST_CHILDREN, offset: 0 })).sessions;
};

const guide = ({ checkActions }: AgentsParts): ZodTool =>
  zodTool({
    name: "guide",
    description: "Sends guidance to another session; its next step gets it.",
    input: z.object({ session_id: idSchema, guidance: z.string().min(1).max(100_000) }),
    idempotent: true, // AGENTS-1
    leaves_no_trace: true,
    async run({ session_id, guidance }, context): Promise<ToolOutcome> {
      if (session_id === context.ids.session_id) return toolError("That is you.");
      const action: FrameAction = { action_type: "agent_interrupt", session_id, payload: { guidance } };
      return checked({ checkActions }, action, context, `Sent to session ${session_id}.`);
    },
  });

const list = ({ store }: AgentsParts): ZodTool =>
  zodTool({
    name: "list",
    description: "Lists sessions, newest first: those you started, those of an agent, or all.",
    input: z.object({
      whose: z.enum(["mine", "all"]).default("mine").describe("Those you started, or everybody's."),
      agent_id: idSchema.optional(),
      status: z.enum(SESSION_STATUSES).optional(),
      limit: z.int().min(1).max(100).default(20),
    }),
    read_only: true,
    async run({ whose, agent_id, status, limit }, { ids }) {
      const { sessions, total } = await store.summarizeSessions({
        ...(whose === "mine" && { spawned_by: ids.session_id }),
        ...(agent_id !== undefined && { agent_id }),
        ...(status && { statuses: [status] }),
        limit,
        offset: 0,
      });
      const more = total > sessions.length ? [`[${total - sessions.length} more]`] : [];
      return sessions.length > 0 ? [...sessions.map(summaryText), ...more].join("\n") : "There are none.";
    },
  });

const summaryText = ({
  session_id,
  agent_id,
  moniker,
  status,
  iteration,
  text,
  question,
  last_error,
}: SessionSummary) =>
  [
    `${session_id} (${agent_id}, ${moniker}): ${status} after ${iteration + 1} steps`,
    ...(question ? [`  asks: ${question.text}`] : []),
    ...(last_error === null ? [] : [`  error: ${last_error}`]),
    ...(text === null ? [] : [`  ${text}`]),
  ].join("\n");

const read = ({ store }: AgentsParts): ZodTool =>
  zodTool({
    name: "read",
    description: "Reads a session: its status, result, open question and last steps.",
    input: z.object({
      session_id: idSchema,
      steps: z.int().min(0).max(20).default(3).describe("How many last steps."),
    }),
    read_only: true,
    async run({ session_id, steps: count }): Promise<ToolOutcome> {
      const session = await store.getSession(session_id);
      if (!session) return toolError(`There is no session ${session_id}.`);
      const { agent_id, moniker, params, status, stop_reason, iteration, result, question, last_error } = session;
      const after_iteration = iteration - count;
      const steps = count === 0 ? [] : await store.listSteps({ session_id, after_iteration, limit: count, offset: 0 });
      const last_steps = steps.map((step) => ({
        step: step.step_token,
        ...(step.text !== null && { text: shorten(step.text, LONGEST_TEXT) }),
        ...(step.error !== null && { error: step.error }),
      }));
      const state = { session_id, agent_id, moniker, params, status, stop_reason, iteration, last_error };
      return toolResult(JSON.stringify({ ...state, question, result, last_steps }, null, 1));
    },
  });
