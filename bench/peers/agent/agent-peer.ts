import type { Place } from "../peer.ts";

/** Where an agent finds its model. The tool records its calls in the file named by the environment (`count-call.ts`). */
export type AgentWork = { model_url: string; tool_file: string };

/**
 * An agent runtime as the bench drives it, in a separate process.
 *
 * - `ask` runs the agent with that id to its end and resolves with its final text. In a process that follows a killed one it
 *   continues what is stored: an agent is never started twice.
 * - `onText` is called as text reaches the caller; without it nobody listens, and the peer need not stream.
 */
interface AgentPeer {
  ask(session_id: string, onText: (() => void) | null): Promise<string>;
  /** Number of questions asked to a person about a call that may have happened. */
  readonly questions?: number;
  close(): Promise<void>;
}

export type OpenAgentPeer = (place: Place, work: AgentWork, variant: string) => Promise<AgentPeer>;
