import { z } from "zod";
import { idSchema, timeSchema } from "../../domain/ids.ts";
import type { Session } from "../../domain/session.ts";
import type { SessionOrder, SessionSort } from "../../store/store.ts";
import { invalid } from "./problem.ts";

const SORTS = ["created_at", "updated_at"] as const satisfies SessionSort[];

/** The order of a list of sessions, and where a page starts. */
export const orderQuery = {
  sort: z.enum(SORTS).default("created_at").describe("Sort by this field, newest first."),
  after: z
    .string()
    .max(2000)
    .optional()
    .describe("`next` of the previous page, with the same filters; `offset` counts from there."),
};
export const nextSchema = z
  .string()
  .nullable()
  .describe("Pass as `after` to get the next page; null on the last page.");

const cursorSchema = z.tuple([z.enum(SORTS), timeSchema, idSchema]);

export function toOrder({ sort, after }: { sort: SessionSort; after?: string | undefined }): SessionOrder {
  if (after === undefined) return { sort };
  const cursor = cursorSchema.safeParse(parsed(after));
  if (!cursor.success) throw invalid([{ path: "after", message: "is not the `next` of a page" }]);
  const [sorted, at, session_id] = cursor.data;
  if (sorted !== sort)
    throw invalid([{ path: "after", message: `comes from a list sorted by ${sorted}; use sort=${sorted}` }]);
  return { sort, after: { at, session_id } };
}

type Listed = Pick<Session, "session_id" | SessionSort>;

/** Opaque to clients: only `toOrder` reads it. */
export function nextAfter(
  sessions: readonly Listed[],
  { limit, sort }: { limit: number; sort: SessionSort },
): string | null {
  const last = sessions.at(-1);
  if (!last || sessions.length < limit) return null;
  return Buffer.from(JSON.stringify([sort, last[sort], last.session_id])).toString("base64url");
}

function parsed(cursor: string): unknown {
  try {
    return JSON.parse(Buffer.from(cursor, "base64url").toString());
  } catch {
    return null;
  }
}
