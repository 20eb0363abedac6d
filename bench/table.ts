import { type Figure, keepsBar } from "./figure.ts";

const HEADER = ["figure", "measured", "bar", ""] as const;
const SIGNS = { at_most: "<=", below: "<", at_least: ">=" } as const;

/** One line for each figure: `figure | measured | bar | ok/MISSED`. */
export function figureTable(figures: readonly Figure[]): string {
  const rows = [HEADER, ...figures.map(figureRow)];
  const widths = HEADER.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const line = (row: readonly string[]): string =>
    row
      .map((cell, column) => (column === 1 ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0)))
      .join(" | ");
  const rule = widths.map((width) => "-".repeat(width)).join("-|-");
  return [line(HEADER), rule, ...rows.slice(1).map(line)].map((text) => text.trimEnd()).join("\n");
}

function figureRow(figure: Figure): string[] {
  const { measured, unit, bar } = figure;
  const limit = bar === null ? "" : `${SIGNS[bar.kind]} ${withUnit(bar.value, unit)}`;
  return [figure.figure, withUnit(measured, unit), limit, bar === null ? "" : keepsBar(figure) ? "ok" : "MISSED"];
}

const withUnit = (value: number, unit: string): string => `${readable(value)} ${unit}`.trimEnd();

function readable(value: number): string {
  const digits = Number.isInteger(value) || Math.abs(value) >= 1_000 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}
