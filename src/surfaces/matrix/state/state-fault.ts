/** SQLite's codes for a bad value: too big, a constraint, a wrong type, out of range. */
const ABOUT_THE_ROW = new Set([18, 19, 20, 25]);

/** Whether the bot's state cannot be written right now (a full disk, for example), whatever was being written. */
export function isStateFault(error: unknown): boolean {
  const { code, errcode = 0 } = error as { code?: unknown; errcode?: number };
  return code === "ERR_SQLITE_ERROR" && !ABOUT_THE_ROW.has(errcode & 0xff);
}
