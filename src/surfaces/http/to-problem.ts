import type { FastifyError } from "fastify";
import { hasZodFastifySchemaValidationErrors } from "fastify-type-provider-zod";
import { EverstepError } from "../../domain/errors.ts";
import { Problem } from "./problem.ts";

/** Turns anything a route threw into the client's error. */
export function toProblem(error: FastifyError): Problem {
  if (error instanceof Problem) return error;
  if (hasZodFastifySchemaValidationErrors(error)) {
    const errors = error.validation.map(({ instancePath, message }) => ({
      path: instancePath.replace(/^\//, "").replaceAll("/", "."),
      message: message ?? "is not valid",
    }));
    return new Problem(400, errors.map(({ path, message }) => `${path || "body"}: ${message}`).join("; "), errors);
  }
  if (error instanceof EverstepError) return new Problem(503, error.message);
  if (error.code === "FST_ERR_CTP_INVALID_MEDIA_TYPE")
    return new Problem(400, "the body must be JSON", [{ path: "", message: "must be application/json" }]);
  const status = error.statusCode ?? 500;
  if (status === 400) return new Problem(400, error.message, [{ path: "", message: error.message }]);
  return new Problem(status, status < 500 ? error.message : "internal error; the log has the details");
}
