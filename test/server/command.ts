import { once } from "node:events";
import { tmpdir } from "node:os";
import { text } from "node:stream/consumers";
import { type Environment, spawnEverstep } from "./spawn-everstep.ts";

export type Ran = { code: number | null; stdout: string; stderr: string };

/** Runs the command line as a person or a script would, with a pipe for its output. */
export async function everstep(args: string[], environment: Environment = {}, cwd = tmpdir()): Promise<Ran> {
  const child = spawnEverstep(args, environment, cwd);
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout as NodeJS.ReadableStream),
    text(child.stderr as NodeJS.ReadableStream),
    once(child, "exit") as Promise<[number | null]>,
  ]);
  return { code, stdout, stderr };
}

/** Runs a command against a server. */
export const commandFor =
  (url: () => string) =>
  async (...args: string[]): Promise<Ran> =>
    everstep([...args, "--url", url()]);

/** The rows of a printed table by their headings. */
export function tableRows(printed: string): Record<string, string>[] {
  const [heading = "", ...lines] = printed.trimEnd().split("\n");
  const columns = [...heading.matchAll(/\S+\s*/g)].map(({ 0: name, index }) => ({ name: name.trim(), index }));
  return lines.map((line) =>
    Object.fromEntries(
      columns.map(({ name, index }, column) => [name, line.slice(index, columns[column + 1]?.index).trim()]),
    ),
  );
}
