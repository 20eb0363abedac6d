import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { get } from "../../data/api.ts";
import type { Session, SlimStep } from "../../data/queries.ts";
import { Empty, Failure } from "../../ui/empty.tsx";
import { Plot } from "../../ui/plot.tsx";

const MOST = 1000;
const PAGE = 500;

/** Latency and tokens of the last thousand steps. */
export function SessionPlots({ session }: { session: Session }) {
  const { session_id, iteration } = session;
  // A busy session is drawn again every ten steps rather than at each.
  const upTo = iteration < 50 ? iteration : Math.floor(iteration / 10) * 10;
  const { data: steps, error } = useQuery({
    queryKey: ["plots", session_id, upTo],
    placeholderData: keepPreviousData,
    queryFn: () => lastSteps(session_id, iteration),
  });
  if (error) return <Failure error={error} />;
  if (!steps) return <p className="p-4 text-muted">Loading…</p>;
  if (steps.length === 0) return <Empty title="Nothing to draw yet">The plots begin with the first step.</Empty>;
  const xs = steps.map((step) => step.iteration);
  return (
    <div className="flex flex-col gap-3 p-4" data-testid="plots">
      <Plot title="Latency over iterations" unit="ms" xs={xs} ys={steps.map((step) => step.latency_ms)} />
      <Plot
        title="Tokens over iterations"
        unit="tokens"
        xs={xs}
        ys={steps.map((step) => step.tokens_used)}
        color="good"
      />
    </div>
  );
}

async function lastSteps(session_id: string, iteration: number): Promise<SlimStep[]> {
  const min_iteration = Math.max(0, iteration - MOST + 1);
  const query = { session_id, min_iteration, status: "ok", with_state: false, limit: PAGE };
  const pages = [0, PAGE].map((offset) => get<{ steps: SlimStep[] }>("/api/agent-steps", { ...query, offset }));
  return (await Promise.all(pages)).flatMap(({ steps }) => steps);
}
