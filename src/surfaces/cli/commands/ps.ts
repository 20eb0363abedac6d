import type { z } from "zod";
import { LIVE_STATUSES, SESSION_STATUSES } from "../../../domain/session.ts";
import type { SessionSummary } from "../../../domain/session-summary.ts";
import type { ApiClient } from "../client.ts";
import { age, oneLine, retryText, statusText, table } from "../output.ts";
import { sessionsSchema, summariesSchema } from "../sessions.ts";

export type PsOptions = { status?: string; agent?: string; limit: string; json?: boolean };
type Page = Pick<z.infer<typeof summariesSchema>, "sessions" | "total">;

const MOST = 500;
const ENDED_STATUSES = SESSION_STATUSES.filter((status) => !(LIVE_STATUSES as readonly string[]).includes(status));

/** Lists sessions: live ones before ended ones, each newest first. */
export async function ps(client: ApiClient, { status, agent, limit, json }: PsOptions): Promise<void> {
  const filter = { agent_id: agent };
  if (json)
    return console.log(JSON.stringify(await client.get(sessionsSchema, "/api/sessions", { ...filter, status, limit })));
  const list = (statuses: readonly string[], most: number) =>
    client.get(summariesSchema, "/api/session-summaries", { ...filter, status: statuses, limit: most });
  const page = status === undefined ? await liveFirst(list, Number(limit)) : await list([status], Number(limit));
  if (page.sessions.length === 0) {
    const hint = client.hint("create", "joke", "--param", "subject=tea");
    return console.log(`${(agent ?? status) ? "no such sessions" : "no sessions yet"}; start one with: ${hint}`);
  }
  console.log(table(["SESSION", "AGENT", "MONIKER", "STATUS", "STEPS", "AGE", "COST", "LAST"], page.sessions.map(row)));
  const shown = page.sessions.length;
  if (page.total <= shown) return;
  const filters = [
    ...(agent === undefined ? [] : ["--agent", agent]),
    ...(status === undefined ? [] : ["--status", status]),
  ];
  const hint = client.hint("ps", ...filters, "--limit", String(Math.min(page.total, MOST)));
  console.error(`${shown} of ${page.total}${shown < MOST ? `; \`${hint}\` lists more` : ""}`);
}

async function liveFirst(
  list: (statuses: readonly string[], most: number) => Promise<z.infer<typeof summariesSchema>>,
  most: number,
): Promise<Page> {
  const live = await list(LIVE_STATUSES, most);
  const total = Object.values(live.counts).reduce((sum, count) => sum + count, 0);
  const left = most - live.sessions.length;
  const ended = left > 0 && total > live.total ? (await list(ENDED_STATUSES, left)).sessions : [];
  return { sessions: [...live.sessions, ...ended], total };
}

const row = (session: SessionSummary): string[] => [
  session.session_id,
  session.agent_id,
  session.moniker,
  statusText(session.status),
  String(session.iteration + 1),
  age(session.created_at),
  session.cost_usd > 0 ? `$${session.cost_usd.toFixed(4)}` : "",
  oneLine(retryText(session) ?? session.last_error ?? session.text ?? "", 60),
];
