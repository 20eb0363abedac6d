import { z } from "zod";

/** The frames of the one-chat WebSocket: JSON text, told apart by `type`. */
const requestId = z.string().max(200).optional();

export const requestSchema = z.object({ request_id: requestId });

export const clientFrameSchema = requestSchema.extend({
  type: z.literal("user_message"),
  text: z.string().min(1),
  /** Frames that the client understands in addition to the basic ones: `event_restart`. */
  accepts: z.array(z.string().max(200)).max(20).optional().catch(undefined),
});

/**
 * Other agents may know less: their frames need no `request_id`, their `status` no `session_id`, and their errors may have other
 * codes.
 */
export const serverFrameSchema = z.discriminatedUnion("type", [
  z.object({ type: z.literal("status"), status: z.string().catch("ready"), session_id: z.string().optional() }),
  z.object({ type: z.literal("event_text_chunk"), text: z.string(), request_id: requestId }),
  /** The answer starts over: the text so far is void. Only for clients that accept it. */
  z.object({ type: z.literal("event_restart"), request_id: requestId }),
  z.object({ type: z.literal("event_end"), tokens_used: z.number().catch(0), request_id: requestId }),
  z.object({
    type: z.literal("error"),
    code: z.enum(["bad_message", "busy", "agent_error"]).catch("agent_error"),
    message: z.string().catch("the agent failed"),
    request_id: requestId,
  }),
]);
export type ServerFrame = z.infer<typeof serverFrameSchema>;
