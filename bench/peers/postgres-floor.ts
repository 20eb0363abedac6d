import postgres from "postgres";
import { groupWrites, runLoops, type StepRow } from "./floor.ts";
import type { OpenPeer } from "./peer.ts";

/** The lower bound for durable steps in PostgreSQL: an insert by a prepared statement. The variant is `single` or `grouped`. */
export const open: OpenPeer = async ({ database_url }, step, variant) => {
  const sql = postgres(database_url, { max: 10, onnotice: () => {} });
  await sql`create table if not exists steps (session_id text, step integer, piece text, primary key (session_id, step))`;
  const one = async ({ session_id, index, piece }: StepRow): Promise<void> =>
    void (await sql`insert into steps values (${session_id}, ${index}, ${piece})`);
  const grouped = groupWrites(async (rows) => {
    const ids = rows.map(({ session_id }) => session_id);
    const indexes = rows.map(({ index }) => index);
    const pieces = rows.map(({ piece }) => piece);
    await sql`insert into steps select * from unnest(${ids}::text[], ${indexes}::integer[], ${pieces}::text[])`;
  });
  const write = variant === "grouped" ? grouped : one;
  return {
    run: (session_ids, task) => runLoops(session_ids, task, step, write),
    close: () => sql.end(),
  };
};
