import { z } from "zod";
import type { Rows } from "../rows.ts";

const reportSchema = z.object({ child: z.object({ session_id: z.string() }) });
const startedSchema = z.object({ started: z.string().nullable() });

/**
 * Each session started by a step exists once, was started by a committed step, and reports its end once to a parent that
 * waits.
 */
export function checkChildren(rows: Rows): string[] {
  const { sessions, steps } = rows;
  const children = Map.groupBy(
    [...sessions.values()].filter(({ spawned_by }) => spawned_by !== null),
    ({ spawned_by }) => spawned_by?.session_id ?? "",
  );
  const violations = [...children].flatMap(([parent_id, own]) => {
    const iterations = new Set((steps.get(parent_id) ?? []).filter(ok).map(({ iteration }) => iteration));
    return own
      .filter(({ spawned_by }) => !iterations.has(spawned_by?.iteration ?? -1))
      .map(({ session_id }) => `${session_id} was started by a step that is not there`);
  });
  for (const { session_id, moniker, status, params, parent_session_id } of sessions.values()) {
    const own = (steps.get(session_id) ?? []).filter((step) => step.session_id === session_id && ok(step));
    const started = (children.get(session_id) ?? []).map((child) => child.session_id);
    if (moniker === "schedule") {
      const due = own.flatMap(({ data }) => startedSchema.safeParse(data).data?.started ?? []);
      if (!isSame(due, started))
        violations.push(`${session_id} told of runs ${due.join(", ")}, there are ${started.join(", ")}`);
    }
    const reports = own.flatMap(({ guidance }) => guidance.flatMap((said) => reportSchema.safeParse(said).data ?? []));
    const reportedIds = reports.map(({ child }) => child.session_id);
    if (new Set(reportedIds).size !== reportedIds.length)
      violations.push(`${session_id} was told of an end twice: ${reportedIds.join(", ")}`);
    if (moniker !== "family" || parent_session_id !== null || own.length === 0) continue;
    if (started.length !== params["children"])
      violations.push(`${session_id} has ${started.length} of ${Number(params["children"])} children`);
    if (status === "done" && !isSame(reportedIds, started))
      violations.push(`${session_id} is done and was told of ${reportedIds.join(", ")}, not of ${started.join(", ")}`);
  }
  return violations;
}

const ok = ({ status }: { status: string }): boolean => status === "ok";
const isSame = (one: string[], other: string[]): boolean => one.toSorted().join("\n") === other.toSorted().join("\n");
