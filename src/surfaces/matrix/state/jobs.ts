import type { JsonObject, JsonValue } from "../../../domain/json.ts";
import type { Database } from "./database.ts";

export type Control = "pause" | "resume" | "destroy";
export const COST_GROUPS = ["agent", "model", "day"] as const;
export type CostGroup = (typeof COST_GROUPS)[number];

/** Work that takes time; it is stored before it begins. */
export type Task =
  | { kind: "ask"; text: string }
  | { kind: "save"; name: string; then_reset: boolean }
  /** `adds`: in addition to what was loaded before. */
  | { kind: "load"; name: string; adds?: boolean }
  | { kind: "reset" }
  | { kind: "stop" }
  | { kind: "context" }
  | { kind: "new_room"; name: string }
  | { kind: "agents" }
  | { kind: "watch"; session: string }
  | { kind: "guide"; session: string; text: string }
  /** In words, to one question or to whatever the session asks at that time. */
  | { kind: "answer"; session: string; text: string; question_id?: string }
  /** By a reaction, which cannot carry a receipt; the message reacted to does. */
  | { kind: "answer"; session: string; choice: JsonValue; question_id: string; receipt_on?: string }
  | { kind: "inbox" }
  | { kind: "fork"; session: string; iteration: number; text: string }
  | { kind: "start"; moniker: string; params: JsonObject }
  | { kind: "costs"; by: CostGroup }
  | { kind: "control"; verb: Control; session: string }
  /** Looks up the session before asking whether to end it. `sent_at` is the time of the command. */
  | { kind: "ask_destroy"; session: string; sent_at: number };
export type AgentTask = Extract<Task, { kind: "ask" | "save" | "load" }>;

export type Job<Kind extends Task = Task> = {
  position: number;
  event_id: string;
  room_id: string;
  user_id: string;
  /** The first event of its thread. */
  thread: string | null;
  /** The thread's own session; null for the chat that everyone shares. */
  chat: string | null;
  task: Kind;
  state: "queued" | "begun" | "done";
  /** The agent's session when the job was begun; after a crash it is unknown whether it arrived. */
  session_id: string | null;
  /** The transaction id of a message that the answer replaces. */
  preview: string | null;
  /** The transaction id of the message, or of the reaction on the person's own, that says that it is pending. */
  notice: string | null;
  /** Its action at the runtime, if a receipt is awaited. */
  action_id: string | null;
  /** How often it failed for its own reason. */
  failures: number;
  /** How often the bot was started while it was begun and not done. */
  restarts: number;
  /** Why it was set aside. */
  error: string | null;
};
export type AgentJob = Job<AgentTask>;

type JobOrigin = {
  event_id: string;
  room_id: string;
  user_id: string;
  thread?: string | null;
  chat?: string | null;
};
type StoredJob = Omit<Job, "task"> & { task: string };
const AGENT_KINDS: ReadonlySet<Task["kind"]> = new Set(["ask", "save", "load"]);

/** The id of a job at the agent: the same for each attempt. */
export const requestIdOf = ({ event_id, position }: Job): string => `matrix:${event_id}:${position}`;

export const isAgentJob = (job: Job): job is AgentJob => AGENT_KINDS.has(job.task.kind);

export class Jobs {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  add(from: JobOrigin, task: Task): number {
    return this.#database.run(
      "INSERT INTO jobs (event_id, room_id, user_id, thread, chat, task, state) VALUES (?, ?, ?, ?, ?, ?, 'queued')",
      from.event_id,
      from.room_id,
      from.user_id,
      from.thread ?? null,
      from.chat ?? null,
      JSON.stringify(task),
    ).id;
  }

  /** Everything that is not done, oldest first. */
  open(): Job[] {
    return this.#database
      .all<StoredJob>("SELECT * FROM jobs WHERE state <> 'done' ORDER BY position")
      .map(({ task, ...job }) => ({ ...job, task: JSON.parse(task) as Task }));
  }

  begin(position: number, session_id: string | null): void {
    this.#database.run("UPDATE jobs SET state = 'begun', session_id = ? WHERE position = ?", session_id, position);
  }

  /** The runtime has it as this action, and this reaction says so. */
  submitted(position: number, action_id: string, notice: string): void {
    const sql = "UPDATE jobs SET state = 'begun', action_id = ?, notice = ? WHERE position = ?";
    this.#database.run(sql, action_id, notice, position);
  }

  done(position: number): void {
    this.#database.run("UPDATE jobs SET state = 'done' WHERE position = ?", position);
  }

  /** Returns how often it has failed so far. */
  failed(position: number): number {
    return (
      this.#database.all<{ failures: number }>(
        "UPDATE jobs SET failures = failures + 1 WHERE position = ? RETURNING failures",
        position,
      )[0]?.failures ?? 0
    );
  }

  /** Counts a start of the bot for jobs begun in an earlier run. */
  restarted(): void {
    this.#database.run("UPDATE jobs SET restarts = restarts + 1 WHERE state = 'begun'");
  }

  /** It is not tried again. */
  setAside(position: number, error: string): void {
    this.#database.run("UPDATE jobs SET state = 'done', error = ? WHERE position = ?", error, position);
  }

  setPreview(position: number, transaction_id: string): void {
    this.#database.run("UPDATE jobs SET preview = ? WHERE position = ?", transaction_id, position);
  }

  setNotice(position: number, transaction_id: string): void {
    this.#database.run("UPDATE jobs SET notice = ? WHERE position = ?", transaction_id, position);
  }

  /** Changes the text of a question that was not asked yet. */
  reword(event_id: string, user_id: string, text: string): boolean {
    const task: Task = { kind: "ask", text };
    return (
      this.#database.run(
        "UPDATE jobs SET task = ? WHERE event_id = ? AND user_id = ? AND state = 'queued' AND json_extract(task, '$.kind') = 'ask'",
        JSON.stringify(task),
        event_id,
        user_id,
      ).changes > 0
    );
  }
}
