import { z } from "zod";
import type { JsonObject } from "../domain/json.ts";
import type { ToolOutcome } from "./tool.ts";
import { type ServerTool, type ToolCallContext, type ToolServer, toolError, toolResult } from "./tool-server.ts";

/** A tool whose arguments are checked by a zod schema. It may return plain text as its result. */
export type ZodTool = Pick<ServerTool, "name" | "description"> &
  Partial<Pick<ServerTool, "read_only" | "idempotent" | "destructive" | "leaves_no_trace">> & {
    input: z.ZodType;
    run(args: unknown, context: ToolCallContext): Promise<ToolOutcome | string>;
  };

/** Infers the type of the arguments. */
export const zodTool = <Args>(
  tool: Omit<ZodTool, "input" | "run"> & {
    input: z.ZodType<Args>;
    run(args: Args, context: ToolCallContext): Promise<ToolOutcome | string>;
  },
): ZodTool => tool;

/** A tool server in this process. */
export class ZodToolServer implements ToolServer {
  readonly name: string;
  #tools: ReadonlyMap<string, { tool: ZodTool; info: ServerTool }> = new Map();

  constructor(name: string, tools: readonly ZodTool[] = []) {
    this.name = name;
    this.replace(tools);
  }

  /** Replaces its tools. */
  replace(tools: readonly ZodTool[]): void {
    this.#tools = new Map(tools.map((tool) => [tool.name, { tool, info: infoOf(tool) }]));
  }

  get status() {
    return { name: this.name, status: "ready", error: null } as const;
  }

  async tools(): Promise<readonly ServerTool[]> {
    return [...this.#tools.values()].map(({ info }) => info);
  }

  async call(name: string, args: JsonObject, context: ToolCallContext): Promise<ToolOutcome> {
    const entry = this.#tools.get(name);
    if (!entry) return toolError(`There is no tool named ${this.name}/${name}.`);
    const parsed = entry.tool.input.safeParse(args);
    if (!parsed.success) return badArguments(`${this.name}/${name}`, parsed.error);
    const outcome = await entry.tool.run(parsed.data, context);
    return typeof outcome === "string" ? toolResult(outcome) : outcome;
  }
}

function infoOf({ name, description, input, ...tool }: ZodTool): ServerTool {
  const { read_only = false, idempotent = read_only, destructive = false, leaves_no_trace } = tool;
  const input_schema = inputSchemaOf(input);
  const info = { name, description, input_schema, read_only, idempotent, destructive };
  return leaves_no_trace ? { ...info, leaves_no_trace } : info;
}

/** The JSON Schema of a tool's arguments. */
const inputSchemaOf = (input: z.ZodType): JsonObject => {
  const { $schema: _, ...schema } = z.toJSONSchema(input, { io: "input", unrepresentable: "any" });
  return schema as JsonObject;
};

function badArguments(name: string, error: z.ZodError): ToolOutcome {
  const lines = error.issues.map(({ path, message }) => `- ${path.join(".") || "arguments"}: ${message}`);
  return toolError(`The arguments do not fit ${name}:\n${lines.join("\n")}`);
}
