import { redactUrls } from "./redact.ts";

/**
 * Every error code that users can see. `docs/errors.md` lists the same codes; a test keeps the two equal. The message says what
 * happened, `next` what to do about it.
 */
export const ERROR_CODES = [
  "address_unavailable",
  "answer_unreadable",
  "archive_busy",
  "archive_damaged",
  "archive_unreachable",
  "backup_unusable",
  "config_invalid",
  "guidance_full",
  "matrix_login_failed",
  "matrix_state_locked",
  "matrix_state_unusable",
  "mcp_config_invalid",
  "moniker_invalid",
  "project_exists",
  "reader_too_slow",
  "remote_gone",
  "remote_misbehaved",
  "request_refused",
  "server_failed",
  "server_timeout",
  "server_unreachable",
  "store_locked",
  "store_read_only",
  "store_full",
  "store_corrupt",
  "store_foreign",
  "store_newer",
  "store_older",
  "store_closed",
  "store_pooled",
  "store_refused",
  "store_unavailable",
  "token_required",
  "tool_invalid",
  "webhook_address_refused",
] as const;

export type ErrorCode = (typeof ERROR_CODES)[number];

export class EverstepError extends Error {
  override readonly name = "EverstepError";
  readonly code: ErrorCode;
  readonly next: string;

  constructor(code: ErrorCode, what: string, next: string, cause?: unknown) {
    super(redactUrls(`${code}: ${what}; ${next}`), cause === undefined ? {} : { cause });
    this.code = code;
    this.next = next;
  }
}
