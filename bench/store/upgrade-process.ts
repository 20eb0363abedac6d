import { openEmbeddedStore } from "../../src/store/embedded/embedded-store.ts";
import { SCHEMA } from "../../src/store/schema.ts";
import { answer } from "./fresh-process.ts";

/** Milliseconds to open the folder, and how many migrations ran. */
export type UpgradeAnswer = { opened: number; upgrades: number };

const [folder, how] = process.argv.slice(2);
if (!folder || !how) throw new Error("a folder, and upgrade or not, are needed");

const schema = { ...SCHEMA, agent_steps: { ...SCHEMA.agent_steps, added: "text" as const } };
const migrations = [{ name: "added", columns: { agent_steps: ["added"] } }];
let upgrades = 0;
const notice = (): void => {
  upgrades += 1;
};
const begun = performance.now();
const store = await openEmbeddedStore({ folder, notice, ...(how === "upgrade" ? { schema, migrations } : {}) });
const opened = performance.now() - begun;

const [first] = await store.listSessions({ limit: 1, offset: 0 });
const steps = first ? await store.listSteps({ session_id: first.session_id, limit: 500, offset: 0 }) : [];
const added = steps.map((step) => (step as { added?: unknown }).added);
if (steps.length < 500 || added.some((value) => value !== (how === "upgrade" ? null : undefined)))
  throw new Error("the steps are not as they were written");
await store.close();
answer({ opened, upgrades } satisfies UpgradeAnswer);
process.disconnect();
