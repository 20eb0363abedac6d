import type { Step } from "../../domain/step.ts";

export type Sample = { at: string; steps: number; errors: number; tokens: number; latency_ms: number };

const BUCKET_MS = 5000;
const BUCKETS = 360;

/** What this process did in the last half hour, in pieces of five seconds. Only pieces in which something happened are kept. */
export class Throughput {
  readonly #pieces = new Map<number, Omit<Sample, "at">>();

  stepCommitted({ status, tokens_used, latency_ms }: Pick<Step, "status" | "tokens_used" | "latency_ms">): void {
    const piece = this.#piece(Math.floor(Date.now() / BUCKET_MS));
    piece.steps += status === "ok" ? 1 : 0;
    piece.errors += status === "error" ? 1 : 0;
    piece.tokens += tokens_used;
    piece.latency_ms += latency_ms;
  }

  /** Oldest first, without gaps; `latency_ms` is the mean of the piece's steps. The piece that is under way is left out. */
  samples(): Sample[] {
    const end = Math.floor(Date.now() / BUCKET_MS);
    return Array.from({ length: BUCKETS }, (_, index) => {
      const bucket = end - BUCKETS + index;
      const { steps = 0, errors = 0, tokens = 0, latency_ms = 0 } = this.#pieces.get(bucket) ?? {};
      const mean = latency_ms / Math.max(1, steps + errors);
      return { at: new Date(bucket * BUCKET_MS).toISOString(), steps, errors, tokens, latency_ms: mean };
    });
  }

  #piece(bucket: number): Omit<Sample, "at"> {
    let piece = this.#pieces.get(bucket);
    if (!piece) {
      for (const old of this.#pieces.keys()) if (old < bucket - BUCKETS) this.#pieces.delete(old);
      piece = { steps: 0, errors: 0, tokens: 0, latency_ms: 0 };
      this.#pieces.set(bucket, piece);
    }
    return piece;
  }
}
