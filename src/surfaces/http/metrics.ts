import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "@prometheus-io/client";
import type { Step } from "../../domain/step.ts";
import type { Store } from "../../store/store.ts";
import { Throughput } from "./throughput.ts";

const LATENCY_BUCKETS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300];
const COMMIT_BUCKETS = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1];

/** Of the process's own figures: their names are not as Prometheus asks, and others say the same or are enough. */
const MISNAMED = [
  "nodejs_active_handles_total",
  "nodejs_active_requests_total",
  "nodejs_active_resources_total",
  "nodejs_eventloop_utilization_histogram",
  "nodejs_eventloop_utilization_summary",
];

/** What operators watch, in Prometheus' format. */
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
      help: "How long committed steps took.",
      labelNames: ["status"],
      buckets: LATENCY_BUCKETS,
      registers,
    });
    this.#commitSeconds = new Histogram({
      name: "everstep_commit_duration_seconds",
      help: "How long commits of the runtime took.",
      buckets: COMMIT_BUCKETS,
      registers,
    });
    this.#tokens = new Counter({ name: "everstep_tokens_total", help: "Tokens that committed steps used.", registers });
    this.#retries = new Counter({
      name: "everstep_step_retries_total",
      help: "Attempts at a step that failed and were tried again.",
      registers,
    });
    this.#toolSeconds = new Histogram({
      name: "everstep_tool_call_duration_seconds",
      help: "How long calls of tools took.",
      labelNames: ["server", "outcome"],
      buckets: LATENCY_BUCKETS,
      registers,
    });
    this.#deliveries = new Counter({
      name: "everstep_webhook_attempts_total",
      help: "Attempts at deliveries of webhooks; failed ones are tried again.",
      labelNames: ["outcome"],
      registers,
    });
    for (const outcome of ["delivered", "failed", "given_up"]) this.#deliveries.inc({ outcome }, 0);
    this.#droppedSpans = new Counter({
      name: "everstep_spans_dropped_total",
      help: "Spans for OpenTelemetry that were not delivered.",
      registers,
    });
    this.#collectCounts(store, registers);
  }

  /** Counts are read from the store when they are asked for. */
  #collectCounts(store: Store, registers: Registry[]): void {
    const sessions = new Gauge({
      name: "everstep_sessions",
      help: "Sessions by status.",
      labelNames: ["status"],
      registers,
    });
    const depth = new Gauge({ name: "everstep_queue_depth", help: "Actions that are not processed.", registers });
    const lag = new Gauge({
      name: "everstep_queue_lag_seconds",
      help: "Age of the oldest action that is not processed.",
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

  /** A call of a tool that exists is over. */
  readonly toolCalled = ({ server, ms, is_error }: { server: string; ms: number; is_error: boolean }): void => {
    this.#toolSeconds.observe({ server, outcome: is_error ? "error" : "ok" }, ms / 1000);
  };

  /** An attempt at a delivery is over. */
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
