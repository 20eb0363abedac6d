import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { get } from "../../data/api.ts";
import type { Session } from "../../data/queries.ts";
import type { StepSpan } from "../../data/spans.ts";
import { Empty, Failure } from "../../ui/empty.tsx";
import { plural } from "../../ui/format.ts";
import { Plot } from "../../ui/plot.tsx";
import { downsampled } from "./downsampled.ts";

/** Points of a plot: more than a screen can show. */
const MOST_POINTS = 600;
const PAGE = 1000;
/** The most pages that are read; of longer sessions they are spread evenly. */
const MOST_PAGES = 20;

/** Latency, tokens and cost over the whole session. */
export function SessionPlots({ session }: { session: Session }) {
  const { session_id, iteration } = session;
  // Redrawn when the session has grown by a fiftieth, not with every step.
  const step = Math.max(1, Math.floor(iteration / 50));
  const upTo = Math.floor(iteration / step) * step;
  const { data: spans, error } = useQuery({
    queryKey: ["plots", session_id, upTo],
    placeholderData: keepPreviousData,
    queryFn: ({ signal }) => spansOf(session_id, iteration, signal),
  });
  if (error) return <Failure error={error} />;
  if (!spans) return <p className="p-4 text-muted">Loading…</p>;
  if (spans.length === 0) return <Empty title="No steps yet">Plots start with the first step.</Empty>;
  const plot = (value: (span: StepSpan) => number) => downsampled(spans, ({ iteration: x }) => x, value, MOST_POINTS);
  return (
    <div className="flex flex-col gap-3 p-4" data-testid="plots">
      <p className="text-muted">
        Steps {spans[0]?.iteration} to {spans.at(-1)?.iteration}
        {spans.length > MOST_POINTS &&
          `, the highest of every ${plural(Math.ceil(spans.length / MOST_POINTS), "step")}`}
      </p>
      <Plot title="Latency per step" unit="ms" {...plot(({ latency_ms }) => latency_ms)} />
      <Plot title="Tokens per step" unit="tokens" {...plot(({ tokens_used }) => tokens_used)} color="good" />
      {session.cost_usd > 0 && (
        <Plot title="Cost per step" unit="USD" {...plot(({ cost_usd }) => cost_usd)} color="warn" />
      )}
    </div>
  );
}

async function spansOf(session_id: string, iteration: number, signal: AbortSignal): Promise<StepSpan[]> {
  const pages = Math.ceil((iteration + 1) / PAGE);
  const stride = Math.max(1, pages / MOST_PAGES);
  const spans: StepSpan[] = [];
  for (let page = 0; page < pages; page += stride) {
    const min_iteration = Math.floor(page) * PAGE;
    const range = { session_id, min_iteration, max_iteration: min_iteration + PAGE - 1 };
    spans.push(...(await get<{ spans: StepSpan[] }>("/api/step-spans", range, signal)).spans);
  }
  return spans.filter(({ status }) => status === "ok");
}
