import { z } from "zod";
import {
  conversationPatchSchema,
  newConversationSchema,
  newMessageSchema,
  newParticipantSchema,
} from "../../../actions/conversations.ts";
import {
  conversationSchema,
  conversationStatusSchema,
  messageSchema,
  participantSchema,
} from "../../../domain/conversation.ts";
import { idSchema, timeSchema } from "../../../domain/ids.ts";
import type { Routes } from "../context.ts";
import { orNotFound, unknown } from "../problem.ts";
import { answers, idParams, pageQuery } from "../schemas.ts";
import { refused } from "../submitting.ts";

const params = idParams("conversation_id");
const tags = ["conversations"];

export const conversationRoutes: Routes = (app, context) => {
  collectionRoutes(app, context);
  changeRoute(app, context);
  participantRoutes(app, context);
  messageRoutes(app, context);
};

const collectionRoutes: Routes = (app, { store, conversations }) => {
  app.post(
    "/api/conversations",
    {
      schema: {
        tags,
        operationId: "createConversation",
        summary: "Open a conversation",
        body: newConversationSchema.nullish(),
        response: answers(201, conversationSchema, 400),
      },
    },
    async ({ body }, reply) => reply.code(201).send(await conversations.create(body ?? {})),
  );

  app.get(
    "/api/conversations",
    {
      schema: {
        tags,
        operationId: "listConversations",
        summary: "List conversations, newest first",
        querystring: z.object({
          status: conversationStatusSchema.optional(),
          tag: z.string().max(100).optional(),
          ...pageQuery,
        }),
        response: answers(200, z.object({ conversations: z.array(conversationSchema) }), 400),
      },
    },
    async ({ query }) => ({ conversations: await store.listConversations(query) }),
  );

  app.get(
    "/api/conversations/:conversation_id",
    {
      schema: {
        tags,
        operationId: "getConversation",
        summary: "One conversation",
        params,
        response: answers(200, conversationSchema, 404),
      },
    },
    async (request) => orNotFound(await store.getConversation(request.params.conversation_id), "conversation"),
  );
};

const changeRoute: Routes = (app, { conversations }) => {
  app.patch(
    "/api/conversations/:conversation_id",
    {
      schema: {
        tags,
        operationId: "updateConversation",
        summary: "Change a conversation's title, status or tags",
        params,
        body: conversationPatchSchema,
        response: answers(200, conversationSchema, 400, 404),
      },
    },
    async (request) =>
      orNotFound(await conversations.change(request.params.conversation_id, request.body), "conversation"),
  );
};

const participantRoutes: Routes = (app, { store, conversations }) => {
  app.post(
    "/api/conversations/:conversation_id/participants",
    {
      schema: {
        tags,
        operationId: "addParticipant",
        summary: "Add a person or a session",
        params,
        body: newParticipantSchema.meta({ examples: [{ user_id: "ann" }] }),
        response: answers(201, participantSchema, 400, 404, 409),
      },
    },
    async (request, reply) => {
      const outcome = await conversations.join(request.params.conversation_id, request.body);
      if (outcome.kind !== "joined") throw refused(outcome);
      return reply.code(201).send(outcome.participant);
    },
  );

  app.get(
    "/api/conversations/:conversation_id/participants",
    {
      schema: {
        tags,
        operationId: "listParticipants",
        summary: "Who is or was in the conversation",
        params,
        response: answers(200, z.object({ participants: z.array(participantSchema) }), 404),
      },
    },
    async ({ params: { conversation_id } }) => {
      orNotFound(await store.getConversation(conversation_id), "conversation");
      return { participants: await store.listParticipants(conversation_id) };
    },
  );

  app.delete(
    "/api/conversations/:conversation_id/participants/:participant_id",
    {
      schema: {
        tags,
        operationId: "removeParticipant",
        summary: "Remove a participant",
        params: z.object({ conversation_id: idSchema, participant_id: idSchema }),
        response: answers(204, z.null().describe("They left."), 404),
      },
    },
    async ({ params: { conversation_id, participant_id } }, reply) => {
      if (!(await conversations.leave(conversation_id, participant_id))) throw unknown("participant");
      return reply.code(204).send(null);
    },
  );
};

const messageRoutes: Routes = (app, { store, conversations }) => {
  app.post(
    "/api/conversations/:conversation_id/messages",
    {
      schema: {
        tags,
        operationId: "postMessage",
        summary: "Post a message; the addressed sessions get it as guidance",
        params,
        body: newMessageSchema.meta({ examples: [{ user_id: "ann", text: "How far are you?" }] }),
        response: answers(201, z.object({ message: messageSchema, action_ids: z.array(idSchema) }), 400, 404, 409, 429),
      },
    },
    async (request, reply) => {
      const outcome = await conversations.post(request.params.conversation_id, request.body);
      if (outcome.kind !== "posted") throw refused(outcome);
      return reply.code(201).send({ message: outcome.message, action_ids: outcome.message.action_ids });
    },
  );

  app.get(
    "/api/conversations/:conversation_id/messages",
    {
      schema: {
        tags,
        operationId: "listMessages",
        summary: "The transcript, oldest first",
        params,
        querystring: z.object({ since: timeSchema.optional(), after: idSchema.optional(), ...pageQuery }),
        response: answers(200, z.object({ messages: z.array(messageSchema) }), 400, 404),
      },
    },
    async ({ params: { conversation_id }, query }) => {
      orNotFound(await store.getConversation(conversation_id), "conversation");
      return { messages: await store.listMessages({ conversation_id, ...query }) };
    },
  );
};
