import { statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** A bot that follows its homeserver gets an answer at least every half minute. */
const LONGEST_SILENCE_MS = 120_000;
const fileIn = (folder: string): string => join(folder, "heartbeat");

/** Shows other processes, by the time of a file, that the bot follows its homeserver. */
export class Health {
  readonly #file: string;
  readonly #first = Promise.withResolvers<void>();

  constructor(folder: string) {
    this.#file = fileIn(folder);
  }

  /** Resolves at the first beat. */
  get first(): Promise<void> {
    return this.#first.promise;
  }

  beat(): void {
    const now = new Date();
    try {
      utimesSync(this.#file, now, now);
    } catch {
      writeFileSync(this.#file, "");
    }
    this.#first.resolve();
  }
}

export function isHealthy(folder: string): boolean {
  try {
    return Date.now() - statSync(fileIn(folder)).mtimeMs < LONGEST_SILENCE_MS;
  } catch {
    return false;
  }
}
