import { z } from "zod";
import { idSchema, timeSchema } from "./ids.ts";
import { jsonSchema } from "./json.ts";

export const conversationStatusSchema = z.enum(["open", "archived"]);

export const conversationSchema = z.object({
  conversation_id: idSchema,
  title: z.string().nullable(),
  created_by: z.string().nullable(),
  status: conversationStatusSchema,
  tags: z.array(z.string()),
  created_at: timeSchema,
});
export type Conversation = z.infer<typeof conversationSchema>;

/** A person (`user_id`) or a session (`agent_id` and `session_id`) in a conversation. */
export const participantSchema = z.object({
  participant_id: idSchema,
  conversation_id: idSchema,
  user_id: idSchema.nullable(),
  agent_id: idSchema.nullable(),
  session_id: idSchema.nullable(),
  role: z.string().nullable(),
  joined_at: timeSchema,
  left_at: timeSchema.nullable(),
});
export type Participant = z.infer<typeof participantSchema>;

/** A row of the append-only table `conversation_messages`. */
export const messageSchema = z.object({
  message_id: idSchema,
  conversation_id: idSchema,
  created_at: timeSchema,
  sender_type: z.enum(["user", "agent", "system"]),
  user_id: idSchema.nullable(),
  agent_id: idSchema.nullable(),
  session_id: idSchema.nullable(),
  text: z.string().nullable(),
  data: jsonSchema,
  status: z.string().nullable(),
  event_type: z.string().nullable(),
  iteration: z.int().min(0).nullable(),
  step_token: z.string().nullable(),
  next_step_token: z.string().nullable(),
  notes: z.string().nullable(),
  /** The actions that delivered the message to sessions. */
  action_ids: z.array(idSchema),
});
export type Message = z.infer<typeof messageSchema>;

/** How far a session that polls has read a conversation. */
const sessionCursorSchema = z.object({
  session_id: idSchema,
  conversation_id: idSchema,
  message_id: idSchema,
  updated_at: timeSchema,
});
export type SessionCursor = z.infer<typeof sessionCursorSchema>;
