import { useId } from "react";
import type { JsonSchema } from "../../data/queries.ts";
import { kindOf } from "./read-fields.ts";

type FieldProps = {
  name: string;
  label: string;
  schema: JsonSchema;
  isRequired: boolean;
  problem: string | undefined;
};

/** A field that fits a JSON schema. */
export function Field({ name, label, schema, isRequired, problem }: FieldProps) {
  const id = useId();
  const hints = [schema.description, isRequired ? null : "Optional."].filter(Boolean).join(" ");
  const shared = {
    id,
    name,
    "aria-describedby": `${id}-hint`,
    "aria-invalid": problem !== undefined,
    "aria-required": isRequired,
  };
  return (
    <div>
      <label htmlFor={id} className="mb-1 block font-medium">
        {label}
      </label>
      <Control shared={shared} schema={schema} />
      <p id={`${id}-hint`} className={`mt-0.5 text-[12px] ${problem ? "text-bad" : "text-muted"}`}>
        {problem ?? hints}
      </p>
    </div>
  );
}

const textOf = (value: unknown): string =>
  value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value);

type Shared = { id: string; name: string };

function Control({ shared, schema }: { shared: Shared; schema: JsonSchema }) {
  const given = textOf(schema.default);
  switch (kindOf(schema)) {
    case "choice":
      return (
        <select {...shared} className="field" defaultValue={given}>
          {given === "" && <option value="">–</option>}
          {schema.enum?.map((value) => (
            <option key={String(value)}>{String(value)}</option>
          ))}
        </select>
      );
    case "flag":
      return <input {...shared} type="checkbox" defaultChecked={schema.default === true} className="size-4" />;
    case "number":
      return (
        <input
          {...shared}
          className="field"
          type="number"
          step="any"
          min={schema.minimum}
          max={schema.maximum}
          defaultValue={given}
        />
      );
    case "json":
      return (
        <textarea
          {...shared}
          className="field min-h-28 font-mono text-[12px]"
          placeholder="JSON"
          defaultValue={given}
        />
      );
    case "long text":
      return <textarea {...shared} className="field min-h-20" defaultValue={given} />;
    case "text":
      return <input {...shared} className="field" type="text" defaultValue={given} />;
  }
}
