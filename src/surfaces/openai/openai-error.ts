import type { Refusal } from "../../actions/refusal.ts";

/** An error in the format of OpenAI's API. */
export class OpenAiError extends Error {
  readonly status: number;
  readonly code: string | null;
  readonly param: string | null;

  constructor(status: number, message: string, code: string | null = null, param: string | null = null) {
    super(message);
    this.status = status;
    this.code = code;
    this.param = param;
  }
}

const TYPES: Readonly<Record<number, string>> = {
  401: "authentication_error",
  403: "permission_error",
  429: "rate_limit_error",
};

export const errorBody = ({ status, message, code, param }: Omit<OpenAiError, "name">): { error: object } => ({
  error: { message, type: TYPES[status] ?? (status >= 500 ? "server_error" : "invalid_request_error"), param, code },
});

export function refusedRequest(refusal: Refusal): OpenAiError {
  switch (refusal.kind) {
    case "invalid":
      return new OpenAiError(400, refusal.errors.map(({ path, message }) => `${path}: ${message}`).join("; "));
    case "unknown":
      return new OpenAiError(404, `the ${refusal.what} is unknown`, "not_found");
    case "conflict":
      return new OpenAiError(409, refusal.detail, "conflict");
    case "full":
      return new OpenAiError(429, refusal.detail, "guidance_full");
  }
  return refusal satisfies never;
}
