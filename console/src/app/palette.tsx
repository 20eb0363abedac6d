import { useQuery } from "@tanstack/react-query";
import { type KeyboardEvent, useId, useState } from "react";
import { pause, resume } from "../data/commands.ts";
import { reloadMonikers } from "../data/monikers.ts";
import { summariesPage, useMonikers } from "../data/queries.ts";
import { Dialog } from "../ui/dialog.tsx";
import { plural, shortId } from "../ui/format.ts";
import { Status } from "../ui/status.tsx";
import { attempt, tell } from "../ui/toast.tsx";
import { PLACES, START } from "./places.ts";
import { go, href, sessionHref, usePathParts } from "./router.ts";
import { openHelp } from "./shortcuts.tsx";

type Entry = {
  key: string;
  group: "Pages" | "Commands" | "Agents" | "Sessions";
  label: string;
  note?: string;
  status?: Parameters<typeof Status>[0]["status"];
  act: () => void;
};

/** Sessions searched for agents, and how many agents and sessions are shown. */
const MOST_FOUND = 50;
const MOST_SHOWN = 6;

/** Finds pages, commands, agents and sessions by part of their names. */
export default function Palette({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const list = useId();
  const entries = useEntries(text.trim().toLowerCase());
  const here = Math.min(at, entries.length - 1);
  const run = (entry: Entry | undefined) => {
    if (!entry) return;
    onClose();
    entry.act();
  };
  const press = (event: KeyboardEvent) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step !== 0) setAt((here + step + entries.length) % Math.max(1, entries.length));
    else if (event.key === "Enter") run(entries[here]);
    else return;
    event.preventDefault();
  };
  return (
    <Dialog title="Go to a page, session or agent, or run a command" onClose={onClose} wide>
      <input
        role="combobox"
        aria-expanded
        aria-controls={list}
        aria-activedescendant={entries[here] ? `${list}-${here}` : undefined}
        aria-label="Find"
        autoComplete="off"
        placeholder="Type part of a name…"
        className="field h-9 text-[14px]"
        value={text}
        onKeyDown={press}
        onChange={(event) => {
          setText(event.target.value);
          setAt(0);
        }}
      />
      <div id={list} role="listbox" aria-label="Results" className="mt-2 max-h-[50vh] overflow-y-auto">
        {entries.map((entry, index) => (
          <div key={entry.key}>
            {entries[index - 1]?.group !== entry.group && (
              <p className="caption px-2 pt-2 pb-1" role="presentation">
                {entry.group}
              </p>
            )}
            <Option
              id={`${list}-${index}`}
              entry={entry}
              isHere={index === here}
              onPoint={() => setAt(index)}
              onChoose={() => run(entry)}
            />
          </div>
        ))}
      </div>
      {entries.length === 0 && <p className="px-2 py-3 text-muted">No matches.</p>}
    </Dialog>
  );
}

type OptionProps = { id: string; entry: Entry; isHere: boolean; onPoint: () => void; onChoose: () => void };

const Option = ({ id, entry, isHere, onPoint, onChoose }: OptionProps) => (
  // biome-ignore lint/a11y/useKeyWithClickEvents: the field has the focus and the keys
  <div
    id={id}
    ref={(element) => {
      if (isHere) element?.scrollIntoView({ block: "nearest" });
    }}
    role="option"
    tabIndex={-1}
    aria-selected={isHere}
    onMouseMove={onPoint}
    onClick={onChoose}
    className="flex cursor-pointer items-baseline gap-3 rounded-md px-2 py-1.5 aria-selected:bg-accent-soft"
  >
    <span className="min-w-0 truncate font-medium">{entry.label}</span>{" "}
    {entry.note !== undefined && <span className="min-w-0 truncate text-[12px] text-muted">{entry.note}</span>}
    {entry.status && (
      <span className="ml-auto shrink-0 text-[12px]">
        <Status status={entry.status} />
      </span>
    )}
  </div>
);

function useEntries(text: string): Entry[] {
  const named = [...pages(), ...useCommands()].filter(({ label }) => label.toLowerCase().includes(text));
  return [...named, ...useFound(text)];
}

const pages = (): Entry[] =>
  [...PLACES, START].map(({ page, path, label }) => ({
    key: `page ${page}`,
    group: "Pages",
    label,
    act: () => go(path),
  }));

function useCommands(): Entry[] {
  const monikers = useMonikers().data ?? [];
  const [page, session_id] = usePathParts();
  const command = (label: string, act: () => void): Entry => ({ key: label, group: "Commands", label, act });
  const isSession = page === "sessions" && session_id !== undefined;
  return [
    ...(isSession
      ? [
          command("Pause this session", () => void attempt(() => pause(session_id))),
          command("Resume this session", () => void attempt(() => resume(session_id))),
        ]
      : []),
    command("Load changed code", () => void reload()),
    command("Keyboard shortcuts", openHelp),
    ...monikers.map(({ name }) => command(`Start ${name}`, () => go(href(["start"], { moniker: name })))),
  ];
}

const reload = () =>
  attempt(async () => {
    const changed = await reloadMonikers();
    tell(changed === 0 ? "Nothing changed" : `${plural(changed, "moniker")} changed`);
  });

/** Agents and sessions that match; the most recently updated ones for an empty search. */
function useFound(text: string): Entry[] {
  const query = { sort: "updated_at" as const, ...(text === "" ? {} : { q: text }) };
  const sessions = useQuery(summariesPage(query, 0, MOST_FOUND)).data?.sessions ?? [];
  const agents = [...new Set(sessions.map(({ agent_id }) => agent_id))].filter((id) => id.toLowerCase().includes(text));
  return [
    ...agents.slice(0, MOST_SHOWN).map(
      (agent_id): Entry => ({
        key: `agent ${agent_id}`,
        group: "Agents",
        label: agent_id,
        note: "sessions",
        act: () => go(href([], { agent: agent_id })),
      }),
    ),
    ...sessions.slice(0, MOST_SHOWN).map(
      ({ session_id, agent_id, text: last, status }): Entry => ({
        key: `session ${session_id}`,
        group: "Sessions",
        label: agent_id,
        note: `${shortId(session_id)}${last === null ? "" : ` · ${last}`}`,
        status,
        act: () => go(sessionHref(session_id)),
      }),
    ),
  ];
}
