import type { Scalar } from "./values.ts";

/** Who writes a group, and which one it is. */
export type WriterPlace = { node_no: number; writer_no: number; attempt: number; group_no: number };

export type Statement = { text: string; parameters: Scalar[] };

/**
 * A statement that writes a group: what every one has beside its own parts, which name what they refuse in `refused`, with a
 * batch, a reason and an id.
 *
 * V1  It writes nothing where the writer was given another attempt number meanwhile: an old statement that is still on its
 *     way when its connection is given up cannot come after the new one. So all it writes depends on the gate.
 * V2  What was refused is kept in `writers` by the same transaction, for when the answer is lost.
 */
export const groupText = (parts: readonly string[], answers: readonly string[] = []): string =>
  `with ${[GATE, ...parts, RECEIPT].join(",\n")}\n${[...ANSWERS, ...answers].join("\nunion all ")}`;

const GATE =
  "gate as materialized (select 1 from writers where node_no = $1 and writer_no = $2 and attempt = $3 for update)"; // V1
const RECEIPT = `receipt as (update writers set group_no = $4,
    refused = (select coalesce(jsonb_agg(jsonb_build_array(batch, reason, id)), '[]') from refused)
  where node_no = $1 and writer_no = $2 and exists (select 1 from gate))`; // V2
const ANSWERS = [
  "select 'refused' as kind, batch, reason, id, 0 as number from refused",
  "select 'gate', count(*)::integer, '', '', 0 from gate",
];

export const writerParameters = ({ node_no, writer_no, attempt, group_no }: WriterPlace): Scalar[] => [
  node_no,
  writer_no,
  attempt,
  group_no,
];
export const FIRST_FREE_PARAMETER = 5;
