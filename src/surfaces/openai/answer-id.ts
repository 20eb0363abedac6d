import { z } from "zod";
import { idSchema } from "../../domain/ids.ts";

/** The answering session and the action that asked: they identify an answer, so no table of ids is needed. */
export type AnswerIds = { session_id: string; action_id: string };

const PREFIX = "resp_";
const partsSchema = z.tuple([idSchema, idSchema]);

export const responseId = ({ session_id, action_id }: AnswerIds): string =>
  PREFIX + Buffer.from(JSON.stringify([session_id, action_id])).toString("base64url");

/** Null if it is not one of our ids. */
export function parseResponseId(id: string): AnswerIds | null {
  if (!id.startsWith(PREFIX)) return null;
  try {
    const parts = partsSchema.safeParse(JSON.parse(Buffer.from(id.slice(PREFIX.length), "base64url").toString()));
    return parts.success ? { session_id: parts.data[0], action_id: parts.data[1] } : null;
  } catch {
    return null;
  }
}
