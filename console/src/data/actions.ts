import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { get, pathOf } from "./api.ts";
import { type Action, client } from "./queries.ts";

/** Actions read at first; live updates add to them. */
const NEWEST = 200;
const PAGE = 500;
/** The most that are read. */
const MOST = 10_000;

const readPage = async (session_id: string, limit: number, offset: number): Promise<Action[]> =>
  (await get<{ actions: Action[] }>("/api/actions", { session_id, limit, offset })).actions;

/** The newest actions of a session. An update that arrived while they were read is newer: a receipt only moves forward. */
export async function readActions(session_id: string): Promise<Action[]> {
  const actions = await readPage(session_id, NEWEST, 0);
  const updates = client.getQueryData<Action[]>(["actions", session_id]) ?? [];
  const latest = new Map(updates.map((action) => [action.action_id, action]));
  for (const action of actions) {
    const update = latest.get(action.action_id);
    if (!update || progressOf(update) <= progressOf(action)) latest.set(action.action_id, action);
  }
  return newestFirst([...latest.values()]);
}

const newestFirst = (actions: Action[]): Action[] => actions.sort((a, b) => (a.created_at < b.created_at ? 1 : -1));

const RECEIPTS: Action["receipt"][] = ["accepted", "delivered", "consumed", "bounced"];
const progressOf = ({ receipt, processed, attempts }: Action): number =>
  RECEIPTS.indexOf(receipt) * 1000 + (processed ? 500 : 0) + attempts;

/** Adds an update of an action to the list of its session's actions. */
export const updateAction =
  (session_id: string) =>
  (action: Action): void => {
    if (action.session_id !== session_id) return;
    client.setQueryData<Action[]>(["actions", session_id], (cached = []) =>
      newestFirst([...cached.filter(({ action_id }) => action_id !== action.action_id), action]),
    );
  };

type Actions = {
  actions: readonly Action[];
  isLoading: boolean /** False where there are more than were read. */;
  isComplete: boolean;
};

/** What was asked of a session, newest first: the newest are live, older ones are read once. */
export function useActions(session_id: string): Actions {
  const newest = useQuery({ queryKey: ["actions", session_id], queryFn: () => readActions(session_id) });
  const older = useQuery({
    queryKey: ["older actions", session_id],
    enabled: (newest.data?.length ?? 0) >= NEWEST,
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: async () => {
      const actions: Action[] = [];
      // New actions shift the offsets: a page may repeat some, but misses none.
      while (actions.length < MOST) {
        const page = await readPage(session_id, PAGE, NEWEST + actions.length);
        actions.push(...page);
        if (page.length < PAGE) break;
      }
      return actions;
    },
  });
  const actions = useMemo(() => merged(newest.data ?? NONE, older.data ?? NONE), [newest.data, older.data]);
  const isComplete = (older.data?.length ?? 0) < MOST && !older.isError;
  return { actions, isLoading: newest.isPending || older.isLoading, isComplete };
}

const NONE: readonly Action[] = [];

function merged(newest: readonly Action[], older: readonly Action[]): readonly Action[] {
  if (older.length === 0) return newest;
  const byId = new Map([...older, ...newest].map((action) => [action.action_id, action]));
  return newestFirst([...byId.values()]);
}

/** The most that are looked up. */
const MOST_SENDERS = 50;

/** The actions that brought a step its guidance, by id. */
export const useActionsOfStep = (action_ids: readonly string[]) =>
  useQuery({
    queryKey: ["actions of step", action_ids],
    enabled: action_ids.length > 0,
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: async ({ signal }) => {
      const ids = action_ids.slice(0, MOST_SENDERS);
      const actions = await Promise.all(ids.map((id) => get<Action>(pathOf("actions", id), {}, signal)));
      return new Map(actions.map((action) => [action.action_id, action]));
    },
  });
