import type { TableName } from "./tables.ts";

/** The first format that can still be upgraded, and the one that this program writes. */
export const OLDEST_FORMAT = 2;
export const FORMAT = 3;

export type Migration = {
  /** The format that it leads to. */
  format: number;
  name: string;
  /** Columns that their tables end with from now on. Rows that are there already are not rewritten: they read as null. */
  columns: Partial<Record<TableName, readonly string[]>>;
};

/** In order, each from the format before. Never edited once landed; `upgrade-folder.ts` runs them. */
export const MIGRATIONS: readonly Migration[] = [
  {
    format: 3,
    name: "session-pause-reason",
    columns: { agent_state: ["pause_reason", "started_attempt"] },
  },
];
