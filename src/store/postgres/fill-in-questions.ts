import type postgres from "postgres";
import type { Schema } from "../schema.ts";
import { type Parameter, run } from "./connections.ts";
import { PostgresReads } from "./postgres-reads.ts";
import { LIVE, Tables } from "./tables.ts";
import { arrayOf, toQuestion, toText } from "./value-encoding.ts";

const PAGE = 200;

/** Sessions that asked something before rows had the question: it is in their states, which are stored as differences. */
export async function fillInQuestions(transaction: postgres.TransactionSql, schema: Schema): Promise<void> {
  const pool = { query: (text: string, ...parameters: Parameter[]) => run(transaction, text, parameters) };
  const reads = new PostgresReads(pool, new Tables(schema));
  for (let last = 0; ; ) {
    const rows = await run(
      transaction,
      `select ${reads.sessionColumns}, s.number from agent_state s where s.number > $1 and s.status in (${LIVE})
         and (s.context::text like '%"question"%' or exists (select 1 from agent_steps t where t.session_id = s.session_id
           and t.iteration between s.base_iteration and s.iteration and t.state::text like '%"question"%'))
       order by s.number limit ${PAGE}`,
      [last],
    );
    const asking = (await reads.loadSessions(rows)).flatMap(({ session }) => {
      const question = toQuestion(session);
      return question === null ? [] : [{ session_id: toText(session.session_id), question }];
    });
    await run(
      transaction,
      `update agent_state s set question = i.question from unnest($1::text[], $2::text[]) as i (session_id, question)
       where s.session_id = i.session_id`,
      [arrayOf(asking.map(({ session_id }) => session_id)), arrayOf(asking.map(({ question }) => question))],
    );
    if (rows.length < PAGE) return;
    last = Number(rows.at(-1)?.["number"]);
  }
}
