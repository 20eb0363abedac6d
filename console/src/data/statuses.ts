import type { LIVE_STATUSES, SessionStatus } from "../../../src/domain/session.ts";

/** The compiler checks that no status is missing. Importing the domain's list would bundle its schemas. */
const IS_LIVE: Readonly<Record<SessionStatus, boolean>> = {
  running: true,
  waiting: true,
  paused: true,
  stopping: true,
  error: false,
  done: false,
  stopped: false,
} satisfies Record<(typeof LIVE_STATUSES)[number], true> & Record<SessionStatus, boolean>;

/** In display order. */
export const STATUSES = Object.keys(IS_LIVE) as SessionStatus[];
export const isLive = (status: SessionStatus): boolean => IS_LIVE[status];
