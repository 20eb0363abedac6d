import type { Spread } from "./compare.ts";
import type { Contender } from "./contenders.ts";

export type BarChart = {
  title: string;
  scale: "log" | "linear";
  unit: string;
  bars: readonly (Spread & { name: string; role: Contender["role"] })[];
};

const WIDTH = 760;
const NAMES = 210;
const VALUES = 110;
const ROW = 26;
const TOP = 40;
/** Colors that can be distinguished on white and on black; texts use a gray that is readable on both. */
const COLOURS = { everstep: "#2f9e6e", peer: "#5b8def", floor: "#9a9a9a" } as const;
const TEXT = "#808080";

/** Horizontal bars, one for each contender: the median, with its range drawn over it. */
export function barChart({ title, scale, unit, bars }: BarChart): string {
  const length = WIDTH - NAMES - VALUES;
  const most = Math.max(...bars.map((bar) => bar.most));
  const from = scale === "log" ? 10 ** Math.floor(Math.log10(Math.min(...bars.map((bar) => bar.least)) / 2)) : 0;
  const place = (value: number): number => {
    const share = scale === "log" ? Math.log(value / from) / Math.log(most / from) : value / most;
    return NAMES + Math.max(0, share) * length;
  };
  const rows = bars.map(({ name, role, median, least, most: longest }, index) => {
    const y = TOP + index * ROW;
    const middle = y + ROW / 2;
    return [
      `<text x="${NAMES - 8}" y="${middle + 4}" text-anchor="end">${escaped(name)}</text>`,
      `<rect x="${NAMES}" y="${y + 4}" width="${round(place(median) - NAMES)}" height="${ROW - 8}" fill="${COLOURS[role]}"/>`,
      `<path d="M${round(place(least))} ${middle}H${round(place(longest))}" stroke="${TEXT}" stroke-width="2"/>`,
      `<text x="${round(place(longest) + 8)}" y="${middle + 4}">${readable(median)} ${escaped(unit)}</text>`,
    ].join("");
  });
  const height = TOP + bars.length * ROW + 28;
  const note = `median and range${scale === "log" ? ", logarithmic scale" : ""}`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="${escaped(title)}" font-family="system-ui, sans-serif" font-size="13" fill="${TEXT}">`,
    `<text x="8" y="22" font-size="15" font-weight="600">${escaped(title)}</text>`,
    ...rows,
    `<text x="8" y="${height - 8}" font-size="11">${note}</text>`,
    "</svg>\n",
  ].join("\n");
}

const round = (value: number): number => Math.round(value * 10) / 10;

const readable = (value: number): string =>
  value.toLocaleString("en-US", { maximumFractionDigits: value >= 100 ? 0 : value >= 10 ? 1 : 2 });

const escaped = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
