import { tickFormat } from "../../../ui/time.tsx";
import {
  AXIS_HEIGHT,
  type Bar,
  type Lanes,
  type Mark,
  type MarkKind,
  type Picture,
  type Rest,
  type RestKind,
} from "./picture.ts";

/** The time range in view, in milliseconds since 1970. */
export type View = { from: number; to: number };

export type Colors = Record<
  "surface" | "line" | "ink" | "muted" | "accent" | "running" | "good" | "warn" | "bad" | "sunken" | "on-accent",
  string
>;

export type Drawing = {
  context: CanvasRenderingContext2D;
  width: number;
  colors: Colors;
  lanes: Lanes;
  view: View;
  selected: number | null;
};

const xOf = (time: number, { from, to }: View, width: number): number => ((time - from) / (to - from)) * width;
export const timeOf = (x: number, { from, to }: View, width: number): number => from + (x / width) * (to - from);

/** Index of the first item that ends at or after a time, by binary search. */
export function firstEndingAfter(items: readonly { end: number }[], time: number): number {
  let low = 0;
  let high = items.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((items[middle] as { end: number }).end < time) low = middle + 1;
    else high = middle;
  }
  return low;
}

export function drawPicture(drawing: Drawing, picture: Picture): void {
  const { context, width, colors, lanes } = drawing;
  context.clearRect(0, 0, width, lanes.height);
  context.font = "11px sans-serif";
  context.textBaseline = "middle";
  drawAxis(drawing);
  context.fillStyle = colors.sunken;
  for (const lane of [lanes.steps, lanes.model, lanes.tool, lanes.rests])
    if (lane) context.fillRect(0, lane.top, width, lane.height);
  drawRests(drawing, picture.rests);
  drawBars(drawing, picture.bars);
  drawMarks(drawing, picture.marks);
}

const STEPS_MS = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000,
  900_000, 1_800_000, 3_600_000, 7_200_000, 14_400_000, 21_600_000, 43_200_000, 86_400_000,
];
const TICK_PX = 104;
/** Room for the zoom buttons and the label of the last tick. */
const BUTTONS_PX = 195;

function drawAxis({ context, width, colors, view, lanes }: Drawing): void {
  const tickMs = ((view.to - view.from) / width) * TICK_PX;
  const step = STEPS_MS.find((ms) => ms >= tickMs) ?? Math.ceil(tickMs / 86_400_000) * 86_400_000;
  const zone = new Date(view.from).getTimezoneOffset() * 60_000;
  const words = tickFormat(step);
  context.fillStyle = colors.muted;
  context.strokeStyle = colors.line;
  context.lineWidth = 1;
  context.beginPath();
  for (let at = Math.ceil((view.from - zone) / step) * step + zone; at <= view.to; at += step) {
    const x = Math.round(xOf(at, view, width)) + 0.5;
    context.moveTo(x, AXIS_HEIGHT - 4);
    context.lineTo(x, lanes.height);
    if (x < width - BUTTONS_PX) context.fillText(words.format(at), x + 4, AXIS_HEIGHT / 2);
  }
  context.stroke();
}

/** Bars that share a pixel are drawn as one; failed and selected bars are drawn last, so that no neighbour hides them. */
function drawBars(drawing: Drawing, bars: readonly Bar[]): void {
  const { context, width, colors, view, selected, lanes } = drawing;
  const { top, height } = lanes.steps;
  const fills = { ok: colors.accent, error: colors.bad, running: colors.running };
  const last = { steps: -1, model: -1, tool: -1 };
  const late: Bar[] = [];
  for (let index = firstEndingAfter(bars, view.from); index < bars.length; index++) {
    const bar = bars[index] as Bar;
    if (bar.start > view.to) break;
    if (bar.look === "error" || bar.iteration === selected) late.push(bar);
    const x = xOf(bar.start, view, width);
    const right = Math.max(x + 1, xOf(bar.end, view, width));
    if (right > last.steps + 0.5) {
      const left = Math.max(x, last.steps);
      context.fillStyle = fills[bar.look];
      context.globalAlpha = bar.look === "running" ? 0.75 : 1;
      box(context, left, top, right - left - (right - left > 3 ? 1 : 0), height);
      context.globalAlpha = 1;
      last.steps = right;
      label(drawing, `${bar.iteration} ${bar.token}`, { left, right, top, height }, colors["on-accent"]);
    }
    for (const call of bar.calls) drawCall(drawing, call, last);
  }
  for (const bar of late) drawLate(drawing, bar);
}

function drawCall(drawing: Drawing, call: Bar["calls"][number], last: { model: number; tool: number }): void {
  const { context, width, colors, view, lanes } = drawing;
  const lane = lanes[call.kind];
  if (!lane) return;
  const { top, height } = lane;
  const x = xOf(call.start, view, width);
  const right = Math.max(x + 1, xOf(call.end, view, width));
  if ((right <= last[call.kind] + 0.5 && !call.failed) || right < 0 || x > width) return;
  const left = call.failed ? x : Math.max(x, last[call.kind]);
  context.fillStyle = call.failed ? colors.bad : call.kind === "model" ? colors.good : colors.warn;
  box(context, left, top, right - left - (right - left > 3 ? 1 : 0), height);
  last[call.kind] = Math.max(last[call.kind], right);
  label(drawing, call.name, { left, right, top, height }, colors.surface);
}

