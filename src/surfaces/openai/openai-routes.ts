import type { FastifyError } from "fastify";
import { z } from "zod";
import { EventStreams } from "../event-streams.ts";
import type { App, Routes, ServerContext } from "../http/context.ts";
import { toProblem } from "../http/to-problem.ts";
import { chatCompletion } from "./chat-completions.ts";
import { errorBody, OpenAiError } from "./openai-error.ts";
import { chatRequestSchema, responseRequestSchema } from "./request.ts";
import { cancelResponse, createResponse, retrieveResponse } from "./responses.ts";
import { listModels } from "./talking-models.ts";

/** A front-end sends the whole conversation each time. */
const LARGEST_BODY = 8 * 1024 * 1024;
const tags = ["openai"];
const CODES: Readonly<Record<number, string>> = {
  401: "invalid_api_key",
  404: "not_found",
  429: "rate_limit_exceeded",
};

/** The endpoints of OpenAI's API with which its clients talk to agents. */
export const openAiRoutes: Routes = (app, context) => {
  const streams = new EventStreams(context.stall_ms);
  app.addHook("preClose", async () => streams.stop());
  void app.register(
    async (plugin) => {
      const scope = plugin as App;
      scope.setErrorHandler((error: FastifyError | OpenAiError, request, reply) => {
        const problem = error instanceof OpenAiError ? error : fromProblem(error);
        if (problem.status >= 500) request.log.error({ err: error }, "a request failed");
        return reply.code(problem.status).send(errorBody(problem));
      });
      scope.setNotFoundHandler(() => {
        throw new OpenAiError(404, "there is nothing at this path", "not_found");
      });
      modelRoutes(scope, context);
      chatRoute(scope, context, streams);
      responseRoutes(scope, context, streams);
    },
    { prefix: "/v1" },
  );
};

function fromProblem(error: FastifyError | OpenAiError): OpenAiError {
  const { status, message, errors } = toProblem(error as FastifyError);
  return new OpenAiError(status, message, CODES[status] ?? null, errors?.[0]?.path || null);
}

const errorSchema = z
  .object({
    error: z.object({
      message: z.string(),
      type: z.string(),
      param: z.string().nullable(),
      code: z.string().nullable(),
    }),
  })
  .meta({ id: "OpenAiError", description: "An error as in OpenAI's API." });
const anything = z.looseObject({});

/** A route's responses for the documentation. The type provider only knows plain schemas; responses are not typed by it. */
const described = (description: string, ...problems: number[]) => {
  const json = (text: string, schema: z.ZodType) => ({
    description: text,
    content: { "application/json": { schema } },
  });
  const errors = [401, ...problems].map((status) => [status, json("An error as in OpenAI's API.", errorSchema)]);
  return Object.fromEntries([[200, json(description, anything)], ...errors]) as Record<number, z.ZodType>;
};

function modelRoutes(app: App, context: ServerContext): void {
  app.get(
    "/models",
    {
      schema: {
        tags,
        operationId: "listModels",
        summary: "Conversational monikers, and agents that run one",
        response: described("The models."),
      },
    },
    async () => ({ object: "list", data: await listModels(context) }),
  );
  app.get(
    "/models/:model",
    {
      schema: {
        tags,
        operationId: "getModel",
        summary: "One of them",
        params: z.object({ model: z.string() }),
        response: described("The model.", 404),
      },
    },
    async ({ params: { model } }) => {
      const row = (await listModels(context)).find(({ id }) => id === model);
      if (!row) throw new OpenAiError(404, `the model ${model} does not exist`, "model_not_found", "model");
      return row;
    },
  );
}

function chatRoute(app: App, parts: ServerContext, streams: EventStreams): void {
  app.post(
    "/chat/completions",
    {
      bodyLimit: LARGEST_BODY,
      schema: {
        tags,
        operationId: "createChatCompletion",
        summary: "Talk to an agent like to a model",
        body: chatRequestSchema.meta({ examples: [{ model: "chat", messages: [{ role: "user", content: "help" }] }] }),
        response: described("The completion, or with `stream` its chunks as server-sent events.", 400, 404, 409, 429),
      },
    },
    (request, reply) => chatCompletion({ parts, streams }, request, reply),
  );
}

function responseRoutes(app: App, parts: ServerContext, streams: EventStreams): void {
  const params = z.object({ response_id: z.string().min(1).max(1000) });
  const response = described("The response, or with `stream` its events.", 400, 404, 409, 429);
  app.post(
    "/responses",
    {
      bodyLimit: LARGEST_BODY,
      schema: {
        tags,
        operationId: "createResponse",
        summary: "Have an agent respond",
        body: responseRequestSchema.meta({ examples: [{ model: "chat", input: "help" }] }),
        response,
      },
    },
    (request, reply) => createResponse({ parts, streams }, request, reply),
  );
  app.get(
    "/responses/:response_id",
    {
      schema: {
        tags,
        operationId: "getResponse",
        summary: "A response's current state, or its events from any point on",
        params,
        querystring: z.object({
          stream: z.stringbool().optional(),
          starting_after: z.coerce
            .number()
            .int()
            .optional()
            .describe("The `sequence_number` of the last event received."),
        }),
        response,
      },
    },
    ({ params: { response_id }, query }, reply) => retrieveResponse({ parts, streams }, response_id, query, reply),
  );
  app.post(
    "/responses/:response_id/cancel",
    { schema: { tags, operationId: "cancelResponse", summary: "Cancel a response in progress", params, response } },
    ({ params: { response_id } }) => cancelResponse({ parts, streams }, response_id),
  );
}
