/** For `node --import`: this process believes that it is a day earlier. */
const DAY_MS = 86_400_000;
const RealDate = Date;

globalThis.Date = class extends RealDate {
  constructor(...given: []) {
    // With no argument it is the time now; all others mean a time that they name.
    if (given.length === 0) super(RealDate.now() - DAY_MS);
    else super(...given);
  }
  static override now(): number {
    return RealDate.now() - DAY_MS;
  }
} as DateConstructor;
