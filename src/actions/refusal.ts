import type { z } from "zod";
import type { Full } from "./guidance-limit.ts";

export type FieldError = { path: string; message: string };

/** Why a request was not taken. Nothing was written. */
export type Refusal =
  | { kind: "invalid"; errors: FieldError[] }
  | { kind: "unknown"; what: string }
  | { kind: "conflict"; detail: string }
  | Full;

export const invalidField = (path: string, message: string): Refusal => ({
  kind: "invalid",
  errors: [{ path, message }],
});

/** What a schema does not accept; `within` is where its value stands in the request. */
export const fieldErrors = (error: z.ZodError, within?: string): FieldError[] =>
  error.issues.map(({ path, message }) => ({
    path: [within, ...path].filter((part) => part !== undefined).join("."),
    message,
  }));
