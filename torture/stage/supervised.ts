import { setTimeout as wait } from "node:timers/promises";
import type { Member } from "../../test/cluster/member.ts";
import { within } from "../../test/within.ts";
import type { Violations } from "../violations.ts";

/** How long a process may take to come back once nothing prevents it, or to end when asked to, in milliseconds. */
const LONGEST_MS = 90_000;
const RETRY_MS = 250;

/** One of the product's processes, restarted whenever it ends, as an init system would. */
export class Supervised {
  readonly name: string;
  readonly #start: () => Member;
  /** Whether another fault is in effect, so that the process may fail to start or end with an error. */
  readonly #isExcused: () => boolean;
  readonly #violations: Violations;
  readonly #lives: Member[] = [];
  #member: Member | undefined;
  #turn: Promise<void> = Promise.resolve();
  #hasEnded = false;

  constructor(name: string, start: () => Member, isExcused: () => boolean, violations: Violations) {
    this.name = name;
    this.#start = start;
    this.#isExcused = isExcused;
    this.#violations = violations;
  }

  /** Its log output over all restarts. */
  get said(): string {
    return this.#lives.map(({ pid, said }) => `${this.name}, process ${pid}\n${said}`).join("\n");
  }

  start(): Promise<void> {
    return this.#inTurn(() => this.#up());
  }

  kill(): Promise<void> {
    return this.#inTurn(async () => {
      await this.#take()?.kill();
      await this.#up();
    });
  }

  reload(): Promise<void> {
    return this.#inTurn(async () => this.#member?.signal("SIGHUP"));
  }

  freeze(ms: number): Promise<void> {
    return this.#inTurn(async () => {
      const member = this.#member;
      member?.signal("SIGSTOP");
      await wait(ms);
      member?.signal("SIGCONT");
    });
  }

  terminate(): Promise<void> {
    return this.#inTurn(async () => {
      await this.#end();
      await this.#up();
    });
  }

  /** Ends it permanently, as an operator would. */
  stop(): Promise<void> {
    return this.#inTurn(() => this.#end());
  }

  /** Resolves when every request so far has been carried out and the process is up. */
  settled(): Promise<void> {
    return this.#turn;
  }

  /** For the end of a run, whatever its cause. */
  async abandon(): Promise<void> {
    this.#hasEnded = true;
    this.#member?.signal("SIGCONT");
    await this.#take()?.kill();
  }

  #inTurn(work: () => Promise<void>): Promise<void> {
    this.#turn = this.#turn.then(async () => {
      if (!this.#hasEnded) await work();
    });
    return this.#turn;
  }

  #take(): Member | undefined {
    const member = this.#member;
    this.#member = undefined;
    return member;
  }

  async #end(): Promise<void> {
    const member = this.#take();
    if (!member) return;
    member.signal("SIGTERM");
    const excused = this.#isExcused();
    try {
      const [code, signal] = await within(LONGEST_MS, member.exited, () => `${this.name} does not end`);
      if (code !== 0 && !excused && !this.#isExcused())
        this.#violations.add(`${this.name} was asked to end and did so with ${code ?? signal}: ${tail(member)}`);
    } catch (error) {
      this.#violations.add(`${(error as Error).message}: ${tail(member)}`);
      await member.kill();
    }
  }

  async #up(): Promise<void> {
    for (let since = performance.now(); !this.#hasEnded; ) {
      const member = this.#start();
      try {
        await member.ready();
        this.#watch(member);
        return;
      } catch (error) {
        await member.kill();
        if (this.#isExcused()) since = performance.now();
        else if (performance.now() - since > LONGEST_MS) {
          this.#violations.add(`${this.name} does not come back: ${(error as Error).message.slice(-2000)}`);
          return;
        }
        await wait(RETRY_MS);
      }
    }
  }

  #watch(member: Member): void {
    this.#member = member;
    this.#lives.push(member);
    void member.exited.then(([code, signal]) => {
      if (this.#member !== member || this.#hasEnded) return;
      this.#violations.add(`${this.name} ended by itself with ${code ?? signal}: ${tail(member)}`);
      this.#member = undefined;
      void this.start();
    });
  }
}

const tail = ({ said }: Member): string => said.slice(-2000);
