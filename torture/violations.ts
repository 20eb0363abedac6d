/** The violations found, in order and without duplicates. */
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
