import { contentOf, type MessageContent } from "../outgoing/content.ts";
import { LARGEST_PART, split } from "../outgoing/split.ts";
import { splitContent } from "../outgoing/split-content.ts";
import type { AgentJob } from "../state/jobs.ts";
import type { WorkContext } from "./work-context.ts";

/** An answer that takes less than this many milliseconds is shown once, whole. */
const FIRST_PREVIEW_MS = 1000;
/** No typing notice for an answer that is there in a moment: each one reaches everybody in the room. */
const FIRST_TYPING_MS = 300;
const TYPING_MS = 30_000;
const TYPING_AGAIN_MS = 20_000;

/** Shows an answer while it is written: one message, edited as it grows, with the whole text at the end. */
export class AnswerStream implements Disposable {
  readonly #context: WorkContext;
  readonly #job: AgentJob;
  readonly #streams: boolean;
  readonly #timers: NodeJS.Timeout[] = [];
  #preview: string | null;
  #text = "";
  #shown = "";
  /** Whether it is time to show the text so far. */
  #isDue = false;
  #isTyping = false;

  constructor(context: WorkContext, job: AgentJob) {
    this.#context = context;
    this.#job = job;
    this.#preview = job.preview;
    this.#streams = job.task.kind === "ask" && context.state.people.settings(job.user_id).streaming;
    this.#timers.push(setTimeout(() => this.#type(), FIRST_TYPING_MS));
    if (this.#streams) this.#timers.push(setTimeout(() => this.#beginInTime(), FIRST_PREVIEW_MS));
  }

  get text(): string {
    return this.#text;
  }

  push(chunk: string): void {
    this.#text += chunk;
    if (this.#isDue) this.#begin();
  }

  /** Starts over, as the agent does. */
  restart(): void {
    this.#text = "";
  }

  /** Replaces the preview by the whole answer. Called inside the transaction that ends the job. */
  conclude(text: string, is_notice: boolean): void {
    const { outbox } = this.#context.state;
    const { room_id, event_id, thread } = this.#job;
    this.#context.sender.forgetPreview(room_id);
    const edits = this.#preview === null || outbox.takeBack(this.#preview) ? null : this.#preview;
    const contents = splitContent(text, { is_notice, reply_to: event_id });
    for (const [index, content] of contents.entries())
      outbox.add(room_id, content, { edits: index === 0 ? edits : null, thread });
  }

  [Symbol.dispose](): void {
    this.#isDue = false;
    for (const timer of this.#timers) clearTimeout(timer);
    this.#context.sender.forgetPreview(this.#job.room_id);
    if (this.#isTyping) this.#typing(0);
  }

  /** A failed preview does no harm: the answer comes at the end. */
  #beginInTime(): void {
    try {
      this.#begin();
    } catch (error) {
      this.#context.log.error({ err: error }, "an answer could not be shown while it grows");
    }
  }

  #begin(): void {
    const { state, sender } = this.#context;
    // Nothing to show yet: the first words will be shown as soon as they arrive.
    this.#isDue = true;
    if (this.#text.trim() === "") return;
    if (this.#preview !== null) return this.#show();
    const content = this.#content();
    const { room_id, position, thread } = this.#job;
    this.#preview = state.transaction(() => {
      const preview = state.outbox.add(room_id, content, { rank: "preview", thread });
      state.jobs.setPreview(position, preview);
      return preview;
    });
    sender.wake();
    this.#show();
  }

  #show(): void {
    if (this.#preview === null) return;
    this.#context.sender.preview({
      room_id: this.#job.room_id,
      transaction_id: this.#preview,
      isNew: () => this.#shown !== this.#text && this.#text.trim() !== "",
      content: () => this.#content(),
    });
  }

  /** The beginning of the answer as far as it fits into one message. */
  #content(): MessageContent {
    this.#shown = this.#text;
    const [first = ""] = split(this.#text, LARGEST_PART);
    return contentOf(`${first.trimEnd()} …`, { is_notice: false, reply_to: this.#job.event_id });
  }

  #type(): void {
    this.#isTyping = true;
    this.#typing(TYPING_MS);
    this.#timers.push(setTimeout(() => this.#type(), TYPING_AGAIN_MS));
  }

  #typing(ms: number): void {
    const { homeserver, user_id, log } = this.#context;
    // A typing notice is optional; nothing waits for it.
    homeserver.typing(this.#job.room_id, user_id, ms).catch((error: unknown) => log.debug({ err: error }, "typing"));
  }
}
