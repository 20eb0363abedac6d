import { z } from "zod";
import { idSchema } from "../../../domain/ids.ts";
import { rerunRequestSchema, rerunSchema } from "../../../domain/rerun.ts";
import type { Routes } from "../context.ts";
import { invalid, unknown } from "../problem.ts";
import { answers } from "../schemas.ts";

export const rerunRoutes: Routes = (app, { rerun }) => {
  app.post(
    "/api/sessions/:session_id/steps/:iteration/rerun",
    {
      schema: {
        tags: ["steps"],
        operationId: "rerunStep",
        summary: "Rerun a recorded step on the current code and compare the results; nothing is written",
        params: z.object({
          session_id: idSchema,
          iteration: z.coerce.number().int().min(0).max(Number.MAX_SAFE_INTEGER),
        }),
        body: rerunRequestSchema.nullish(),
        response: answers(200, rerunSchema, 400, 404),
      },
    },
    async ({ params: { session_id, iteration }, body }, reply) => {
      const leaving = new AbortController();
      // The client has left: nobody needs the result.
      reply.raw.once("close", () => leaving.abort());
      const outcome = await rerun(session_id, iteration, body ?? {}, leaving.signal);
      switch (outcome.kind) {
        case "ran":
          return outcome.rerun;
        case "unknown":
          throw unknown(outcome.what);
        case "invalid":
          throw invalid([{ path: outcome.path, message: outcome.message }]);
      }
      return outcome satisfies never;
    },
  );
};
