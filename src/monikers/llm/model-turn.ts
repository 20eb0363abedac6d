import { z } from "zod";
import { jsonObjectSchema, jsonSchema } from "../../domain/json.ts";

const toolCallSchema = z.object({
  /** The provider's own, so that the result can be told apart from others. */
  call_id: z.string(),
  /** As the tool is named here, `<server>/<tool>`, whatever the provider had to be told. */
  name: z.string(),
  args: jsonObjectSchema,
});
/** A call of a tool that the model asks for. */
export type ToolCall = z.infer<typeof toolCallSchema>;

/** One message of a conversation with a model: plain JSON, so that it can be kept in a session's state. */
export const modelMessageSchema = z.discriminatedUnion("role", [
  /** `name`: who of several people said it. */
  z.object({ role: z.literal("user"), name: z.string().optional(), text: z.string() }),
  z.object({
    role: z.literal("assistant"),
    text: z.string(),
    tool_calls: z.array(toolCallSchema),
    /** What only the provider understands, such as signed thoughts: it gets it back, and no other model does. */
    provider: z.object({ model: z.string(), parts: jsonSchema }).optional(),
  }),
  z.object({ role: z.literal("tool"), call_id: z.string(), name: z.string(), text: z.string(), is_error: z.boolean() }),
]);
export type ModelMessage = z.infer<typeof modelMessageSchema>;
export type AssistantMessage = Extract<ModelMessage, { role: "assistant" }>;

/** A tool as the model is told of it. */
export type ModelTool = { name: string; description: string; input_schema: z.infer<typeof jsonObjectSchema> };

export type ModelRequest = {
  instructions: string;
  messages: readonly ModelMessage[];
  tools?: readonly ModelTool[];
};

/** One turn of the model: its text, which streamed as it grew, and the calls that it asks for, none where it is done. */
export type ModelReply = {
  message: AssistantMessage;
  /** The one that answered: the session's own or one of its fallbacks. */
  model: string;
  usage: { input_tokens: number; output_tokens: number; cached_tokens: number; estimated: boolean };
  /** Null where no price is known. */
  cost_usd: number | null;
};
