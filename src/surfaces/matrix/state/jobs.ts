import type { JsonValue } from "../../../domain/json.ts";
import type { Database } from "./database.ts";

export type Control = "pause" | "resume" | "destroy";

/** Work that takes time, so that it is written down before it begins. */
export type Task =
  | { kind: "ask"; text: string }
  | { kind: "save"; name: string; then_reset: boolean }
  /** `adds`: beside what was loaded before. */
  | { kind: "load"; name: string; adds?: boolean }
  | { kind: "reset" }
  | { kind: "stop" }
  | { kind: "context" }
  | { kind: "new_room"; name: string }
  | { kind: "agents" }
  | { kind: "watch"; session: string }
  | { kind: "guide"; session: string; text: string }
  /** In words, for whatever the session asks when it is done; or a choice, for that question only. */
  | { kind: "answer"; session: string; text: string }
  | { kind: "answer"; session: string; choice: JsonValue; question_id: string }
  | { kind: "control"; verb: Control; session: string }
  /** Looks for the session before a person is asked whether to end it. `sent_at` is the time of their command. */
  | { kind: "ask_destroy"; session: string; sent_at: number };
export type AgentTask = Extract<Task, { kind: "ask" | "save" | "load" }>;

export type Job<Kind extends Task = Task> = {
  position: number;
  event_id: string;
  room_id: string;
  user_id: string;
  task: Kind;
  state: "queued" | "begun" | "done";
  /** The agent's session when it was begun; whether it got through is not known after a crash. */
  session_id: string | null;
  /** The transaction id of a message that the answer replaces. */
  preview: string | null;
  /** The transaction id of the message that says that it waits. */
  notice: string | null;
  /** How often it failed for a reason of its own. */
  failures: number;
  /** How often the bot was started while it was begun and not done. */
  restarts: number;
  /** Why it was set aside. */
  error: string | null;
};
export type AgentJob = Job<AgentTask>;

type StoredJob = Omit<Job, "task"> & { task: string };
const AGENT_KINDS: ReadonlySet<Task["kind"]> = new Set(["ask", "save", "load"]);

/** What a job is called at the agent: the same each time that it is tried. */
export const requestIdOf = ({ event_id, position }: Job): string => `matrix:${event_id}:${position}`;

export const isAgentJob = (job: Job): job is AgentJob => AGENT_KINDS.has(job.task.kind);

export class Jobs {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  add(from: { event_id: string; room_id: string; user_id: string }, task: Task): number {
    return this.#database.run(
      "INSERT INTO jobs (event_id, room_id, user_id, task, state) VALUES (?, ?, ?, ?, 'queued')",
      from.event_id,
      from.room_id,
      from.user_id,
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

  done(position: number): void {
    this.#database.run("UPDATE jobs SET state = 'done' WHERE position = ?", position);
  }

  /** Answers how often it failed so far. */
  failed(position: number): number {
    return (
      this.#database.all<{ failures: number }>(
        "UPDATE jobs SET failures = failures + 1 WHERE position = ? RETURNING failures",
        position,
      )[0]?.failures ?? 0
    );
  }

  /** Counts a start of the bot for what an earlier life had begun. */
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

  /** A question that was not asked yet is asked in its new words. */
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
