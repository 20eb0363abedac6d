/**
 * Every span and attribute name. Names that begin with `gen_ai.` belong to OpenTelemetry's semantic conventions for generative
 * AI, which are still in development; when they change, this file changes.
 */

export const SPAN = {
  /** A turn of an agent: from a step with new guidance to the next such step. */
  turn: (agent_id: string) => `invoke_agent ${agent_id}`,
  step: (moniker: string) => `step ${moniker}`,
  model: (model: string) => `chat ${model}`,
  tool: (tool: string) => `execute_tool ${tool}`,
  commit: "commit",
  request: (action_type: string) => `submit ${action_type}`,
} as const;

/** Values of `gen_ai.operation.name`. */
export const OPERATION = { turn: "invoke_agent", model: "chat", tool: "execute_tool" } as const;

export const ATTRIBUTE = {
  operation: "gen_ai.operation.name",
  provider: "gen_ai.provider.name",
  /** The session. */
  conversation: "gen_ai.conversation.id",
  /** The same, for backends that group traces by it. */
  session: "session.id",
  agent_id: "gen_ai.agent.id",
  agent_name: "gen_ai.agent.name",
  request_model: "gen_ai.request.model",
  temperature: "gen_ai.request.temperature",
  max_tokens: "gen_ai.request.max_tokens",
  finish_reasons: "gen_ai.response.finish_reasons",
  input_tokens: "gen_ai.usage.input_tokens",
  output_tokens: "gen_ai.usage.output_tokens",
  cached_tokens: "gen_ai.usage.cache_read.input_tokens",
  tool_name: "gen_ai.tool.name",
  tool_type: "gen_ai.tool.type",
  error_type: "error.type",

  // Content.
  instructions: "gen_ai.system_instructions",
  input_messages: "gen_ai.input.messages",
  output_messages: "gen_ai.output.messages",
  tool_arguments: "gen_ai.tool.call.arguments",
  tool_result: "gen_ai.tool.call.result",

  // Names without a convention.
  moniker: "everstep.moniker",
  moniker_version: "everstep.moniker.version",
  iteration: "everstep.iteration",
  first_iteration: "everstep.turn.first_iteration",
  step_token: "everstep.step.token",
  step_outcome: "everstep.step.outcome",
  attempt: "everstep.step.attempt",
  /** Where the moniker runs, if outside of this process. */
  remote: "everstep.remote",
  session_status: "everstep.session.status",
  stop_reason: "everstep.session.stop_reason",
  cost_usd: "everstep.cost_usd",
  estimated: "everstep.usage.estimated",
  action_id: "everstep.action.id",
  action_type: "everstep.action.type",
  outcome: "everstep.outcome",
} as const;

/** The conventions' names for providers that we name differently. */
const PROVIDERS: Readonly<Record<string, string>> = { google: "gcp.gemini", azure: "azure.ai.openai" };

/** The parts of `provider/model`. */
export function modelAttributes(name: string): { provider: string; model: string } {
  const slash = name.indexOf("/");
  const provider = slash < 0 ? "unknown" : name.slice(0, slash);
  return { provider: PROVIDERS[provider] ?? provider, model: name.slice(slash + 1) };
}