function drawLate({ context, width, colors, view, selected, lanes }: Drawing, bar: Bar): void {
  const { top, height } = lanes.steps;
  const left = xOf(bar.start, view, width);
  const right = Math.max(left + 2, xOf(bar.end, view, width));
  if (bar.look === "error") {
    context.fillStyle = colors.bad;
    box(context, left, top, right - left, height);
  }
  if (bar.iteration !== selected) return;
  context.strokeStyle = colors.ink;
  context.lineWidth = 2;
  context.strokeRect(Math.max(1, left - 1), top - 2, Math.min(width, right) - Math.max(0, left) + 2, height + 4);
  context.fillStyle = colors.ink;
  context.beginPath();
  const middle = (left + right) / 2;
  context.moveTo(middle - 4, AXIS_HEIGHT - 2);
  context.lineTo(middle + 4, AXIS_HEIGHT - 2);
  context.lineTo(middle, AXIS_HEIGHT + 4);
  context.fill();
}

const REST_COLORS: Record<RestKind, keyof Colors> = {
  waits: "line",
  asks: "warn",
  paused: "muted",
  retries: "warn",
  failed: "bad",
  crash: "bad",
  restart: "muted",
};
const IS_PATTERNED: ReadonlySet<RestKind> = new Set(["retries", "crash", "restart", "failed"]);

function drawRests(drawing: Drawing, rests: readonly Rest[]): void {
  const { context, width, colors, view, lanes } = drawing;
  const { top, height } = lanes.rests;
  let last = -1;
  for (const rest of rests) {
    const x = xOf(rest.start, view, width);
    const right = Math.max(x + 2, xOf(rest.end, view, width));
    if (right < 0 || x > width || (right <= last + 0.5 && !IS_PATTERNED.has(rest.kind))) continue;
    const place = { left: Math.max(0, x), right: Math.min(width, right), top, height };
    context.fillStyle = colors[REST_COLORS[rest.kind]];
    (IS_PATTERNED.has(rest.kind) ? stripes : box)(context, place.left, top, place.right - place.left, height);
    last = Math.max(last, right);
    // The mark at its end says the same.
    if ((rest.kind === "crash" || rest.kind === "restart") && rest.end <= view.to) continue;
    const isDark = rest.kind === "asks" || rest.kind === "paused";
    label(drawing, rest.words, place, isDark ? colors.surface : colors.ink);
  }
}

const MARK_COLORS: Record<MarkKind, keyof Colors> = {
  guidance: "accent",
  failure: "bad",
  crash: "bad",
  restart: "muted",
};
const MARK_GAP_PX = 3;

function drawMarks(drawing: Drawing, marks: readonly Mark[]): void {
  const { context, width, colors, view, lanes } = drawing;
  const { top, height } = lanes.marks;
  let last = Number.NEGATIVE_INFINITY;
  for (const [index, { kind, at, words }] of marks.entries()) {
    const x = xOf(at, view, width);
    if (x < -5 || x > width + 5 || (kind === "guidance" && x - last < MARK_GAP_PX)) continue;
    const color = colors[MARK_COLORS[kind]];
    const room = Math.max(0, last);
    context.fillStyle = color;
    context.beginPath();
    if (kind === "crash" || kind === "restart") context.rect(x - 1, AXIS_HEIGHT, 2, lanes.height - AXIS_HEIGHT);
    else if (kind === "failure") context.arc(x, top + height / 2, 4, 0, 2 * Math.PI);
    else {
      context.moveTo(x - 5, top + 2);
      context.lineTo(x + 5, top + 2);
      context.lineTo(x, top + height - 2);
    }
    context.fill();
    last = x;
    if (kind !== "crash" && kind !== "restart") continue;
    const next = marks[index + 1];
    const right = next ? Math.min(width, xOf(next.at, view, width) - MARK_GAP_PX) : width;
    // On the side where the words fit.
    const isLeft = right - x < widthOf(words) && x - room > right - x;
    const place = isLeft ? { left: Math.max(room, x - widthOf(words)), right: x } : { left: x, right };
    label(drawing, words, { ...place, top, height }, color);
  }
}

function box(context: CanvasRenderingContext2D, x: number, y: number, width: number, height: number): void {
  if (width < 6) return context.fillRect(x, y, Math.max(1, width), height);
  context.beginPath();
  context.roundRect(x, y, width, height, 3);
  context.fill();
}

/** Distinguishes a rest by more than its color. */
function stripes(context: CanvasRenderingContext2D, x: number, y: number, width: number, height: number): void {
  const { globalAlpha } = context;
  context.globalAlpha = 0.28;
  context.fillRect(x, y, Math.max(2, width), height);
  for (let at = x; at < x + width; at += 6) context.fillRect(at, y, 2, height);
  context.globalAlpha = globalAlpha;
  context.fillRect(x, y, 2, height);
}

type Place = { left: number; right: number; top: number; height: number };
const LEAST_LABEL_PX = 34;

/** The width of words with the space around them, about. */
const widthOf = (words: string): number => words.length * 6 + 9;

/** Words within a bar, cut to fit. */
function label({ context, width }: Drawing, words: string, { left, right, top, height }: Place, color: string): void {
  const from = Math.max(0, left) + 5;
  const room = Math.min(width, right) - from - 4;
  if (room < LEAST_LABEL_PX) return;
  const most = Math.floor(room / 6);
  context.fillStyle = color;
  context.fillText(words.length > most ? `${words.slice(0, most - 1)}…` : words, from, top + height / 2 + 0.5);
}
