import type { z } from "zod";
import type { Full } from "./guidance-limit.ts";

export type FieldError = { path: string; message: string };

/** Why a request was refused. Nothing was written. */
export type Refusal =
  | { kind: "invalid"; errors: FieldError[] }
  | { kind: "unknown"; what: string }
  | { kind: "conflict"; detail: string }
  | Full;

export const invalidField = (path: string, message: string): Refusal => ({
  kind: "invalid",
  errors: [{ path, message }],
});

/** The problems a schema found; `within` is the path of the checked value in the request. */
export const fieldErrors = (error: z.ZodError, within?: string): FieldError[] =>
  error.issues.map(({ path, message }) => ({
    path: [within, ...path].filter((part) => part !== undefined).join("."),
    message,
  }));
