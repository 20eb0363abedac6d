import { isObject, type JsonObject, type JsonValue } from "../../domain/json.ts";
import type { Ask } from "../../domain/question.ts";
import { shorten } from "../extract.ts";
import type { ToolCall } from "../llm/model-turn.ts";
import { type Input, textOf } from "./parse-guidance.ts";

const LONGEST_ARGS = 500;

/** The question before a tool runs. */
export const approvalOf = ({ name, args }: ToolCall): Ask => ({
  text: `May I run ${name} with ${shorten(JSON.stringify(args), LONGEST_ARGS)}? (approve, always or deny)`,
  choices: [
    { value: "approve", label: "Approve" },
    { value: "always", label: "Always approve this tool" },
    { value: "deny", label: "Deny" },
  ],
  about: { kind: "tool", tool: name, args },
});

/** The question about a call that may already have run. */
export const doubtOf = ({ name, args }: ToolCall): Ask => ({
  text: `I was interrupted while ${name} ran with ${shorten(JSON.stringify(args), LONGEST_ARGS)}: it may have happened or not. Shall I run it again, skip it, or do you know its result? (again, skip or result)`,
  choices: [
    { value: "again", label: "Run it again" },
    { value: "skip", label: "Skip it" },
    { value: "result", label: "I know its result" },
  ],
  about: { kind: "in_doubt", tool: name, args },
});

/** What the model gets instead of the call's own result. */
export type CallResult = { kind: "result"; text: string; is_error: boolean };
export type Approval = { kind: "approved"; args: JsonObject | null; is_always: boolean } | CallResult;

/** How people answer in a chat. */
const WORDS: Readonly<Record<string, string>> = {
  yes: "approve",
  y: "approve",
  ok: "approve",
  да: "approve",
  no: "deny",
  n: "deny",
  нет: "deny",
  cancel: "deny",
};

/** The first input decides; anything that is not an answer denies, with its text as the reason. */
export function readApproval(input: Input): Approval {
  const { choice, detail } = choiceOf(input);
  const named = WORDS[choice] ?? choice;
  if (named === "approve" || named === "always") {
    const { args } = detail;
    return { kind: "approved", args: isObject(args) ? args : null, is_always: named === "always" };
  }
  const detailReason = textOr(detail["reason"], "");
  const reason = named === "deny" ? detailReason : input.message.text;
  return {
    kind: "result",
    text: `A person denied this call.${reason ? ` Their reason: ${reason}` : ""}`,
    is_error: true,
  };
}

/** Null if it is not an answer. */
export function readDoubt(input: Input): { kind: "again" } | CallResult | null {
  const { choice, detail } = choiceOf(input);
  if (choice === "again") return { kind: "again" };
  if (choice === "result" && "result" in detail)
    return { kind: "result", text: textOf(detail["result"]), is_error: false };
  if (choice !== "skip") return null;
  const text = "The run was interrupted during this call; it may have happened or not. It was not run again.";
  return { kind: "result", text, is_error: true };
}

/** An answer is the choice itself, or an object with the choice and more. */
function choiceOf({ message, answer }: Input): { choice: string; detail: JsonObject } {
  const detail = isObject(answer) ? answer : {};
  const choice: JsonValue = isObject(answer) ? (answer["choice"] ?? null) : (answer ?? message.text);
  return { choice: textOf(choice).trim().toLowerCase().replace(/[.!]$/, ""), detail };
}

const textOr = (value: JsonValue | undefined, otherwise: string): string =>
  typeof value === "string" ? value : otherwise;
