import { defineMoniker, type FrameOut, z } from "everstep/moniker";

const stateSchema = z.object({ reports: z.array(z.string()).default([]) });

/** Starts sessions and is done when each has reported its end. */
export default defineMoniker({
  name: "family",
  kind: "finite",
  description: "Starts sessions and waits for their ends.",
  params: z.object({ children: z.int().min(1).max(20), to: z.int().min(0) }),
  first_step: "start",
  step({ step, state, guidance = [] }, { params }): FrameOut {
    if (step === "start") {
      const params_of_child = { to: params.to, delay_ms: 20 };
      const child = { action_type: "agent_create" as const, moniker: "count", params: params_of_child };
      const actions = Array.from({ length: params.children }, () => child);
      return { step, next_step: "gather", state: {}, actions, wait: {}, done: false };
    }
    const ended = guidance.flatMap(
      (said) => (said as { child?: { session_id: string } } | null)?.child?.session_id ?? [],
    );
    const reports = [...stateSchema.parse(state).reports, ...ended];
    const done = new Set(reports).size >= params.children;
    return { step, next_step: "gather", state: { reports }, done, ...(done ? {} : { wait: {} }) };
  },
});
