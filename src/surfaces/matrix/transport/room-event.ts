import { z } from "zod";

/** Anybody in a room can put anything there; each reader takes what it knows. */
const contentSchema = z.record(z.string(), z.unknown());

/** A room event from the homeserver, with its room. */
export const roomEventSchema = z.object({
  event_id: z.string(),
  /** In a sync the room is given outside of its events. */
  room_id: z.string().default(""),
  type: z.string(),
  sender: z.string(),
  origin_server_ts: z.number(),
  content: contentSchema,
  state_key: z.string().exactOptional(),
  unsigned: z
    .object({
      prev_content: z.object({ membership: z.string().exactOptional() }).exactOptional().catch({}),
      /** Under which this device sent the event. */
      transaction_id: z.string().optional().catch(undefined),
    })
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

/** A list without the entries of any other shape: one bad event must not hold back the others. */
export const listOf = <Shape>(schema: z.ZodType<Shape>) =>
  z.array(z.unknown()).transform((items) =>
    items.flatMap((item) => {
      const parsed = schema.safeParse(item);
      return parsed.success ? [parsed.data] : [];
    }),
  );
