import assert from "node:assert/strict";
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { SubmitOutcome } from "../../src/actions/action-queue.ts";
import type { JsonValue } from "../../src/domain/json.ts";
import type { SessionStatus } from "../../src/domain/session.ts";
import type { WorldOptions } from "./runtime-fixture.ts";

export type ChildOrder = WorldOptions & { url: string; workspace: string };
export type ParentMessage =
  | { kind: "submit"; id: number; request: object }
  | { kind: "await_rest"; session_ids: string[]; until: "resting" | "ended" }
  | { kind: "stop" };
export type ChildReport =
  | { kind: "ready" }
  | { kind: "started"; session_id: string; guidance: JsonValue[] }
  | { kind: "step"; session_id: string; iteration: number }
  | { kind: "status"; session_id: string; status: SessionStatus }
  | { kind: "submitted"; id: number; outcome: SubmitOutcome }
  | { kind: "rested" };

/** A runtime in a separate process. */
export class RuntimeProcess implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #ended: Promise<{ code: number | null; signal: NodeJS.Signals | null; how: string }>;
  readonly #reports: ChildReport[] = [];
  readonly #waiting = new Set<() => void>();
  #errors = "";
  #lastId = 0;
  /** Accepted actions, as reported to the parent. */
  readonly accepted: string[] = [];

  constructor(order: ChildOrder) {
    const program = fileURLToPath(new URL("./runtime-child.ts", import.meta.url));
    this.#child = fork(program, [JSON.stringify(order)], { stdio: ["ignore", "ignore", "pipe", "ipc"] });
    this.#child.stderr?.on("data", (chunk: Buffer) => (this.#errors += chunk.toString()));
    // A request that a killed process never reads is not a failure of the test.
    this.#child.on("error", () => {});
    this.#child.on("message", (report: ChildReport) => {
      this.#reports.push(report);
      if (report.kind === "submitted" && report.outcome.kind === "accepted")
        this.accepted.push(report.outcome.action_id);
      for (const wake of this.#waiting) wake();
    });
    const closed = once(this.#child, "close") as Promise<[number | null, NodeJS.Signals | null]>;
    this.#ended = closed.then(([code, signal]) => ({
      code,
      signal,
      how: `the process ended with ${signal ?? code}: ${this.#errors}`,
    }));
  }

  /** Resolves with the first matching report, past or future; throws if the process ends before. */
  async reported<Report extends ChildReport>(fits: (report: ChildReport) => report is Report): Promise<Report>;
  async reported(fits: (report: ChildReport) => boolean): Promise<ChildReport>;
  async reported(fits: (report: ChildReport) => boolean): Promise<ChildReport> {
    let how: string | undefined;
    void this.#ended.then((ended) => {
      how = ended.how;
      for (const wake of this.#waiting) wake();
    });
    for (;;) {
      const report = this.#reports.find(fits);
      if (report) return report;
      if (how !== undefined) throw new Error(how);
      await new Promise<void>((resolve) => {
        const wake = (): void => {
          this.#waiting.delete(wake);
          resolve();
        };
        this.#waiting.add(wake);
      });
    }
  }

  async ready(): Promise<void> {
    await this.reported(({ kind }) => kind === "ready");
  }

  /** Sends a request and waits for its outcome. */
  async submit(request: object): Promise<Extract<SubmitOutcome, { kind: "accepted" }>> {
    await this.ready();
    const id = this.send(request);
    const report = await this.reported(
      (other): other is Extract<ChildReport, { kind: "submitted" }> => other.kind === "submitted" && other.id === id,
    );
    assert.ok(report.outcome.kind === "accepted", JSON.stringify(report.outcome));
    return report.outcome;
  }

  /** Sends a request without waiting; its outcome shows in `accepted`. */
  send(request: object): number {
    const id = ++this.#lastId;
    if (this.#child.connected) this.#child.send({ kind: "submit", id, request } satisfies ParentMessage, () => {});
    return id;
  }

  /** How many steps it has reported. */
  get steps(): number {
    return this.#reports.filter(({ kind }) => kind === "step").length;
  }

  /** The iterations of a session's steps, as reported by the process. */
  iterationsOf(session_id: string): number[] {
    return this.#reports.flatMap((report) =>
      report.kind === "step" && report.session_id === session_id ? [report.iteration] : [],
    );
  }

  /** Resolves when it has ended and all its reports were received. */
  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    const { signal, how } = await this.#ended;
    assert.equal(signal, "SIGKILL", how);
  }

  /** Resolves when none of these sessions runs. */
  async rested(session_ids: string[], until: "resting" | "ended" = "resting"): Promise<void> {
    await this.ready();
    this.#child.send({ kind: "await_rest", session_ids, until } satisfies ParentMessage);
    await this.reported(({ kind }) => kind === "rested");
  }

  /** Resolves when the session is done or failed. */
  async ended(session_id: string): Promise<void> {
    await this.rested([session_id], "ended");
  }

  /** Asks it to stop, and resolves when it has exited. */
  async stop(): Promise<void> {
    this.#child.send({ kind: "stop" } satisfies ParentMessage);
    const { code, how } = await this.#ended;
    assert.equal(code, 0, how);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#ended;
  }
}
