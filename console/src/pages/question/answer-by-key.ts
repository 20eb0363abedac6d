import { pressAnswer } from "./answer-buttons.tsx";

/** On a page with one question: its shortcut answers it; `a` focuses the form of a question without that choice. */
export function answerByKey(event: KeyboardEvent, key: "a" | "d"): void {
  const question = document.querySelector("[data-testid=question]");
  if (event.repeat || pressAnswer(question, key) || key === "d") return;
  question?.querySelector<HTMLElement>("[data-answer], :is(input, select, textarea)")?.focus();
}
