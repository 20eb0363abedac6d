import { z } from "zod";

/** A step or a message that contains every word of the query. */
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

export const searchAnswerSchema = z.object({
  hits: z.array(searchHitSchema),
  archives_skipped: z
    .int()
    .describe("Sessions whose steps are archived, which is not searched, of those that were asked for."),
});
