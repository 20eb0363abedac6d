import type { Logger } from "pino";
import { Backoff, sleep } from "../../../concurrency/backoff.ts";
import { EverstepError } from "../../../domain/errors.ts";
import type { MatrixConfig } from "../config.ts";
import type { KeyValues } from "../state/key-values.ts";
import { failureOf } from "./failure.ts";
import type { Homeserver } from "./homeserver.ts";

/** Stands for the device of a token that has none. */
export const NO_DEVICE = "none";

/**
 * Logs the bot in and returns its device. With a password the device and its token are stored: a homeserver recognizes
 * transaction ids per device, and with a new device at each start repeated messages would be new ones.
 */
export class Login {
  readonly #homeserver: Homeserver;
  readonly #keyValues: KeyValues;
  readonly #config: MatrixConfig;
  readonly #log: Logger;

  constructor(homeserver: Homeserver, keyValues: KeyValues, config: MatrixConfig, log: Logger) {
    this.#homeserver = homeserver;
    this.#keyValues = keyValues;
    this.#config = config;
    this.#log = log;
  }

  /** Waits for a homeserver that is away. Throws if it refuses. */
  async open(signal: AbortSignal): Promise<string> {
    const backoff = new Backoff(100, 2000);
    for (;;) {
      signal.throwIfAborted();
      try {
        return await this.#device();
      } catch (error) {
        if (error instanceof EverstepError) throw error;
        const failure = failureOf(error);
        if (failure.kind === "unauthorized" || failure.kind === "refused") throw this.#refused(error);
        this.#log.warn({ failure }, "the homeserver cannot be reached; trying again");
        if (failure.kind === "limited") await sleep(failure.retry_after_ms, signal);
        else await backoff.wait(signal);
      }
    }
  }

  /** Replaces a token that the homeserver forgot, by password and for the same device. */
  async renew(signal: AbortSignal): Promise<void> {
    if (this.#config.MATRIX_PASSWORD === undefined) throw this.#refused(null);
    this.#keyValues.clear("access_token");
    await this.open(signal);
  }

  async #device(): Promise<string> {
    const { MATRIX_ACCESS_TOKEN, MATRIX_PASSWORD, MATRIX_USER_ID } = this.#config;
    const token = MATRIX_ACCESS_TOKEN ?? this.#keyValues.get("access_token");
    if (token !== null) {
      this.#homeserver.authorize(token);
      try {
        return await this.#whoami();
      } catch (error) {
        if (MATRIX_PASSWORD === undefined || failureOf(error).kind !== "unauthorized") throw error;
      }
    }
    const device_id = this.#keyValues.get("device_id");
    const credentials = await this.#homeserver.login(MATRIX_USER_ID, MATRIX_PASSWORD ?? "", device_id);
    this.#homeserver.authorize(credentials.access_token);
    this.#keyValues.set("access_token", credentials.access_token);
    this.#keyValues.set("device_id", credentials.device_id);
    return credentials.device_id;
  }

  async #whoami(): Promise<string> {
    const { user_id, device_id } = await this.#homeserver.whoami();
    const { MATRIX_USER_ID } = this.#config;
    if (user_id !== MATRIX_USER_ID)
      throw new EverstepError(
        "config_invalid",
        `MATRIX_USER_ID is ${MATRIX_USER_ID} and the token belongs to ${user_id}`,
        "set both for the same user",
      );
    this.#keyValues.set("device_id", device_id ?? NO_DEVICE);
    return device_id ?? NO_DEVICE;
  }

  #refused(cause: unknown): EverstepError {
    const { MATRIX_HOMESERVER, MATRIX_USER_ID } = this.#config;
    return new EverstepError(
      "matrix_login_failed",
      `${MATRIX_HOMESERVER} does not let ${MATRIX_USER_ID} in (${cause instanceof Error ? cause.message : "the token is not known any more"})`,
      "check MATRIX_USER_ID, and MATRIX_ACCESS_TOKEN or MATRIX_PASSWORD",
      cause,
    );
  }
}
