import type { StepContext, StepProgress } from "../../src/monikers/moniker.ts";

/** A step's context as the runner creates it, and what was emitted. */
export function stepContext(
  more: Partial<Pick<StepContext, "params" | "signal" | "ids" | "deadline" | "is_rerun">> = {},
): StepContext & { emitted: StepProgress[] } {
  const emitted: StepProgress[] = [];
  return {
    params: {},
    signal: new AbortController().signal,
    ids: { agent_id: "agent", session_id: "session", conversation_id: null, iteration: 0 },
    attempt: { number: 1, after: null },
    llm: null,
    tools: {} as never,
    unread: async () => [],
    emit: (news) => emitted.push(news),
    ...more,
    emitted,
  };
}
