import { createHmac } from "node:crypto";
import { newId } from "../../domain/ids.ts";
import type { StepContext } from "../moniker.ts";

const PREFIX = "whsec_";
const BASE64 = /^(?:[A-Za-z0-9+/]{4})+$|^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)$/;

/** Whether a text is a secret as Standard Webhooks has them: Base64, with or without `whsec_` before it. */
export const isSigningSecret = (secret: string): boolean => BASE64.test(withoutPrefix(secret));

/** Signs requests by the Standard Webhooks scheme (standardwebhooks.com), with the processor's SHA-256. */
export class RequestSigner {
  readonly #key: Buffer | null;

  constructor(secret: string | undefined) {
    this.#key = secret === undefined ? null : Buffer.from(withoutPrefix(secret), "base64");
  }

  /** Without a secret the id and the time are told, unsigned. */
  headers(id: string, body: string): Record<string, string> {
    const timestamp = String(Math.floor(Date.now() / 1000));
    const headers = { "webhook-id": id, "webhook-timestamp": timestamp };
    if (!this.#key) return headers;
    const signature = createHmac("sha256", this.#key).update(`${id}.${timestamp}.`).update(body).digest("base64");
    return { ...headers, "webhook-signature": `v1,${signature}` };
  }
}

/**
 * The same for every attempt at a step, so that a worker can tell that it has done the step before. A step that only runs once
 * more to be looked at has another one each time.
 */
export function requestId({ ids: { session_id, iteration }, is_rerun }: Pick<StepContext, "ids" | "is_rerun">): string {
  const id = `${headerText(session_id)}/${iteration}`;
  return is_rerun ? `rerun/${newId()}/${id}` : id;
}

/** A header has visible ASCII only: what else is in an id is percent-encoded, and so is the percent sign. */
const headerText = (text: string): string => text.replaceAll(/[^\x21-\x24\x26-\x7e]+/g, encodeURIComponent);

const withoutPrefix = (secret: string): string => (secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : secret);
