import { z } from "zod";
import { idSchema } from "../../domain/ids.ts";
import { jsonObjectSchema } from "../../domain/json.ts";
import { requestedOptionsSchema } from "../../domain/session.ts";
import { shorten } from "../extract.ts";
import { defineMoniker } from "../moniker.ts";
import { HELP, type Instruction, readInstruction } from "../schedule/instruction.ts";
import { isTimezone, Timetable } from "../schedule/timetable.ts";

/** A run that starts later than this, in milliseconds, counts as missed, and its text says so. */
const LATE_MS = 60_000;
const LONGEST_ERROR = 300;

const paramsSchema = z
  .object({
    cron: z
      .string()
      .min(1)
      .max(200)
      .describe("When to start: five fields, or six with seconds first, as in `0 9 * * 1-5`."),
    timezone: z.string().min(1).max(100).default("UTC").describe("The zone of these times, such as Europe/Berlin."),
    start: z
      .object({
        agent_id: idSchema,
        moniker: z.string().min(1).max(200).optional(),
        params: jsonObjectSchema.default({}),
        options: requestedOptionsSchema.optional(),
      })
      .describe("The session to start each time."),
    overlap: z
      .enum(["skip", "allow"])
      .default("skip")
      .describe("Whether to start a run while the previous one is still running."),
  })
  .superRefine(({ cron, timezone }, context) => {
    if (!isTimezone(timezone))
      return context.addIssue({ code: "custom", path: ["timezone"], message: `${timezone} is not a time zone` });
    try {
      if (new Timetable(cron, timezone).after(new Date()) !== null) return;
      context.addIssue({ code: "custom", path: ["cron"], message: "it matches no future time" });
    } catch (error) {
      context.addIssue({
        code: "custom",
        path: ["cron"],
        message: error instanceof Error ? error.message : String(error),
      });
    }
  });

type Params = z.infer<typeof paramsSchema>;

const stateSchema = z.object({
  /** The next run; absent before the first step. */
  next: z.string().optional(),
  /** Sessions it started that have not ended. */
  running: z.array(z.string()).default([]),
  /** Days without runs, in the schedule's zone. */
  skipped_days: z.array(z.string()).default([]),
});
type State = z.infer<typeof stateSchema>;

/**
 * Starts a session at certain times and rests in between. It is an ordinary session: it can be paused, told to skip runs,
 * watched and forked.
 *
 * Missed runs, because nothing ran or it was paused, are replaced by a single one, however many they were.
 */
export const schedule = defineMoniker({
  name: "schedule",
  kind: "finite",
  description: "Starts a session at the times of a cron expression; guidance such as “skip tomorrow” skips runs.",
  params: paramsSchema,
  first_step: "plan",
  step({ step, state: before, guidance = [] }, { params, ids }) {
    const now = new Date();
    const { running, ...state } = stateSchema.parse(before);
    // A fork gets no reports about its parent's sessions.
    const own = running.filter((id) => id.startsWith(`${ids.session_id}.`));
    const planner = new Planner(params, { ...state, running: own }, now);
    for (const item of guidance) planner.apply(readInstruction(item));
    const session_id = `${ids.session_id}.${ids.iteration}.0`;
    const isStarted = planner.runDue(session_id);
    const { agent_id, ...start } = params.start;
    const { next, lines } = planner;
    return {
      step,
      next_step: "run",
      state: planner.state,
      text: [...lines, next ? `Next run: ${planner.format(next)}.` : "No further run is planned."].join("\n"),
      data: { started: isStarted ? session_id : null, next: next?.toISOString() ?? null },
      done: next === null,
      ...(next && { wait: { until: next.toISOString() } }),
      ...(isStarted && { actions: [{ action_type: "agent_create" as const, agent_id, session_id, ...start }] }),
    };
  },
});

/** One step of a schedule: its guidance, what is due, what comes next. */
class Planner {
  readonly #params: Params;
  readonly #now: Date;
  #timetable: Timetable;
  #state: State;
  next: Date | null;
  readonly lines: string[] = [];

  constructor(params: Params, state: State, now: Date) {
    this.#params = params;
    this.#now = now;
    this.#state = state;
    this.#timetable = new Timetable(params.cron, params.timezone, state.skipped_days);
    this.next = state.next === undefined ? this.#timetable.after(now) : new Date(state.next);
  }

  get state(): State {
    const today = this.#timetable.day(this.#now);
    const skipped_days = this.#state.skipped_days.filter((day) => day >= today);
    return { ...this.#state, skipped_days, ...(this.next ? { next: this.next.toISOString() } : {}) };
  }

  format(moment: Date): string {
    return `${this.#timetable.format(moment)} (${this.#params.timezone})`;
  }

  apply(instruction: Instruction): void {
    switch (instruction.kind) {
      case "skip_runs":
        return this.#skipRuns(instruction.count);
      case "skip_day":
        return this.#skipDay(this.#timetable.day(this.#now, instruction.days_from_now));
      case "child_ended": {
        const { session_id, status, error } = instruction;
        this.#state = { ...this.#state, running: this.#state.running.filter((id) => id !== session_id) };
        this.lines.push(`Run ${session_id} ended: ${status}${error ? ` (${shorten(error, LONGEST_ERROR)})` : ""}.`);
        return;
      }
      case "unknown":
        if (!this.lines.includes(HELP)) this.lines.push(HELP);
        return;
    }
    instruction satisfies never;
  }

  /** Starts one run for everything that is due. Returns whether anything is. */
  runDue(session_id: string): boolean {
    const due = this.next ? this.#timetable.due(this.next, this.#now) : [];
    const [first] = due;
    const last = due.at(-1);
    if (!first || !last) return false;
    this.next = this.#timetable.after(this.#now);
    const { running } = this.#state;
    if (running.length > 0 && this.#params.overlap === "skip") {
      this.lines.push(`The run of ${this.format(last)} is skipped: ${running.join(", ")} is still running.`);
      return false;
    }
    this.#state = { ...this.#state, running: [...running, session_id] };
    const isLate = this.#now.getTime() - last.getTime() > LATE_MS;
    if (due.length > 1)
      this.lines.push(`${due.length} runs were due since ${this.format(first)}; this one replaces them.`);
    else if (isLate) this.lines.push(`The run of ${this.format(last)} was missed; it starts now.`);
    this.lines.push(`Started ${session_id}.`);
    return true;
  }

  #skipRuns(count: number): void {
    const skipped: Date[] = [];
    for (; skipped.length < count && this.next; this.next = this.#timetable.after(this.next)) skipped.push(this.next);
    const [first] = skipped;
    const last = skipped.at(-1);
    if (!first || !last) return;
    const which =
      first === last ? `The run of ${this.format(first)} is` : `${skipped.length} runs up to ${this.format(last)} are`;
    this.lines.push(`${which} skipped.`);
  }

  #skipDay(day: string): void {
    const { cron, timezone } = this.#params;
    const skipped_days = [...new Set([...this.#state.skipped_days, day])];
    this.#state = { ...this.#state, skipped_days };
    this.#timetable = new Timetable(cron, timezone, skipped_days);
    this.lines.push(`Runs on ${day} are skipped.`);
    // The planned run may be on that day.
    if (this.next && this.#timetable.day(this.next) === day) this.next = this.#timetable.after(this.next);
  }
}
