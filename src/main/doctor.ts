import { type Config, readConfig, withProjectFolder } from "./config.ts";
import {
  checkFolders,
  checkHomeserver,
  checkMcpServers,
  checkModel,
  checkMonikers,
  checkNode,
  checkPort,
  checkStore,
} from "./doctor-checks.ts";
import { broken, type Finding } from "./doctor-finding.ts";

type NamedFinding = Finding & { name: string };

type DoctorOptions = { online?: boolean; json?: boolean };

/**
 * Checks everything a start needs and prints the results; the exit code is 1 if something is broken. Starts and changes
 * nothing.
 */
export async function doctor({ online = false, json = false }: DoctorOptions): Promise<void> {
  const findings: NamedFinding[] = [];
  for await (const finding of findingsOf(online)) {
    findings.push(finding);
    if (!json) print(finding);
  }
  const isBroken = findings.some(({ state }) => state === "broken");
  if (isBroken) process.exitCode = 1;
  if (json) console.log(JSON.stringify({ ok: !isBroken, findings }));
  else console.log(isBroken ? "\nSomething is broken." : "\nReady: npx everstep");
  // Handles that a moniker's file keeps open must not keep the process alive.
  process.exit();
}

async function* findingsOf(isOnline: boolean): AsyncGenerator<NamedFinding> {
  yield { name: "Node", ...checkNode() };
  let config: Config;
  try {
    config = withProjectFolder(readConfig(process.env));
  } catch (error) {
    yield { name: "settings", ...broken(error) };
    return;
  }
  const checks: [string, () => Finding[] | Promise<Finding[]>][] = [
    ["folder", () => checkFolders(config)],
    ["store", () => checkStore(config)],
    ["model", () => checkModel(config, isOnline)],
    ["monikers", () => checkMonikers(config)],
    ["MCP", () => checkMcpServers(config)],
    ["Matrix", () => checkHomeserver(process.env)],
    ["port", () => checkPort(config)],
  ];
  for (const [name, check] of checks) for (const finding of await findingsFrom(check)) yield { name, ...finding };
}

async function findingsFrom(check: () => Finding[] | Promise<Finding[]>): Promise<Finding[]> {
  try {
    return await check();
  } catch (error) {
    return [broken(error)];
  }
}

const MARKS = { ok: "ok    ", note: "note  ", broken: "BROKEN" } as const;

function print(finding: NamedFinding): void {
  console.log(`${MARKS[finding.state]}  ${finding.name.padEnd(8)}  ${finding.text}`);
  if (finding.state !== "ok") console.log(`${" ".repeat(18)}→ ${finding.next}`);
}
