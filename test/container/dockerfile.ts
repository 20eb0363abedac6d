/** An instruction of a Dockerfile, with continued lines joined. */
export type Instruction = { keyword: string; rest: string };
export type Stage = { name: string; base: string; instructions: Instruction[] };

/** The stages of a Dockerfile, for the part of the language that ours uses. */
export function parseDockerfile(text: string): Stage[] {
  const lines = text
    .split("\n")
    .filter((line) => !/^\s*(#|$)/.test(line))
    .join("\n")
    .replaceAll(/\\\n\s*/g, "");
  const stages: Stage[] = [];
  for (const line of lines.split("\n")) {
    const [, keyword = "", rest = ""] = /^(\w+)\s+(.*)$/.exec(line) ?? [];
    if (keyword === "FROM") {
      const [base = "", , name = String(stages.length)] = rest.split(/\s+/);
      stages.push({ name, base, instructions: [] });
    } else stages.at(-1)?.instructions.push({ keyword, rest });
  }
  return stages;
}

export const assignments = (rest: string): [string, string][] =>
  rest.split(/\s+/).map((pair) => [pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1)]);
