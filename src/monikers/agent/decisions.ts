import { isObject, type JsonObject, type JsonValue } from "../../domain/json.ts";
import type { Ask } from "../../domain/question.ts";
import { shorten } from "../extract.ts";
import type { ToolCall } from "../llm/model-turn.ts";
import { type Heard, textOf } from "./heard.ts";

const LONGEST_ARGS = 500;

/** What a person is asked before a tool runs. */
export const approvalOf = ({ name, args }: ToolCall): Ask => ({
  text: `May I run ${name} with ${shorten(JSON.stringify(args), LONGEST_ARGS)}? (approve, always or deny)`,
  choices: [
    { value: "approve", label: "Approve" },
    { value: "always", label: "Always approve this tool" },
    { value: "deny", label: "Deny" },
  ],
  about: { kind: "tool", tool: name, args },
});

/** What a person is asked about a call that may have happened already. */
export const doubtOf = ({ name, args }: ToolCall): Ask => ({
  text: `I was interrupted while ${name} ran with ${shorten(JSON.stringify(args), LONGEST_ARGS)}: it may have happened or not. Shall I run it again, skip it, or do you know its result? (again, skip or result)`,
  choices: [
    { value: "again", label: "Run it again" },
    { value: "skip", label: "Skip it" },
    { value: "result", label: "I know its result" },
  ],
  about: { kind: "in_doubt", tool: name, args },
});

/** What the model is told instead of running the call. */
export type Told = { kind: "told"; text: string; is_error: boolean };
export type Approval = { kind: "approved"; args: JsonObject | null; is_always: boolean } | Told;

/** The words by which people answer in a chat. */
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

/** Of what was said the first counts; anything that is no answer denies, with its words as the reason. */
export function readApproval(said: Heard["said"][number]): Approval {
  const { choice, detail } = choiceOf(said);
  const named = WORDS[choice] ?? choice;
  if (named === "approve" || named === "always") {
    const { args } = detail;
    return { kind: "approved", args: isObject(args) ? args : null, is_always: named === "always" };
  }
  const given = textOr(detail["reason"], "");
  const reason = named === "deny" ? given : said.message.text;
  return {
    kind: "told",
    text: `A person denied this call.${reason ? ` Their reason: ${reason}` : ""}`,
    is_error: true,
  };
}

/** Null where it is no answer. */
export function readDoubt(said: Heard["said"][number]): { kind: "again" } | Told | null {
  const { choice, detail } = choiceOf(said);
  if (choice === "again") return { kind: "again" };
  if (choice === "result" && "result" in detail)
    return { kind: "told", text: textOf(detail["result"]), is_error: false };
  if (choice !== "skip") return null;
  const text = "The run was interrupted during this call; it may have happened or not. It was not run again.";
  return { kind: "told", text, is_error: true };
}

/** An answer is the choice itself, or an object that has it beside more. */
function choiceOf({ message, answer }: Heard["said"][number]): { choice: string; detail: JsonObject } {
  const detail = isObject(answer) ? answer : {};
  const choice: JsonValue = isObject(answer) ? (answer["choice"] ?? null) : (answer ?? message.text);
  return { choice: textOf(choice).trim().toLowerCase().replace(/[.!]$/, ""), detail };
}

const textOr = (value: JsonValue | undefined, otherwise: string): string =>
  typeof value === "string" ? value : otherwise;
