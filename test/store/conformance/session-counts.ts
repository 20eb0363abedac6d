import { SESSION_STATUSES, type Session, type SessionStatus } from "../../../src/domain/session.ts";

/** The number of sessions by status. */
export const countsOf = (sessions: readonly Pick<Session, "status">[]): Record<SessionStatus, number> =>
  Object.fromEntries(
    SESSION_STATUSES.map((status) => [status, sessions.filter((session) => session.status === status).length]),
  ) as Record<SessionStatus, number>;
