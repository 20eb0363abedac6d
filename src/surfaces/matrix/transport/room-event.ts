import { z } from "zod";

/** What anybody in a room can put there; each reader takes out what it knows. */
const contentSchema = z.record(z.string(), z.unknown());

/** An event of a room as the homeserver tells it, with the room that it is in. */
export const roomEventSchema = z.object({
  event_id: z.string(),
  /** In a sync the room is told around its events. */
  room_id: z.string().default(""),
  type: z.string(),
  sender: z.string(),
  origin_server_ts: z.number(),
  content: contentSchema,
  state_key: z.string().exactOptional(),
  unsigned: z
    .object({ prev_content: z.object({ membership: z.string().exactOptional() }).exactOptional().catch({}) })
    .exactOptional()
    .catch({}),
});
export type RoomEvent = z.infer<typeof roomEventSchema>;

/** An event of a room that the bot is invited to. */
export const strippedEventSchema = z.object({
  type: z.string(),
  state_key: z.string().exactOptional(),
  sender: z.string(),
  content: contentSchema,
});

/** A list from which what has another shape is left out: one such event must not hold back the others. */
export const listOf = <Shape>(schema: z.ZodType<Shape>) =>
  z.array(z.unknown()).transform((items) =>
    items.flatMap((item) => {
      const parsed = schema.safeParse(item);
      return parsed.success ? [parsed.data] : [];
    }),
  );
