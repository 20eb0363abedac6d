import type { FastifyReply } from "fastify";
import { z } from "zod";
import { submitSchema } from "../../../actions/action-request.ts";
import { actionSchema } from "../../../domain/action.ts";
import { idSchema } from "../../../domain/ids.ts";
import { awaitAction } from "../../await-session.ts";
import type { Routes } from "../context.ts";
import { orNotFound, Problem } from "../problem.ts";
import { acceptedSchema, answers, booleanQuery, idParams, pageQuery } from "../schemas.ts";
import { submit } from "../submitting.ts";

const listQuery = z.object({
  session_id: idSchema.optional(),
  agent_id: idSchema.optional(),
  processed: booleanQuery.optional(),
  ...pageQuery,
});

/** How long taking back an action waits for the outcome, in milliseconds. */
const DROP_MS = 5000;

export const actionRoutes: Routes = (app, context) => {
  const { store, queue } = context;
  app.post(
    "/api/actions",
    {
      schema: {
        tags: ["actions"],
        operationId: "submitAction",
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
        operationId: "listActions",
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
        operationId: "getAction",
        summary: "One action with its receipt",
        params: idParams("action_id"),
        response: answers(200, actionSchema, 404),
      },
    },
    async (request) => orNotFound(await store.getAction(request.params.action_id), "action"),
  );

  dropRoute(app, context);
};

const dropRoute: Routes = (app, { store, queue, events }) => {
  app.delete(
    "/api/actions/:action_id",
    {
      schema: {
        tags: ["actions"],
        operationId: "dropAction",
        summary: "Take back guidance that no step has used yet; 202 if the outcome is not known within five seconds",
        params: idParams("action_id"),
        response: { ...answers(200, actionSchema, 404, 409), 202: actionSchema },
      },
    },
    async ({ params: { action_id } }, reply) => {
      const { session_id } = orNotFound(await store.getAction(action_id), "action");
      const ids = await submit(queue, { action_type: "agent_drop", session_id, payload: { action_id } });
      const { signal } = leaving(reply);
      const request = await awaitAction({ store, events }, ids, "settled", { wait_ms: DROP_MS, signal });
      const isRefused = request?.processed && request.outcome !== "ok";
      if (isRefused) throw new Problem(409, request.error ?? "it was not taken back");
      if (!request?.processed) reply.code(202);
      return orNotFound(await store.getAction(action_id), "action");
    },
  );
};

/** Aborts when the client has left. */
function leaving(reply: FastifyReply): AbortController {
  const controller = new AbortController();
  reply.raw.once("close", () => controller.abort());
  return controller;
}
