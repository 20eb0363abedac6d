import type { News } from "../runtime/news.ts";

type Start = { index: number; at: number };

/** Which steps this process ran, and when. */
export class StepRecord {
  readonly #news: News;
  readonly #starts = new Map<string, Start[]>();
  readonly #ends = new Map<string, number>();

  constructor(news: News) {
    this.#news = news;
  }

  started(session_id: string, index: number): void {
    const starts = this.#starts.get(session_id);
    const start = { index, at: performance.now() };
    if (starts) starts.push(start);
    else this.#starts.set(session_id, [start]);
    this.#news.tell();
  }

  ended(session_id: string, index: number): void {
    const key = `${session_id} ${index}`;
    this.#ends.set(key, (this.#ends.get(key) ?? 0) + 1);
  }

  clear(): void {
    this.#starts.clear();
    this.#ends.clear();
  }

  has(session_id: string): boolean {
    return this.#starts.has(session_id);
  }

  count(): number {
    return this.#ends.size;
  }

  /** Steps that were completed more than once. */
  redone(): number {
    return [...this.#ends.values()].filter((times) => times > 1).length;
  }

  /** Milliseconds from each step to the next of the same session, over all sessions. */
  gaps(): number[] {
    return [...this.#starts.values()].flatMap((starts) =>
      starts.slice(1).map(({ at }, index) => at - (starts[index] as Start).at),
    );
  }

  startsAfter(session_id: string, time: number): number[] {
    return (this.#starts.get(session_id) ?? []).filter(({ at }) => at > time).map(({ at }) => at);
  }
}
