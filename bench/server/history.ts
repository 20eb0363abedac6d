import { openEmbeddedStore } from "../../src/store/embedded/embedded-store.ts";
import { commitOrThrow, createSessions, newLoadSession, nextSteps } from "../store/load.ts";

export type History = { session_ids: string[]; steps_per_session: number };

const SESSIONS = 40;
const STEPS_PER_SESSION = 500;

/** Sessions that are done, their steps archived in LanceDB as in a store that has been in use for a while. */
export async function writeHistory(folder: string): Promise<History> {
  const store = await openEmbeddedStore({ folder });
  try {
    const loads = Array.from({ length: SESSIONS }, newLoadSession);
    await createSessions(store, loads);
    for (let iteration = 0; iteration < STEPS_PER_SESSION; iteration++) {
      const isLast = iteration === STEPS_PER_SESSION - 1;
      if (isLast)
        for (const load of loads)
          load.session = { ...load.session, status: "done", ended_at: new Date().toISOString() };
      await commitOrThrow(store, nextSteps(loads));
    }
    await store.checkpoint();
    await store.compact();
    return { session_ids: loads.map(({ session }) => session.session_id), steps_per_session: STEPS_PER_SESSION };
  } finally {
    await store.close();
  }
}
