import { openEmbeddedStore } from "../../src/store/embedded/embedded-store.ts";
import { drive } from "./drive.ts";
import { answer } from "./fresh-process.ts";
import { createSessions, newLoadSession } from "./load.ts";

/** Resident memory in bytes. */
export type MemoryAnswer = { at_start: number; at_end: number; peak: number };

const [folder, commits] = process.argv.slice(2);
if (!folder || !commits) throw new Error("a folder and a number of commits are needed");

const store = await openEmbeddedStore({ folder });
const at_start = process.memoryUsage.rss();
const loads = Array.from({ length: 100 }, newLoadSession);
await createSessions(store, loads);
await drive(store, loads, { commits: Number(commits), limit_seconds: 300 });
const at_end = process.memoryUsage.rss();
await store.close();
answer({ at_start, at_end, peak: process.resourceUsage().maxRSS * 1024 } satisfies MemoryAnswer);
process.disconnect();
