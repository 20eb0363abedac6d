import { z } from "zod";
import { idSchema } from "../../../domain/ids.ts";
import { toolsSchema, toolTrialRequestSchema, toolTrialSchema } from "../../../domain/tool-list.ts";
import type { ToolOutcome } from "../../../tools/tool.ts";
import type { Routes } from "../context.ts";
import { invalid, Problem, unknown } from "../problem.ts";
import { answers } from "../schemas.ts";

/** Time limit for trying a tool, in milliseconds. */
const LONGEST_TRIAL_MS = 60_000;

export const toolRoutes: Routes = (app, context) => {
  listRoute(app, context);
  trialRoute(app, context);
};

const listRoute: Routes = (app, { store, tools }) => {
  app.get(
    "/api/tools",
    {
      schema: {
        tags: ["system"],
        operationId: "listTools",
        summary: "The tools that steps can call, and their servers",
        querystring: z.object({
          session_id: idSchema.optional().describe("With the policies of this session."),
        }),
        response: answers(200, toolsSchema, 400, 404),
      },
    },
    async ({ query: { session_id } }) => {
      const session = session_id === undefined ? null : await store.getSession(session_id);
      if (session_id !== undefined && !session) throw unknown("session");
      return { tools: await tools.list(session?.options), servers: tools.servers() };
    },
  );
};

const trialRoute: Routes = (app, { tools }) => {
  app.post(
    "/api/tools/try",
    {
      schema: {
        tags: ["system"],
        operationId: "tryTool",
        summary: "Try a read-only tool; any other is refused",
        body: toolTrialRequestSchema.meta({ examples: [{ name: "files/list", args: {} }] }),
        response: answers(200, toolTrialSchema, 400, 404, 504),
      },
    },
    async ({ body: { name, args } }, reply) => {
      const leaving = new AbortController();
      reply.raw.once("close", () => leaving.abort());
      const late = AbortSignal.timeout(LONGEST_TRIAL_MS);
      const trial = await tools.try(name, args, AbortSignal.any([leaving.signal, late])).catch((error: unknown) => {
        throw late.aborted ? new Problem(504, `${name} did not answer within ${LONGEST_TRIAL_MS / 1000} s`) : error;
      });
      switch (trial.kind) {
        case "called":
          return { ...toText(trial.outcome), latency_ms: trial.latency_ms };
        case "refused":
          throw invalid([{ path: "name", message: `${name} ${trial.reason}` }]);
        case "unknown":
          throw unknown("tool");
      }
      return trial satisfies never;
    },
  );
};

const toText = (outcome: ToolOutcome): Omit<z.infer<typeof toolTrialSchema>, "latency_ms"> =>
  outcome.kind === "result"
    ? { kind: "result", text: outcome.text, is_error: outcome.is_error }
    : { kind: outcome.kind, text: JSON.stringify(outcome), is_error: false };
