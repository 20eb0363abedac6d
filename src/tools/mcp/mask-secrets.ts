import { redactUrls } from "../../domain/redact.ts";

/** Hides the secrets of a server's configuration in what it says, longest first. */
export const secretMask =
  (secrets: readonly string[]) =>
  (text: string): string =>
    redactUrls(secrets.reduce((masked, secret) => masked.replaceAll(secret, "…"), text));
