/** What may be spent on one text, in characters looked at. */
export class WorkBudget {
  #left: number;

  constructor(most: number) {
    this.#left = most;
  }

  /** False, and nothing is spent, where it is more than is left. */
  trySpend(cost: number): boolean {
    if (cost > this.#left) return false;
    this.#left -= cost;
    return true;
  }

  /** For what cannot be left out. */
  spend(cost: number): void {
    if (!this.trySpend(cost)) throw new Error("this text takes too long to be formatted");
  }
}
