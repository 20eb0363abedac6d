import { useId, useState } from "react";
import { Button } from "../../ui/button.tsx";
import { Json } from "../../ui/json.tsx";
import { JsonField, useJsonText } from "../../ui/json-field.tsx";
import type { Question } from "./question-view.tsx";
import type { Answering } from "./use-answer.ts";

type Choices = NonNullable<Question["choices"]>;
type ChoiceFormProps = { question: Question; choices: Choices; answering: Answering };

/**
 * A button for each choice. The arguments of a tool's call can be edited first; they then go with the choice. Of a call that may have
 * happened, a person may know the result.
 */
export function ChoiceForm({ question: { about }, choices, answering }: ChoiceFormProps) {
  const call = toolCallIn(about);
  if (call) return <CallForm call={call} choices={choices} answering={answering} />;
  if (isInDoubt(about)) return <InDoubtForm about={about} choices={choices} answering={answering} />;
  return (
    <>
      {about !== null && <Json value={about} label="What it is about" />}
      <Buttons choices={choices} isDisabled={answering.state !== "open"} onChoose={answering.send} />
    </>
  );
}

type ToolCall = { tool: string; args: object };

function toolCallIn(about: Question["about"]): ToolCall | null {
  if (typeof about !== "object" || about === null || Array.isArray(about) || about["kind"] !== "tool") return null;
  const { tool, args } = about;
  if (typeof args !== "object" || args === null || Array.isArray(args)) return null;
  return { tool: typeof tool === "string" ? tool : "the tool", args };
}

function CallForm({ call, choices, answering }: { call: ToolCall; choices: Choices; answering: Answering }) {
  const args = useJsonText(call.args);
  return (
    <>
      <JsonField
        label={`Arguments of ${call.tool}`}
        json={args}
        hint="You can change them before you answer."
        problem={answering.problems.get("args")}
      />
      <Buttons
        choices={choices}
        isDisabled={answering.state !== "open" || args.isWrong}
        onChoose={(choice) => answering.send(args.isEdited ? { choice, args: args.value } : choice)}
      />
    </>
  );
}

const isInDoubt = (about: Question["about"]): boolean =>
  typeof about === "object" && about !== null && !Array.isArray(about) && about["kind"] === "in_doubt";

type InDoubtFormProps = Pick<Question, "about"> & { choices: Choices; answering: Answering };

function InDoubtForm({ about, choices, answering }: InDoubtFormProps) {
  const [result, setResult] = useState("");
  const problem = answering.problems.get("result");
  const id = useId();
  const choose = async (choice: unknown) => {
    if (choice !== "result") return answering.send(choice);
    if (result.trim() === "") return answering.setProblems(new Map([["result", "Say what the call gave."]]));
    return answering.send({ choice, result: jsonOrText(result) });
  };
  return (
    <>
      <Json value={about} label="What it is about" />
      {choices.some(({ value }) => value === "result") && (
        <div>
          <label htmlFor={id} className="mb-1 block font-medium">
            Its result, if you know it
          </label>
          <textarea
            id={id}
            className="field resize-y font-mono text-[12px]"
            rows={2}
            aria-describedby={`${id}-hint`}
            aria-invalid={problem !== undefined}
            value={result}
            onChange={(event) => setResult(event.target.value)}
          />
          <p id={`${id}-hint`} className={`text-[12px] ${problem ? "text-bad" : "text-muted"}`}>
            {problem ?? "JSON, or plain text."}
          </p>
        </div>
      )}
      <Buttons choices={choices} isDisabled={answering.state !== "open"} onChoose={choose} />
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

type ButtonsProps = { choices: Choices; isDisabled: boolean; onChoose: (value: unknown) => Promise<void> };

const Buttons = ({ choices, isDisabled, onChoose }: ButtonsProps) => (
  <div role="group" aria-label="Answers" className="flex flex-wrap gap-2">
    {choices.map(({ value, label }, index) => (
      <Button
        key={JSON.stringify(value)}
        look={index === 0 ? "primary" : "plain"}
        className="h-auto min-h-[30px] max-w-full py-1 text-left whitespace-normal wrap-anywhere"
        disabled={isDisabled}
        {...(index === 0 ? { "data-answer": true } : {})}
        onClick={() => void onChoose(value)}
      >
        {label ?? (typeof value === "string" ? value : JSON.stringify(value))}
      </Button>
    ))}
  </div>
);
