import { useId, useState } from "react";
import { JsonField, objectIn, useJsonText } from "../../ui/json-field.tsx";
import { AnswerButtons, type Choices, isDenial } from "./answer-buttons.tsx";
import { ArgumentFields } from "./argument-fields.tsx";
import { fileChangeOf } from "./file-change.ts";
import { FileDiff } from "./file-diff.tsx";
import type { Answering } from "./use-answer.ts";

export type ToolCall = { tool: string; args: object };
type Args = Readonly<Record<string, unknown>>;
type ApprovalFormProps = { call: ToolCall; choices: Choices; answering: Answering };

/** A tool call that waits for approval: its effect, its editable arguments, and the answers. */
export function ApprovalForm({ call, choices, answering }: ApprovalFormProps) {
  const original = call.args as Args;
  const [args, setArgs] = useState(original);
  const [isWrong, setWrong] = useState(false);
  const [isJson, setJson] = useState(false);
  const [reason, setReason] = useState("");
  // Fields keep what was typed; a new key resets them.
  const [round, setRound] = useState(0);
  const isEdited = JSON.stringify(args) !== JSON.stringify(original);
  const change = fileChangeOf(args);
  const undo = () => {
    setArgs(original);
    setWrong(false);
    setRound(round + 1);
  };
  const send = (choice: unknown) => {
    if (isDenial(choice)) return answering.send(reason.trim() === "" ? choice : { choice, reason: reason.trim() });
    return answering.send(isEdited ? { choice, args } : choice);
  };
  return (
    <>
      <div className="flex flex-wrap items-baseline gap-x-3 gap-y-1">
        <p className="font-mono font-semibold wrap-anywhere">{call.tool}</p>
        <span className="ml-auto flex gap-3 text-[12px]">
          {(isEdited || isWrong) && (
            <button type="button" className="text-accent underline" onClick={undo}>
              Undo changes
            </button>
          )}
          <button
            type="button"
            className="text-accent underline disabled:text-muted disabled:no-underline"
            disabled={isWrong}
            onClick={() => setJson(!isJson)}
          >
            {isJson ? "Edit as fields" : "Edit as JSON"}
          </button>
        </span>
      </div>
      {change && <FileDiff change={change} isInWorkspace={call.tool.startsWith("files/")} />}
      {/* Collapsed where the diff shows the effect. */}
      <details open={change === null || isJson}>
        <summary className="mb-2 text-[12px] text-muted">Arguments of {call.tool} (editable)</summary>
        <div className="flex flex-col gap-2">
          {isJson ? (
            <JsonArguments
              key={round}
              tool={call.tool}
              args={args}
              onChange={setArgs}
              onWrong={setWrong}
              problem={answering.problems.get("args")}
            />
          ) : (
            <ArgumentFields key={round} args={args} original={original} onChange={setArgs} onWrong={setWrong} />
          )}
        </div>
      </details>
      {choices.some(({ value }) => isDenial(value)) && <ReasonField reason={reason} onChange={setReason} />}
      <AnswerButtons
        choices={choices}
        isDisabled={answering.state !== "open"}
        isRefused={(value) => isWrong && !isDenial(value)}
        onChoose={send}
      />
    </>
  );
}

type JsonArgumentsProps = {
  tool: string;
  args: Args;
  onChange: (args: Args) => void;
  onWrong: (isWrong: boolean) => void;
  problem: string | undefined;
};

function JsonArguments({ tool, args, onChange, onWrong, problem }: JsonArgumentsProps) {
  const [first] = useState(args);
  const json = useJsonText(first);
  const setText = (text: string) => {
    json.setText(text);
    const value = objectIn(text);
    onWrong(value === undefined);
    if (value !== undefined) onChange(value as Args);
  };
  return <JsonField label={`Arguments of ${tool}`} json={{ ...json, isEdited: false, setText }} problem={problem} />;
}

function ReasonField({ reason, onChange }: { reason: string; onChange: (reason: string) => void }) {
  const id = useId();
  return (
    <div>
      <label htmlFor={id} className="mb-1 block text-[12px] text-muted">
        Reason, if you deny it (the model sees it)
      </label>
      <input id={id} className="field" value={reason} onChange={(event) => onChange(event.target.value)} />
    </div>
  );
}
