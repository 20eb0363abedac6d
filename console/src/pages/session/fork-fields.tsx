import { useEffect, useId, useState } from "react";
import type { ForkChanges } from "../../data/commands.ts";
import { type Session, useMonikers, useStateAfter } from "../../data/queries.ts";
import { Failure } from "../../ui/empty.tsx";
import { JsonField, type JsonText, useJsonText } from "../../ui/json-field.tsx";

export const NO_CHANGES: ForkChanges = {};

type ForkFieldsProps = {
  session: Session;
  iteration: number;
  /** Null where something cannot be sent as it is. */
  onChange: (changes: ForkChanges | null) => void;
  problemAt: (name: string) => string | undefined;
};

/** What a fork may have other than its parent. It is read when it is first looked at: a state may be large. */
export function ForkFields(props: ForkFieldsProps) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details onToggle={(event) => event.currentTarget.open && setOpen(true)}>
      <summary className="font-medium">Start it with other values</summary>
      {isOpen && <LoadedFields {...props} />}
    </details>
  );
}

function LoadedFields(props: ForkFieldsProps) {
  const { session, iteration } = props;
  const { data: state, error } = useStateAfter(session.session_id, iteration);
  if (error) return <Failure error={error} />;
  if (!state) return <p className="py-2 text-muted">Loading…</p>;
  return <Fields {...props} state={state} />;
}

function Fields({ session, state, onChange, problemAt }: ForkFieldsProps & { state: object }) {
  const [moniker, setMoniker] = useState(session.moniker);
  const texts = {
    state: useJsonText(state),
    params: useJsonText(session.params),
    options: useJsonText(session.options),
  };
  const sent = JSON.stringify(changesIn(texts, moniker === session.moniker ? undefined : moniker));
  useEffect(() => onChange(JSON.parse(sent) as ForkChanges | null), [sent, onChange]);
  return (
    <div className="mt-3 flex flex-col gap-3">
      <JsonField
        label="State"
        json={texts.state}
        hint="What its first step begins with."
        problem={problemAt("state")}
      />
      <JsonField label="Parameters" json={texts.params} problem={problemAt("params")} />
      <JsonField label="Options" json={texts.options} problem={problemAt("options")} />
      <MonikerField chosen={moniker} onChoose={setMoniker} problem={problemAt("moniker")} />
    </div>
  );
}

/** Only what differs from the parent is sent. */
function changesIn(texts: Record<"state" | "params" | "options", JsonText>, moniker: string | undefined) {
  const all = Object.entries(texts);
  if (all.some(([, { isWrong }]) => isWrong)) return null;
  const edited = all.filter(([, { isEdited }]) => isEdited).map(([name, { value }]) => [name, value] as const);
  return { ...Object.fromEntries(edited), ...(moniker !== undefined && { moniker }) };
}

type MonikerFieldProps = { chosen: string; onChoose: (name: string) => void; problem: string | undefined };

function MonikerField({ chosen, onChoose, problem }: MonikerFieldProps) {
  const id = useId();
  const names = new Set([chosen, ...(useMonikers().data ?? []).map(({ name }) => name)]);
  return (
    <div>
      <label htmlFor={id} className="mb-1 block font-medium">
        Moniker
      </label>
      <select
        id={id}
        className="field"
        value={chosen}
        aria-describedby={`${id}-hint`}
        aria-invalid={problem !== undefined}
        onChange={(event) => onChoose(event.target.value)}
      >
        {[...names].map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
      <p id={`${id}-hint`} className="text-[12px] text-bad">
        {problem}
      </p>
    </div>
  );
}
