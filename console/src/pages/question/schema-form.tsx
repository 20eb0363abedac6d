import { type FormEvent, useEffect, useRef } from "react";
import type { JsonSchema } from "../../data/queries.ts";
import { Button } from "../../ui/button.tsx";
import { Field } from "../../ui/field.tsx";
import { kindOf, valueIn } from "../../ui/field-value.ts";
import type { Answering, Problems } from "./use-answer.ts";

/** A form made from the question's own schema; the answer is an object with its fields. */
export function SchemaForm({ schema, answering }: { schema: JsonSchema; answering: Answering }) {
  const { properties = {}, required = [] } = schema;
  const form = useRef<HTMLFormElement>(null);
  const { problems: known } = answering;
  useEffect(() => {
    if (known.size > 0) form.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus();
  }, [known]);
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const { answer, problems } = readAnswer(new FormData(event.currentTarget), schema);
    if (problems.size > 0) answering.setProblems(problems);
    else void answering.send(answer);
  };
  return (
    <form ref={form} className="flex flex-col gap-3.5" noValidate onSubmit={submit}>
      {Object.entries(properties).map(([name, field]) => (
        <Field
          key={name}
          name={name}
          label={field.title ?? name}
          schema={field}
          isRequired={required.includes(name)}
          problem={problemOf(answering.problems, name)}
        />
      ))}
      <div>
        <Button type="submit" look="primary" disabled={answering.state !== "open"}>
          Answer
        </Button>
      </div>
    </form>
  );
}

/** The field's own, or that of one of its items. */
function problemOf(problems: Problems, name: string): string | undefined {
  return [...problems].find(([path]) => path === name || path.startsWith(`${name}.`))?.[1];
}

function readAnswer(form: FormData, { properties = {}, required = [] }: JsonSchema) {
  const answer: Record<string, unknown> = {};
  const problems = new Map<string, string>();
  for (const [name, field] of Object.entries(properties)) {
    const value = valueIn(form, name, field);
    const isNeeded = required.includes(name);
    if (value !== undefined) answer[name] = value;
    else if (isNeeded && kindOf(field) === "choices") answer[name] = [];
    else if (isNeeded) problems.set(name, "This is required.");
  }
  return { answer, problems };
}
