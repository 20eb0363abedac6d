/** So many are handed on at once: each may be large, and until then nobody counts them. */
const MOST_WAITING = 8;

/** Collects what is added in one turn of the event loop and hands it on, in order, in the next one. */
export class TurnBatch<Item> {
  readonly #handOn: (items: Item[]) => void;
  #items: Item[] = [];

  constructor(handOn: (items: Item[]) => void) {
    this.#handOn = handOn;
  }

  add(item: Item): void {
    const count = this.#items.push(item);
    if (count === 1) setImmediate(() => this.flush());
    else if (count === MOST_WAITING) this.flush();
  }

  /** Hands on what has been added so far. */
  flush(): void {
    if (this.#items.length === 0) return;
    const items = this.#items;
    this.#items = [];
    this.#handOn(items);
  }
}
