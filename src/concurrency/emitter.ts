export class Emitter<Event extends unknown[] = []> {
  readonly #listeners = new Set<(...event: Event) => void>();

  listen(listener: (...event: Event) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  emit(...event: Event): void {
    for (const listener of this.#listeners) listener(...event);
  }

  clear(): void {
    this.#listeners.clear();
  }
}
