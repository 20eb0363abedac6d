import { type Copied, copyDurably } from "../../src/files/durable-copy.ts";
import { answer } from "./fresh-process.ts";

/** Copies what was staged, as `everstep backup` does. */
export type BackupAnswer = Copied & { ms: number };

const [from, to] = process.argv.slice(2) as [string, string];
const begun = performance.now();
const copied = await copyDurably(from, to);
answer({ ...copied, ms: performance.now() - begun } satisfies BackupAnswer);
process.disconnect();
