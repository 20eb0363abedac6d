import { updateAction } from "./actions.ts";
import { get } from "./api.ts";
import { follow, type StepDelta } from "./live.ts";
import { client, readAgain, type Session, type SlimStep } from "./queries.ts";
import { Signal } from "./signal.ts";

/** What the running step has streamed. A reader who came late lacks the beginning. */
export type RunningNews = { iteration: number; text: string; tools: string[]; lacksBeginning: boolean };

export type TimelineState = {
  steps: SlimStep[];
  /** Whether the list ends with the newest step and follows new ones. */
  isLive: boolean;
  running: RunningNews | null;
  /** Rows that arrived while the list was frozen. */
  held: number;
  isPaused: boolean;
  isLoading: boolean;
  /** Whether rows were last added at the top. */
  isGrowingUp: boolean;
  error: Error | null;
};

const PAGE = 150;
/** A step further from the end than this is shown with its neighbors only. */
const FAR = 1000;
const GATHER_MS = 40;
/** For busy sessions, which move faster than anybody can read. */
const GATHER_BUSY_MS = 300;
const BUSY_ROWS = 2;

/**
 * A range of a session's steps that grows at both ends.
 *
 * T1  Every step is there once: rows are keyed by id.
 * T2  After a lost connection it continues from its last iteration, so that no step is missed.
 */
export class Timeline {
  readonly state = new Signal<TimelineState>({
    steps: [],
    isLive: false,
    running: null,
    held: 0,
    isPaused: false,
    isLoading: true,
    isGrowingUp: false,
    error: null,
  });
  readonly #session_id: string;
  readonly #stepsById = new Map<string, SlimStep>();
  #incoming: SlimStep[] = [];
  #session: Session | undefined;
  #flush: ReturnType<typeof setTimeout> | undefined;
  #isBusy = false;
  readonly #opened = Promise.withResolvers<void>();
  #stop: (() => void) | undefined;
  #isClosed = false;

  constructor(session_id: string) {
    this.#session_id = session_id;
  }

  /** Shows the newest steps, or those around one. */
  async open(session: Session, around: number | null): Promise<void> {
    const isFar = around !== null && session.iteration - around > FAR;
    const from = around === null ? session.iteration - PAGE + 1 : around - PAGE / 3;
    await this.#load(Math.max(0, Math.floor(from)), isFar ? Math.floor(from) + PAGE : undefined);
    this.#opened.resolve();
    if (!isFar) this.#follow();
  }

  /** Resolves once the first rows are read or have failed: less urgent requests may start. */
  get opened(): Promise<void> {
    return this.#opened.promise;
  }

  get first(): number {
    return this.state.value.steps[0]?.iteration ?? 0;
  }

  async earlier(): Promise<void> {
    const { first } = this;
    if (first === 0 || this.state.value.isLoading) return;
    this.#set({ isLoading: true, isGrowingUp: true });
    await this.#load(Math.max(0, first - PAGE), first - 1);
  }

