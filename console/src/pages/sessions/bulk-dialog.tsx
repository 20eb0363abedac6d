import { useState } from "react";
import { destroy, pause, resume } from "../../data/commands.ts";
import { readSummaries, type SessionStatus, type SessionSummary } from "../../data/queries.ts";
import { Dialog } from "../../ui/dialog.tsx";
import { DialogButtons } from "../../ui/dialog-buttons.tsx";
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
export const PASSIVE: Readonly<Record<BulkVerb, string>> = { pause: "paused", resume: "resumed", destroy: "destroyed" };
const AT_ONCE = 8;

/** Whether the verb applies to any of the sessions. */
export const canChange = (verb: BulkVerb, sessions: Iterable<SessionSummary>): boolean =>
  [...sessions].some(({ status }) => VERBS[verb].from.includes(status));

type BulkDialogProps = { verb: BulkVerb; sessions: SessionSummary[]; onClose: () => void; onDone: () => void };

/** Says how many sessions are affected, and how many cannot change, before it does anything. */
export function BulkDialog({ verb, sessions, onClose, onDone }: BulkDialogProps) {
  const { act, from, done } = VERBS[verb];
  const [progress, setProgress] = useState<number | null>(null);
  const affected = sessions.filter(({ status }) => from.includes(status));
  const byStatus = Map.groupBy(sessions, ({ status }) => status);
  const run = async () => {
    setProgress(0);
    let failed = 0;
    // Statuses may have changed since the rows were selected.
    const ids = affected.map(({ session_id }) => session_id);
    const waiting = (await readSummaries(ids, from)).values();
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
        verb === "destroy" ? "This cannot be undone. Their history stays." : "Each session gets its own request."
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
              <td className="py-1.5 pl-4 text-muted">
                {from.includes(status) ? `will be ${PASSIVE[verb]}` : "does not change"}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <DialogButtons
        label={title.slice(0, -1)}
        isDangerous={verb === "destroy"}
        isDisabled={affected.length === 0 || progress !== null}
        onConfirm={() => void run()}
        onClose={onClose}
      >
        {progress !== null && `${count(progress)} of ${count(affected.length)}`}
      </DialogButtons>
    </Dialog>
  );
}
