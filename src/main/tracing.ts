import type { Logger } from "pino";
import type { Tracer } from "../tracing/tracer.ts";
import type { Config } from "./config.ts";

type TracingParts = { log: Logger; metrics: { spansDropped(count: number): void } };

/** The tracer of this process; undefined if no receiver is configured, and then OpenTelemetry is not loaded. */
export async function openTracing(
  config: Config,
  { log, metrics }: TracingParts,
  atStop: (what: string, stop: () => unknown) => void,
): Promise<Tracer | undefined> {
  const { OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT } = config;
  const endpoint = OTEL_EXPORTER_OTLP_TRACES_ENDPOINT ?? OTEL_EXPORTER_OTLP_ENDPOINT;
  if (endpoint === undefined || config.OTEL_SDK_DISABLED) return undefined;
  const { openTracer } = await import("../tracing/opentelemetry/open-tracer.ts");
  const settings = {
    captures_content: config.OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT,
    service_name: config.OTEL_SERVICE_NAME,
    sampler: config.OTEL_TRACES_SAMPLER,
    ratio: config.OTEL_TRACES_SAMPLER_ARG ?? 1,
    delay_ms: config.OTEL_BSP_SCHEDULE_DELAY,
  };
  const onTrouble = (reason: string, dropped: number) =>
    log.warn({ reason, dropped, endpoint }, "spans were lost; agents are not affected (OTEL_EXPORTER_OTLP_ENDPOINT)");
  const { tracer, stop } = openTracer(settings, { onDropped: (count) => metrics.spansDropped(count), onTrouble });
  atStop("spans", stop);
  return tracer;
}
