import { z } from "zod";
import type { ActionType } from "../../../domain/action.ts";
import {
  controlPayloadSchema,
  forkPayloadSchema,
  interruptPayloadSchema,
  resumePayloadSchema,
} from "../../../queue/payloads.ts";
import type { App, Routes } from "../context.ts";
import { acceptedSchema, answers, idParams } from "../schemas.ts";
import { submit } from "../submitting.ts";

type Control = { verb: string; action_type: ActionType; summary: string; body: z.ZodType };

const CONTROLS: Control[] = [
  {
    verb: "pause",
    action_type: "agent_pause",
    summary: "Start no further step; the one that runs is kept",
    body: controlPayloadSchema.nullish(),
  },
  {
    verb: "resume",
    action_type: "agent_resume",
    summary: "Go on, try a failed step again, or go on past a limit that the given options lift",
    body: resumePayloadSchema.nullish(),
  },
  {
    verb: "destroy",
    action_type: "agent_destroy",
    summary: "End the session for good",
    body: controlPayloadSchema.nullish(),
  },
  {
    verb: "interrupt",
    action_type: "agent_interrupt",
    summary: "Give guidance to the next step, or to the running one now",
    body: interruptPayloadSchema,
  },
];

/** The same controls for a session, and for an agent's latest one. */
export const controlRoutes: Routes = (app, { queue }) => {
  for (const target of ["session_id", "agent_id"] as const) {
    for (const control of CONTROLS) addControl(app, target, control);
  }

  app.post(
    "/api/sessions/:session_id/fork",
    {
      schema: {
        tags: ["sessions"],
        summary: "Start a session that goes on from one of this one's steps",
        params: idParams("session_id"),
        body: forkPayloadSchema,
        response: answers(202, acceptedSchema, 400, 404, 409),
      },
    },
    async ({ params: { session_id }, body }, reply) =>
      reply.code(202).send(await submit(queue, { action_type: "agent_fork", session_id, payload: body })),
  );

  function addControl(to: App, target: "session_id" | "agent_id", { verb, action_type, summary, body }: Control): void {
    const path = target === "session_id" ? "sessions" : "agents";
    to.post(
      `/api/${path}/:${target}/${verb}`,
      {
        schema: {
          tags: [path],
          summary,
          params: idParams(target),
          body,
          response: answers(202, acceptedSchema, 400, 404, ...(verb === "interrupt" ? [429] : [])),
        },
      },
      async (request, reply) => {
        const id = (request.params as Record<string, string>)[target];
        return reply.code(202).send(await submit(queue, { action_type, [target]: id, payload: request.body ?? {} }));
      },
    );
  }
};
