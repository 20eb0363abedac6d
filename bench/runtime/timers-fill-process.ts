import { newSession } from "../../src/actions/new-session.ts";
import { newId } from "../../src/domain/ids.ts";
import type { Session } from "../../src/domain/session.ts";
import { loadCatalog } from "../../src/monikers/catalog.ts";
import { noSpending } from "../../src/sessions/spending.ts";
import { stepCommit } from "../../src/sessions/step-commit.ts";
import { openEmbeddedStore } from "../../src/store/embedded/embedded-store.ts";
import type { Batch } from "../../src/store/store.ts";
import { askedToStop, say } from "./child.ts";

export type FilledMessage = { sessions: number };

const [folder, sessions] = process.argv.slice(2);
if (!folder || !sessions) throw new Error("a folder and a number of sessions are needed");

const AT_ONCE = 500;
const WORKER = "bench";
const DAY_MS = 86_400_000;
const stopped = askedToStop();
const catalog = await loadCatalog(undefined);
const script = catalog.get("script");
if (!script) throw new Error("the moniker that replays frames is missing");
const store = await openEmbeddedStore({ folder });

const commit = async (batch: Batch): Promise<void> => {
  const { kind } = await store.commit(batch);
  if (kind !== "committed") throw new Error(`a commit of the bench was answered ${kind}`);
};

/** A session as its first step leaves it: waiting until some day of the next month. */
function waiting(session: Session) {
  const until = new Date(Date.now() + DAY_MS * (1 + 29 * Math.random())).toISOString();
  const frame = { step: "0", next_step: "1", state: { n: 1 }, text: "I wait.", done: false, wait: { until } };
  const slice = { guidance: [], action_ids: [] };
  return stepCommit(session, script as NonNullable<typeof script>, {
    frame,
    slice,
    latency_ms: 1,
    spent: noSpending(),
    attempts: 1,
  });
}

for (let made = 0; made < Number(sessions); made += AT_ONCE) {
  const fresh = Array.from({ length: AT_ONCE }, () => {
    const request = { agent_id: "reminder", session_id: newId(), moniker: "script", params: { frames: [{}] } };
    const created = newSession(request, null, { catalog });
    if (created.kind !== "session") throw new Error("a session of the bench was refused");
    return created.session;
  });
  await commit({ sessions: fresh.map((session) => ({ kind: "create", session, worker: WORKER })) });
  const steps = fresh.map(waiting);
  const owner = { worker: WORKER, epoch: 1, revision: 0 };
  await commit({
    sessions: steps.map(({ session }) => ({ kind: "update", session, owner })),
    steps: steps.map(({ step }) => step),
  });
}
await store.releaseSessions({ worker: WORKER });
await store.compact();
await store.close();
say({ sessions: Number(sessions) } satisfies FilledMessage);
await stopped;
