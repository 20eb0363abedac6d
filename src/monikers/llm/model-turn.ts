import { z } from "zod";
import { jsonObjectSchema, jsonSchema } from "../../domain/json.ts";

const toolCallSchema = z.object({
  /** The provider's id, which links the result to the call. */
  call_id: z.string(),
  /** The tool's name here, `<server>/<tool>`, whatever name the provider was given. */
  name: z.string(),
  args: jsonObjectSchema,
});
/** A tool call requested by the model. */
export type ToolCall = z.infer<typeof toolCallSchema>;

/** One message of a conversation with a model: plain JSON, so that it can be stored in a session's state. */
export const modelMessageSchema = z.discriminatedUnion("role", [
  /** `name`: which of several people wrote it. */
  z.object({ role: z.literal("user"), name: z.string().optional(), text: z.string() }),
  z.object({
    role: z.literal("assistant"),
    text: z.string(),
    tool_calls: z.array(toolCallSchema),
    /** Data that only the provider understands, such as signed reasoning. It is sent back to the same model only. */
    provider: z.object({ model: z.string(), parts: jsonSchema }).optional(),
  }),
  z.object({ role: z.literal("tool"), call_id: z.string(), name: z.string(), text: z.string(), is_error: z.boolean() }),
]);
export type ModelMessage = z.infer<typeof modelMessageSchema>;
export type AssistantMessage = Extract<ModelMessage, { role: "assistant" }>;

/** A tool as the model sees it. */
export type ModelTool = { name: string; description: string; input_schema: z.infer<typeof jsonObjectSchema> };

export type ModelRequest = {
  instructions: string;
  messages: readonly ModelMessage[];
  tools?: readonly ModelTool[];
};

/** One turn of the model: its text and the tool calls it requests; none if it is done. */
export type ModelReply = {
  message: AssistantMessage;
  /** The model that answered: the session's own or a fallback. */
  model: string;
  usage: { input_tokens: number; output_tokens: number; cached_tokens: number; estimated: boolean };
  /** Null if the price is unknown. */
  cost_usd: number | null;
};
