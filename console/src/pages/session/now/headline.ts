import type { Session } from "../../../data/queries.ts";

export type Tone = "running" | "warn" | "bad" | "good" | "muted";

/** What a session is doing. `since` and `until` are shown as times that count up and down. */
export type Headline = { tone: Tone; words: string; since?: string | null; until?: string | null };

/** Whether the error is an outage of the model's provider. */
export const isProviderAway = (error: string): boolean => /^(?:provider_down|rate_limited): /.test(error);

const LIMIT_NAMES: Readonly<Record<string, string>> = {
  max_steps: "step",
  max_runtime_s: "time",
  max_tokens: "token",
  max_cost_usd: "cost",
};

export function headlineOf(session: Session, isStreaming: boolean): Headline {
  const { status, step_started_at, wake_at, question, ended_at } = session;
  switch (status) {
    case "running":
      return runningHeadline(session, isStreaming);
    case "waiting":
      if (question !== null) return { tone: "warn", words: "Waiting for your answer" };
      if (wake_at !== null) return { tone: "muted", words: "Waiting", until: wake_at };
      return { tone: "muted", words: "Waiting for guidance", since: session.rests_since ?? session.updated_at };
    case "paused":
      if (step_started_at !== null) return { tone: "warn", words: "Paused, finishing a step", since: step_started_at };
      return { tone: "warn", words: pausedWords(session), since: session.updated_at };
    case "stopping":
      return { tone: "warn", words: "Being destroyed, finishing a step", since: step_started_at };
    case "stopped":
      return { tone: "muted", words: stoppedWords(session), since: ended_at };
    case "done":
      return { tone: "good", words: "Done", since: ended_at };
    case "error":
      return { tone: "bad", words: `Failed at step ${session.iteration + 1}`, since: ended_at };
  }
  return status satisfies never;
}

function runningHeadline(session: Session, isStreaming: boolean): Headline {
  const { step_started_at, retry_at, last_error, question, iteration } = session;
  if (step_started_at === null && retry_at !== null) {
    const isProvider = last_error !== null && isProviderAway(last_error);
    return { tone: "warn", words: isProvider ? "Waiting for the provider" : "Waiting to retry", until: retry_at };
  }
  if (question !== null && step_started_at === null) return { tone: "warn", words: "Waiting for your answer" };
  if (step_started_at !== null || isStreaming)
    return { tone: "running", words: `Running step ${iteration + 1}`, since: step_started_at };
  return { tone: "running", words: "Running" };
}

function pausedWords({ pause_reason }: Session): string {
  if (pause_reason?.kind === "breakpoint") return "Held at a breakpoint";
  if (pause_reason?.kind === "crashes") return "Held after crashes";
  return pause_reason?.user_id === undefined ? "Paused" : `Paused by ${pause_reason.user_id}`;
}

const stoppedWords = ({ stop_reason }: Session): string =>
  stop_reason === "destroyed" ? "Destroyed" : `Stopped by its ${LIMIT_NAMES[stop_reason ?? ""] ?? ""} limit`;
