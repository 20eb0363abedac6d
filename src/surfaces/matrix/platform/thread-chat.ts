import type { Schemas, SessionEvent, StepDelta } from "../../../client/client.ts";
import { ClientError } from "../../../client/client.ts";
import { AgentFailedError, AgentLostError, PlatformError } from "./platform-client.ts";
import type { RuntimeHttp } from "./runtime-http.ts";

const AGENT_ID = "matrix";
const BETWEEN_STEPS = "\n\n";

type ThreadChat = { http: RuntimeHttp; session_id: string };

/**
 * Asks a thread's own chat: a session of the moniker `chat`, created by its first question. Yields the answer as it arrives and
 * returns its tokens. The question is one action, however often it is asked under the same id.
 */
export async function* askThreadChat(
  { http, session_id }: ThreadChat,
  { text, request_id }: { text: string; request_id: string },
  onRestart: () => void,
): AsyncGenerator<string, number, undefined> {
  try {
    const after = await takeUp({ http, session_id });
    const action_id = await http.submit(session_id, "interrupt", { guidance: text, mode: "next" }, { request_id });
    const answer = new ThreadAnswer(action_id, after);
    for await (const event of http.events(session_id, { after, wait_for_server: true, until_ended: true })) {
      const piece = answer.take(event);
      if (piece.is_restart) onRestart();
      if (piece.text !== "") yield piece.text;
      if (piece.is_end) return answer.tokens;
    }
    throw new AgentFailedError("the session of this thread has ended");
  } catch (error) {
    if (error instanceof PlatformError && error.cause instanceof ClientError && error.cause.status === null)
      throw new AgentLostError(error.message, { cause: error });
    if (error instanceof PlatformError || error instanceof ClientError)
      throw new AgentFailedError(error.message, { cause: error });
    throw error;
  }
}

/** Creates the session if there is none, and resumes one that failed or was paused. Returns its last iteration. */
async function takeUp({ http, session_id }: ThreadChat): Promise<number> {
  const session = await http.session(session_id);
  if (!session) await http.start({ session_id, agent_id: AGENT_ID, moniker: "chat", params: {} }, {});
  else if (session.status === "error" || session.status === "paused") await http.submit(session_id, "resume", {}, {});
  return session?.iteration ?? -1;
}

type Piece = { text: string; is_restart: boolean; is_end: boolean };
const NOTHING: Piece = { text: "", is_restart: false, is_end: false };

/** Assembles the answer from the session's events: from the step that received the question through those that follow it by themselves. */
class ThreadAnswer {
  tokens = 0;
  readonly #action_id: string;
  #last: number;
  #isBegun = false;
  /** The text of the finished steps. */
  #text = "";
  /** The text of the running step so far. */
  #ofStep = "";

  constructor(action_id: string, after: number) {
    this.#action_id = action_id;
    this.#last = after;
  }

  take(event: SessionEvent): Piece {
    switch (event.type) {
      case "agent_step_delta":
        return this.#takeDelta(event.data);
      case "agent_step":
        return this.#takeStep(event.data);
      case "action_update": {
        const { action_id, receipt, error } = event.data;
        if (action_id === this.#action_id && receipt === "bounced")
          throw new AgentFailedError(error ?? "the agent did not take the question");
        return NOTHING;
      }
      case "agent_state_update":
        return NOTHING;
    }
    return event satisfies never;
  }

  #takeDelta({ iteration, event_seq, truncated, tool, text }: StepDelta): Piece {
    if (iteration <= this.#last) return NOTHING;
    const is_restart = event_seq === 0 && this.#ofStep !== "";
    return this.#tell(truncated || tool !== undefined ? "" : text, is_restart);
  }

  #takeStep(step: Schemas["Step"]): Piece {
    if (step.status === "error") throw new AgentFailedError(step.error ?? "the step failed");
    this.#last = step.iteration;
    // The session may have been working on something else.
    if (!this.#isBegun && !step.action_ids.includes(this.#action_id)) {
      const is_restart = this.#ofStep !== "";
      this.#ofStep = "";
      return { ...NOTHING, is_restart };
    }
    this.#isBegun = true;
    const whole = step.text ?? "";
    const isContinued = whole.startsWith(this.#ofStep);
    const piece = this.#tell(isContinued ? whole.slice(this.#ofStep.length) : whole, !isContinued);
    if (this.#ofStep !== "") this.#text += this.#gap + this.#ofStep;
    this.#ofStep = "";
    this.tokens += step.tokens_used;
    return { ...piece, is_end: !step.directives?.go_on };
  }

  /** After a restart the text of the finished steps is repeated. */
  #tell(text: string, is_restart: boolean): Piece {
    if (is_restart) this.#ofStep = "";
    const before = is_restart ? this.#text : "";
    const gap = this.#ofStep === "" && text !== "" ? this.#gap : "";
    this.#ofStep += text;
    return { text: before + gap + text, is_restart, is_end: false };
  }

  get #gap(): string {
    return this.#text === "" ? "" : BETWEEN_STEPS;
  }
}
