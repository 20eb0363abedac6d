import type { TokenCheck } from "./token-check.ts";

/** What every surface with persistent connections needs. */
export type SocketOptions = {
  token: string | undefined;
  token_check: TokenCheck;
  /** A client that has unread data and reads nothing for this many milliseconds is dropped. */
  stall_ms: number;
};
