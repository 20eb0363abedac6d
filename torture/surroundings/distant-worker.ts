import { StubWorker } from "../../test/remote/stub-worker.ts";
import type { Random } from "../../test/store/random.ts";

const DESCRIPTION = {
  name: "distant",
  kind: "finite",
  description: "Counts, in another process.",
  version: "1",
  params_schema: { type: "object", properties: { to: { type: "integer" } }, required: ["to"] },
};
const FAILING = 0.1;

/** A remote worker over HTTP that breaks off or reports problems until it is told to be good. */
export class DistantWorker implements AsyncDisposable {
  readonly #worker: StubWorker;
  #isGood = false;

  private constructor(worker: StubWorker) {
    this.#worker = worker;
  }

  static async open(random: Random): Promise<DistantWorker> {
    const distant = new DistantWorker(
      await StubWorker.start([DESCRIPTION], ({ frame, context }, response) => {
        const n = Number(frame.step);
        const write = (line: object): void => void response.write(`${JSON.stringify(line)}\n`);
        write({ delta: `about ${n}` });
        if (!distant.#isGood && random.chance(FAILING)) {
          if (random.chance(0.5)) return void response.socket?.resetAndDestroy();
          write({ problem: { code: "unwell", message: "not today", retryable: true } });
          return void response.end();
        }
        const done = n >= Number(context.params["to"]);
        write({ frame: { step: frame.step, next_step: String(n + 1), state: { n }, text: `number ${n}`, done } });
        response.end();
      }),
    );
    return distant;
  }

  get environment(): Record<string, string> {
    return { EVERSTEP_REMOTE_MONIKERS: this.#worker.url };
  }

  beGood(): void {
    this.#isGood = true;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#worker[Symbol.asyncDispose]();
  }
}
