import { z } from "zod";
import { idSchema } from "../../../domain/ids.ts";
import { toolsSchema } from "../../../domain/tool-list.ts";
import type { Routes } from "../context.ts";
import { unknown } from "../problem.ts";
import { answers } from "../schemas.ts";

export const toolRoutes: Routes = (app, { store, tools }) => {
  app.get(
    "/api/tools",
    {
      schema: {
        tags: ["system"],
        operationId: "listTools",
        summary: "The tools that steps can call, and the servers that they come from",
        querystring: z.object({
          session_id: idSchema.optional().describe("With the policy that this session's options give."),
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
