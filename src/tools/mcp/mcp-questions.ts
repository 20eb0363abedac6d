import type { ElicitResult, InputRequiredResult, InputResponses } from "@modelcontextprotocol/client";
import { z } from "zod";
import { answerFormSchema } from "../../domain/answer.ts";
import { isObject, type JsonObject, type JsonValue, jsonObjectSchema } from "../../domain/json.ts";
import type { Ask } from "../../domain/question.ts";
import type { ToolOutcome } from "../tool.ts";
import { toolError } from "../tool-server.ts";

/**
 * The progress of a call that a server answered with requests for input. Stored in the session's state until people have
 * answered.
 */
const resumeSchema = z.object({
  kind: z.literal("input_required"),
  request_state: z.string().optional(),
  requests: z.record(z.string(), jsonObjectSchema),
  responses: z.record(z.string(), jsonObjectSchema),
  /** The request people are being asked now. */
  asked: z.string(),
});
type Resume = z.infer<typeof resumeSchema>;

const formSchema = z.object({
  method: z.literal("elicitation/create"),
  params: z.object({
    mode: z.literal("form").optional(),
    message: z.string().min(1),
    requestedSchema: answerFormSchema,
  }),
});
const urlSchema = z.object({
  method: z.literal("elicitation/create"),
  params: z.object({ mode: z.literal("url"), message: z.string(), url: z.url({ protocol: /^https?$/ }) }),
});

/** What the call is repeated with after all answers. */
export type InputAnswers = { inputResponses?: InputResponses; requestState?: string };

/** Turns a server's requests for input into questions, one after the other: they may wait for days. */
export function askForInput(tool: string, { inputRequests = {}, requestState }: InputRequiredResult): ToolOutcome {
  const requests = JSON.parse(JSON.stringify(inputRequests)) as Record<string, JsonObject>;
  const state = requestState === undefined ? {} : { request_state: requestState };
  return nextQuestion(tool, { kind: "input_required", ...state, requests, responses: {}, asked: "" });
}

/** Handles a person's answer: returns the next question, or what the call is repeated with. Null if `resume` is not ours. */
export function takeAnswer(
  tool: string,
  { answer, resume }: { answer: JsonValue; resume: JsonValue },
): ToolOutcome | { kind: "answers"; answers: InputAnswers } | null {
  const parsed = resumeSchema.safeParse(resume);
  if (!parsed.success) return null;
  const { asked: key, responses } = parsed.data;
  const next = { ...parsed.data, responses: { ...responses, [key]: responseOf(answer) } };
  if (unanswered(next) !== undefined) return nextQuestion(tool, next);
  const { request_state } = next;
  const inputResponses = next.responses as unknown as InputResponses;
  return {
    kind: "answers",
    answers: { inputResponses, ...(request_state !== undefined && { requestState: request_state }) },
  };
}

const unanswered = ({ requests, responses }: Resume): string | undefined =>
  Object.keys(requests).find((key) => !Object.hasOwn(responses, key));

function nextQuestion(tool: string, resume: Resume): ToolOutcome {
  const key = unanswered(resume);
  if (key === undefined) return toolError(`${tool} wants to be called again, but does not say with what.`);
  const ask = questionOf(tool, resume.requests[key]);
  if (ask === null) return toolError(`${tool} needs something that cannot be asked for here (${kindOf(resume, key)}).`);
  return { kind: "ask", ask, resume: { ...resume, asked: key } };
}

const kindOf = ({ requests }: Resume, key: string): string =>
  JSON.stringify(requests[key]?.["method"] ?? "unknown").slice(0, 100);

function questionOf(tool: string, request: unknown): Ask | null {
  const url = urlSchema.safeParse(request);
  if (url.success) {
    const { message, url: address } = url.data.params;
    return { text: `${tool} asks: ${message}\n${address}`, choices: DONE_OR_NOT };
  }
  const form = formSchema.safeParse(request);
  if (!form.success) return null;
  const { message, requestedSchema } = form.data.params;
  const text = `${tool} asks: ${message}`;
  // A form without fields asks for consent.
  if (Object.keys(requestedSchema.properties).length === 0) return { text, choices: DONE_OR_NOT };
  return { text, schema: JSON.parse(JSON.stringify(requestedSchema)) as JsonObject };
}

const DONE_OR_NOT = [{ value: "accept" }, { value: "decline" }];

/** Form fields or `accept`; anything else, such as other text by a person, declines. */
function responseOf(answer: JsonValue): JsonObject {
  if (answer === "accept") return { action: "accept" } satisfies ElicitResult;
  return isObject(answer) ? { action: "accept", content: answer } : { action: "decline" };
}
