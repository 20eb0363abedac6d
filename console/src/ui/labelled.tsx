import { type ReactNode, useId } from "react";

type Control = { id: string; "aria-describedby": string; "aria-invalid": boolean };
type LabelledProps = {
  label: string;
  hint?: string;
  problem: string | undefined;
  children: (control: Control) => ReactNode;
};

/** A label above a control, and below it a hint or what is wrong. */
export function Labelled({ label, hint, problem, children }: LabelledProps) {
  const id = useId();
  const isWrong = problem !== undefined;
  return (
    <div>
      <label htmlFor={id} className="mb-1 block font-medium">
        {label}
      </label>
      {children({ id, "aria-describedby": `${id}-hint`, "aria-invalid": isWrong })}
      <p id={`${id}-hint`} className={`text-[12px] ${isWrong ? "text-bad" : "text-muted"}`}>
        {problem ?? hint}
      </p>
    </div>
  );
}
