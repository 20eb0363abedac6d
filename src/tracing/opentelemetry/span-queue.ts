import { BatchSpanProcessor, type ReadableSpan, type SpanExporter, type SpanProcessor } from "@opentelemetry/sdk-trace";

/** The most spans waiting for export, and the most characters in their attributes; further ones are dropped. */
const MOST_SPANS = 4096;
const MOST_CHARACTERS = 32 * 1024 * 1024;
const BATCH = 512;
/** How long spans wait to be batched, in milliseconds. */
const DELAY_MS = 5000;
/** The shortest interval between two reports of lost spans, in milliseconds. */
const NOTE_EVERY_MS = 3_600_000;

export type SpanQueueOptions = {
  exporter: SpanExporter;
  delay_ms?: number | undefined;
  onDropped: (count: number) => void;
  /** Rate-limited. */
  onTrouble: (reason: string, dropped: number) => void;
};

/**
 * Buffers spans until they are sent.
 *
 * SPANS-1  The buffer is bounded, whatever the receiver does.
 * SPANS-2  Every lost span is counted, whether the buffer was full or the receiver refused it.
 */
export class SpanQueue implements SpanProcessor {
  readonly #options: SpanQueueOptions;
  readonly #batches: BatchSpanProcessor;
  #spans = 0;
  #characters = 0;
  #dropped = 0;
  #notedAt = Number.NEGATIVE_INFINITY;

  constructor(options: SpanQueueOptions) {
    this.#options = options;
    const { exporter, delay_ms = DELAY_MS } = options;
    this.#batches = new BatchSpanProcessor({
      exporter: {
        export: (spans, done) => {
          exporter.export(spans, (result) => {
            this.#left(spans);
            if (result.error) this.#lost(spans.length, result.error.message);
            // Failures are reported here; the batch processor cannot do so.
            done({ code: 0 });
          });
        },
        shutdown: () => exporter.shutdown(),
      },
      maxQueueSize: MOST_SPANS,
      maxExportBatchSize: BATCH,
      scheduledDelayMillis: delay_ms,
    });
  }

  onStart(): void {}

  onEnd(span: ReadableSpan): void {
    if (this.#spans >= MOST_SPANS || this.#characters >= MOST_CHARACTERS) return this.#lost(1, "the buffer is full"); // SPANS-1
    this.#spans += 1;
    this.#characters += charactersOf(span);
    this.#batches.onEnd(span);
  }

  forceFlush(): Promise<void> {
    return this.#batches.forceFlush();
  }

  shutdown(): Promise<void> {
    return this.#batches.shutdown();
  }

  #left(spans: readonly ReadableSpan[]): void {
    this.#spans -= spans.length;
    for (const span of spans) this.#characters -= charactersOf(span);
  }

  /** SPANS-2. */
  #lost(count: number, reason: string): void {
    this.#dropped += count;
    this.#options.onDropped(count);
    const now = performance.now();
    if (now - this.#notedAt < NOTE_EVERY_MS) return;
    this.#notedAt = now;
    this.#options.onTrouble(reason, this.#dropped);
  }
}

function charactersOf({ attributes }: ReadableSpan): number {
  let sum = 0;
  for (const value of Object.values(attributes)) if (typeof value === "string") sum += value.length;
  return sum;
}
