import type { JsonObject, JsonValue } from "../domain/json.ts";
import type { SessionOptions, ToolGlobs } from "../domain/session.ts";
import type { StepCall } from "../domain/step.ts";
import { matchesGlob } from "../domain/step-globs.ts";
import { childTraceparent } from "../domain/traceparent.ts";
import { StepError } from "../monikers/moniker.ts";
import { OverlayWorkspace } from "../monikers/tools/overlay-workspace.ts";
import { Workspace } from "../monikers/tools/workspace.ts";
import { policyOf } from "./policy.ts";
import type {
  OfferedTool,
  ServerStatus,
  SessionTools,
  Skill,
  ToolDirectory,
  ToolFactory,
  ToolInfo,
  ToolOutcome,
  ToolStep,
  ToolTrial,
} from "./tool.ts";
import { ToolOutputs } from "./tool-outputs.ts";
import { type ServerTool, type ToolCallContext, type ToolServer, toolError } from "./tool-server.ts";

/** What the configuration file says about tools; it overrides their servers. */
export type ToolRules = ToolGlobs & { read_only?: string[] | undefined; idempotent?: string[] | undefined };

export type RegistryOptions = {
  /** The workspace's folder. */
  workspace: string;
  servers: readonly ToolServer[];
  rules?: ToolRules;
  skills?: () => Promise<Skill[]>;
  /** Called for every call of an existing tool, for metrics. */
  observer?: ToolObserver;
};

export type ToolObserver = (call: { server: string; ms: number; is_error: boolean }) => void;

/**
 * All tools of this process, and those that a step gets.
 *
 * TOOLS-1  A tool is named `<server>/<tool>`; server names are unique, so tool names are too.
 * TOOLS-2  A denied tool is never called, no matter who requests it.
 * TOOLS-3  In a rerun, a tool is called only if it has no side effects: files are written to memory, and actions of the frame
 *          are not carried out.
 * TOOLS-4  A person who tries a tool outside of a session may only use tools that are read-only and not denied.
 */
export class ToolRegistry implements ToolDirectory {
  readonly #workspace: Workspace;
  readonly #options: RegistryOptions;
  readonly #servers: ReadonlyMap<string, ToolServer>;

  constructor(options: RegistryOptions) {
    this.#options = options;
    this.#workspace = new Workspace(options.workspace);
    this.#servers = new Map(options.servers.map((server) => [server.name, server])); // TOOLS-1
  }

