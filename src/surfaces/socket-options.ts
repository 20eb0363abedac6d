import type { TokenCheck } from "./token-check.ts";

/** What every surface needs that keeps its clients connected. */
export type SocketOptions = {
  token: string | undefined;
  token_check: TokenCheck;
  /** Milliseconds after which a client is dropped that has something to read and does not. */
  stall_ms: number;
};
