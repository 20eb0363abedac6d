import { type Change, changesBetween } from "../../data/state-diff.ts";
import { plural } from "../../ui/format.ts";

const MOST = 200;
const LONGEST = 400;

/** What a step changed in the state, path by path. */
export function StateChanges({ before, after }: { before: unknown; after: unknown }) {
  const changes = changesBetween(before, after);
  if (changes.length === 0) return <p className="text-muted">No changes.</p>;
  return (
    <ul
      className="overflow-hidden rounded-md border border-line bg-surface font-mono text-[12px]"
      data-testid="changes"
    >
      {changes.slice(0, MOST).map((change) => (
        <ChangeRow key={`${change.kind} ${change.path}`} change={change} />
      ))}
      {changes.length > MOST && (
        <li className="px-3 py-1.5 text-muted">and {plural(changes.length - MOST, "more change")}</li>
      )}
    </ul>
  );
}

function ChangeRow({ change }: { change: Change }) {
  return (
    <li className="border-b border-line px-3 py-1.5 last:border-0" data-kind={change.kind}>
      <span className="text-muted">
        {change.path} <span className="sr-only">{change.kind}</span>
      </span>
      {change.kind !== "added" && <Value sign="−" value={change.before} look="bg-bad-soft text-bad" />}
      {change.kind !== "removed" && <Value sign="+" value={change.after} look="bg-good-soft text-good" />}
    </li>
  );
}

function Value({ sign, value, look }: { sign: string; value: unknown; look: string }) {
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 1);
  const isLong = text.length > LONGEST;
  return (
    <span className={`mt-0.5 flex gap-2 rounded px-1.5 py-0.5 ${look}`}>
      <span aria-hidden>{sign}</span>
      <span className="min-w-0 whitespace-pre-wrap wrap-anywhere">
        {isLong ? `${text.slice(0, LONGEST)}… (${text.length.toLocaleString()} characters)` : text}
      </span>
    </span>
  );
}
