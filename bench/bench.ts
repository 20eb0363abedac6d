import type { Figure } from "./figure.ts";

export type BenchContext = {
  /** An empty folder on the disk under test. */
  folder: string;
  /** Fewer and smaller runs, for a first look. */
  quick: boolean;
};

type BenchPart = { measures: string; run(context: BenchContext): Promise<Figure[]> };

export type Bench = { measures: string; parts: Readonly<Record<string, BenchPart>> };
