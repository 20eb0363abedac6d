import { Button } from "../../ui/button.tsx";
import type { Question } from "./question-view.tsx";

export type Choices = NonNullable<Question["choices"]>;

const isWord = (value: unknown, words: readonly string[]): boolean =>
  typeof value === "string" && words.includes(value.toLowerCase());
const isApproval = (value: unknown): boolean => isWord(value, ["approve", "yes"]);
export const isDenial = (value: unknown): boolean => isWord(value, ["deny", "no"]);

type AnswerButtonsProps = {
  choices: Choices;
  isDisabled: boolean;
  /** Whether a choice is unavailable right now. */
  isRefused?: (value: unknown) => boolean;
  onChoose: (value: unknown) => Promise<void>;
};

/** A button for each choice. Approve and deny have a shortcut (`pressAnswer`). */
export const AnswerButtons = ({ choices, isDisabled, isRefused, onChoose }: AnswerButtonsProps) => (
  <div role="group" aria-label="Answers" className="flex flex-wrap gap-2">
    {choices.map(({ value, label }, index) => {
      const key = isApproval(value) ? "a" : isDenial(value) ? "d" : undefined;
      return (
        <Button
          key={JSON.stringify(value)}
          look={index === 0 ? "primary" : "plain"}
          className="h-auto min-h-[30px] max-w-full py-1 text-left whitespace-normal wrap-anywhere"
          disabled={isDisabled || isRefused?.(value)}
          {...(index === 0 ? { "data-answer": true } : {})}
          {...(key === undefined ? {} : { "data-key": key, "aria-keyshortcuts": key })}
          onClick={() => void onChoose(value)}
        >
          {label ?? (typeof value === "string" ? value : JSON.stringify(value))}
          {key !== undefined && (
            <kbd aria-hidden className="answer-key rounded border border-current px-1 font-mono text-[11px] opacity-80">
              {key}
            </kbd>
          )}
        </Button>
      );
    })}
  </div>
);

/** Clicks the button with this shortcut; false if there is none. */
export function pressAnswer(within: Element | null, key: "a" | "d"): boolean {
  const button = within?.querySelector<HTMLButtonElement>(`[data-key=${key}]:not(:disabled)`);
  button?.click();
  return button !== null && button !== undefined;
}
