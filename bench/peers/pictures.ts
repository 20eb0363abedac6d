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
