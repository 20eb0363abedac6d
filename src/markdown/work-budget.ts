/** The work allowed for one text, in characters scanned. */
export class WorkBudget {
  #left: number;

  constructor(most: number) {
    this.#left = most;
  }

  /** Returns false, and spends nothing, if the cost exceeds what is left. */
  trySpend(cost: number): boolean {
    if (cost > this.#left) return false;
    this.#left -= cost;
    return true;
  }

  /** For work that cannot be skipped. */
  spend(cost: number): void {
    if (!this.trySpend(cost)) throw new Error("this text takes too long to be formatted");
  }
}
