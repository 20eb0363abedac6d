import { createHash } from "node:crypto";
import type { MatrixConfig } from "../config.ts";

/** A thread's own session; null for the chat that everyone shares. */
export type ChatOf = (room_id: string, thread: string | null) => string | null;

/** The same thread always has the same session. */
export const chatOfThreads =
  (threads: MatrixConfig["MATRIX_THREADS"]): ChatOf =>
  (room_id, thread) =>
    threads === "shared" || thread === null
      ? null
      : `matrix-${createHash("sha256").update(`${room_id} ${thread}`).digest("hex").slice(0, 16)}`;
