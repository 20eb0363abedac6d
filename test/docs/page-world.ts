import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before } from "node:test";
import type { JsonObject, JsonValue } from "../../src/domain/json.ts";
import type { Session, SessionOptions } from "../../src/domain/session.ts";
import type { Step } from "../../src/domain/step.ts";
import { Runtime } from "../../src/main/runtime.ts";
import { MonikerLoader } from "../../src/monikers/catalog.ts";
import { openEmbeddedStore } from "../../src/store/embedded/embedded-store.ts";
import type { Store } from "../../src/store/store.ts";
import { type ScratchFolder, scratchFolder } from "../store/scratch-folder.ts";
import { type CodeBlock, codeBlocks, writeCode } from "./page-code.ts";

/** The monikers of a page, written to a folder and run by a separate runtime. */
export class PageWorld implements AsyncDisposable {
  readonly blocks: CodeBlock[];
  readonly folder: string;
  readonly loader: MonikerLoader;
  readonly store: Store;
  readonly runtime: Runtime;
  readonly #scratch: ScratchFolder;

  private constructor(blocks: CodeBlock[], scratch: ScratchFolder, loader: MonikerLoader, store: Store) {
    this.blocks = blocks;
    this.#scratch = scratch;
    this.folder = scratch.path;
    this.loader = loader;
    this.store = store;
    this.runtime = new Runtime({ store, catalog: loader.catalog, workspace: join(scratch.path, "workspace") });
  }

  static async open(page: string): Promise<PageWorld> {
    const blocks = await codeBlocks(page);
    const scratch = await scratchFolder();
    await writeCode(scratch.path, blocks);
    const loader = await MonikerLoader.open(join(scratch.path, "monikers"));
    const store = await openEmbeddedStore({ folder: join(scratch.path, "data") });
    const world = new PageWorld(blocks, scratch, loader, store);
    await world.runtime.start();
    return world;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.runtime.stop();
    await this.store.close();
    await this.#scratch[Symbol.asyncDispose]();
  }

  async create(moniker: string, params: JsonObject, options: SessionOptions = {}): Promise<string> {
    const payload = { moniker, params, options };
    const outcome = await this.runtime.queue.submit({ action_type: "agent_create", agent_id: "reader", payload });
    assert.equal(outcome.kind, "accepted", JSON.stringify(outcome));
    return (outcome as { session_id: string }).session_id;
  }

  async tell(session_id: string, guidance: JsonValue): Promise<void> {
    await this.runtime.queue.submit({ action_type: "agent_interrupt", session_id, payload: { guidance } });
  }

  async act(session_id: string, action_type: string, payload: JsonObject = {}): Promise<void> {
    const outcome = await this.runtime.queue.submit({ action_type, session_id, payload });
    assert.equal(outcome.kind, "accepted", JSON.stringify(outcome));
  }

  steps(session_id: string): Promise<Step[]> {
    return this.store.listSteps({ session_id, limit: 100, offset: 0 });
  }

  /** The session once it meets the condition, and the live text until then. */
  async awaited(session_id: string, isWished: (session: Session) => boolean, start = async (): Promise<void> => {}) {
    const leaving = new AbortController();
    const news = this.runtime.events.follow({ session_id }, leaving.signal);
    try {
      let shown = "";
      let next = news.next();
      const session = await this.store.getSession(session_id);
      if (session && isWished(session)) return { session, shown };
      await start();
      for (;;) {
        const { value, done } = await next;
        assert.ok(!done, "the news ended");
        if (value.kind === "delta") shown += value.delta.text;
        if (value.kind === "session" && isWished(value.session)) return { session: value.session, shown };
        next = news.next();
      }
    } finally {
      leaving.abort();
    }
  }
}

/** One for all tests of a suite. */
export function pageWorld(page: string): () => PageWorld {
  let world: PageWorld | undefined;
  before(async () => {
    world = await PageWorld.open(page);
  });
  after(() => world?.[Symbol.asyncDispose]());
  return () => world ?? assert.fail("it was not opened");
}
