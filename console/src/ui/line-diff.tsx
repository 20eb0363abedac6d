import { useState } from "react";
import { type DiffLine, type DiffPart, diffLines, foldSame } from "../data/line-diff.ts";
import { plural } from "./format.ts";

/** Lines shown before "Show more". */
const MOST_LINES = 400;

/** Unchanged lines are cut to this length. */
const LONGEST_SAME = 300;

const LOOKS = {
  same: { sign: " ", look: "", word: "" },
  removed: { sign: "−", look: "bg-bad-soft text-bad", word: "removed" },
  added: { sign: "+", look: "bg-good-soft text-good", word: "added" },
} as const;

/** A line diff with a few lines of context. */
export function LineDiff({ before, after, label }: { before: string; after: string; label: string }) {
  const lines = diffLines(before, after);
  const [isWhole, setWhole] = useState(false);
  const added = lines.filter(({ kind }) => kind === "added").length;
  const removed = lines.filter(({ kind }) => kind === "removed").length;
  if (added + removed === 0) return <p className="text-muted">No changes.</p>;
  const shown = isWhole ? lines : lines.slice(0, MOST_LINES);
  return (
    <div>
      <p className="mb-1 flex gap-3 text-[12px] tabular-nums">
        <span className="text-good">+{plural(added, "line")}</span>
        <span className="text-bad">−{plural(removed, "line")}</span>
      </p>
      <div
        tabIndex={0}
        role="group"
        aria-label={label}
        data-testid="line-diff"
        className="max-h-96 overflow-auto rounded-md border border-line bg-surface py-1 font-mono text-[12px] leading-[1.5]"
      >
        {foldSame(shown).map((part) => (
          <Part key={`${part.lines[0]?.before} ${part.lines[0]?.after}`} part={part} />
        ))}
      </div>
      {shown.length < lines.length && (
        <button type="button" className="mt-1 text-accent underline" onClick={() => setWhole(true)}>
          Show {plural(lines.length - shown.length, "more line")}
        </button>
      )}
    </div>
  );
}

function Part({ part }: { part: DiffPart }) {
  const [isOpen, setOpen] = useState(false);
  if (part.kind === "folded" && !isOpen)
    return (
      <button
        type="button"
        className="block w-full bg-sunken px-2 py-0.5 text-left text-[11px] text-muted hover:text-ink"
        onClick={() => setOpen(true)}
      >
        {plural(part.lines.length, "unchanged line")}
      </button>
    );
  return part.lines.map((line) => <Line key={`${line.before} ${line.after}`} line={line} />);
}

function Line({ line: { kind, text, before, after } }: { line: DiffLine }) {
  const { sign, look, word } = LOOKS[kind];
  return (
    <div className={`flex ${look}`} data-kind={kind}>
      <span aria-hidden className="w-9 shrink-0 pr-2 text-right text-muted select-none">
        {after ?? before}
      </span>
      <span aria-hidden className="w-4 shrink-0 select-none">
        {sign}
      </span>
      {word !== "" && <span className="sr-only">{word}: </span>}
      <span className="min-w-0 flex-1 pr-2 whitespace-pre-wrap wrap-anywhere">
        {kind === "same" && text.length > LONGEST_SAME ? `${text.slice(0, LONGEST_SAME).toWellFormed()}…` : text}
      </span>
    </div>
  );
}
