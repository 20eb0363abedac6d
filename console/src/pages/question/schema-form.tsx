import { type FormEvent, useEffect, useRef } from "react";
import type { JsonSchema } from "../../data/queries.ts";
import { Button } from "../../ui/button.tsx";
import { readObject } from "../../ui/read-object.ts";
import { SchemaFields } from "../../ui/schema-fields.tsx";
import type { Answering } from "./use-answer.ts";

/** A form from the question's schema; the answer is an object with its fields. */
export function SchemaForm({ schema, answering }: { schema: JsonSchema; answering: Answering }) {
  const form = useRef<HTMLFormElement>(null);
  const { problems } = answering;
  useEffect(() => {
    if (problems.size > 0) form.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus();
  }, [problems]);
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const read = readObject(new FormData(event.currentTarget), schema);
    if (read.problems.size > 0) answering.setProblems(read.problems);
    else void answering.send(read.value);
  };
  return (
    <form ref={form} className="flex flex-col gap-3.5" noValidate onSubmit={submit}>
      <SchemaFields schema={schema} problems={problems} />
      <div>
        <Button type="submit" look="primary" disabled={answering.state !== "open"}>
          Answer
        </Button>
      </div>
    </form>
  );
}
