import { z } from "zod";

/** A step or a message that has every word that was asked for. */
export const searchHitSchema = z.object({
  kind: z.enum(["step", "message"]),
  score: z.number(),
  text: z.string(),
  session_id: z.string().optional(),
  iteration: z.int().optional(),
  conversation_id: z.string().optional(),
  message_id: z.string().optional(),
});
export type SearchHit = z.infer<typeof searchHitSchema>;
