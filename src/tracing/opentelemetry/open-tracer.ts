import { type Context, ROOT_CONTEXT, SpanKind, SpanStatusCode, TraceFlags, trace } from "@opentelemetry/api";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import {
  defaultResource,
  detectResources,
  envDetector,
  type Resource,
  resourceFromAttributes,
  serviceInstanceIdDetector,
} from "@opentelemetry/resources";
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  type IdGenerator,
  ParentBasedSampler,
  RandomIdGenerator,
  type Sampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import { readTraceparent, type SpanPlace, toTraceparent } from "../../domain/traceparent.ts";
import { VERSION } from "../../domain/version.ts";
import { ATTRIBUTE } from "../names.ts";
import type { TracingSettings } from "../settings.ts";
import type { Attributes, NewSpan, Span, SpanEnd, Tracer } from "../tracer.ts";
import { SpanQueue, type SpanQueueOptions } from "./span-queue.ts";

const KINDS = {
  internal: SpanKind.INTERNAL,
  client: SpanKind.CLIENT,
  producer: SpanKind.PRODUCER,
} as const;
/** How long the final flush may take, in milliseconds. */
const FLUSH_MS = 3000;

type OpenTracer = {
  tracer: Tracer;
  /** Flushes pending spans, for a limited time. */
  stop: () => Promise<void>;
};

type Listeners = Pick<SpanQueueOptions, "onDropped" | "onTrouble">;

/** OpenTelemetry's SDK behind the port. It registers nothing globally, so that monikers with their own SDK are not disturbed. */
export function openTracer(settings: TracingSettings, listeners: Listeners): OpenTracer {
  const ids = new ChosenIds();
  const provider = new TracerProvider({
    resource: resourceOf(settings),
    sampler: samplerOf(settings),
    idGenerator: ids,
    spanProcessors: [new SpanQueue({ exporter: new OTLPTraceExporter(), delay_ms: settings.delay_ms, ...listeners })],
  });
  const tracer = provider.getTracer("everstep", VERSION);
  const { captures_content } = settings;
  return {
    tracer: {
      captures_content,
      start({ name, kind, parent, trace_id, span_id, at, attributes }) {
        const begin = () =>
          tracer.startSpan(
            name,
            { kind: KINDS[kind], attributes: present(attributes), ...(at !== undefined && { startTime: at }) },
            contextOf(parent),
          );
        return new SdkSpan(ids.choosing({ trace_id, span_id }, begin), captures_content);
      },
    },
    async stop() {
      const limit = Promise.withResolvers<void>();
      const timer = setTimeout(limit.resolve, FLUSH_MS);
      await Promise.race([provider.shutdown().catch(() => {}), limit.promise]);
      clearTimeout(timer);
    },
  };
}

type SdkSpanPart = ReturnType<ReturnType<TracerProvider["getTracer"]>["startSpan"]>;

class SdkSpan implements Span {
  readonly traceparent: string;
  readonly #span: SdkSpanPart;
  readonly #captures_content: boolean;

  constructor(span: SdkSpanPart, captures_content: boolean) {
    this.#span = span;
    this.#captures_content = captures_content;
    const { traceId: trace_id, spanId: span_id, traceFlags } = span.spanContext();
    this.traceparent = toTraceparent({ trace_id, span_id, is_sampled: (traceFlags & TraceFlags.SAMPLED) !== 0 });
  }

  set(attributes: Attributes): void {
    this.#span.setAttributes(present(attributes));
  }

  link(place: SpanPlace, attributes: Attributes): void {
    this.#span.addLink({ context: spanContext(place), attributes: present(attributes) });
  }

  /** On success the status stays unset, as the specification requires of instrumentation. */
  end({ error_type, error_message, at }: SpanEnd = {}): void {
    if (error_type !== undefined) {
      this.#span.setAttribute(ATTRIBUTE.error_type, error_type);
      // An error may quote content.
      const message = this.#captures_content && error_message !== undefined ? { message: error_message } : {};
      this.#span.setStatus({ code: SpanStatusCode.ERROR, ...message });
    }
    this.#span.end(at);
  }
}

/** Random ids, except for spans with predetermined ones. */
class ChosenIds implements IdGenerator {
  readonly #random = new RandomIdGenerator();
  #chosen: Pick<NewSpan, "trace_id" | "span_id"> = {};

  choosing<Result>(chosen: { [Id in "trace_id" | "span_id"]: string | undefined }, work: () => Result): Result {
    const { trace_id, span_id } = chosen;
    this.#chosen = { ...(trace_id !== undefined && { trace_id }), ...(span_id !== undefined && { span_id }) };
    try {
      return work();
    } finally {
      this.#chosen = {};
    }
  }

  generateTraceId(): string {
    return this.#chosen.trace_id ?? this.#random.generateTraceId();
  }

  generateSpanId(): string {
    return this.#chosen.span_id ?? this.#random.generateSpanId();
  }
}

function contextOf(parent: string | null): Context {
  const place = readTraceparent(parent);
  return place ? trace.setSpanContext(ROOT_CONTEXT, spanContext(place)) : ROOT_CONTEXT;
}

const spanContext = ({ trace_id, span_id, is_sampled }: SpanPlace) => ({
  traceId: trace_id,
  spanId: span_id,
  traceFlags: is_sampled ? TraceFlags.SAMPLED : TraceFlags.NONE,
  isRemote: true,
});

const present = (attributes: Attributes): Record<string, NonNullable<Attributes[string]>> =>
  Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== undefined)) as never;

/** `OTEL_RESOURCE_ATTRIBUTES` overrides ours, `OTEL_SERVICE_NAME` overrides both. */
function resourceOf({ service_name }: TracingSettings): Resource {
  return defaultResource()
    .merge(resourceFromAttributes({ "service.name": "everstep", "service.version": VERSION }))
    .merge(detectResources({ detectors: [serviceInstanceIdDetector, envDetector] }))
    .merge(resourceFromAttributes(service_name === undefined ? {} : { "service.name": service_name }));
}

function samplerOf({ sampler, ratio }: TracingSettings): Sampler {
  switch (sampler) {
    case "always_on":
      return new AlwaysOnSampler();
    case "always_off":
      return new AlwaysOffSampler();
    case "traceidratio":
      return new TraceIdRatioBasedSampler(ratio);
    case "parentbased_always_on":
      return new ParentBasedSampler({ root: new AlwaysOnSampler() });
    case "parentbased_always_off":
      return new ParentBasedSampler({ root: new AlwaysOffSampler() });
    case "parentbased_traceidratio":
      return new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(ratio) });
  }
  return sampler satisfies never;
}
