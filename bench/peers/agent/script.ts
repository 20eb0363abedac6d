/** The number of tool calls in each reply of the model. The last reply is the answer. */
export const CALLS_OF_REPLY: readonly number[] = [3, 3, 2, 2, 2, 2, 2, 2, 2, 0];
export const MODEL_CALLS = CALLS_OF_REPLY.length;
export const TOOL_CALLS = CALLS_OF_REPLY.reduce((sum, calls) => sum + calls, 0);

/** Milliseconds from a request to the model's first word, and to the end of its reply. */
export const FIRST_WORD_MS = 20;
export const REPLY_MS = 25;
/** Milliseconds that a tool call takes. Its side effect happens halfway. */
export const TOOL_MS = 4;

export const TOOL = { name: "count", description: "Counts a call." };
export const INSTRUCTIONS = "Call the tool as often as it takes.";

/** An agent's task; the model identifies the agent by it. */
export const taskOf = (session_id: string): string => `Count for agent#${session_id}#.`;
export const sessionIn = (text: string): string | null => /agent#([\w.-]+)#/.exec(text)?.[1] ?? null;
export const answerOf = (session_id: string): string => `All is counted for ${session_id}.`;

/** Milliseconds of a clock that all processes of a machine share. */
export const sharedNow = (): number => Number(process.hrtime.bigint()) / 1e6;
