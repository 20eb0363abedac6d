import { z } from "zod";

/** The frames of the one-chat WebSocket: JSON text, told apart by `type`. */
const requestId = z.string().max(200).optional();

export const requestSchema = z.object({ request_id: requestId });

export const clientFrameSchema = requestSchema.extend({ type: z.literal("user_message"), text: z.string().min(1) });

export const serverFrameSchema = z.discriminatedUnion("type", [
  z.object({ type: z.literal("status"), status: z.string(), session_id: z.string() }),
  z.object({ type: z.literal("event_text_chunk"), text: z.string(), request_id: requestId }),
  z.object({ type: z.literal("event_end"), tokens_used: z.number(), request_id: requestId }),
  z.object({
    type: z.literal("error"),
    code: z.enum(["bad_message", "busy", "agent_error"]),
    message: z.string(),
    request_id: requestId,
  }),
]);
export type ServerFrame = z.infer<typeof serverFrameSchema>;
