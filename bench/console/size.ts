import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { atMost, type Figure } from "../figure.ts";

const BUILT = fileURLToPath(new URL("../../console/dist", import.meta.url));
const gzipped = async (path: string): Promise<number> => gzipSync(await readFile(join(BUILT, path))).length / 1024;
const sum = (sizes: number[]): number => sizes.reduce((total, size) => total + size, 0);

export async function measureSize(): Promise<Figure[]> {
  const page = await readFile(join(BUILT, "index.html"), "utf8");
  const first = [...page.matchAll(/(?:src|href)="\/(assets\/[^"]+)"/g)].map(([, path]) => path ?? "");
  const files = (await readdir(join(BUILT, "assets"))).map((name) => `assets/${name}`);
  const entry = sum(await Promise.all(["index.html", ...first].map(gzipped)));
  const all = sum(await Promise.all(["index.html", ...files].map(gzipped)));
  return [
    { figure: "entry, gzip", measured: entry, unit: "KB", bar: atMost(160) },
    { figure: "everything, gzip", measured: all, unit: "KB", bar: atMost(400) },
  ];
}
