import { useMemo, useState } from "react";
import { Code } from "./code.tsx";
import { CopyButton } from "./copy.tsx";
import { FoldButton } from "./fold-button.tsx";
import { plural } from "./format.ts";
import { openPaths } from "./json-search.ts";

type JsonTreeProps = {
  value: unknown;
  label: string;
  /** How many levels are open at first. */
  depth?: number;
};

/** Entries of an array or object shown at first. */
const FIRST = 100;
/** Characters of a string shown at first. */
const LONGEST = 1000;
/** Values with fewer lines have no search field. */
const SEARCHABLE = 6;

/** A collapsible JSON tree with a search over names and values, and a copy button. */
export function JsonTree({ value, label, depth = 2 }: JsonTreeProps) {
  const [words, setWords] = useState("");
  const result = useMemo(() => (words.trim() === "" ? null : openPaths(value, words.trim())), [value, words]);
  const isLarge = useMemo(() => (JSON.stringify(value, null, 1) ?? "").split("\n").length > SEARCHABLE, [value]);
  return (
    <div role="group" aria-label={label} className="rounded-md border border-line bg-sunken" data-testid="json-tree">
      <div className="flex items-center gap-2 border-b border-line px-2 py-1">
        {isLarge && (
          <input
            type="search"
            className="field h-6 max-w-48 px-2! py-0!"
            aria-label={`Search in ${label}`}
            placeholder="Search"
            value={words}
            onChange={(event) => setWords(event.target.value)}
          />
        )}
        {result && (
          <span className="text-[12px] text-muted" role="status">
            {plural(result.matches, "match", "matches")}
          </span>
        )}
        <CopyButton text={() => textOf(value)} label={label} className="ml-auto" />
      </div>
      <div
        role="region"
        aria-label={`${label}, as JSON`}
        tabIndex={0}
        className="max-h-96 overflow-auto p-2 font-mono text-[12px] leading-[1.5] -outline-offset-2"
      >
        {/* A new search starts with its matches expanded. */}
        <Node
          key={words}
          name={null}
          value={value}
          path=""
          depth={depth}
          search={{ words: words.trim(), open: result?.open }}
        />
      </div>
    </div>
  );
}

const textOf = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value, null, 2));

type Search = { words: string; open: ReadonlySet<string> | undefined };
type NodeProps = { name: string | null; value: unknown; path: string; depth: number; search: Search };

function Node({ name, value, path, depth, search }: NodeProps) {
  if (typeof value === "object" && value !== null && Object.keys(value).length > 0)
    return <Branch name={name} value={value} path={path} depth={depth} search={search} />;
  return (
    <div className="pl-4">
      <Name name={name} words={search.words} />
      <Leaf value={value} words={search.words} />
    </div>
  );
}

function Branch({ name, value, path, depth, search }: NodeProps & { value: object }) {
  const [isOpen, setOpen] = useState(search.open ? search.open.has(path) : depth > 0);
  const [shown, setShown] = useState(FIRST);
  const isArray = Array.isArray(value);
  const entries = Object.entries(value);
  const [opens, closes] = isArray ? ["[", "]"] : ["{", "}"];
  return (
    <div>
      <FoldButton isOpen={isOpen} onOpen={setOpen} className="rounded text-left hover:bg-line">
        <Name name={name} words={search.words} />
        {opens}
        {!isOpen && (
          <span className="text-muted">
            {isArray ? ` ${plural(entries.length, "item")} ` : ` ${plural(entries.length, "field")} `}
            {closes}
          </span>
        )}
      </FoldButton>
      {isOpen && (
        <div className="ml-[7px] border-l border-line pl-2">
          {entries.slice(0, shown).map(([key, child]) => (
            <Node
              key={key}
              name={isArray ? null : key}
              value={child}
              path={`${path}/${key}`}
              depth={depth - 1}
              search={search}
            />
          ))}
          {entries.length > shown && (
            <button
              type="button"
              className="pl-4 text-accent hover:underline"
              onClick={() => setShown(shown + FIRST * 5)}
            >
              {plural(entries.length - shown, "more entry", "more entries")}
            </button>
          )}
        </div>
      )}
      {isOpen && <div className="pl-4">{closes}</div>}
    </div>
  );
}

const Name = ({ name, words }: { name: string | null; words: string }) =>
  name === null ? null : (
    <>
      <span className="text-accent">
        "<Marked text={name} words={words} />"
      </span>
      {": "}
    </>
  );

function Leaf({ value, words }: { value: unknown; words: string }) {
  const [isWhole, setWhole] = useState(false);
  if (typeof value !== "string")
    return (
      <span className={typeof value === "number" ? "text-warn" : "text-muted"}>
        <Marked text={JSON.stringify(value)} words={words} />
      </span>
    );
  const isLong = value.length > LONGEST && !isWhole;
  const text = isLong ? value.slice(0, LONGEST) : value;
  return (
    <>
      {text.includes("\n") && words === "" ? (
        <span className="my-0.5 block rounded border border-line bg-surface px-2 py-1">
          <Code text={text} />
        </span>
      ) : (
        <span className="whitespace-pre-wrap text-good wrap-anywhere">
          "<Marked text={text} words={words} />"
        </span>
      )}
      {isLong && (
        <button type="button" className="text-accent hover:underline" onClick={() => setWhole(true)}>
          {" "}
          all {value.length.toLocaleString()} characters
        </button>
      )}
    </>
  );
}

/** Highlights the matches of a search. */
function Marked({ text, words }: { text: string; words: string }) {
  const at = words === "" ? -1 : text.toLowerCase().indexOf(words.toLowerCase());
  if (at < 0) return text;
  return (
    <>
      {text.slice(0, at)}
      <mark className="rounded bg-warn text-surface">{text.slice(at, at + words.length)}</mark>
      <Marked text={text.slice(at + words.length)} words={words} />
    </>
  );
}
