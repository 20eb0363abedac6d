/** Calls everyone who listens. */
export class Bell<Given extends unknown[] = []> {
  readonly #listeners = new Set<(...given: Given) => void>();

  listen(listener: (...given: Given) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  ring(...given: Given): void {
    for (const listener of this.#listeners) listener(...given);
  }

  silence(): void {
    this.#listeners.clear();
  }
}
