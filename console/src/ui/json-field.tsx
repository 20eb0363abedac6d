import { useId, useState } from "react";

export type JsonText = {
  text: string;
  setText: (text: string) => void;
  undo: () => void;
  /** The parsed object. */
  value: object | undefined;
  /** Whether it differs from the original. */
  isEdited: boolean;
  /** Whether the text is not a JSON object. */
  isWrong: boolean;
};

/** A JSON object as editable text. */
export function useJsonText(original: object): JsonText {
  const [typed, setText] = useState<string | null>(null);
  const before = JSON.stringify(original, null, 2);
  const text = typed ?? before;
  const value = objectIn(text);
  const isEdited = typed !== null && JSON.stringify(value) !== JSON.stringify(original);
  return { text, setText, undo: () => setText(null), value, isEdited, isWrong: value === undefined };
}

export function objectIn(text: string): object | undefined {
  try {
    const value = JSON.parse(text) as unknown;
    return typeof value === "object" && value !== null && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

type JsonFieldProps = { label: string; json: JsonText; hint?: string | undefined; problem: string | undefined };

export function JsonField({ label, json, hint, problem }: JsonFieldProps) {
  const id = useId();
  const wrong = json.isWrong ? "This is not a JSON object." : problem;
  return (
    <div>
      <div className="mb-1 flex items-baseline justify-between gap-2">
        <label htmlFor={id} className="font-medium wrap-anywhere">
          {label}
        </label>
        {json.isEdited && (
          <button type="button" className="text-accent underline" onClick={json.undo}>
            Undo changes
          </button>
        )}
      </div>
      <textarea
        id={id}
        className="field max-h-80 resize-y font-mono text-[12px] leading-[1.45]"
        rows={Math.min(12, json.text.split("\n").length)}
        spellCheck={false}
        aria-describedby={`${id}-hint`}
        aria-invalid={wrong !== undefined}
        value={json.text}
        onChange={(event) => json.setText(event.target.value)}
      />
      <p id={`${id}-hint`} className={`text-[12px] ${wrong ? "text-bad" : "text-muted"}`}>
        {wrong ?? hint}
      </p>
    </div>
  );
}
