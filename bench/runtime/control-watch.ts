import { count } from "../../src/monikers/builtin/count.ts";
import type { Moniker } from "../../src/monikers/moniker.ts";
import type { Batch } from "../../src/store/store.ts";
import { News } from "./news.ts";
import type { Watch } from "./open-runtime.ts";

type Track = { starts: number[]; committed: number };

/** When each step of each session started, by the clock that times the requests, and when actions were settled. */
export class ControlWatch implements Watch {
  readonly news = new News();
  readonly moniker: Moniker;
  readonly #tracks = new Map<string, Track>();
  readonly #effective = new Map<string, number>();

  constructor() {
    const started = (session_id: string): void => {
      this.#track(session_id).starts.push(performance.now());
      this.news.tell();
    };
    this.moniker = {
      ...count,
      step(frame, context) {
        started(context.ids.session_id);
        return count.step(frame, context);
      },
    };
  }

  readonly onCommitted = ({ steps, actions }: Batch): void => {
    const at = performance.now();
    for (const { session_id } of steps ?? []) this.#track(session_id).committed += 1;
    for (const { action_id, processed } of actions ?? []) if (processed) this.#effective.set(action_id, at);
    this.news.tell();
  };

  effectiveAt(action_id: string): number | undefined {
    return this.#effective.get(action_id);
  }

  /** Steps that have started and are not committed. */
  underWay(session_id: string): number {
    const { starts, committed } = this.#track(session_id);
    return starts.length - committed;
  }

  startsAfter(session_id: string, time: number): number {
    const { starts } = this.#track(session_id);
    return starts.length - 1 - starts.findLastIndex((start) => start <= time);
  }

  firstStartAfter(session_id: string, time: number): number {
    return this.#track(session_id).starts.find((start) => start > time) ?? Number.NaN;
  }

  #track(session_id: string): Track {
    let track = this.#tracks.get(session_id);
    if (!track) {
      track = { starts: [], committed: 0 };
      this.#tracks.set(session_id, track);
    }
    return track;
  }
}
