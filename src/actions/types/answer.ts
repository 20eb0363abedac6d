import { z } from "zod";
import { answerProblems } from "../../domain/answer.ts";
import { idSchema } from "../../domain/ids.ts";
import { type JsonObject, jsonSchema } from "../../domain/json.ts";
import { defineAction, enqueue, rejectEnded } from "../action-definition.ts";
import { addGuidance } from "../add-guidance.ts";
import type { Refusal } from "../refusal.ts";

/** An answer to a session's open question. The next step gets it as guidance. */
export const answer = defineAction({
  payload: z.object({
    answer: jsonSchema.refine((value) => value !== undefined, "is required"),
    /** The question answered; the open one if absent. */
    question_id: idSchema.optional(),
    /** Who answers, unless the metadata say so. */
    user_id: z.string().min(1).max(500).optional(),
  }),
  target: "existing",
  route: {
    verb: "answer",
    summary: "Answer the session's question",
    example: { answer: "yes", user_id: "ann" },
    targets: ["session_id"],
    may_conflict: true,
  },
  takes_effect_at_once: false,
  async prepare(request, target, { store }) {
    const { session_id } = target;
    const session = store.cachedSession(session_id) ?? (await store.getSession(session_id));
    if (!session) return { kind: "unknown", what: "session" };
    const { payload } = request;
    const question = session.question;
    if (question === null || (payload.question_id ?? question.question_id) !== question.question_id)
      return closed(session_id, payload.question_id);
    const problems = answerProblems(question, payload.answer);
    if (problems.length > 0)
      return {
        kind: "invalid",
        errors: problems.map(({ path, message }) => ({ path: ["answer", ...path].join("."), message })),
      };
    const { question_id } = question;
    return enqueue({ ...request, payload: { ...payload, question_id } }, target);
  },
  handle({ action_id, payload, metadata }, session) {
    const question_id = session.question?.question_id;
    if (question_id === undefined || question_id !== payload.question_id)
      return { kind: "rejected", reason: `question ${payload.question_id} is closed` };
    const user_id = metadata["user_id"] ?? payload.user_id;
    const guidance: JsonObject = { answer: payload.answer, question_id };
    if (typeof user_id === "string") guidance["user_id"] = user_id;
    return addGuidance(session, action_id, guidance, undefined);
  },
  handleEnded: rejectEnded,
});

const closed = (session_id: string, question_id: string | undefined): Refusal => ({
  kind: "conflict",
  detail:
    question_id === undefined ? `session ${session_id} has no open question` : `question ${question_id} is closed`,
});