  /** For a range that does not reach the end yet. */
  async later(): Promise<void> {
    const { isLoading, isLive } = this.state.value;
    if (isLoading || isLive) return;
    this.#set({ isLoading: true, isGrowingUp: false });
    const before = this.#lastIteration;
    await this.#load(before + 1, before + PAGE);
    if (this.#lastIteration < before + PAGE) this.#follow();
  }

  pauseUpdates(isPaused: boolean): void {
    this.#set({ isPaused });
    if (!isPaused) this.#take();
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#flush);
    this.#opened.resolve();
    this.#stop?.();
  }

  get #lastIteration(): number {
    return lastOk(this.#stepsById.values());
  }

  async #load(min_iteration: number, max_iteration: number | undefined): Promise<void> {
    const range = { session_id: this.#session_id, min_iteration, max_iteration, with_state: false, limit: 500 };
    try {
      const last = max_iteration ?? Number.POSITIVE_INFINITY;
      for (let offset = 0; ; offset += 500) {
        const { steps } = await get<{ steps: SlimStep[] }>("/api/agent-steps", { ...range, offset });
        for (const step of steps) this.#stepsById.set(step.id, step);
        if (steps.length < 500 || last - min_iteration < 400) break;
      }
      this.#show({ isLoading: false, error: null });
    } catch (error) {
      this.#set({ isLoading: false, error: error as Error });
    }
  }

  #follow(): void {
    if (this.#isClosed || this.#stop) return;
    this.#set({ isLive: true });
    const session_id = this.#session_id;
    // T2: rows that wait to be shown count, too.
    const cursor = () => Math.max(this.#lastIteration, lastOk(this.#incoming));
    this.#stop = follow(
      () => ({ session_id, after_iteration: cursor() }),
      {
        agent_step: (step) => {
          const { state: _, ...slim } = step;
          this.#arrived(slim);
        },
        agent_step_delta: (delta) => this.#streamed(delta),
        agent_state_update: (session) => {
          if (session.session_id !== session_id) return;
          this.#session = session;
          this.#gather();
        },
        action_update: updateAction(session_id),
      },
      () => {
        for (const rows of ["session", "actions"]) void readAgain(rows, session_id);
      },
    );
  }

  #arrived(step: SlimStep): void {
    this.#incoming.push(step);
    this.#gather();
  }

  /** Rows and the session's state are shown together, a few times a second at most. */
  #gather(): void {
    this.#flush ??= setTimeout(
      () => {
        this.#flush = undefined;
        this.#isBusy = this.#incoming.length > BUSY_ROWS;
        if (this.state.value.isPaused) this.#set({ held: this.#incoming.length });
        else if (this.#incoming.length > 0) this.#take();
        this.#tellSession();
      },
      this.#isBusy ? GATHER_BUSY_MS : GATHER_MS,
    );
  }

  #tellSession(): void {
    const session = this.#session;
    this.#session = undefined;
    if (!session || this.#isClosed) return;
    client.setQueryData<Session>(["session", this.#session_id], (cached) => {
      if (!cached || cached.updated_at > session.updated_at) return cached ?? session;
      // Events do not tell of archived steps.
      return cached.archived ? { ...session, archived: cached.archived } : session;
    });
  }

  #take(): void {
    for (const step of this.#incoming) {
      this.#stepsById.set(step.id, step); // T1
      // An open detail may show the previous attempt.
      const queryKey = ["step", this.#session_id, step.iteration];
      if (client.getQueryState(queryKey)) void client.invalidateQueries({ queryKey });
    }
    this.#incoming = [];
    this.#show({ held: 0, isGrowingUp: false });
  }

  #streamed({ session_id, iteration, event_seq, text, tool }: StepDelta): void {
    if (session_id !== this.#session_id || this.state.value.isPaused) return;
    const { running } = this.state.value;
    const goesOn = running?.iteration === iteration && event_seq > 0;
    const before = goesOn ? running : { iteration, text: "", tools: [], lacksBeginning: event_seq > 0 };
    const tools = tool === undefined ? before.tools : [...before.tools, tool];
    this.#set({ running: { ...before, text: before.text + text, tools } });
  }

  #show(changes: Partial<TimelineState>): void {
    const steps = [...this.#stepsById.values()].sort((a, b) => a.iteration - b.iteration || (a.id < b.id ? -1 : 1));
    const { running } = this.state.value;
    const isOver = running !== null && (steps.at(-1)?.iteration ?? -1) >= running.iteration;
    this.#set({ steps, running: isOver ? null : running, ...changes });
  }

  #set(changes: Partial<TimelineState>): void {
    if (!this.#isClosed) this.state.set({ ...this.state.value, ...changes });
  }
}

const lastOk = (steps: Iterable<SlimStep>): number => {
  let last = -1;
  for (const { status, iteration } of steps) if (status === "ok" && iteration > last) last = iteration;
  return last;
};
