import { z } from "zod";
import { idSchema, timeSchema } from "./ids.ts";

/**
 * A volume holds the steps and messages of sessions that ended: immutable Lance files outside of the store's tables.
 *
 * `writing`: announced, its files are being written. `moving`: its files are on disk and were read back; rows leave the store's
 * tables. `archived`: all have left. `dropped`: the files are gone for good, or about to go.
 */
export const volumeSchema = z.object({
  volume_id: idSchema,
  state: z.enum(["writing", "moving", "archived", "dropped"]),
  /** A folder, or `s3://BUCKET/PREFIX`; relative to the data folder where it is no absolute path. */
  location: z.string(),
  /** The version of the files' layout. */
  format: z.int().min(1),
  created_at: timeSchema,
  sessions: z.int().min(0),
  steps: z.int().min(0),
  messages: z.int().min(0),
  /** What the files take. */
  bytes: z.int().min(0),
  oldest_ended_at: timeSchema.nullable(),
  newest_ended_at: timeSchema.nullable(),
  /** Over all rows. */
  checksum: z.int().nullable(),
});
export type Volume = z.infer<typeof volumeSchema>;

/** What is under way, or was last. Counts are of what is done so far, or would be done. */
export const archiveJobSchema = z.object({
  operation: z.enum(["archive", "restore", "drop"]),
  /** It only counts. */
  dry_run: z.boolean(),
  state: z.enum(["running", "done", "failed"]),
  started_at: timeSchema,
  ended_at: timeSchema.nullable(),
  volumes: z.int(),
  sessions: z.int(),
  steps: z.int(),
  messages: z.int(),
  bytes: z.int(),
  error: z.string().nullable(),
});
export type ArchiveJob = z.infer<typeof archiveJobSchema>;

/** What a session's row tells of the part of its history that left the store's tables. */
export const archivedHistorySchema = z.object({
  steps: z.int().describe("Rows of steps in volumes, which are read from there."),
  dropped_steps: z.int().describe("Rows of steps that are gone for good."),
});
export type ArchivedHistory = z.infer<typeof archivedHistorySchema>;

/**
 * The steps of a session or the messages of a conversation that are in a volume: an unbroken range, of rows that stand side by
 * side. Until it is `archived` the store's tables have the rows.
 */
export type ArchivedRange = {
  range_id: string;
  volume_id: string;
  kind: "steps" | "messages";
  state: "copied" | "archived" | "dropped";
  /** The session or the conversation. */
  owner_id: string;
  /** Of the session; null for messages. */
  agent_id: string | null;
  /** Iterations of the steps, or numbers of the messages, both ends included. No step that succeeded: `last` is before `first`. */
  first: number;
  last: number;
  /** How many of the session's attempts had failed by then. */
  error_rows: number;
  /** Where the rows begin in the volume's table, and how many they are. */
  first_row: number;
  rows: number;
};

export const hasErrors = ({ kind, first, last, rows }: ArchivedRange): boolean =>
  kind === "steps" && rows !== last - first + 1;
