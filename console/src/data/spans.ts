import type { StepSpan } from "../../../src/domain/step-span.ts";
import { get } from "./api.ts";
import { Signal } from "./signal.ts";

export type { StepSpan };

const PAGE = 1000;
/** Pages requested at a time. */
const AT_ONCE = 4;
/** Of longer sessions only the newest are read: this many a browser draws and keeps with ease. */
const MOST = 50_000;
/** Delay between two reads of a running session. */
const RENEW_MS = 1000;

export type SpansState = {
  /** By iteration, then arrival. */
  spans: readonly StepSpan[];
  isLoading: boolean;
  error: Error | null;
};

/**
 * The spans of all steps of a session, growing with it.
 *
 * SPANS-1  Rows are keyed by id: one that is read twice is there once.
 * SPANS-2  One read at a time; changes meanwhile lead to one more.
 */
export class Spans {
  readonly state = new Signal<SpansState>({ spans: [], isLoading: true, error: null });
  readonly #session_id: string;
  readonly #spansById = new Map<string, StepSpan>();
  #next = 0;
  #isReading = false;
  #isStale = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isClosed = false;

  constructor(session_id: string) {
    this.#session_id = session_id;
  }

  /** Reads everything up to this iteration, and what came after it. */
  async open(iteration: number): Promise<void> {
    this.#next = Math.max(0, iteration + 1 - MOST);
    await this.#read(iteration);
  }

  /** The session moved on. */
  renew(): void {
    if (this.#isReading)
      this.#isStale = true; // SPANS-2
    else this.#timer ??= setTimeout(() => this.#readMore(), RENEW_MS);
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  #readMore(): void {
    this.#timer = undefined;
    void this.#read(this.#next);
  }

  async #read(upTo: number): Promise<void> {
    this.#isReading = true;
    try {
      // Whole pages in parallel, then the rest and what came meanwhile.
      while (this.#next + PAGE <= upTo && !this.#isClosed) {
        const count = Math.min(AT_ONCE, Math.floor((upTo - this.#next) / PAGE));
        const starts = Array.from({ length: count }, (_, index) => this.#next + index * PAGE);
        await Promise.all(starts.map((start) => this.#page(start, start + PAGE - 1)));
        this.#next += count * PAGE;
        this.#show(true);
      }
      while (!this.#isClosed && (await this.#page(this.#next)) >= PAGE) this.#show(true);
      this.#show(false);
    } catch (error) {
      this.state.set({ ...this.state.value, isLoading: false, error: error as Error });
    }
    this.#isReading = false;
    if (this.#isStale && !this.#isClosed) {
      this.#isStale = false;
      this.renew();
    }
  }

  /** Failed attempts have rows too, so that a range may have more rows than iterations. The committed row comes last. */
  async #page(min_iteration: number, max_iteration?: number): Promise<number> {
    const range = { session_id: this.#session_id, min_iteration, max_iteration };
    let rows = 0;
    for (let offset = 0; ; offset += PAGE) {
      const { spans } = await get<{ spans: StepSpan[] }>("/api/step-spans", { ...range, offset });
      rows += spans.length;
      for (const span of spans) {
        this.#spansById.set(span.id, span); // SPANS-1
        if (max_iteration === undefined && span.status === "ok") this.#next = Math.max(this.#next, span.iteration + 1);
      }
      const last = spans.at(-1);
      const isWhole = spans.length < PAGE || (last?.iteration === max_iteration && last?.status === "ok");
      if (isWhole || max_iteration === undefined) return rows;
    }
  }

  #show(isLoading: boolean): void {
    if (this.#isClosed) return;
    const { spans } = this.state.value;
    const isSame = spans.length === this.#spansById.size;
    this.state.set({ spans: isSame ? spans : sorted(this.#spansById.values()), isLoading, error: null });
  }
}

const sorted = (spans: Iterable<StepSpan>): StepSpan[] =>
  [...spans].sort((a, b) => a.iteration - b.iteration || (a.id < b.id ? -1 : 1));
