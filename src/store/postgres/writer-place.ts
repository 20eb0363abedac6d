import type { Scalar } from "./values.ts";

/** Who writes a group, and which one it is. */
export type WriterPlace = { node_no: number; writer_no: number; attempt: number; group_no: number };

export type Statement = { text: string; parameters: Scalar[] };

/**
 * What every statement that writes a group has beside its rows.
 *
 * V1  It writes nothing where the writer was given another attempt number meanwhile: an old statement that is still on its
 *     way when its connection is given up cannot come after the new one. So all it writes depends on the gate.
 * V2  What was refused is kept in `writers` by the same transaction, for when the answer is lost.
 */
export const GATE =
  "gate as materialized (select 1 from writers where node_no = $1 and writer_no = $2 and attempt = $3 for update)"; // V1

/** V2. `refused` names rows with a batch, a reason and an id. */
export const receipt = (refused: string): string => `receipt as (update writers set group_no = $4,
    refused = (select coalesce(jsonb_agg(jsonb_build_array(batch, reason, id)), '[]') from ${refused})
  where node_no = $1 and writer_no = $2 and exists (select 1 from gate))`;

export const writerParameters = ({ node_no, writer_no, attempt, group_no }: WriterPlace): Scalar[] => [
  node_no,
  writer_no,
  attempt,
  group_no,
];
export const FIRST_FREE_PARAMETER = 5;
