/** For `node --import`: sets this process's clock back by a day. */
const DAY_MS = 86_400_000;
const RealDate = Date;

globalThis.Date = class extends RealDate {
  constructor(...args: []) {
    // Without arguments it is the current time; all other forms name a time.
    if (args.length === 0) super(RealDate.now() - DAY_MS);
    else super(...args);
  }
  static override now(): number {
    return RealDate.now() - DAY_MS;
  }
} as DateConstructor;
