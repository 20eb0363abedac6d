import { useId } from "react";
import { useModels } from "../data/queries.ts";
import { Labelled } from "./labelled.tsx";

type ModelFieldProps = {
  model: string;
  onChange: (model: string) => void;
  hint: string;
  problem: string | undefined;
};

/** A model's name. Recently used ones are suggested. */
export function ModelField({ model, onChange, hint, problem }: ModelFieldProps) {
  const list = useId();
  const models = useModels().data ?? [];
  return (
    <Labelled label="Model" hint={hint} problem={problem}>
      {(control) => (
        <>
          <input
            {...control}
            className="field font-mono text-[12px]"
            list={list}
            placeholder="provider/model"
            spellCheck={false}
            autoComplete="off"
            value={model}
            onChange={(event) => onChange(event.target.value)}
          />
          <datalist id={list}>
            {models.map((name) => (
              <option key={name} value={name} />
            ))}
          </datalist>
        </>
      )}
    </Labelled>
  );
}
