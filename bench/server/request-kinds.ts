import type { Step } from "../../src/domain/step.ts";
import { randomText, seededRandom } from "../stats.ts";
import type { EverstepProcess } from "./everstep-process.ts";
import type { History } from "./history.ts";
import { type Answer, getRequest, openConnections, postRequest, sendChecked } from "./kept-connection.ts";

/** With one connection a request has the server to itself; with many they compete. */
export const CONNECTION_COUNTS = [1, 32] as const;
export type ConnectionCount = (typeof CONNECTION_COUNTS)[number];

/** One kind of request, sent to both the server and the bare routes. */
export type RequestKind = {
  name: string;
  /** Requests per block, by the number of connections. Shorter blocks alternate more often. */
  block: Readonly<Record<ConnectionCount, number>>;
  /** The minimum cost besides the route: a commit, and for an action its handling, which happens after the response. */
  needs: "nothing" | "a commit" | "a commit and its handling";
  next(): string;
  /** Whether a response is correct; checks the last one of each block. */
  isRight(answer: Answer): boolean;
};

/** A paused session keeps its guidance, so guidance is spread over many: a session's row must not grow large. */
const PAUSED_SESSIONS = 2_000;
const PAGE = 100;

export async function prepareKinds(server: EverstepProcess, history: History): Promise<RequestKind[]> {
  const paused = await pauseSessions(server);
  const { conversation_id } = await sendChecked<{ conversation_id: string }>(
    server.connection,
    postRequest("/api/conversations", { title: "bench" }),
  );
  for (const user_id of ["ann", "ben"])
    await sendChecked(
      server.connection,
      postRequest(`/api/conversations/${conversation_id}/participants`, { user_id }),
    );
  return [submitAction(paused), readPage(history), postMessage(conversation_id)];
}

function submitAction(session_ids: readonly string[]): RequestKind {
  let sent = 0;
  return {
    name: "submit an action",
    block: { 1: 25, 32: 800 },
    needs: "a commit and its handling",
    next: () =>
      postRequest(`/api/sessions/${session_ids[sent++ % session_ids.length]}/interrupt`, {
        guidance: { text: "Shorter, please." },
      }),
    isRight: ({ status, body }) => status === 202 && JSON.parse(body.toString()).action_id.length === 26,
  };
}

function readPage({ session_ids, steps_per_session }: History): RequestKind {
  const random = seededRandom(3);
  const below = (limit: number): number => Math.floor(random() * limit);
  return {
    name: `read a page of ${PAGE} steps`,
    block: { 1: 10, 32: 64 },
    needs: "nothing",
    next() {
      const after = below(steps_per_session - PAGE) - 1;
      const session_id = session_ids[below(session_ids.length)];
      return getRequest(`/api/agent-steps?session_id=${session_id}&after_iteration=${after}&limit=${PAGE}`);
    },
    isRight({ status, body }) {
      const { steps } = JSON.parse(body.toString()) as { steps: Step[] };
      const first = steps[0]?.iteration ?? Number.NaN;
      const isInOrder = steps.every(({ iteration }, index) => iteration === first + index);
      return status === 200 && steps.length === PAGE && isInOrder;
    },
  };
}

function postMessage(conversation_id: string): RequestKind {
  const random = seededRandom(4);
  const texts = Array.from({ length: 64 }, () => randomText(random, 120));
  let sent = 0;
  return {
    name: "post a message",
    block: { 1: 25, 32: 800 },
    needs: "a commit",
    next: () =>
      postRequest(`/api/conversations/${conversation_id}/messages`, {
        user_id: "ann",
        text: texts[sent++ % texts.length],
      }),
    isRight: ({ status, body }) => status === 201 && JSON.parse(body.toString()).message.user_id === "ann",
  };
}

async function pauseSessions(server: EverstepProcess): Promise<string[]> {
  const session_ids = Array.from({ length: PAUSED_SESSIONS }, (_, index) => `paused-${index}`);
  const left = [...session_ids];
  using connections = await openConnections(server.port, Math.max(...CONNECTION_COUNTS));
  await Promise.all(
    connections.map(async (connection) => {
      for (let session_id = left.pop(); session_id !== undefined; session_id = left.pop()) {
        await sendChecked(connection, postRequest("/api/agents", { agent_id: "bench", moniker: "echo", session_id }));
        await sendChecked(connection, postRequest(`/api/sessions/${session_id}/pause`, {}));
      }
    }),
  );
  await server.settled();
  const paused = await server.metric('everstep_sessions{status="paused"}');
  if (paused !== PAUSED_SESSIONS) throw new Error(`${paused} of ${PAUSED_SESSIONS} sessions are paused`);
  return session_ids;
}
