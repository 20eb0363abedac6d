import { useQueries } from "@tanstack/react-query";
import { useEffect } from "react";
import { readActions, updateAction } from "../../data/actions.ts";
import { follow } from "../../data/live.ts";
import { type Action, readAgain } from "../../data/queries.ts";

export type Receipts = ReadonlyMap<string, Action>;

/** Receipts of messages, by action: one request per session, then live. */
export function useReceipts(session_ids: string[]): Receipts {
  const results = useQueries({
    queries: session_ids.map((session_id) => ({
      queryKey: ["actions", session_id],
      queryFn: () => readActions(session_id),
    })),
  });
  const key = session_ids.join("\n");
  useEffect(() => {
    const stops = (key === "" ? [] : key.split("\n")).map((session_id) =>
      follow(
        () => ({ session_id }),
        { action_update: updateAction(session_id) },
        () => void readAgain("actions", session_id),
      ),
    );
    return () => {
      for (const stop of stops) stop();
    };
  }, [key]);
  return new Map(
    results.flatMap(({ data = [] }) => data.map((action): [string, Action] => [action.action_id, action])),
  );
}
