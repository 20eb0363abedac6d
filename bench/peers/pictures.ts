import { mkdir, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { barChart } from "./bar-chart.ts";
import { spread } from "./compare.ts";
import type { Contender } from "./contenders.ts";

const FOLDER = fileURLToPath(new URL("../../docs/pictures", import.meta.url));

type Values = { contender: Contender; values: number[] };

export async function drawSteps(measured: readonly Values[]): Promise<void> {
  await draw("peers-steps.svg", "Durable steps a second, 100 sessions", "log", "/s", measured);
}

export async function drawControl(measured: readonly Values[]): Promise<void> {
  await draw("peers-pause.svg", "From a pause to its effect, p50 of 50 sessions", "log", "ms", measured);
}

export async function drawCrash(measured: readonly Values[]): Promise<void> {
  await draw(
    "peers-crash.svg",
    "From a restart after SIGKILL to the last of 50 sessions running",
    "linear",
    "ms",
    measured,
  );
}

export async function drawGrowth(measured: readonly Values[]): Promise<void> {
  await draw("peers-growth.svg", "Bytes kept per byte of state after 500 steps of 1 KB", "log", "", measured);
}

export async function drawAgent(measured: readonly Values[]): Promise<void> {
  await draw("peers-agent.svg", "Per call of an agent, beside model and tool, p50", "log", "ms", measured);
}

async function draw(
  file: string,
  title: string,
  scale: "log" | "linear",
  unit: string,
  measured: readonly Values[],
): Promise<void> {
  const bars = measured.map(({ contender: { name, role }, values }) => ({ name, role, ...spread(values) }));
  await mkdir(FOLDER, { recursive: true });
  await writeFile(
    `${FOLDER}/${file}`,
    barChart({ title, scale, unit, bars: bars.filter((bar) => !Number.isNaN(bar.median)) }),
  );
}
