import { keepPreviousData, QueryClient, useInfiniteQuery, useQuery } from "@tanstack/react-query";
import type { Action } from "../../../src/domain/action.ts";
import type { Agent } from "../../../src/domain/agent.ts";
import type { Conversation, Message, Participant } from "../../../src/domain/conversation.ts";
import type { SearchHit } from "../../../src/domain/search.ts";
import type { Session, SessionStatus } from "../../../src/domain/session.ts";
import type { SessionSummary } from "../../../src/domain/session-summary.ts";
import type { Step } from "../../../src/domain/step.ts";
import { ApiError, get, pathOf } from "./api.ts";

export const client = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 5000,
      refetchOnWindowFocus: false,
      retry: (times, error) => !(error instanceof ApiError && error.status < 500) && times < 3,
    },
  },
});

export type { Action, Agent, Conversation, Message, Participant, Session, SessionStatus, SessionSummary };
export type SlimStep = Omit<Step, "state">;
export type Summaries = {
  sessions: SessionSummary[];
  total: number;
  counts: Record<SessionStatus, number>;
  /** False where there are at least as many as `total` and `counts` say. */
  exact: boolean;
  next: string | null;
};
export type SummaryQuery = {
  status?: readonly string[];
  session_id?: readonly string[];
  agent_id?: string;
  moniker?: string;
  q?: string;
  needs_person?: boolean;
  spawned_by?: string;
};
export type MonikerInfo = {
  name: string;
  kind: "continuous" | "finite" | "reactive";
  description: string;
  params_schema: JsonSchema;
};
export type JsonSchema = {
  type?: string;
  title?: string;
  description?: string;
  default?: unknown;
  format?: string;
  const?: unknown;
  enum?: unknown[];
  oneOf?: JsonSchema[];
  anyOf?: JsonSchema[];
  items?: JsonSchema;
  minItems?: number;
  maxItems?: number;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  required?: string[];
  properties?: Record<string, JsonSchema>;
};
export type Sample = { at: string; steps: number; errors: number; tokens: number; latency_ms: number };
export type SystemState = {
  store: string;
  sessions: Record<SessionStatus, number>;
  queue_depth: number;
  queue_lag_ms: number;
  /** What runs agents in the process that answers. */
  runtimes: {
    worker_id: string;
    pid: number;
    started_at: string;
    running_steps: number;
    waiting_steps: number;
    max_running_steps: number;
    holds_sessions: boolean;
  }[];
  /** The processes that share the store, on PostgreSQL. */
  workers?: {
    name: string;
    started_at: string;
    takes_sessions: boolean;
    owned_sessions: number;
    silent_ms: number;
    blocked_ms: number;
  }[];
  process: { node: string; uptime_s: number; memory_bytes: number };
  samples: Sample[];
};

export const PAGE = 100;

export const summariesPage = (query: SummaryQuery, page: number, limit = PAGE) => ({
  queryKey: ["summaries", query, page, limit],
  queryFn: ({ signal }: { signal: AbortSignal }) =>
    get<Summaries>("/api/session-summaries", { ...query, limit, offset: page * limit }, signal),
});

export const useNeedsMe = () => useQuery(summariesPage({ needs_person: true }, 0, 500));

/** The sessions that steps of this one started. */
export const useChildren = (session_id: string) => useQuery(summariesPage({ spawned_by: session_id }, 0, 500));

export const useSession = (session_id: string) =>
  useQuery({
    queryKey: ["session", session_id],
    queryFn: async ({ signal }) => {
      const read = await get<Session>(pathOf("sessions", session_id), {}, signal);
      const known = client.getQueryData<Session>(["session", session_id]);
      return known && known.updated_at > read.updated_at ? known : read;
    },
  });

