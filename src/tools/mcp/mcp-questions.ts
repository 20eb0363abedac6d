import type { ElicitResult, InputRequiredResult, InputResponses } from "@modelcontextprotocol/client";
import { z } from "zod";
import { answerFormSchema } from "../../domain/answer.ts";
import { isObject, type JsonObject, type JsonValue, jsonObjectSchema } from "../../domain/json.ts";
import type { Ask } from "../../domain/question.ts";
import type { ToolOutcome } from "../tool.ts";
import { toolError } from "../tool-server.ts";

/** Where a call stands that a server answered with requests for input. It is kept in the session's state until people answered. */
const resumeSchema = z.object({
  kind: z.literal("input_required"),
  request_state: z.string().optional(),
  requests: z.record(z.string(), jsonObjectSchema),
  responses: z.record(z.string(), jsonObjectSchema),
  /** The request that people are asked now. */
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

/** What a call is made with once people have answered everything. */
export type InputAnswers = { inputResponses?: InputResponses; requestState?: string };

/** A server's requests for input become questions, one after the other: they may wait for days. */
export function askForInput(tool: string, { inputRequests = {}, requestState }: InputRequiredResult): ToolOutcome {
  const requests = JSON.parse(JSON.stringify(inputRequests)) as Record<string, JsonObject>;
  const state = requestState === undefined ? {} : { request_state: requestState };
  return nextQuestion(tool, { kind: "input_required", ...state, requests, responses: {}, asked: "" });
}

/** A person's answer: the next question, or what the call is made with. Null where there is nothing to go on with. */
export function takeAnswer(
  tool: string,
  { answer, resume }: { answer: JsonValue; resume: JsonValue },
): ToolOutcome | { kind: "answers"; answers: InputAnswers } | null {
  const parsed = resumeSchema.safeParse(resume);
  if (!parsed.success) return null;
  const { asked, responses } = parsed.data;
  const next = { ...parsed.data, responses: { ...responses, [asked]: responseOf(answer) } };
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
  const asked = unanswered(resume);
  if (asked === undefined) return toolError(`${tool} wants to be called again, and does not say with what.`);
  const ask = questionOf(tool, resume.requests[asked]);
  if (ask === null)
    return toolError(`${tool} needs something that cannot be asked for here (${kindOf(resume, asked)}).`);
  return { kind: "ask", ask, resume: { ...resume, asked } };
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
  // A form without fields is a question that one agrees to or not.
  if (Object.keys(requestedSchema.properties).length === 0) return { text, choices: DONE_OR_NOT };
  return { text, schema: JSON.parse(JSON.stringify(requestedSchema)) as JsonObject };
}

const DONE_OR_NOT = [{ value: "accept" }, { value: "decline" }];

/** Fields that were filled in, or `accept`; anything else, such as other words of a person, declines. */
function responseOf(answer: JsonValue): JsonObject {
  if (answer === "accept") return { action: "accept" } satisfies ElicitResult;
  return isObject(answer) ? { action: "accept", content: answer } : { action: "decline" };
}
