import { keepPreviousData, QueryClient, useInfiniteQuery, useQuery } from "@tanstack/react-query";
import type { Answer } from "../../../src/client/client.ts";
import type { Action } from "../../../src/domain/action.ts";
import type { Agent } from "../../../src/domain/agent.ts";
import type { Conversation, Message, Participant } from "../../../src/domain/conversation.ts";
import type { SearchHit } from "../../../src/domain/search.ts";
import type { Session as SessionRow, SessionStatus } from "../../../src/domain/session.ts";
import type { SessionSummary } from "../../../src/domain/session-summary.ts";
import type { Step } from "../../../src/domain/step.ts";
import type { ArchivedHistory } from "../../../src/domain/volume.ts";
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

/** Reads rows again. A first read that is under way is dropped, since it may have been answered before what happened since. */
export async function readAgain(...queryKey: string[]): Promise<void> {
  await client.cancelQueries({ queryKey });
  await client.invalidateQueries({ queryKey });
}

export type { Action, Agent, Conversation, Message, Participant, SessionStatus, SessionSummary };
/** `archived` is known if the row was read, rather than received as an event. */
export type Session = SessionRow & { archived?: ArchivedHistory };
export type SlimStep = Omit<Step, "state">;
export type Summaries = Answer<"GET /api/session-summaries">;
export type SummaryQuery = {
  status?: readonly string[];
  session_id?: readonly string[];
  agent_id?: string;
  moniker?: string;
  q?: string;
  needs_person?: boolean;
  spawned_by?: string;
  parent_session_id?: string;
  sort?: "created_at" | "updated_at";
  /** Only those whose `sort` time is this or later. */
  since?: string;
};
export type MonikerInfo = Answer<"GET /api/monikers">["monikers"][number] & { params_schema: JsonSchema };
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
export type SystemState = Answer<"GET /api/system">;
export type Sample = SystemState["samples"][number];

export const PAGE = 100;

export const summariesPage = (query: SummaryQuery, page: number, limit = PAGE) => ({
  queryKey: ["summaries", query, page, limit],
  queryFn: ({ signal }: { signal: AbortSignal }) =>
    get<Summaries>("/api/session-summaries", { ...query, limit, offset: page * limit }, signal),
});

/** The most ids that one request takes. */
const MOST_IDS = 100;

/** The summaries of sessions, of those that have one of the statuses if any are given. */
export async function readSummaries(
  session_ids: readonly string[],
  status?: SessionStatus[],
): Promise<SessionSummary[]> {
  const rows: SessionSummary[] = [];
  for (let at = 0; at < session_ids.length; at += MOST_IDS) {
    const query = { session_id: session_ids.slice(at, at + MOST_IDS), limit: MOST_IDS, ...(status && { status }) };
    rows.push(...(await get<Summaries>("/api/session-summaries", query)).sessions);
  }
  return rows;
}

/** The agents of sessions, by session id. */
export function useAgentNames(session_ids: readonly string[]): ReadonlyMap<string, string> {
  const ids = [...new Set(session_ids)].sort();
  const { data } = useQuery({
    queryKey: ["agent-names", ids],
    enabled: ids.length > 0,
    staleTime: Number.POSITIVE_INFINITY,
    placeholderData: keepPreviousData,
    queryFn: async () =>
      new Map((await readSummaries(ids)).map(({ session_id, agent_id }) => [session_id, agent_id] as const)),
  });
  return data ?? NO_NAMES;
}
const NO_NAMES: ReadonlyMap<string, string> = new Map();

export const useNeedsMe = () => useQuery(summariesPage({ needs_person: true }, 0, 500));

/** The sessions that steps of this one started. */
export const useChildren = (session_id: string) => useQuery(summariesPage({ spawned_by: session_id }, 0, 500));

export const useForks = (session_id: string) => useQuery(summariesPage({ parent_session_id: session_id }, 0, 500));

const sessionQuery = (session_id: string) => ({
  queryKey: ["session", session_id],
  queryFn: async ({ signal }: { signal: AbortSignal }) => {
    const read = await get<Session>(pathOf("sessions", session_id), {}, signal);
    const cached = client.getQueryData<Session>(["session", session_id]);
    return cached && cached.updated_at > read.updated_at ? cached : read;
  },
});

export const useSession = (session_id: string) => useQuery(sessionQuery(session_id));

/** Reads a session before its page renders. */
export const readSession = (session_id: string): Promise<void> => client.prefetchQuery(sessionQuery(session_id));

/** A step and the one before it, in one request. */
const stepPair = (session_id: string, iteration: number) => ({
  queryKey: ["step", session_id, iteration],
  queryFn: async ({ signal }: { signal: AbortSignal }) => {
    const range = { session_id, min_iteration: Math.max(0, iteration - 1), max_iteration: iteration };
    return (await get<{ steps: Step[] }>("/api/agent-steps", range, signal)).steps;
  },
});

export const useStepPair = (session_id: string, iteration: number) => useQuery(stepPair(session_id, iteration));

/** The state after a step. While another step loads, the previous one is kept. */
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

/** Models that sessions used lately. */
export const useModels = () =>
  useQuery({
    queryKey: ["models"],
    staleTime: 60_000,
    queryFn: async ({ signal }) => {
      const { costs } = await get<{ costs: { key: string | null }[] }>("/api/costs", { by: "model" }, signal);
      return costs.flatMap(({ key }) => key ?? []);
    },
  });

/** By name, in pages. */
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

/** The most that one request returns. */
export const MOST_HITS = 500;

export const useSearchHits = (q: string) =>
  useQuery({
    queryKey: ["search", q],
    enabled: q.trim() !== "",
    queryFn: ({ signal }) =>
      get<{ hits: SearchHit[]; archives_skipped: number }>("/api/search", { q, limit: MOST_HITS }, signal),
  });

export const useSystem = () =>
  useQuery({
    queryKey: ["system"],
    refetchInterval: 2000,
    queryFn: ({ signal }) => get<SystemState>("/api/system", {}, signal),
  });

/** The volumes of archived history, and the job that moves it. */
export const useArchives = () =>
  useQuery({
    queryKey: ["archives"],
    refetchInterval: 10_000,
    queryFn: ({ signal }) => get<Answer<"GET /api/archives">>("/api/archives", {}, signal),
  });

/** Whether the server holds its sessions since its start. Polled while it does: somebody else may release them. */
export const useIsHolding = () =>
  useQuery({
    queryKey: ["holding"],
    refetchInterval: ({ state }) => (state.data ? 5000 : false),
    queryFn: async ({ signal }) =>
      (await get<SystemState>("/api/system", {}, signal)).runtimes.some((runtime) => runtime.holds_sessions),
  });
