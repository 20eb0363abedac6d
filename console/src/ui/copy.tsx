import { tell } from "./toast.tsx";

/** An id that is copied by a click. */
export function CopyId({ id, label }: { id: string; label: string }) {
  const copy = () => {
    void navigator.clipboard?.writeText(id).then(() => tell(`Copied ${label}`));
  };
  return (
    <button
      type="button"
      onClick={copy}
      title={`Copy ${label}`}
      aria-label={`Copy ${label} ${id}`}
      className="max-w-full truncate rounded px-1 font-mono text-[12px] text-muted hover:bg-sunken hover:text-ink"
    >
      {id}
    </button>
  );
}

/** Copies a text, which is computed on click. */
export function CopyButton({ text, label, className = "" }: { text: () => string; label: string; className?: string }) {
  const copy = () => {
    void navigator.clipboard?.writeText(text()).then(() => tell(`Copied ${label}`));
  };
  return (
    <button
      type="button"
      onClick={copy}
      aria-label={`Copy ${label}`}
      className={`rounded px-1.5 text-[12px] text-muted hover:bg-line hover:text-ink ${className}`}
    >
      Copy
    </button>
  );
}
