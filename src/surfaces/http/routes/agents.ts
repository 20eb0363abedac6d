import { z } from "zod";
import { newAgentConfigSchema, setAgentConfig } from "../../../actions/set-agent-config.ts";
import { create } from "../../../actions/types/create.ts";
import { agentConfigSchema, agentSchema } from "../../../domain/agent.ts";
import { idSchema } from "../../../domain/ids.ts";
import { sessionSchema } from "../../../domain/session.ts";
import type { Routes } from "../context.ts";
import { nextAfter, nextSchema, orderQuery, toOrder } from "../list-order.ts";
import { orNotFound } from "../problem.ts";
import { acceptedSchema, answers, idParams, pageQuery } from "../schemas.ts";
import { refused, senderFields, splitBody, submit } from "../submitting.ts";

const createBody = create.payload
  .extend({
    agent_id: idSchema,
    session_id: idSchema.optional(),
    urgency: z.int().min(0).max(9).optional(),
    ...senderFields,
  })
  .meta({ examples: [{ agent_id: "counter", moniker: "count", params: { to: 10 }, options: { max_steps: 100 } }] });

const params = idParams("agent_id");

export const agentRoutes: Routes = (app, context) => {
  creationRoute(app, context);
  readingRoutes(app, context);
  configRoutes(app, context);
};

const creationRoute: Routes = (app, { queue }) => {
  app.post(
    "/api/agents",
    {
      schema: {
        tags: ["agents"],
        operationId: "createSession",
        summary: "Start a session of an agent",
        body: createBody,
        response: answers(202, acceptedSchema, 400, 404, 409),
      },
    },
    async (request, reply) => {
      const { agent_id, session_id, urgency, ...body } = request.body;
      const accepted = await submit(queue, {
        action_type: "agent_create",
        agent_id,
        session_id,
        urgency,
        ...splitBody(body),
      });
      return reply.code(202).send(accepted);
    },
  );
};

const readingRoutes: Routes = (app, { store }) => {
  app.get(
    "/api/agents",
    {
      schema: {
        tags: ["agents"],
        operationId: "listAgents",
        summary: "List agents by id",
        querystring: z.object(pageQuery),
        response: answers(200, z.object({ agents: z.array(agentSchema) }), 400),
      },
    },
    async ({ query }) => ({ agents: await store.listAgents(query) }),
  );

  app.get(
    "/api/agents/:agent_id",
    {
      schema: {
        tags: ["agents"],
        operationId: "getAgent",
        summary: "One agent with its latest session",
        params,
        response: answers(200, agentSchema, 404),
      },
    },
    async (request) => orNotFound(await store.getAgent(request.params.agent_id), "agent"),
  );

  app.get(
    "/api/agents/:agent_id/sessions",
    {
      schema: {
        tags: ["agents"],
        operationId: "listAgentSessions",
        summary: "An agent's sessions, newest first",
        params,
        querystring: z.object({ ...orderQuery, ...pageQuery }),
        response: answers(200, z.object({ sessions: z.array(sessionSchema), next: nextSchema }), 400, 404),
      },
    },
    async ({ params: { agent_id }, query: { sort, after, ...page } }) => {
      orNotFound(await store.getAgent(agent_id), "agent");
      const sessions = await store.listSessions({ agent_id, ...page, ...toOrder({ sort, after }) });
      return { sessions, next: nextAfter(sessions, { limit: page.limit, sort }) };
    },
  );
};

const configRoutes: Routes = (app, { store, queue }) => {
  app.get(
    "/api/agents/:agent_id/config",
    {
      schema: {
        tags: ["agents"],
        operationId: "getAgentConfig",
        summary: "An agent's defaults",
        params,
        response: answers(200, agentConfigSchema, 404),
      },
    },
    async (request) => orNotFound(await store.getAgentConfig(request.params.agent_id), "agent's configuration"),
  );

  app.put(
    "/api/agents/:agent_id/config",
    {
      schema: {
        tags: ["agents"],
        operationId: "setAgentConfig",
        summary: "Set the defaults for an agent's new sessions",
        params,
        body: newAgentConfigSchema.meta({ examples: [{ moniker: "chat", options: { max_cost_usd: 1 } }] }),
        response: answers(200, agentConfigSchema, 400),
      },
    },
    async ({ params: { agent_id }, body }) => {
      const outcome = await setAgentConfig(agent_id, body, queue.parts);
      if (outcome.kind !== "set") throw refused(outcome);
      return outcome.config;
    },
  );
};