  readonly forStep: ToolFactory = (step) => {
    const workspace = step.is_rerun ? new OverlayWorkspace(this.#options.workspace) : this.#workspace;
    return new StepTools(this, workspace, step);
  };

  /** All tools, sorted by name, with the policies for a session with these options. */
  async list({ tools: globs }: Pick<SessionOptions, "tools"> = {}): Promise<OfferedTool[]> {
    const lists = await Promise.all(
      [...this.#servers.values()].map(async (server) =>
        (await server.tools()).map((tool) => this.#offered(server.name, tool, globs)),
      ),
    );
    return lists.flat().sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  servers(): ServerStatus[] {
    return [...this.#servers.values()].map(({ status }) => status);
  }

  async skills(): Promise<Skill[]> {
    return (await this.#options.skills?.()) ?? [];
  }

  async call(name: string, args: JsonObject, context: ToolCallContext): Promise<ToolOutcome> {
    const slash = name.indexOf("/");
    const server = this.#servers.get(name.slice(0, slash));
    if (slash < 0 || !server) return toolError(`There is no tool named ${name}.`);
    const own = name.slice(slash + 1);
    const tool = (await untilAborted(server.tools(), context.signal)).find((offered) => offered.name === own);
    if (!tool) return toolError(noSuchTool(name, server.status));
    const info = this.#offered(server.name, tool, context.options.tools);
    // TOOLS-2.
    if (info.policy === "deny") return toolError(`${name} is denied here.`);
    // TOOLS-3.
    if (context.is_rerun && !info.read_only && !tool.leaves_no_trace)
      return toolError(`${name} was not called: this is a rerun, and the tool may change things.`);
    const started = performance.now();
    const outcome = await refusalsAsResults(() => server.call(own, args, context), context.signal);
    const is_error = outcome.kind === "result" && outcome.is_error;
    this.#options.observer?.({ server: server.name, ms: performance.now() - started, is_error });
    return context.outputs.bounded(outcome);
  }

  async try(name: string, args: JsonObject, signal: AbortSignal): Promise<ToolTrial> {
    const tool = (await untilAborted(this.list(), signal)).find((offered) => offered.name === name);
    if (!tool) return { kind: "unknown" };
    // TOOLS-4.
    if (!tool.read_only) return { kind: "refused", reason: "may change things: only agents call it" };
    if (tool.policy === "deny") return { kind: "refused", reason: "is denied here" };
    const started = performance.now();
    const step = { ids: TRIAL_IDS, signal, emit: () => {}, is_rerun: true, options: {} } as const;
    const outcome = await this.forStep(step).call(name, args);
    return { kind: "called", outcome, latency_ms: performance.now() - started };
  }

  #offered(server: string, tool: ServerTool, globs: ToolGlobs | undefined): OfferedTool {
    const { rules = {} } = this.#options;
    const name = `${server}/${tool.name}`;
    const matches = (list: string[] | undefined): boolean => list?.some((glob) => matchesGlob(glob, name)) ?? false;
    const read_only = tool.read_only || matches(rules.read_only);
    const info: ToolInfo = {
      name,
      description: tool.description,
      input_schema: tool.input_schema,
      read_only,
      idempotent: read_only || tool.idempotent || matches(rules.idempotent),
      destructive: tool.destructive && !read_only,
    };
    return { ...info, policy: policyOf(info, globs, rules) };
  }
}

/** No session has this id, so the tool finds no caller. */
const TRIAL_IDS: ToolStep["ids"] = { agent_id: "trial", session_id: "trial", conversation_id: null, iteration: 0 };

class StepTools implements SessionTools {
  readonly workspace: Workspace;
  readonly #registry: ToolRegistry;
  readonly #step: ToolStep;
  #calls = 0;

  constructor(registry: ToolRegistry, workspace: Workspace, step: ToolStep) {
    this.#registry = registry;
    this.#step = step;
    this.workspace = workspace;
  }

  list(): Promise<OfferedTool[]> {
    return untilAborted(this.#registry.list(this.#step.options), this.#step.signal);
  }

  async call(
    name: string,
    args: JsonObject,
    answered?: { answer: JsonValue; resume: JsonValue },
  ): Promise<ToolOutcome> {
    this.#step.signal.throwIfAborted();
    this.#step.emit({ kind: "tool", name });
    const { workspace } = this;
    const call_number = this.#calls++;
    const outputs = new ToolOutputs(workspace, this.#step.ids, { number: call_number, tool: name });
    const { traceparent: parent } = this.#step;
    const traceparent = parent === undefined ? undefined : childTraceparent(parent);
    const context = { ...this.#step, workspace, call_number, outputs, ...(traceparent && { traceparent }) };
    const started = performance.now();
    const report = (end: Pick<StepCall, "output" | "error">, error_type = "tool_error"): void =>
      this.#step.emit({
        kind: "call",
        call: { kind: "tool", name, input: args, ...end, latency_ms: performance.now() - started },
        ...(traceparent && { span: { traceparent, error_type } }),
      });
    try {
      const outcome = await this.#registry.call(
        name,
        args,
        answered === undefined ? context : { ...context, answered },
      );
      report(callEnd(outcome));
      return outcome;
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      report({ output: null, error: message }, error instanceof StepError ? error.code : (error as Error)?.name);
      throw error;
    }
  }

  skills(): Promise<Skill[]> {
    return this.#registry.skills();
  }
}

/** What a step's row keeps of a call's outcome. */
function callEnd(outcome: ToolOutcome): Pick<StepCall, "output" | "error"> {
  if (outcome.kind !== "result") return { output: JSON.parse(JSON.stringify(outcome)) as JsonValue };
  return outcome.is_error ? { output: outcome.text, error: outcome.text } : { output: outcome.text };
}

function noSuchTool(name: string, { name: server, status, error }: ServerStatus): string {
  if (status === "ready") return `There is no tool named ${name}.`;
  return `${name} cannot be called now: the server ${server} is not connected${error === null ? "" : ` (${error})`}.`;
}

/** A refusal by a tool, such as a path outside the workspace, goes to the model; the step does not fail. */
async function refusalsAsResults(call: () => Promise<ToolOutcome>, signal: AbortSignal): Promise<ToolOutcome> {
  try {
    return await call();
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof StepError && error.code.startsWith("file_")) return toolError(`Refused: ${error.message}.`);
    throw error;
  }
}

/** Waits at most until the signal aborts. */
export async function untilAborted<Value>(promise: Promise<Value>, signal: AbortSignal): Promise<Value> {
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const abort = () => aborted.reject(signal.reason as Error);
  signal.addEventListener("abort", abort, { once: true });
  try {
    return await Promise.race([promise, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}
