import { milliseconds } from "../../../ui/format.ts";
import { firstEndingAfter, timeOf, type View } from "./draw-picture.ts";
import type { Lane, Picture } from "./picture.ts";

/** A pointer this close to a bar counts as on it. */
const NEAR_PX = 6;

type Point = { x: number; y: number; width: number };

/** What is under the pointer, in words. */
export function hintAt(picture: Picture, view: View, { x, y, width }: Point): { x: number; words: string } | null {
  const { lanes } = picture;
  const time = timeOf(x, view, width);
  const near = ((view.to - view.from) / width) * NEAR_PX;
  const mark = y < lanes.steps.top ? picture.marks.find(({ at }) => Math.abs(at - time) <= near) : undefined;
  if (mark) return { x, words: mark.words };
  if (y >= lanes.rests.top) {
    const rest = picture.rests.findLast(({ start, end }) => start - near <= time && time <= end + near);
    return rest ? { x, words: rest.words } : null;
  }
  const bar = picture.bars[firstEndingAfter(picture.bars, time - near)];
  if (!bar || bar.start > time + near) return null;
  const isBelow = (lane: Lane | null) => lane !== null && y >= lane.top;
  const kind = isBelow(lanes.tool) ? "tool" : isBelow(lanes.model) ? "model" : null;
  const call = kind && bar.calls.find((one) => one.kind === kind && one.start - near <= time && time <= one.end + near);
  if (call) return { x, words: `${call.name}, ${milliseconds(call.end - call.start)}${call.failed ? ", failed" : ""}` };
  const tries = bar.attempts > 1 ? `, attempt ${bar.attempts}` : "";
  return { x, words: `Step ${bar.iteration} (${bar.token}), ${milliseconds(bar.end - bar.start)}${tries}` };
}

/** The step nearest to a position, if one is close. */
export function iterationAt({ bars, rests }: Picture, view: View, x: number, width: number): number | null {
  const time = timeOf(x, view, width);
  const near = ((view.to - view.from) / width) * NEAR_PX;
  const index = firstEndingAfter(bars, time);
  const around = [bars[index - 1], bars[index]].filter((bar) => bar !== undefined);
  const distance = ({ start, end }: { start: number; end: number }) => Math.max(start - time, time - end, 0);
  const nearest = around.sort((a, b) => distance(a) - distance(b))[0];
  if (nearest && nearest.look !== "running" && distance(nearest) <= near) return nearest.iteration;
  return rests.find(({ start, end }) => start <= time && time <= end)?.iteration ?? null;
}
