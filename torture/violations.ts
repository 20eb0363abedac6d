/** What was found wrong. Kept in order, each once. */
export class Violations {
  readonly #found = new Set<string>();

  add(...lines: string[]): void {
    for (const line of lines) {
      if (!this.#found.has(line)) console.error(`VIOLATION ${line}`);
      this.#found.add(line);
    }
  }

  get all(): string[] {
    return [...this.#found];
  }
}
