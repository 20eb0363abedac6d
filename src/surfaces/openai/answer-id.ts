import { z } from "zod";
import { idSchema } from "../../domain/ids.ts";

/** The session that answers, and the action that asked: all that an answer is found by, so that no table of ids is needed. */
export type AnswerIds = { session_id: string; action_id: string };

const PREFIX = "resp_";
const partsSchema = z.tuple([idSchema, idSchema]);

export const responseId = ({ session_id, action_id }: AnswerIds): string =>
  PREFIX + Buffer.from(JSON.stringify([session_id, action_id])).toString("base64url");

/** Null where it is not an id that was made here. */
export function parseResponseId(id: string): AnswerIds | null {
  if (!id.startsWith(PREFIX)) return null;
  try {
    const parts = partsSchema.safeParse(JSON.parse(Buffer.from(id.slice(PREFIX.length), "base64url").toString()));
    return parts.success ? { session_id: parts.data[0], action_id: parts.data[1] } : null;
  } catch {
    return null;
  }
}
