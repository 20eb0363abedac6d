import { z } from "zod";
import { submitSchema } from "../../../actions/action-request.ts";
import { actionSchema } from "../../../domain/action.ts";
import { idSchema } from "../../../domain/ids.ts";
import type { Routes } from "../context.ts";
import { found } from "../problem.ts";
import { acceptedSchema, answers, idParams, pageQuery } from "../schemas.ts";
import { submit } from "../submitting.ts";

const listQuery = z.object({
  session_id: idSchema.optional(),
  agent_id: idSchema.optional(),
  processed: z.stringbool().optional(),
  ...pageQuery,
});

export const actionRoutes: Routes = (app, { store, queue }) => {
  app.post(
    "/api/actions",
    {
      schema: {
        tags: ["actions"],
        summary: "Put any action into the queue",
        body: submitSchema,
        response: answers(202, acceptedSchema, 400, 404, 409, 429),
      },
    },
    async ({ body }, reply) => reply.code(202).send(await submit(queue, body)),
  );

  app.get(
    "/api/actions",
    {
      schema: {
        tags: ["actions"],
        summary: "List actions, newest first",
        querystring: listQuery,
        response: answers(200, z.object({ actions: z.array(actionSchema) }), 400),
      },
    },
    async ({ query }) => ({ actions: await store.listActions(query) }),
  );

  app.get(
    "/api/actions/:action_id",
    {
      schema: {
        tags: ["actions"],
        summary: "One action with its receipt",
        params: idParams("action_id"),
        response: answers(200, actionSchema, 404),
      },
    },
    async (request) => found(await store.getAction(request.params.action_id), "action"),
  );
};
