import { useEffect, useState } from "react";
import type { ForkChanges } from "../../data/commands.ts";
import { type Session, useMonikers, useStateAfter } from "../../data/queries.ts";
import { Failure } from "../../ui/empty.tsx";
import { JsonField, type JsonText, useJsonText } from "../../ui/json-field.tsx";
import { Labelled } from "../../ui/labelled.tsx";
import { ModelField } from "../../ui/model-field.tsx";

export const NO_CHANGES: ForkChanges = {};

type ForkFieldsProps = {
  session: Session;
  iteration: number;
  /** Null while something is invalid. */
  onChange: (changes: ForkChanges | null) => void;
  problemAt: (name: string) => string | undefined;
};

/** Values in which a fork may differ from its parent. The state may be large, so it is read when first opened. */
export function ForkFields(props: ForkFieldsProps) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details onToggle={(event) => event.currentTarget.open && setOpen(true)}>
      <summary className="font-medium">Change its model, state, parameters or options</summary>
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
  const { model: parentModel = "", ...otherOptions } = session.options;
  const [model, setModel] = useState(parentModel);
  const texts = {
    state: useJsonText(state),
    params: useJsonText(session.params),
    options: useJsonText(otherOptions),
  };
  const chosen = {
    ...(model.trim() !== parentModel && { model: model.trim() }),
    ...(moniker !== session.moniker && { moniker }),
  };
  const sent = JSON.stringify(changesIn(texts, chosen, parentModel));
  useEffect(() => onChange(JSON.parse(sent) as ForkChanges | null), [sent, onChange]);
  return (
    <div className="mt-3 flex flex-col gap-3">
      <ModelField
        model={model}
        onChange={setModel}
        hint="Empty: the server's default."
        problem={problemAt("options.model")}
      />
      <JsonField
        label="State"
        json={texts.state}
        hint="The state its first step starts with."
        problem={problemAt("state")}
      />
      <JsonField label="Parameters" json={texts.params} problem={problemAt("params")} />
      <JsonField label="Options" json={texts.options} problem={problemAt("options")} />
      <MonikerField chosen={moniker} onChoose={setMoniker} problem={problemAt("moniker")} />
    </div>
  );
}

/** Only what differs from the parent. */
function changesIn(
  texts: Record<"state" | "params" | "options", JsonText>,
  { model, moniker }: { model?: string; moniker?: string },
  parentModel: string,
) {
  const all = Object.entries(texts);
  if (all.some(([, { isWrong }]) => isWrong)) return null;
  const edited = all.filter(([, { isEdited }]) => isEdited).map(([name, { value }]) => [name, value] as const);
  // The model is an option, and options replace those of the parent as a whole.
  const named = model ?? parentModel;
  const hasOptions = model !== undefined || texts.options.isEdited;
  const options = { ...texts.options.value, ...(named !== "" && { model: named }) };
  return { ...Object.fromEntries(edited), ...(hasOptions && { options }), ...(moniker !== undefined && { moniker }) };
}

type MonikerFieldProps = { chosen: string; onChoose: (name: string) => void; problem: string | undefined };

function MonikerField({ chosen, onChoose, problem }: MonikerFieldProps) {
  const names = new Set([chosen, ...(useMonikers().data ?? []).map(({ name }) => name)]);
  return (
    <Labelled label="Moniker" problem={problem}>
      {(control) => (
        <select {...control} className="field" value={chosen} onChange={(event) => onChoose(event.target.value)}>
          {[...names].map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      )}
    </Labelled>
  );
}
