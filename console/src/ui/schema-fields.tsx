import type { JsonSchema } from "../data/queries.ts";
import { Field } from "./field.tsx";
import { hasFallback } from "./field-value.ts";

/** What is wrong with a form, by the path of the field; "" is the form as a whole. */
export type Problems = ReadonlyMap<string, string>;

type SchemaFieldsProps = {
  schema: JsonSchema;
  problems: Problems;
  /** Prefix of the fields' names. */
  prefix?: string;
};

/** One field for each property of an object's schema; `readObject` reads them. */
export const SchemaFields = ({
  schema: { properties = {}, required = [] },
  problems,
  prefix = "",
}: SchemaFieldsProps) =>
  Object.entries(properties).map(([name, schema]) => (
    <Field
      key={name}
      name={`${prefix}${name}`}
      label={schema.title ?? name}
      schema={schema}
      isRequired={required.includes(name) && !hasFallback(schema)}
      problem={problemAt(problems, `${prefix}${name}`)}
    />
  ));

/** The field's own problem, or that of one of its items. */
const problemAt = (problems: Problems, name: string): string | undefined =>
  [...problems].find(([path]) => path === name || path.startsWith(`${name}.`))?.[1];