/** What was told while the answer was on its way is newer than the answer: a receipt only ever moves on. */
export async function readActions(session_id: string): Promise<Action[]> {
  const { actions } = await get<{ actions: Action[] }>("/api/actions", { session_id, limit: 200 });
  const told = client.getQueryData<Action[]>(["actions", session_id]) ?? [];
  const known = new Map(told.map((action) => [action.action_id, action]));
  for (const read of actions) {
    const other = known.get(read.action_id);
    if (!other || progressOf(other) <= progressOf(read)) known.set(read.action_id, read);
  }
  return newestFirst([...known.values()]);
}

export const newestFirst = (actions: Action[]): Action[] =>
  actions.sort((a, b) => (a.created_at < b.created_at ? 1 : -1));

const RECEIPTS: Action["receipt"][] = ["accepted", "delivered", "consumed", "bounced"];
const progressOf = ({ receipt, processed, attempts }: Action): number =>
  RECEIPTS.indexOf(receipt) * 1000 + (processed ? 500 : 0) + attempts;

export const useActions = (session_id: string) =>
  useQuery({
    queryKey: ["actions", session_id],
    queryFn: () => readActions(session_id),
  });

/** A step with the state before it: the two neighbours are one request. */
const stepPair = (session_id: string, iteration: number) => ({
  queryKey: ["step", session_id, iteration],
  queryFn: async ({ signal }: { signal: AbortSignal }) => {
    const range = { session_id, min_iteration: Math.max(0, iteration - 1), max_iteration: iteration };
    return (await get<{ steps: Step[] }>("/api/agent-steps", range, signal)).steps;
  },
});

export const useStepPair = (session_id: string, iteration: number) => useQuery(stepPair(session_id, iteration));

/** The state after a step; that of the step before it was asked for until it is read. */
export const useStateAfter = (session_id: string, iteration: number) =>
  useQuery({
    ...stepPair(session_id, iteration),
    placeholderData: keepPreviousData,
    select: (steps) => steps.findLast(({ status }) => status === "ok")?.state ?? {},
  });

export const useMonikers = () =>
  useQuery({
    queryKey: ["monikers"],
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: async ({ signal }) => (await get<{ monikers: MonikerInfo[] }>("/api/monikers", {}, signal)).monikers,
  });

/** Page after page, by name. */
export const useAgents = () =>
  useInfiniteQuery({
    queryKey: ["agents"],
    refetchInterval: 5000,
    initialPageParam: 0,
    getNextPageParam: (last: Agent[], pages) => (last.length < PAGE ? undefined : pages.length * PAGE),
    queryFn: async ({ signal, pageParam: offset }) =>
      (await get<{ agents: Agent[] }>("/api/agents", { limit: PAGE, offset }, signal)).agents,
  });

export const useConversations = () =>
  useQuery({
    queryKey: ["conversations"],
    refetchInterval: 10_000,
    queryFn: async ({ signal }) =>
      (await get<{ conversations: Conversation[] }>("/api/conversations", { limit: 500 }, signal)).conversations,
  });

export const useParticipants = (conversation_id: string) =>
  useQuery({
    queryKey: ["participants", conversation_id],
    refetchInterval: 10_000,
    queryFn: async ({ signal }) => {
      const path = pathOf("conversations", conversation_id, "participants");
      return (await get<{ participants: Participant[] }>(path, {}, signal)).participants;
    },
  });

export const useSearchHits = (q: string) =>
  useQuery({
    queryKey: ["search", q],
    enabled: q.trim() !== "",
    queryFn: async ({ signal }) => (await get<{ hits: SearchHit[] }>("/api/search", { q, limit: 100 }, signal)).hits,
  });

export const useSystem = () =>
  useQuery({
    queryKey: ["system"],
    refetchInterval: 2000,
    queryFn: ({ signal }) => get<SystemState>("/api/system", {}, signal),
  });

/** Whether the server holds the sessions that were there at its start; while it does, it may be told elsewhere to let them go. */
export const useIsHolding = () =>
  useQuery({
    queryKey: ["holding"],
    refetchInterval: ({ state }) => (state.data ? 5000 : false),
    queryFn: async ({ signal }) =>
      (await get<SystemState>("/api/system", {}, signal)).runtimes.some((runtime) => runtime.holds_sessions),
  });
