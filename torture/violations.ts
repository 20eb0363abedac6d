/** The violations found, in order and without duplicates. */
export class Violations {
  readonly #lines = new Set<string>();

  add(...lines: string[]): void {
    for (const line of lines) {
      if (!this.#lines.has(line)) console.error(`VIOLATION ${line}`);
      this.#lines.add(line);
    }
  }

  get all(): string[] {
    return [...this.#lines];
  }
}
