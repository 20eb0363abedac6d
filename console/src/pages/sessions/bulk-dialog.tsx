import { useState } from "react";
import { get } from "../../data/api.ts";
import { destroy, pause, resume } from "../../data/commands.ts";
import type { SessionStatus, SessionSummary, Summaries } from "../../data/queries.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { count, plural } from "../../ui/format.ts";
import { Status } from "../../ui/status.tsx";
import { tell } from "../../ui/toast.tsx";

export type BulkVerb = "pause" | "resume" | "destroy";

const VERBS: Readonly<
  Record<BulkVerb, { act: (id: string) => Promise<unknown>; from: SessionStatus[]; done: string }>
> = {
  pause: { act: pause, from: ["running", "waiting"], done: "Paused" },
  resume: { act: (id) => resume(id), from: ["paused", "error"], done: "Resumed" },
  destroy: { act: destroy, from: ["running", "waiting", "paused", "error"], done: "Destroyed" },
};
const AT_ONCE = 8;

/** Whether any of the sessions can be changed in this way. */
export const canChange = (verb: BulkVerb, sessions: Iterable<SessionSummary>): boolean =>
  [...sessions].some(({ status }) => VERBS[verb].from.includes(status));

type BulkDialogProps = { verb: BulkVerb; sessions: SessionSummary[]; onClose: () => void; onDone: () => void };

/** Says how many sessions it means, and how many it cannot change, before it does anything. */
export function BulkDialog({ verb, sessions, onClose, onDone }: BulkDialogProps) {
  const { act, from, done } = VERBS[verb];
  const [progress, setProgress] = useState<number | null>(null);
  const affected = sessions.filter(({ status }) => from.includes(status));
  const byStatus = Map.groupBy(sessions, ({ status }) => status);
  const run = async () => {
    setProgress(0);
    let failed = 0;
    const waiting = (await stillThere(affected, from)).values();
    const work = async () => {
      for (const { session_id } of waiting) {
        await act(session_id).catch(() => failed++);
        setProgress((before) => (before ?? 0) + 1);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    tell(
      failed === 0 ? `${done} ${plural(affected.length, "session")}` : `${plural(failed, "request")} failed`,
      failed > 0,
    );
    onDone();
  };
  const title = `${verb[0]?.toUpperCase()}${verb.slice(1)} ${plural(affected.length, "session")}?`;
  return (
    <Dialog
      title={title}
      description={
        verb === "destroy" ? "They end for good. Their history stays." : "Each gets the request through the queue."
      }
      onClose={onClose}
    >
      <table className="w-full">
        <tbody>
          {[...byStatus].map(([status, rows]) => (
            <tr key={status} className="border-b border-line last:border-0">
              <td className="py-1.5">
                <Status status={status} />
              </td>
              <td className="py-1.5 text-right tabular-nums">{count(rows.length)}</td>
              <td className="py-1.5 pl-4 text-muted">{from.includes(status) ? `will ${verb}` : "stay as they are"}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <div className="mt-4 flex items-center justify-end gap-2">
        {progress !== null && (
          <span className="mr-auto text-muted">{`${count(progress)} of ${count(affected.length)}`}</span>
        )}
        <Button onClick={onClose}>Cancel</Button>
        <Button
          look={verb === "destroy" ? "danger" : "primary"}
          disabled={affected.length === 0 || progress !== null}
          onClick={() => void run()}
        >
          {title.slice(0, -1)}
        </Button>
      </div>
    </Dialog>
  );
}

/** Statuses may have changed since the rows were selected: who is meant is looked up once more. */
async function stillThere(rows: SessionSummary[], status: SessionStatus[]): Promise<SessionSummary[]> {
  const found: SessionSummary[] = [];
  for (let at = 0; at < rows.length; at += 100) {
    const session_id = rows.slice(at, at + 100).map((row) => row.session_id);
    found.push(...(await get<Summaries>("/api/session-summaries", { session_id, status, limit: 100 })).sessions);
  }
  return found;
}
