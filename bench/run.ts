import { mkdtempSync, rmSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { availableParallelism, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { Bench } from "./bench.ts";
import { type Figure, keepsBar } from "./figure.ts";
import { writeResults } from "./results.ts";
import { figureTable } from "./table.ts";

/** Loads only the selected bench: some load Node's test runner, whose hooks would slow down every promise of the others. */
const BENCHES: Readonly<Record<string, () => Promise<Bench>>> = {
  store: async () => (await import("./store.ts")).storeBench,
  runtime: async () => (await import("./runtime.ts")).runtimeBench,
  clients: async () => (await import("./clients.ts")).clientsBench,
  server: async () => (await import("./server.ts")).serverBench,
  model: async () => (await import("./model.ts")).modelBench,
  remote: async () => (await import("./remote.ts")).remoteBench,
  matrix: async () => (await import("./matrix.ts")).matrixBench,
  cluster: async () => (await import("./cluster.ts")).clusterBench,
  scaling: async () => (await import("./scaling.ts")).scalingBench,
  package: async () => (await import("./package.ts")).packageBench,
  peers: async () => (await import("./peers.ts")).peersBench,
  console: async () => (await import("./console.ts")).consoleBench,
};

const USAGE = `npm run bench -- NAME [--quick] [--only PART[,PART]] [--folder FOLDER] [--json FILE]

  --quick    fewer and smaller runs, for a first look
  --only     these parts alone
  --folder   where the data goes while it runs; the system's temporary folder by default
  --json     a copy of the result, which is always kept in bench/results`;

/** The magic number of a Linux file system in memory. */
const TMPFS = 0x01021994;

class UsageError extends Error {}

type Request = {
  name: string;
  bench: Bench;
  parts: string[];
  quick: boolean;
  folder: string;
  json: string | undefined;
};

async function readRequest(): Promise<Request | "list"> {
  const { values, positionals } = parse();
  const [name, ...others] = positionals;
  if (name === undefined) return "list";
  if (others.length > 0) throw new UsageError(`one bench at a time, not also "${others.join(" ")}"`);
  const bench = Object.hasOwn(BENCHES, name) ? await BENCHES[name]?.() : undefined;
  if (!bench) throw new UsageError(`there is no bench "${name}"; there is ${Object.keys(BENCHES).join(", ")}`);
  const partNames = Object.keys(bench.parts);
  const parts = values.only?.split(",") ?? partNames;
  const unknown = parts.find((part) => !partNames.includes(part));
  if (unknown !== undefined) throw new UsageError(`"${name}" has no part "${unknown}"; it has ${partNames.join(", ")}`);
  return { name, bench, parts, quick: values.quick, folder: values.folder ?? tmpdir(), json: values.json };
}

function parse() {
  const text = { type: "string" } as const;
  try {
    const quick = { type: "boolean", default: false } as const;
    return parseArgs({ allowPositionals: true, options: { quick, only: text, folder: text, json: text } });
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

async function list(): Promise<string> {
  const lines: string[] = [];
  for (const [name, load] of Object.entries(BENCHES)) {
    const { measures: whole, parts } = await load();
    lines.push(`  ${name}: ${whole}`);
    for (const [part, { measures }] of Object.entries(parts)) lines.push(`    ${part.padEnd(8)} ${measures}`);
  }
  return `${USAGE}\n\nBenches and their parts:\n${lines.join("\n")}`;
}

async function run({ bench, name, parts, quick, folder: parent, json }: Request): Promise<boolean> {
  const filesystem = await statfs(parent).catch(() => null);
  if (filesystem === null)
    throw new UsageError(`${parent} is not a folder; make it first, or name another with --folder`);
  if (filesystem.type === TMPFS)
    throw new UsageError(`${parent} is in memory, which measures no disk; name another with --folder`);
  const folder = mkdtempSync(join(parent, "everstep-bench-"));
  const remove = (): void => rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  process.once("exit", remove);
  process.once("SIGINT", () => process.exit(130));
  const load_before = loadavg()[0] ?? 0;
  if (load_before > availableParallelism() / 4)
    process.stderr.write(`the machine is busy (load ${load_before.toFixed(1)}): expect worse figures than it can do\n`);
  try {
    const figures: Figure[] = [];
    for (const part of parts) {
      process.stderr.write(`${part}: ${bench.parts[part]?.measures}\n`);
      figures.push(...((await bench.parts[part]?.run({ folder, quick })) ?? []));
    }
    console.log(figureTable(figures));
    const seconds = Math.round(performance.now() / 1_000);
    const path = await writeResults({ bench: name, quick, parts, seconds, load_before, figures }, json);
    console.log(`\nkept in ${path}`);
    return figures.every(keepsBar);
  } finally {
    remove();
  }
}

try {
  const request = await readRequest();
  if (request === "list") console.log(await list());
  else process.exitCode = (await run(request)) ? 0 : 1;
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  console.error(`${error.message}\n\n${await list()}`);
  process.exitCode = 2;
}
