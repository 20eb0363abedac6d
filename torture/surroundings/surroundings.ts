import type { Random } from "../../test/store/random.ts";
import { scratchFolder } from "../../test/store/scratch-folder.ts";
import { BadProvider } from "./bad-provider.ts";
import { BadReceiver } from "./bad-receiver.ts";
import { DistantWorker } from "./distant-worker.ts";
import { Office } from "./office.ts";

/** What the product talks to: a model provider, a webhook receiver, a remote worker, and a folder with code and tools. */
export type Surroundings = AsyncDisposable & {
  provider: BadProvider;
  receiver: BadReceiver;
  office: Office;
  /** The settings that point the product's processes to all of it. */
  environment: Record<string, string>;
  /** Stops all failures. */
  beGood(): void;
};

export async function openSurroundings(random: Random): Promise<Surroundings> {
  await using resources = new AsyncDisposableStack();
  const folder = resources.use(await scratchFolder());
  const provider = resources.use(await BadProvider.open(random));
  const receiver = resources.use(await BadReceiver.open(random));
  const worker = resources.use(await DistantWorker.open(random));
  const office = await Office.open(folder.path);
  const parts = [provider, receiver, worker];
  const owned = resources.move();
  return {
    provider,
    receiver,
    office,
    environment: Object.assign({}, office.environment, ...parts.map(({ environment }) => environment)),
    beGood() {
      for (const part of parts) part.beGood();
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
