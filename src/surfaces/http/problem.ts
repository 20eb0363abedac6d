import { STATUS_CODES } from "node:http";
import { z } from "zod";

/** An error as in RFC 9457. Thrown by routes, sent by the server's error handler. */
export class Problem extends Error {
  readonly status: number;
  readonly errors: FieldProblem[] | undefined;
  /** Seconds after which the same request may succeed. */
  readonly retry_after_s: number | undefined;

  constructor(status: number, detail: string, errors?: FieldProblem[], retry_after_s?: number) {
    super(detail);
    this.status = status;
    this.errors = errors;
    this.retry_after_s = retry_after_s;
  }

  toJSON(): ProblemBody {
    const body = {
      type: "about:blank",
      title: STATUS_CODES[this.status] ?? "Error",
      status: this.status,
      detail: this.message,
    };
    return this.errors ? { ...body, errors: this.errors } : body;
  }
}

export type FieldProblem = { path: string; message: string };

export const problemSchema = z
  .object({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    errors: z.array(z.object({ path: z.string(), message: z.string() })).optional(),
  })
  .meta({ id: "Problem", description: "An error as in RFC 9457." });
type ProblemBody = z.infer<typeof problemSchema>;

export const unknown = (what: string): Problem => new Problem(404, `the ${what} is unknown`);
export const invalid = (errors: FieldProblem[]): Problem =>
  new Problem(400, errors.map(({ path, message }) => `${path || "body"}: ${message}`).join("; "), errors);
export const full = ({ detail, retry_after_s }: { detail: string; retry_after_s: number }): Problem =>
  new Problem(429, detail, undefined, retry_after_s);

/** Returns a value that was looked up, or throws 404. */
export function orNotFound<Value>(value: Value | null, what: string): Value {
  if (value === null) throw unknown(what);
  return value;
}
