import { type ChangeEvent, useId } from "react";
import type { JsonSchema } from "../data/queries.ts";
import { kindOf, LONG_TEXT, listedIn, localMoment } from "./field-value.ts";

type FieldProps = {
  name: string;
  label: string;
  schema: JsonSchema;
  isRequired: boolean;
  problem: string | undefined;
  onChange?: (text: string) => void;
};

type Control = HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement;

/** A labelled field for a JSON schema, which says in words whether it is required. */
export function Field({ name, label, schema, isRequired, problem, onChange }: FieldProps) {
  const id = useId();
  const hints = [schema.description, lengthHint(schema), isRequired ? null : "Optional."].filter(Boolean).join(" ");
  const shared = {
    id,
    name,
    "aria-describedby": `${id}-hint`,
    "aria-invalid": problem !== undefined,
    onChange: onChange && (({ target }: ChangeEvent<Control>) => onChange(target.value)),
  };
  const hint = (
    <p id={`${id}-hint`} className={`mt-0.5 text-[12px] ${problem ? "text-bad" : "text-muted"}`}>
      {problem ?? hints}
    </p>
  );
  const mark = isRequired && <span className="ml-2 text-[12px] font-normal text-bad">required</span>;
  if (kindOf(schema) === "choices")
    return (
      <fieldset aria-describedby={`${id}-hint`}>
        <legend className="mb-1 font-medium">
          {label}
          {mark}
        </legend>
        <Boxes name={name} schema={schema} />
        {hint}
      </fieldset>
    );
  return (
    <div>
      <label htmlFor={id} className="mb-1 inline-block font-medium">
        {label}
      </label>
      {mark}
      <Input shared={{ ...shared, "aria-required": isRequired }} schema={schema} />
      {hint}
    </div>
  );
}

function lengthHint({ type, minLength, maxLength, minItems, maxItems }: JsonSchema): string | null {
  const [least, most, what] = type === "array" ? [minItems, maxItems, "choices"] : [minLength, maxLength, "characters"];
  const hasLeast = least !== undefined && least > 1;
  if (hasLeast && most !== undefined) return `${least} to ${most} ${what}.`;
  if (hasLeast) return `At least ${least} ${what}.`;
  return most === undefined || most === LONG_TEXT ? null : `At most ${most} ${what}.`;
}

const textOf = (value: unknown): string =>
  value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value);

const INPUTS: Readonly<Record<string, string>> = { email: "email", uri: "url", date: "date", password: "password" };

type Shared = {
  id: string;
  name: string;
  "aria-required": boolean;
  onChange: ((event: ChangeEvent<Control>) => void) | undefined;
};

function Input({ shared, schema }: { shared: Shared; schema: JsonSchema }) {
  const defaultText = textOf(schema.default);
  switch (kindOf(schema)) {
    case "choices":
      return null;
    case "choice":
      return (
        <select {...shared} className="field" defaultValue={defaultText}>
          {defaultText === "" && <option value="">–</option>}
          {listedIn(schema).map(({ value, label }) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
        </select>
      );
    case "flag":
      return (
        <input
          id={shared.id}
          name={shared.name}
          aria-describedby={`${shared.id}-hint`}
          type="checkbox"
          defaultChecked={schema.default === true}
          className="block size-4"
        />
      );
    case "number":
      return (
        <input
          {...shared}
          className="field"
          type="number"
          step={schema.type === "integer" ? 1 : "any"}
          min={schema.minimum}
          max={schema.maximum}
          defaultValue={defaultText}
        />
      );
    case "json":
      return (
        <textarea
          {...shared}
          className="field min-h-28 font-mono text-[12px]"
          placeholder="JSON"
          defaultValue={defaultText}
        />
      );
    case "moment":
      return (
        <input {...shared} className="field" type="datetime-local" step={1} defaultValue={localMoment(defaultText)} />
      );
    case "long text":
      return <textarea {...shared} className="field min-h-20" defaultValue={defaultText} />;
    case "text":
      return (
        <input
          {...shared}
          className="field"
          type={INPUTS[schema.format ?? ""] ?? "text"}
          autoComplete={schema.format === "password" ? "current-password" : "off"}
          defaultValue={defaultText}
        />
      );
  }
}

function Boxes({ name, schema }: { name: string; schema: JsonSchema }) {
  const chosen = Array.isArray(schema.default) ? schema.default.map(String) : [];
  return (
    <div className="flex flex-wrap gap-x-4 gap-y-1">
      {listedIn(schema.items ?? {}).map(({ value, label }) => (
        <label key={value} className="flex items-center gap-1.5">
          <input type="checkbox" name={name} value={value} defaultChecked={chosen.includes(value)} className="size-4" />
          {label}
        </label>
      ))}
    </div>
  );
}
