import type { z } from "zod";
import { ACTIONS } from "../../../actions/action-table.ts";
import { ACTION_TYPES, carriesGuidance } from "../../../domain/action-type.ts";
import type { JsonObject } from "../../../domain/json.ts";
import type { Routes } from "../context.ts";
import { acceptedSchema, answers, idParams } from "../schemas.ts";
import { senderFields, splitBody, submit } from "../submitting.ts";

/** A route for each action type that has one: for a session and, if applicable, for an agent's latest session. */
export const controlRoutes: Routes = (app, { queue }) => {
  for (const action_type of ACTION_TYPES) {
    const { route, payload } = ACTIONS[action_type];
    if (!route) continue;
    const { verb, summary, targets, may_conflict, example } = route;
    const problems = [400, 404, ...(may_conflict ? [409] : []), ...(carriesGuidance({ action_type }) ? [429] : [])];
    for (const target of targets) {
      const folder = target === "session_id" ? "sessions" : "agents";
      const operationId = `${verb}${target === "session_id" ? "Session" : "Agent"}`;
      const params = idParams(target);
      const response = answers(202, acceptedSchema, ...problems);
      app.post(
        `/api/${folder}/:${target}/${verb}`,
        { schema: { tags: [folder], operationId, summary, params, body: bodyOf(payload, example), response } },
        async (request, reply) => {
          const id = (request.params as Record<string, string>)[target];
          const body = splitBody((request.body ?? {}) as JsonObject);
          return reply.code(202).send(await submit(queue, { action_type, [target]: id, ...body }));
        },
      );
    }
  }
};

/** The body may be absent if none of its fields is required. */
function bodyOf(payload: z.ZodObject, example: JsonObject): z.ZodType {
  const body = payload.extend(senderFields);
  return (body.safeParse({}).success ? body.nullish() : body).meta({ examples: [example] });
}
