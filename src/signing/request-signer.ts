import { createHmac, randomBytes } from "node:crypto";

const PREFIX = "whsec_";
const BASE64 = /^(?:[A-Za-z0-9+/]{4})+$|^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)$/;
const SECRET_BYTES = 32;

/** Whether a text is a Standard Webhooks secret: Base64, with or without the prefix `whsec_`. */
export const isSigningSecret = (secret: string): boolean => BASE64.test(withoutPrefix(secret));

export const newSigningSecret = (): string => PREFIX + randomBytes(SECRET_BYTES).toString("base64");

/** Signs requests by the Standard Webhooks scheme (standardwebhooks.com), with native SHA-256. */
export class RequestSigner {
  readonly #keys: readonly Buffer[];

  /** With several secrets a request has one signature each; a receiver may know any of them. */
  constructor(secrets: readonly string[]) {
    this.#keys = secrets.map((secret) => Buffer.from(withoutPrefix(secret), "base64"));
  }

  /** Without a secret it returns only the id and the time, unsigned. */
  headers(id: string, body: string): Record<string, string> {
    const timestamp = String(Math.floor(Date.now() / 1000));
    const headers = { "webhook-id": id, "webhook-timestamp": timestamp };
    if (this.#keys.length === 0) return headers;
    const signatures = this.#keys.map((key) => {
      const signature = createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest("base64");
      return `v1,${signature}`;
    });
    return { ...headers, "webhook-signature": signatures.join(" ") };
  }
}

const withoutPrefix = (secret: string): string => (secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : secret);
