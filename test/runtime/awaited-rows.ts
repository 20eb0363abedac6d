import type { Action } from "../../src/domain/action.ts";
import type { CommittedEvent } from "../../src/domain/event.ts";
import type { Session } from "../../src/domain/session.ts";
import type { Store } from "../../src/store/store.ts";
import { PATIENCE_MS, within } from "../within.ts";

/** Resolves with the session as soon as it fits, immediately if it already does. */
export async function sessionThat(
  store: Store,
  session_id: string,
  fits: (session: Session) => boolean,
): Promise<Session> {
  return rowThat(store, session_id, {
    read: () => store.getSession(session_id),
    pick: (event) => (event.kind === "session" ? event.session : null),
    fits,
  });
}

/** The same for an action. */
export async function actionThat(store: Store, action_id: string, fits: (action: Action) => boolean): Promise<Action> {
  const action = await store.getAction(action_id);
  if (!action) throw new Error(`action ${action_id} is unknown`);
  return rowThat(store, action.session_id, {
    read: () => store.getAction(action_id),
    pick: (event) => (event.kind === "action" && event.action.action_id === action_id ? event.action : null),
    fits,
  });
}

type Awaited<Row> = {
  read: () => Promise<Row | null>;
  pick: (event: CommittedEvent) => Row | null;
  fits: (row: Row) => boolean;
};

/** Subscribes before it reads, so that no change is missed in between. */
async function rowThat<Row>(store: Store, session_id: string, { read, pick, fits }: Awaited<Row>): Promise<Row> {
  const leaving = new AbortController();
  const events = store.follow({ session_id }, leaving.signal);
  let last: Row | null = null;
  const awaited = async (): Promise<Row> => {
    last = await read();
    if (last && fits(last)) return last;
    for await (const event of events) {
      last = pick(event) ?? last;
      if (last && fits(last)) return last;
    }
    throw new Error("the store stopped telling news");
  };
  try {
    return await within(
      PATIENCE_MS,
      awaited(),
      () => `never came; at last it was ${JSON.stringify(last)?.slice(0, 2000)}`,
    );
  } finally {
    leaving.abort();
  }
}
