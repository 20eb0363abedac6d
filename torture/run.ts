import { mkdir, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { makePlan, type Plan, type StoreKind } from "./plan/plan.ts";
import { torture } from "./torture.ts";

const USAGE = `npm run torture -- [--minutes N] [--seed S] [--store lancedb|postgres]

  --minutes  how long the load lasts, 3 by default
  --seed     plays the plan of that seed again; minutes and store must be the same
  --store    lancedb (default): one \`everstep serve\` on a small disk; postgres: servers and workers on one database`;

const RESULTS = fileURLToPath(new URL("./results", import.meta.url));

function readPlan(): Plan | null {
  const { values } = parseArgs({
    options: {
      minutes: { type: "string" },
      seed: { type: "string" },
      store: { type: "string" },
      help: { type: "boolean" },
    },
  });
  const minutes = Number(values.minutes ?? 3);
  const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31));
  const store = values.store ?? "lancedb";
  const isKnown = store === "lancedb" || store === "postgres";
  if (values.help || !isKnown || !(minutes > 0) || !Number.isInteger(seed)) return null;
  return makePlan(seed, minutes, store satisfies StoreKind);
}

async function main(): Promise<number> {
  const plan = readPlan();
  if (!plan) {
    console.error(USAGE);
    return 2;
  }
  const { seed, minutes, store, clients, faults } = plan;
  await mkdir(RESULTS, { recursive: true });
  const name = `${RESULTS}/${store}-${seed}`;
  await writeFile(`${name}-plan.json`, JSON.stringify(plan, null, 1));
  const operations = clients.reduce((sum, { length }) => sum + length, 0);
  console.log(
    `torture of ${store}, seed ${seed}: ${operations} operations and ${faults.length} faults in ${minutes} minutes`,
  );
  const replay = `npm run torture -- --store ${store} --minutes ${minutes} --seed ${seed}`;
  const report = await torture(plan).catch((error: unknown) => {
    console.error(`the run broke off; the same plan again: ${replay}`);
    throw error;
  });
  console.log(
    Object.entries(report.counts)
      .map(([what, count]) => `${what} ${count}`)
      .join(", "),
  );
  console.log([...report.faults].map(([kind, count]) => `${kind} ${count}`).join(", "));
  if (report.violations.length === 0) {
    console.log("no promise was broken");
    return 0;
  }
  await writeFile(`${name}-violations.txt`, `${report.violations.join("\n")}\n`);
  await writeFile(`${name}-log.txt`, report.log);
  await writeFile(`${name}-rows.json`, report.evidence());
  console.error(`${report.violations.length} promises were broken; the same plan again: ${replay}`);
  return 1;
}

process.exitCode = await main();
