import { fromArrays, type InputColumn, toArrays } from "./input-columns.ts";
import type { Scalar } from "./values.ts";
import { FIRST_FREE_PARAMETER, groupText, type Statement, type WriterPlace, writerParameters } from "./writer-place.ts";

/** In all of these `i` is the row of input, and in the first two `s` its session. */
type Parts = {
  /** What changes of the session. */
  set: string;
  /** Where that may be, beside that the session is this process's. */
  when: string;
  /** What else is written, as a table with columns and their values: those of the input, and the session's `agent_id`. */
  insert: { into: string; values: string };
  /** Why a row is refused. */
  reason: string;
};

/**
 * A statement for many batches of which each changes one session and writes one other row. It looks at each session once, writes
 * what changed of it, and takes the other row from the same input.
 *
 * The owner is compared in a way that no index serves: sessions are to be found by their ids, not among all that are owned.
 */
export function rowStatement(columns: readonly InputColumn[], { set, when, insert, reason }: Parts) {
  const all = [{ name: "batch", sql_type: "integer" }, ...columns];
  const text = groupText([
    `i as materialized (${fromArrays(all, FIRST_FREE_PARAMETER)})`,
    `moved as (update agent_state s set ${set}, revision = s.revision + 1, owner_died = false
  from i where s.session_id = i.session_id and s.node_no is not distinct from $1 and s.epoch = i.epoch
    and s.revision = i.revision and exists (select 1 from gate) and ${when}
  returning s.agent_id, i.*)`,
    `written as (insert into ${insert.into} select ${insert.values} from moved)`,
    `refused as materialized (select i.batch, ${reason} as reason, i.session_id as id from i
  where i.session_id not in (select session_id from moved))`,
  ]);
  return (rows: readonly Scalar[][], writer: WriterPlace): Statement => {
    const numbered = rows.map((row, batch) => [batch, ...row]);
    return { text, parameters: [...writerParameters(writer), ...toArrays(all, numbered)] };
  };
}

/** The names of the columns from this one on. */
export const namesFrom = (columns: readonly InputColumn[], first: string): string =>
  columns
    .slice(columns.findIndex(({ name }) => name === first))
    .map(({ name }) => name)
    .join(", ");
