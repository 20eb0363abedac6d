import type { View } from "./draw-picture.ts";

/** The part of the picture in view; null: all of it, including what is yet to come. */
export type Zoom = View | null;

/** The shortest range that can be zoomed to, in milliseconds. */
const SHORTEST = 2;
/** Margin at both ends, as a fraction of the range. */
const MARGIN = 0.01;

type Range = { from: number; to: number };

export function fitting({ from, to }: Range, zoom: Zoom): View {
  if (zoom) return zoom;
  const margin = Math.max(1, (to - from) * MARGIN);
  return { from: from - margin, to: to + margin };
}

/** Scales the range by a factor, around a point from 0 (start) to 1 (end). */
export function zoomed({ from, to }: View, factor: number, around = 0.5): View {
  const length = Math.max(SHORTEST, (to - from) * factor);
  const fixed = from + (to - from) * around;
  return { from: fixed - length * around, to: fixed + length * (1 - around) };
}

/** Moves the range by a fraction of its length. */
export const moved = ({ from, to }: View, part: number): View => {
  const by = (to - from) * part;
  return { from: from + by, to: to + by };
};
