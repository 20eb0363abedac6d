import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useId, useState } from "react";
import { pathOf, post } from "../../data/api.ts";
import { client, type MonikerInfo, summariesPage, useMonikers } from "../../data/queries.ts";
import { Dialog } from "../../ui/dialog.tsx";
import { DialogButtons } from "../../ui/dialog-buttons.tsx";
import { Field } from "../../ui/field.tsx";
import { textIn } from "../../ui/field-value.ts";
import { REQUIRED, readObject } from "../../ui/read-object.ts";
import { type Problems, SchemaFields } from "../../ui/schema-fields.tsx";
import { Section } from "../../ui/section.tsx";
import { problemsIn } from "../start/problems-in.ts";

type AddProps = { conversation_id: string; onClose: () => void };

async function join(conversation_id: string, work: () => Promise<unknown>, onClose: () => void): Promise<void> {
  await work();
  await client.invalidateQueries({ queryKey: ["participants", conversation_id] });
  onClose();
}

/** Adds a live session, or a new one with its moniker's parameters. */
export function AddAgentDialog({ conversation_id, onClose }: AddProps) {
  const monikers = useMonikers().data ?? [];
  const [chosen, setChosen] = useState("new:chat");
  const [name, setName] = useState("");
  const [problems, setProblems] = useState<Problems>(new Map());
  const isNew = chosen.startsWith("new:");
  const moniker = monikers.find((one) => `new:${one.name}` === chosen);
  const work = (params: Record<string, unknown>): Promise<unknown> =>
    moniker
      ? post("/api/agents", { agent_id: name.trim() || moniker.name, moniker: moniker.name, params, conversation_id })
      : post(pathOf("conversations", conversation_id, "participants"), { session_id: chosen.slice("session:".length) });
  const add = async (form: FormData) => {
    if (isNew && !moniker) return;
    const read = readObject(form, moniker?.params_schema ?? {}, "params.");
    setProblems(read.problems);
    if (read.problems.size > 0) return;
    try {
      await join(conversation_id, () => work(read.value), onClose);
    } catch (error) {
      setProblems(problemsIn(error));
    }
  };
  return (
    <AddForm title="Add an agent" onClose={onClose} onAdd={add}>
      <AgentChoice
        chosen={chosen}
        monikers={monikers}
        onChoose={(next) => {
          setChosen(next);
          setProblems(new Map());
        }}
      />
      {isNew && (
        <Field
          name="agent_id"
          label="Name"
          schema={{ type: "string", description: `${moniker?.name ?? "The moniker"} if empty.` }}
          isRequired={false}
          problem={problems.get("agent_id")}
          onChange={setName}
        />
      )}
      {moniker && Object.keys(moniker.params_schema.properties ?? {}).length > 0 && (
        <Section title={`Parameters of ${moniker.name}`}>
          <div key={moniker.name} className="flex flex-col gap-3.5">
            <SchemaFields schema={moniker.params_schema} problems={problems} prefix="params." />
          </div>
        </Section>
      )}
      {problems.has("") && problems.size === 1 && (
        <p role="alert" className="text-bad wrap-anywhere">
          {problems.get("")}
        </p>
      )}
    </AddForm>
  );
}

type AgentChoiceProps = { chosen: string; monikers: MonikerInfo[]; onChoose: (chosen: string) => void };

function AgentChoice({ chosen, monikers, onChoose }: AgentChoiceProps) {
  const id = useId();
  const sessions = useQuery(summariesPage({ status: ["running", "waiting", "paused"] }, 0)).data?.sessions ?? [];
  return (
    <div>
      <label htmlFor={id} className="mb-1 block font-medium">
        Agent
      </label>
      <select id={id} className="field" value={chosen} onChange={(event) => onChoose(event.target.value)}>
        <optgroup label="Start a new session">
          {monikers.map(({ name, description }) => (
            <option key={name} value={`new:${name}`}>
              {name} – {description}
            </option>
          ))}
        </optgroup>
        {sessions.length > 0 && (
          <optgroup label="Live sessions">
            {sessions.map(({ session_id, agent_id, moniker }) => (
              <option key={session_id} value={`session:${session_id}`}>
                {agent_id} ({moniker}, {session_id})
              </option>
            ))}
          </optgroup>
        )}
      </select>
    </div>
  );
}

export function AddPersonDialog({ conversation_id, onClose }: AddProps) {
  const [problem, setProblem] = useState<string>();
  const add = async (form: FormData) => {
    const user_id = textIn(form, "user_id").trim();
    if (user_id === "") return setProblem(REQUIRED);
    const path = pathOf("conversations", conversation_id, "participants");
    try {
      await join(conversation_id, () => post(path, { user_id }), onClose);
    } catch (error) {
      const problems = problemsIn(error);
      setProblem(problems.get("user_id") ?? problems.get(""));
    }
  };
  return (
    <AddForm title="Add a person" onClose={onClose} onAdd={add}>
      <Field name="user_id" label="Name" schema={{ type: "string" }} isRequired problem={problem} />
    </AddForm>
  );
}

type AddFormProps = {
  title: string;
  onClose: () => void;
  onAdd: (form: FormData) => Promise<void>;
  children: ReactNode;
};
const AddForm = ({ title, onClose, onAdd, children }: AddFormProps) => (
  <Dialog title={title} onClose={onClose}>
    <form
      noValidate
      className="flex flex-col gap-3"
      onSubmit={(event) => {
        event.preventDefault();
        void onAdd(new FormData(event.currentTarget));
      }}
    >
      {children}
      <DialogButtons label="Add" onClose={onClose} />
    </form>
  </Dialog>
);
