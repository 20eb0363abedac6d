import { type FormEvent, useEffect, useRef, useState } from "react";
import { go, sessionHref, useQueryState } from "../../app/router.ts";
import { post } from "../../data/api.ts";
import { type MonikerInfo, useMonikers } from "../../data/queries.ts";
import { Button } from "../../ui/button.tsx";
import { Failure } from "../../ui/empty.tsx";
import { Field } from "../../ui/field.tsx";
import { Page } from "../../ui/page.tsx";
import { type Problems, SchemaFields } from "../../ui/schema-fields.tsx";
import { Section } from "../../ui/section.tsx";
import { problemsIn } from "./problems-in.ts";
import { readFields } from "./read-fields.ts";

const OPTIONS: [name: string, label: string, hint: string][] = [
  ["max_steps", "Maximum steps", "The session stops after this many."],
  ["max_tokens", "Maximum tokens", "The session stops once it has used this many."],
  [
    "max_cost_usd",
    "Maximum cost, in dollars",
    "The session stops once its models have cost this much, where prices are known.",
  ],
  ["max_runtime_s", "Maximum time, in seconds", "Counted from its start."],
  ["step_interval_ms", "Pause between steps, in milliseconds", ""],
];

/** A form from the moniker's parameters. */
export default function StartPage() {
  const { data: monikers, error } = useMonikers();
  const [search, change] = useQueryState();
  if (error) return <Failure error={error} />;
  if (!monikers) return <p className="p-6 text-muted">Loading…</p>;
  const chosen = monikers.find(({ name }) => name === search.get("moniker"));
  return (
    <Page title="Start an agent">
      <div className="mx-auto flex max-w-4xl flex-col gap-6 p-4 md:flex-row">
        <fieldset className="flex flex-col gap-1.5 md:sticky md:top-4 md:max-h-[calc(100dvh-84px)] md:w-72 md:shrink-0 md:self-start md:overflow-y-auto md:pr-2">
          <legend className="caption mb-1.5">Task</legend>
          {monikers.map((moniker) => (
            <MonikerChoice
              key={moniker.name}
              moniker={moniker}
              isChosen={moniker === chosen}
              onChoose={() => change({ moniker: moniker.name })}
            />
          ))}
        </fieldset>
        {chosen ? (
          <StartForm key={chosen.name} moniker={chosen} conversation_id={search.get("conversation")} />
        ) : (
          <p className="py-8 text-muted">Choose a task to see its parameters.</p>
        )}
      </div>
    </Page>
  );
}

function MonikerChoice({
  moniker,
  isChosen,
  onChoose,
}: {
  moniker: MonikerInfo;
  isChosen: boolean;
  onChoose: () => void;
}) {
  // One that a link names may be far down the list.
  const label = useRef<HTMLLabelElement>(null);
  useEffect(() => {
    if (isChosen && matchMedia("(min-width: 768px)").matches) label.current?.scrollIntoView({ block: "nearest" });
  }, [isChosen]);
  return (
    <label
      ref={label}
      className={`panel flex cursor-pointer gap-2.5 px-3 py-2 has-focus-visible:outline-2 has-focus-visible:outline-accent ${isChosen ? "border-accent bg-accent-soft" : "hover:bg-sunken"}`}
    >
      <input type="radio" name="moniker" className="mt-1 self-start" checked={isChosen} onChange={onChoose} />
      <span>
        <span className="font-medium">{moniker.name}</span>{" "}
        <span className="ml-2 text-[12px] text-muted">{moniker.kind}</span>{" "}
        <span className="block text-[12px] text-muted">{moniker.description}</span>
      </span>
    </label>
  );
}

type StartFormProps = { moniker: MonikerInfo; conversation_id: string | null };

function StartForm({ moniker, conversation_id }: StartFormProps) {
  const [problems, setProblems] = useState<Problems>(new Map());
  const [isSending, setSending] = useState(false);
  const start = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const read = readFields(new FormData(event.currentTarget), moniker.params_schema);
    if ("problems" in read) return setProblems(read.problems);
    setSending(true);
    try {
      const body = { ...read.body, moniker: moniker.name, ...(conversation_id ? { conversation_id } : {}) };
      const { session_id } = await post<{ session_id: string }>("/api/agents", body);
      go(sessionHref(session_id));
    } catch (error) {
      setProblems(problemsIn(error));
      setSending(false);
    }
  };
  return (
    <form className="flex min-w-0 flex-1 flex-col gap-5" noValidate onSubmit={(event) => void start(event)}>
      {problems.has("") && (
        <p role="alert" className="rounded-md bg-bad-soft px-3 py-2 text-bad">
          {problems.get("")}
        </p>
      )}
      <Field
        name="agent_id"
        label="Agent name"
        schema={{ type: "string", description: "Sessions with the same name belong together.", default: moniker.name }}
        isRequired
        problem={problems.get("agent_id")}
      />
      <Section title={`Parameters of ${moniker.name}`}>
        <div className="flex flex-col gap-3.5">
          <SchemaFields schema={moniker.params_schema} problems={problems} prefix="params." />
          {Object.keys(moniker.params_schema.properties ?? {}).length === 0 && (
            <p className="text-muted">This moniker takes no parameters.</p>
          )}
        </div>
      </Section>
      <details>
        <summary className="caption">Model, limits and pace</summary>
        <div className="mt-3 grid gap-3.5 sm:grid-cols-2">
          <Field
            name="options.model"
            label="Model"
            schema={{ type: "string", description: "provider/model. Empty: the server's default." }}
            isRequired={false}
            problem={problems.get("options.model")}
          />
          {OPTIONS.map(([name, label, description]) => (
            <Field
              key={name}
              name={`options.${name}`}
              label={label}
              schema={{ type: "number", minimum: 0, description }}
              isRequired={false}
              problem={problems.get(`options.${name}`)}
            />
          ))}
        </div>
      </details>
      <div>
        <Button type="submit" look="primary" className="h-8 px-4" disabled={isSending}>
          Start {moniker.name}
        </Button>
      </div>
    </form>
  );
}
