import { useId, useState } from "react";
import { Button } from "../../ui/button.tsx";
import { Json } from "../../ui/json.tsx";
import type { Question } from "./question-view.tsx";
import type { Answering } from "./use-answer.ts";

type ChoiceFormProps = { question: Question; choices: NonNullable<Question["choices"]>; answering: Answering };

/** A button for each choice. The arguments of a tool's call can be edited first; they then go with the choice. */
export function ChoiceForm({ question: { about }, choices, answering }: ChoiceFormProps) {
  const call = toolCallIn(about);
  const original = JSON.stringify(call?.args, null, 2);
  const [text, setText] = useState(original);
  const args = parsed(text);
  const isEdited = call !== null && JSON.stringify(args) !== JSON.stringify(call.args);
  const isWrong = isEdited && (typeof args !== "object" || args === null || Array.isArray(args));
  return (
    <>
      {call && (
        <ArgumentsField
          tool={call.tool}
          text={text}
          problem={isWrong ? "This is not a JSON object." : answering.problems.get("args")}
          onChange={setText}
          {...(text === original ? {} : { onUndo: () => setText(original) })}
        />
      )}
      {call === null && about !== null && <Json value={about} label="What it is about" />}
      <div role="group" aria-label="Answers" className="flex flex-wrap gap-2">
        {choices.map(({ value, label }, index) => (
          <Button
            key={JSON.stringify(value)}
            look={index === 0 ? "primary" : "plain"}
            className="h-auto min-h-[30px] max-w-full py-1 text-left whitespace-normal wrap-anywhere"
            disabled={answering.state !== "open" || isWrong}
            {...(index === 0 ? { "data-answer": true } : {})}
            onClick={() => void answering.send(isEdited ? { choice: value, args } : value)}
          >
            {label ?? (typeof value === "string" ? value : JSON.stringify(value))}
          </Button>
        ))}
      </div>
    </>
  );
}

type ToolCall = { tool: string; args: object };

function toolCallIn(about: Question["about"]): ToolCall | null {
  if (typeof about !== "object" || about === null || Array.isArray(about) || about["kind"] !== "tool") return null;
  const { tool, args } = about;
  if (typeof args !== "object" || args === null || Array.isArray(args)) return null;
  return { tool: typeof tool === "string" ? tool : "tool", args };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

type ArgumentsFieldProps = {
  tool: string;
  text: string;
  problem: string | undefined;
  onChange: (text: string) => void;
  onUndo?: () => void;
};

function ArgumentsField({ tool, text, problem, onChange, onUndo }: ArgumentsFieldProps) {
  const id = useId();
  return (
    <div>
      <div className="mb-1 flex items-baseline justify-between gap-2">
        <label htmlFor={id} className="font-medium wrap-anywhere">
          Arguments of {tool}
        </label>
        {onUndo && (
          <button type="button" className="text-accent underline" onClick={onUndo}>
            Undo the changes
          </button>
        )}
      </div>
      <textarea
        id={id}
        className="field max-h-80 resize-y font-mono text-[12px] leading-[1.45]"
        rows={Math.min(12, text.split("\n").length)}
        spellCheck={false}
        aria-describedby={`${id}-hint`}
        aria-invalid={problem !== undefined}
        value={text}
        onChange={(event) => onChange(event.target.value)}
      />
      <p id={`${id}-hint`} className={`text-[12px] ${problem ? "text-bad" : "text-muted"}`}>
        {problem ?? "You can change them before you answer."}
      </p>
    </div>
  );
}
