import { useState } from "react";
import { Json } from "../../ui/json.tsx";
import { Labelled } from "../../ui/labelled.tsx";
import { AnswerButtons, type Choices } from "./answer-buttons.tsx";
import { ApprovalForm, type ToolCall } from "./approval-form.tsx";
import type { Question } from "./question-view.tsx";
import type { Answering } from "./use-answer.ts";

type ChoiceFormProps = { question: Question; choices: Choices; answering: Answering };

/**
 * A button for each choice. Arguments of a tool call can be edited first and are sent with the choice. For a call that may have
 * happened already, somebody may know the result.
 */
export function ChoiceForm({ question: { about }, choices, answering }: ChoiceFormProps) {
  const call = toolCallIn(about);
  if (call) return <ApprovalForm call={call} choices={choices} answering={answering} />;
  if (isInDoubt(about)) return <InDoubtForm about={about} choices={choices} answering={answering} />;
  return (
    <>
      {about !== null && <Json value={about} label="What it is about" />}
      <AnswerButtons choices={choices} isDisabled={answering.state !== "open"} onChoose={answering.send} />
    </>
  );
}

export function toolCallIn(about: Question["about"]): ToolCall | null {
  if (typeof about !== "object" || about === null || Array.isArray(about) || about["kind"] !== "tool") return null;
  const { tool, args } = about;
  if (typeof args !== "object" || args === null || Array.isArray(args)) return null;
  return { tool: typeof tool === "string" ? tool : "the tool", args };
}

const isInDoubt = (about: Question["about"]): boolean =>
  typeof about === "object" && about !== null && !Array.isArray(about) && about["kind"] === "in_doubt";

type InDoubtFormProps = Pick<Question, "about"> & { choices: Choices; answering: Answering };

function InDoubtForm({ about, choices, answering }: InDoubtFormProps) {
  const [result, setResult] = useState("");
  const problem = answering.problems.get("result");
  const choose = async (choice: unknown) => {
    if (choice !== "result") return answering.send(choice);
    if (result.trim() === "") return answering.setProblems(new Map([["result", "Enter the result."]]));
    return answering.send({ choice, result: jsonOrText(result) });
  };
  return (
    <>
      <Json value={about} label="What it is about" />
      {choices.some(({ value }) => value === "result") && (
        <Labelled label="Result of the call, if you know it" hint="JSON, or plain text." problem={problem}>
          {(control) => (
            <textarea
              {...control}
              className="field resize-y font-mono text-[12px]"
              rows={2}
              value={result}
              onChange={(event) => setResult(event.target.value)}
            />
          )}
        </Labelled>
      )}
      <AnswerButtons choices={choices} isDisabled={answering.state !== "open"} onChoose={choose} />
    </>
  );
}

function jsonOrText(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}
