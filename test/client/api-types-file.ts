import { spawnSync } from "node:child_process";
import { join } from "node:path";
import type { JsonObject } from "../../src/domain/json.ts";
import { REPOSITORY } from "../repository-files.ts";
import { openApiTypes } from "./openapi-types.ts";

export const API_TYPES = join(REPOSITORY, "src/client/api-types.ts");

/** The file's content for the API that the server describes. */
export async function formattedApiTypes(url: string): Promise<string> {
  const response = await fetch(new URL("/openapi.json", url));
  const text = openApiTypes((await response.json()) as JsonObject);
  const biome = join(REPOSITORY, "node_modules/@biomejs/biome/bin/biome");
  const args = [biome, "format", `--stdin-file-path=${API_TYPES}`];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: REPOSITORY, input: text });
  if (status !== 0) throw new Error(String(stderr));
  return String(stdout);
}
