import { openEmbeddedStore } from "../../src/store/embedded/embedded-store.ts";
import { answer } from "./fresh-process.ts";

/** Milliseconds since the process started, including loading the program. */
export type ReopenAnswer = { opened: number; claimed: number; sessions_claimed: number };

const [folder] = process.argv.slice(2);
if (!folder) throw new Error("a folder is needed");

const store = await openEmbeddedStore({ folder });
const opened = performance.now();
const sessions = await store.claimSessions({ worker: "reopened", limit: 1_000_000 });
const claimed = performance.now();
await store.close();
answer({ opened, claimed, sessions_claimed: sessions.length } satisfies ReopenAnswer);
process.disconnect();
