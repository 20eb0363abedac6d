import { openEmbeddedStore } from "../../src/store/embedded/embedded-store.ts";
import { drive } from "./drive.ts";
import { answer } from "./fresh-process.ts";
import { createSessions, newLoadSession } from "./load.ts";

export type FillAnswer = { commits: number };

const [folder, sessions, end] = process.argv.slice(2);
if (!folder || !sessions || !end) throw new Error("a folder, a number of sessions, and close or kill are needed");

const store = await openEmbeddedStore({ folder });
const loads = Array.from({ length: Number(sessions) }, newLoadSession);
await createSessions(store, loads);
const { commits } = await drive(store, loads, { commits: loads.length * 3, limit_seconds: 300 });
if (end === "close") await store.close();
answer({ commits } satisfies FillAnswer);
if (end === "close") process.disconnect();
