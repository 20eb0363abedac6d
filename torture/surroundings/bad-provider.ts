import { setTimeout as wait } from "node:timers/promises";
import type { JsonObject } from "../../src/domain/json.ts";
import type { ModelCall } from "../../test/llm/model-call.ts";
import { type Answer, ModelServer } from "../../test/llm/model-server.ts";
import type { Random } from "../../test/store/random.ts";

/** The ways in which a provider fails. */
const FAILURES: Readonly<Record<string, Answer>> = {
  server_error: (call) => call.fail(500),
  overloaded: (call) => call.fail(529),
  slow_down: (call) => call.fail(429, { error: { message: "slow down" } }, { "retry-after": "1" }),
  not_json: (call) => call.fail(200, "<html>a proxy's page</html>"),
  cut_at_once: (call) => call.cut(),
  cut_in_the_middle(call) {
    call.say("The beginning of");
    call.cut();
  },
  ends_early(call) {
    call.say("A stream without");
    call.stop();
  },
  error_in_the_stream(call) {
    call.say("Now it");
    call.tellError();
  },
  noise: (call) => {
    call.write("data: {no json\n\n");
    call.stop();
  },
  empty: (call) => call.reply(""),
  bad_arguments: (call) => call.turn({ calls: [{ id: "bad", name: "counter_pay", args: '{"key": ' }] }),
  unknown_tool: (call) => calling(["counter/nothing", {}])(call),
  slow: async (call) => {
    await wait(2000);
    call.fail(503);
  },
};
const NAMES = Object.keys(FAILURES);
const FAILING = 0.3;

/** The task given to an agent; the fake model parses it. */
export const taskFor = (session_id: string, calls: number): string => `Make ${calls} calls for [${session_id}].`;

/** A model provider that fails in every way until `beGood`. Its responses depend on the request only. */
export class BadProvider implements AsyncDisposable {
  readonly #server: ModelServer;
  readonly counts = new Map<string, number>();
  #isGood = false;

  private constructor(server: ModelServer, random: Random) {
    this.#server = server;
    server.otherwise((call) => this.#answer(call, random));
  }

  static async open(random: Random): Promise<BadProvider> {
    return new BadProvider(await ModelServer.open(), random);
  }

  get environment(): Record<string, string> {
    // No model is the default, so only sessions that name this one use it.
    return { OPENAI_BASE_URL: this.#server.url, OPENAI_API_KEY: "none" };
  }

  beGood(): void {
    this.#isGood = true;
  }

  async #answer(call: ModelCall, random: Random): Promise<void> {
    const name = !this.#isGood && random.chance(FAILING) ? random.pick(NAMES) : "answered";
    this.counts.set(name, (this.counts.get(name) ?? 0) + 1);
    await (FAILURES[name] ?? work)(call);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#server[Symbol.asyncDispose]();
  }
}

/** The next call of the task, or two at once; a final reply once all have results. */
async function work(call: ModelCall): Promise<void> {
  const [, calls = "0", session_id = ""] = /Make (\d+) calls for \[(.+?)\]\./.exec(call.prompt) ?? [];
  // Counts the calls requested, not their results, since a repaired reply adds one: no key is requested twice, so a call
  // made twice is the product's fault.
  const asked = [...JSON.stringify(call.body["messages"]).matchAll(/ call (\d+)\b/g)].map(([, n]) => Number(n));
  const made = Math.max(-1, ...asked) + 1;
  if (made >= Number(calls)) return call.reply("All is done.");
  const nth = (n: number): [string, JsonObject] => [
    n % 3 === 2 ? "counter/look" : "counter/pay",
    { key: `${session_id} call ${n}` },
  ];
  const count = made % 4 === 0 && made + 1 < Number(calls) ? 2 : 1;
  return calling(...Array.from({ length: count }, (_, n) => nth(made + n)))(call);
}

/** The model requests tools under our names for them; providers see them under other names. */
const calling =
  (...calls: [name: string, args: JsonObject][]): Answer =>
  (call) => {
    const plain = (name: string) => name.replaceAll(/[^a-z]+/gi, "_");
    const names = call.tools.map(({ name }) => name);
    const turn = calls.map(([name, args], index) => ({
      id: `call-${call.messages.length}-${index}`,
      name: names.find((one) => plain(one) === plain(name)) ?? name,
      args: JSON.stringify(args),
    }));
    call.turn({ calls: turn });
  };
