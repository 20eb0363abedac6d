import { newAction } from "../../src/domain/action.ts";
import { openEmbeddedStore } from "../../src/store/embedded/embedded-store.ts";
import { commitOrThrow, createSessions, newLoadSession } from "../store/load.ts";

export type LoneCommits = AsyncDisposable & {
  /** Commits what a submitted action commits, and nothing else. Resolves with the milliseconds it took. */
  commit(): Promise<number>;
};

/** The baseline of every request that writes. */
export async function openLoneCommits(folder: string): Promise<LoneCommits> {
  const store = await openEmbeddedStore({ folder });
  const load = newLoadSession();
  await createSessions(store, [load]);
  const { agent_id, session_id } = load.session;
  const request = { action_type: "agent_interrupt", agent_id, session_id, payload: { guidance: "Shorter." } } as const;
  return {
    async commit() {
      const actions = [newAction(request)];
      const begun = performance.now();
      await commitOrThrow(store, { actions });
      return performance.now() - begun;
    },
    [Symbol.asyncDispose]: () => store.close(),
  };
}
