import type { Action } from "../../src/domain/action.ts";
import type { Rows } from "../rows.ts";

const ENDS_PAUSE = new Set(["agent_resume", "agent_destroy"]);

/** A pause lets the running step finish and starts no other: at most one step is committed before the next resume. */
export function checkPauses({ sessions, steps, actions }: Rows): string[] {
  const controls = Map.groupBy(
    [...actions.values()].filter(({ outcome }) => outcome === "ok"),
    ({ session_id }) => session_id,
  );
  return [...sessions.keys()].flatMap((session_id) => {
    const own = (controls.get(session_id) ?? []).sort((a, b) => compare(timeOf(a), timeOf(b)));
    const rows = (steps.get(session_id) ?? []).filter((step) => step.session_id === session_id);
    return own
      .filter(({ action_type }) => action_type === "agent_pause")
      .flatMap((pause) => {
        const end = own.find(
          ({ action_type, ...other }) => ENDS_PAUSE.has(action_type) && timeOf(other) >= timeOf(pause),
        );
        const within = rows.filter(
          ({ created_at }) => created_at > timeOf(pause) && (!end || created_at < timeOf(end)),
        );
        return within.length > 1 ? [`${session_id} took ${within.length} steps while it was paused`] : [];
      });
  });
}

const timeOf = ({ processed_at }: Pick<Action, "processed_at">): string => processed_at ?? "";
const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
