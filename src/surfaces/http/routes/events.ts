import type { OutgoingHttpHeaders } from "node:http";
import type { FastifyReply } from "fastify";
import { z } from "zod";
import { now } from "../../../domain/ids.ts";
import type { RuntimeEvent } from "../../../events/events.ts";
import { type NamedEvent, namedEvents } from "../../../events/named-events.ts";
import type { Topic } from "../../../store/store.ts";
import { type EventStream, EventStreams } from "../../event-streams.ts";
import { allEvents, type StreamedEvent } from "../all-events.ts";
import type { App, Routes, ServerContext } from "../context.ts";
import { invalid, orNotFound } from "../problem.ts";
import { answers, idParams, iterationQuery } from "../schemas.ts";

const tags = ["events"];
/** A browser's `EventSource` cannot send custom headers, so the token and the cursor may be in the query. */
const token = z.string().max(10_000).optional().describe("The token, for a browser's `EventSource`.");
const last_event_id = z
  .string()
  .max(200)
  .optional()
  .describe("Like the header `Last-Event-ID`, which takes precedence.");
const streamSchema = z.string().describe("Server-sent events: docs/events-and-conversations.md");
const stream = (...problems: number[]) => {
  const { 200: _, ...others } = answers(200, streamSchema, ...problems);
  const good = { description: "The events.", content: { "text/event-stream": { schema: streamSchema } } };
  return { 200: good as unknown as z.ZodType, ...others };
};

export const eventRoutes: Routes = (app, context) => {
  const streams = new EventStreams(context.stall_ms);
  app.addHook("preClose", async () => streams.stop());
  sessionRoute(app, context, streams);
  allRoute(app, context, streams);
};

const sessionRoute = (app: App, { store, events }: ServerContext, streams: EventStreams): void => {
  app.get(
    "/api/sessions/:session_id/events",
    {
      config: { token_in_query: true },
      schema: {
        tags,
        operationId: "streamSessionEvents",
        summary: "Follow a session: the Socket.IO events as server-sent events",
        params: idParams("session_id"),
        querystring: z.object({ after_iteration: iterationQuery, last_event_id, token }),
        response: stream(400, 404),
      },
    },
    async ({ params: { session_id }, query, headers, log }, reply) => {
      const session = orNotFound(await store.getSession(session_id), "session");
      const after_iteration =
        iterationOf(headers["last-event-id"] ?? query.last_event_id) ?? query.after_iteration ?? session.iteration;
      const out = open(streams, reply);
      const topic = { session_id, after_iteration };
      // It follows events from here on, then sends the session's current row.
      const following = events.follow(topic, out.gone, out.budget);
      out.begin(String(after_iteration));
      const first = { kind: "session" as const, session: (await store.getSession(session_id)) ?? session };
      send(out, topic, withIds(first, following)).catch((error: unknown) => {
        log.error({ err: error }, "an event stream failed");
        out.end();
      });
    },
  );
};

const allRoute = (app: App, { store, events }: ServerContext, streams: EventStreams): void => {
  app.get(
    "/api/events",
    {
      config: { token_in_query: true },
      schema: {
        tags,
        operationId: "streamEvents",
        summary: "Follow everything: the Socket.IO events as server-sent events",
        querystring: z.object({ last_event_id, token }),
        response: stream(400),
      },
    },
    async ({ query, headers, log }, reply) => {
      const after = header(headers["last-event-id"]) ?? query.last_event_id;
      const out = open(streams, reply);
      out.begin(after ?? now());
      send(out, { all: true }, allEvents({ store, events }, after, out)).catch((error: unknown) => {
        log.error({ err: error }, "an event stream failed");
        out.end();
      });
    },
  );
};

const header = (value: string | string[] | undefined): string | undefined => (Array.isArray(value) ? value[0] : value);

function open(streams: EventStreams, reply: FastifyReply): EventStream {
  reply.hijack();
  return streams.open(reply.raw, reply.getHeaders() as OutgoingHttpHeaders);
}

function iterationOf(id: string | string[] | undefined): number | undefined {
  const value = header(id);
  if (value === undefined || value === "") return undefined;
  if (!/^(?:-1|\d{1,15})$/.test(value))
    throw invalid([{ path: "last_event_id", message: "must be an iteration from the stream" }]);
  return Number(value);
}

/** A session's cursor is the last step sent: its row may arrive before the step it refers to. */
async function* withIds(first: RuntimeEvent, events: AsyncIterable<RuntimeEvent>): AsyncGenerator<StreamedEvent> {
  yield { event: first };
  for await (const event of events) {
    const isPlace = event.kind === "step" && event.step.status === "ok";
    yield { event, ...(isPlace ? { id: String(event.step.iteration) } : {}) };
  }
}

async function send(out: EventStream, topic: Topic, events: AsyncIterable<StreamedEvent>): Promise<void> {
  for await (const { event, id } of events) {
    if (out.gone.aborted) return;
    const named = event.kind === "reset" ? [resetEvent(event)] : namedEvents(topic, event);
    for (const one of named)
      await out.send({ event: one.name, data: () => encoded(one), ...(id === undefined ? {} : { id }) });
  }
}

const resetEvent = ({ tables }: { tables: string[] }): NamedEvent => ({
  name: "reset",
  payload: { tables, message: `read the ${tables.join(" and the ")} again: missed events cannot all be replayed` },
});

const texts = new WeakMap<object, string>();

/** Each row is serialized once, however many clients follow it. */
function encoded({ payload }: NamedEvent): string {
  const cached = texts.get(payload);
  if (cached !== undefined) return cached;
  const text = JSON.stringify(payload);
  texts.set(payload, text);
  return text;
}
