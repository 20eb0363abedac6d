import { get } from "./api.ts";
import { follow, type StepDelta } from "./live.ts";
import { type Action, client, newestFirst, type Session, type SlimStep } from "./queries.ts";
import { Signal } from "./signal.ts";

/** What the step that runs now has told. Who came while it ran has not seen its beginning. */
export type RunningNews = { iteration: number; text: string; tools: string[]; lacksBeginning: boolean };

export type TimelineState = {
  steps: SlimStep[];
  /** Whether the list ends with the newest step and follows what comes. */
  isLive: boolean;
  running: RunningNews | null;
  /** Rows that arrived while the updates were paused. */
  held: number;
  isPaused: boolean;
  isLoading: boolean;
  /** Whether rows were last added before the others. */
  isGrowingUp: boolean;
  error: Error | null;
};

const PAGE = 150;
/** A step that is further away than this is shown with its neighbours alone. */
const FAR = 1000;
const GATHER_MS = 40;

/**
 * A stretch of a session's steps that grows at both ends.
 *
 * T1  Every step is there once: rows are told apart by their id.
 * T2  After a lost connection it goes on from its last iteration, so that no step is missed.
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
  readonly #known = new Map<string, SlimStep>();
  #incoming: SlimStep[] = [];
  #flush: ReturnType<typeof setTimeout> | undefined;
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
    if (!isFar) this.#follow();
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

  /** For a stretch that does not reach the end yet. */
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
    this.#stop?.();
  }

  get #lastIteration(): number {
    return lastOk(this.#known.values());
  }

  async #load(min_iteration: number, max_iteration: number | undefined): Promise<void> {
    const range = { session_id: this.#session_id, min_iteration, max_iteration, with_state: false, limit: 500 };
    try {
      const last = max_iteration ?? Number.POSITIVE_INFINITY;
      for (let offset = 0; ; offset += 500) {
        const { steps } = await get<{ steps: SlimStep[] }>("/api/agent-steps", { ...range, offset });
        for (const step of steps) this.#known.set(step.id, step);
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
    // T2: the cursor counts what waits to be shown, too.
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
          if (session.session_id === session_id) client.setQueryData(["session", session_id], session);
        },
        action_update: renewAction(session_id),
      },
      () => {
        for (const rows of ["session", "actions"]) void client.invalidateQueries({ queryKey: [rows, session_id] });
      },
    );
  }

  #arrived(step: SlimStep): void {
    this.#incoming.push(step);
    this.#flush ??= setTimeout(() => {
      this.#flush = undefined;
      if (this.state.value.isPaused) this.#set({ held: this.#incoming.length });
      else this.#take();
    }, GATHER_MS);
  }

  #take(): void {
    for (const step of this.#incoming) {
      this.#known.set(step.id, step); // T1
      // A detail that is open may have shown the attempt before.
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
    const steps = [...this.#known.values()].sort((a, b) => a.iteration - b.iteration || (a.id < b.id ? -1 : 1));
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

/** Takes what is told of an action into the list of its session's actions, newest first. */
export const renewAction =
  (session_id: string) =>
  (action: Action): void => {
    if (action.session_id !== session_id) return;
    client.setQueryData<Action[]>(["actions", session_id], (known = []) =>
      newestFirst([...known.filter(({ action_id }) => action_id !== action.action_id), action]),
    );
  };
