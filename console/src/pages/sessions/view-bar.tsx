import { type FormEvent, useState } from "react";
import { removeView, savedViews, saveView } from "../../data/saved-views.ts";
import { useSignal } from "../../data/signal.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { DialogButtons } from "../../ui/dialog-buttons.tsx";
import { Field } from "../../ui/field.tsx";
import { textIn } from "../../ui/field-value.ts";
import { Link } from "../../ui/link.tsx";
import { REQUIRED } from "../../ui/read-object.ts";

/** The reader's saved views, and a button that saves this one. */
export function ViewBar({ search }: { search: string }) {
  const views = useSignal(savedViews);
  const [isSaving, setSaving] = useState(false);
  const current = views.find((view) => view.search === search);
  if (views.length === 0 && search === "") return null;
  return (
    <div className="flex flex-wrap items-center gap-1.5" role="group" aria-label="Saved views">
      {views.map((view) => (
        <span
          key={view.name}
          className={`flex items-center rounded-full border ${view === current ? "border-accent bg-accent-soft" : "border-line"}`}
        >
          <Link
            href={`/?${view.search}`}
            aria-current={view === current ? "true" : undefined}
            className="rounded-full py-0.5 pr-1 pl-2.5 hover:underline"
          >
            {view.name}
          </Link>
          <button
            type="button"
            aria-label={`Remove the view ${view.name}`}
            className="rounded-full px-1.5 text-muted hover:text-ink"
            onClick={() => removeView(view.name)}
          >
            ✕
          </button>
        </span>
      ))}
      {search !== "" && !current && (
        <Button look="ghost" className="h-6" onClick={() => setSaving(true)}>
          Save this view…
        </Button>
      )}
      {isSaving && <SaveDialog search={search} onClose={() => setSaving(false)} />}
    </div>
  );
}

function SaveDialog({ search, onClose }: { search: string; onClose: () => void }) {
  const [problem, setProblem] = useState<string>();
  const save = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const name = textIn(new FormData(event.currentTarget), "name").trim();
    if (name === "") return setProblem(REQUIRED);
    saveView({ name, search });
    onClose();
  };
  return (
    <Dialog title="Save this view" description="Keeps its filters and order in this browser." onClose={onClose}>
      <form noValidate onSubmit={save}>
        <Field
          name="name"
          label="Name"
          schema={{ type: "string", description: "A view with the same name is replaced." }}
          isRequired
          problem={problem}
        />
        <DialogButtons label="Save" onClose={onClose} />
      </form>
    </Dialog>
  );
}
