import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "@prometheus-io/client";
import type { Step } from "../../domain/step.ts";
import type { Store } from "../../store/store.ts";
import { Throughput } from "./throughput.ts";

const LATENCY_BUCKETS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300];
const COMMIT_BUCKETS = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1];

/** Default metrics with names that violate Prometheus' rules; others cover the same. */
const MISNAMED = [
  "nodejs_active_handles_total",
  "nodejs_active_requests_total",
  "nodejs_active_resources_total",
  "nodejs_eventloop_utilization_histogram",
  "nodejs_eventloop_utilization_summary",
];

/** Metrics for operators, in Prometheus' format. */
export class Metrics {
  readonly #registry = new Registry();
  readonly #stepSeconds: Histogram<"status">;
  readonly #commitSeconds: Histogram;
  readonly #tokens: Counter;
  readonly #retries: Counter;
  readonly #toolSeconds: Histogram<"server" | "outcome">;
  readonly #deliveries: Counter<"outcome">;
  readonly #droppedSpans: Counter;
  readonly throughput = new Throughput();
  #beforeRender: () => Promise<void> = async () => {};

  constructor(store: Store) {
    const registers = [this.#registry];
    collectDefaultMetrics({ register: this.#registry });
    for (const name of MISNAMED) this.#registry.removeSingleMetric(name);
    this.#stepSeconds = new Histogram({
      name: "everstep_step_duration_seconds",
      help: "Duration of committed steps.",
      labelNames: ["status"],
      buckets: LATENCY_BUCKETS,
      registers,
    });
    this.#commitSeconds = new Histogram({
      name: "everstep_commit_duration_seconds",
      help: "Duration of the runtime's commits.",
      buckets: COMMIT_BUCKETS,
      registers,
    });
    this.#tokens = new Counter({ name: "everstep_tokens_total", help: "Tokens used by committed steps.", registers });
    this.#retries = new Counter({
      name: "everstep_step_retries_total",
      help: "Failed step attempts that were retried.",
      registers,
    });
    this.#toolSeconds = new Histogram({
      name: "everstep_tool_call_duration_seconds",
      help: "Duration of tool calls.",
      labelNames: ["server", "outcome"],
      buckets: LATENCY_BUCKETS,
      registers,
    });
    this.#deliveries = new Counter({
      name: "everstep_webhook_attempts_total",
      help: "Webhook delivery attempts; failed ones are retried.",
      labelNames: ["outcome"],
      registers,
    });
    for (const outcome of ["delivered", "failed", "given_up"]) this.#deliveries.inc({ outcome }, 0);
    this.#droppedSpans = new Counter({
      name: "everstep_spans_dropped_total",
      help: "OpenTelemetry spans that were not delivered.",
      registers,
    });
    this.#collectCounts(store, registers);
  }

  /** Counts are read from the store on each scrape. */
  #collectCounts(store: Store, registers: Registry[]): void {
    const sessions = new Gauge({
      name: "everstep_sessions",
      help: "Sessions by status.",
      labelNames: ["status"],
      registers,
    });
    const depth = new Gauge({ name: "everstep_queue_depth", help: "Unprocessed actions.", registers });
    const lag = new Gauge({
      name: "everstep_queue_lag_seconds",
      help: "Age of the oldest unprocessed action.",
      registers,
    });
    this.#beforeRender = async () => {
      const { sessions: counts, queue_depth, oldest_pending_at } = await store.counts();
      for (const [status, count] of Object.entries(counts)) sessions.set({ status }, count);
      depth.set(queue_depth);
      lag.set(oldest_pending_at === null ? 0 : (Date.now() - Date.parse(oldest_pending_at)) / 1000);
    };
  }

  stepCommitted(step: Step): void {
    const { status, latency_ms, tokens_used } = step;
    this.throughput.stepCommitted(step);
    this.#stepSeconds.observe({ status }, latency_ms / 1000);
    if (tokens_used > 0) this.#tokens.inc(tokens_used);
  }

  committed(ms: number): void {
    this.#commitSeconds.observe(ms / 1000);
  }

  spansDropped(count: number): void {
    this.#droppedSpans.inc(count);
  }

  retried(): void {
    this.#retries.inc();
  }

  /** Called after each call of an existing tool. */
  readonly toolCalled = ({ server, ms, is_error }: { server: string; ms: number; is_error: boolean }): void => {
    this.#toolSeconds.observe({ server, outcome: is_error ? "error" : "ok" }, ms / 1000);
  };

  /** Called after each delivery attempt. */
  readonly deliveryAttempted = (outcome: "delivered" | "failed" | "given_up"): void => {
    this.#deliveries.inc({ outcome });
  };

  get contentType(): string {
    return this.#registry.contentType;
  }

  async render(): Promise<string> {
    await this.#beforeRender();
    return this.#registry.metrics();
  }
}
