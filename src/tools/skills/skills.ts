import { readdir } from "node:fs/promises";
import { relative, resolve, sep } from "node:path";
import { z } from "zod";
import type { JsonObject } from "../../domain/json.ts";
import { StepError } from "../../monikers/moniker.ts";
import { Workspace } from "../../monikers/tools/workspace.ts";
import type { Skill, ToolOutcome } from "../tool.ts";
import { type ServerTool, type ToolCallContext, type ToolServer, toolError } from "../tool-server.ts";
import { ZodToolServer, zodTool } from "../zod-tool-server.ts";
import { frontMatter } from "./front-matter.ts";

const FILE = "SKILL.md";
const MOST_SKILLS = 200;
const LONGEST_DESCRIPTION = 1024;
/** How long a list is cached, in milliseconds: a step may request it several times. */
const FRESH_MS = 1000;

const fieldsSchema = z.object({
  name: z
    .string()
    .regex(/^[\p{L}\p{N}][\p{L}\p{N} _.-]{0,63}$/u, "must be letters, digits, spaces, _ . and -, at most 64"),
  description: z.string().min(1, "must not be empty"),
});

export type SkillsOptions = {
  folder: string;
  /** The workspace's folder. */
  workspace: string;
  /** Called once for each unusable file. */
  onProblem: (file: string, problem: string) => void;
};

/**
 * Instructions that a model can read when it needs them: folders with a file `SKILL.md` that begins with its name and
 * description. They may change at any time. Unusable ones are reported and skipped.
 */
export class Skills {
  readonly #options: SkillsOptions;
  /** Only this folder can be read, wherever its links lead. */
  readonly #files: Workspace;
  readonly #reported = new Set<string>();
  #cache: { at: number; skills: Promise<(Skill & { folder: string })[]> } | null = null;

  constructor(options: SkillsOptions) {
    this.#options = options;
    this.#files = new Workspace(options.folder);
  }

  /** Sorted by name. */
  readonly list = async (): Promise<Skill[]> =>
    (await this.#read()).map(({ name, description, path }) => ({ name, description, path }));

  /** A skill's file, `SKILL.md` by default, with the names of the others. */
  async readFile(name: string, file: string | undefined): Promise<ToolOutcome | string> {
    const skills = await this.#read();
    const skill = skills.find((other) => other.name === name);
    if (!skill)
      return toolError(`There is no skill named ${name}. There are: ${skills.map((other) => other.name).join(", ")}.`);
    const text = await this.#files.read(`${skill.folder}/${file ?? FILE}`);
    if (file !== undefined) return text;
    const others = (await this.#files.list(skill.folder)).filter((path) => path !== `${skill.folder}/${FILE}`);
    if (others.length === 0) return text;
    const names = others.map((path) => `- ${path.slice(skill.folder.length + 1)}`);
    return `${text.trimEnd()}\n\n[Other files of this skill, read with file:]\n${names.join("\n")}`;
  }

  #read() {
    const now = Date.now();
    if (this.#cache && now - this.#cache.at < FRESH_MS) return this.#cache.skills;
    const skills = this.#readAll();
    this.#cache = { at: now, skills };
    return skills;
  }

  async #readAll(): Promise<(Skill & { folder: string })[]> {
    const entries = await readdir(this.#options.folder, { withFileTypes: true }).catch(() => []);
    const folders = entries.filter((entry) => entry.isDirectory() && !entry.name.startsWith("."));
    const skills = new Map<string, Skill & { folder: string }>();
    for (const { name: folder } of folders.sort((a, b) => (a.name < b.name ? -1 : 1)).slice(0, MOST_SKILLS)) {
      const skill = await this.#readOne(folder);
      if (skill && skills.has(skill.name)) this.#report(folder, `another skill is named ${skill.name}`);
      else if (skill) skills.set(skill.name, skill);
    }
    return [...skills.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  async #readOne(folder: string): Promise<(Skill & { folder: string }) | null> {
    const text = await this.#files.read(`${folder}/${FILE}`).catch((error: unknown) => {
      // A folder without the file is not a skill.
      if (!(error instanceof StepError && error.code === "file_missing")) this.#report(folder, String(error));
      return null;
    });
    if (text === null) return null;
    const fields = frontMatter(text);
    const parsed = fieldsSchema.safeParse(fields ?? {});
    if (fields && parsed.success) {
      const { name, description } = parsed.data;
      return { name, description: description.slice(0, LONGEST_DESCRIPTION), path: this.#pathOf(folder), folder };
    }
    const [issue] = parsed.error?.issues ?? [];
    this.#report(
      folder,
      fields ? `${issue?.path.join(".")}: ${issue?.message}` : "it does not begin with front matter",
    );
    return null;
  }

  #report(folder: string, problem: string): void {
    const key = `${folder}\n${problem}`;
    if (this.#reported.has(key)) return;
    this.#reported.add(key);
    this.#options.onProblem(`${folder}/${FILE}`, problem);
  }

  /** Inside the workspace, a path that file tools accept. */
  #pathOf(folder: string): string {
    const path = resolve(this.#options.folder, folder);
    const inside = relative(resolve(this.#options.workspace), path);
    return inside.startsWith("..") ? path : `/workspace/${inside.split(sep).join("/")}`;
  }
}

/** A tool that reads skills; offered only if there are skills. */
export class SkillsServer implements ToolServer {
  readonly name = "skills";
  readonly #skills: Skills;
  readonly #server: ZodToolServer;

  constructor(skills: Skills) {
    this.#skills = skills;
    const read = zodTool({
      name: "read",
      description: "Reads the instructions of a skill, or another file of it.",
      input: z.object({
        name: z.string().min(1).describe("The skill's name."),
        file: z.string().min(1).optional().describe("Another file of the skill, from its folder."),
      }),
      read_only: true,
      run: ({ name, file }) => skills.readFile(name, file),
    });
    this.#server = new ZodToolServer(this.name, [read]);
  }

  get status() {
    return this.#server.status;
  }

  async tools(): Promise<readonly ServerTool[]> {
    return (await this.#skills.list()).length > 0 ? this.#server.tools() : [];
  }

  call(tool: string, args: JsonObject, context: ToolCallContext): Promise<ToolOutcome> {
    return this.#server.call(tool, args, context);
  }
}
