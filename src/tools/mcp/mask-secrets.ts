import { redactUrls } from "../../domain/redact.ts";

/** Hides the secrets of a server's configuration in its output; `secrets` are sorted longest first. */
export const secretMask =
  (secrets: readonly string[]) =>
  (text: string): string =>
    redactUrls(secrets.reduce((masked, secret) => masked.replaceAll(secret, "…"), text));
