import { stripVTControlCharacters, styleText } from "node:util";
import { type Session, type SessionStatus, waitsForProvider, waitsForRetry } from "../../domain/session.ts";

export type Style = Parameters<typeof styleText>[0];

/** Coloured on a terminal, plain in a pipe or if NO_COLOR is set. */
export const coloured = (style: Style, text: string): string => styleText(style, text, { stream: process.stdout });

/** The same for many pieces of text: the escape codes are looked up once. */
export function painter(style: Style): (text: string) => string {
  const [before = "", after = ""] = coloured(style, "\0").split("\0");
  return (text) => `${before}${text}${after}`;
}

const STATUS_STYLES: Readonly<Record<SessionStatus, Style>> = {
  running: "green",
  waiting: "cyan",
  paused: "yellow",
  stopping: "yellow",
  stopped: "gray",
  done: "blue",
  error: "red",
};
export const statusText = (status: SessionStatus): string => coloured(STATUS_STYLES[status], status);

/** Null unless the session waits for something unreachable: its model's provider or its moniker's worker. */
export const retryText = (session: Pick<Session, "status" | "retry_at" | "last_error">): string | null =>
  waitsForRetry(session)
    ? `${waitsForProvider(session) ? "waiting for the provider until" : "retrying at"} ${session.retry_at.slice(11, 19)} UTC: ${printable(session.last_error)}`
    : null;

/** Columns as wide as their widest cell. */
export function table(headings: string[], rows: string[][]): string {
  const widths = headings.map((heading, column) =>
    Math.max(heading.length, ...rows.map((row) => stripVTControlCharacters(row[column] ?? "").length)),
  );
  const line = (cells: string[]) =>
    cells
      .map((cell, column) => cell + " ".repeat((widths[column] ?? 0) - stripVTControlCharacters(cell).length))
      .join("  ")
      .trimEnd();
  return [coloured("bold", line(headings)), ...rows.map(line)].join("\n");
}

/** Makes text from a model or a person safe for a terminal: no control characters except newlines and tabs. */
export const printable = (text: string): string => text.replaceAll(/(?![\n\t])\p{Cc}/gu, "");

/** How many characters are read per character shown: more would be mostly space. */
const READ_PER_SHOWN = 16;

export const oneLine = (text: string, most: number): string => {
  const beginning = text.trim();
  const line = printable(beginning.slice(0, most * READ_PER_SHOWN))
    .replaceAll(/\s+/g, " ")
    .trim();
  return line.length > most || beginning.length > most * READ_PER_SHOWN ? `${line.slice(0, most - 1)}…` : line;
};

const UNITS: [name: string, seconds: number][] = [
  ["d", 86_400],
  ["h", 3600],
  ["m", 60],
];

export function age(since: string): string {
  const seconds = Math.max(0, Math.round((Date.now() - Date.parse(since)) / 1000));
  const unit = UNITS.find(([, size]) => seconds >= size);
  return unit ? `${Math.floor(seconds / unit[1])}${unit[0]}` : `${seconds}s`;
}
