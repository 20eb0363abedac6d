import type postgres from "postgres";
import { run } from "./connections.ts";
import { LIVE, SESSION_COLUMNS, SessionReads } from "./session-reads.ts";
import { arrayOf, toQuestion, toText } from "./values.ts";

const PAGE = 200;

/** Sessions that asked something before rows had the question: it is in their states, which are stored as differences. */
export async function fillInQuestions(transaction: postgres.TransactionSql): Promise<void> {
  const reads = new SessionReads({ query: (text, ...parameters) => run(transaction, text, parameters) });
  for (let last = 0; ; ) {
    const rows = await run(
      transaction,
      `select ${SESSION_COLUMNS}, s.number from agent_state s where s.number > $1 and s.status in (${LIVE})
         and (s.context::text like '%"question"%' or exists (select 1 from agent_steps t where t.session_id = s.session_id
           and t.iteration between s.base_iteration and s.iteration and t.state::text like '%"question"%'))
       order by s.number limit ${PAGE}`,
      [last],
    );
    const asking = (await reads.load(rows)).flatMap(({ session }) => {
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
