import { tell } from "./toast.tsx";

/** An id that a click copies. */
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
