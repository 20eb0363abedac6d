import { EverstepError } from "../../domain/errors.ts";

/**
 * Refuses a URL that the driver would take for another one than was meant, or throw at with the URL in its error. The message
 * has no part of it: what is wrong is most often in the password.
 */
export function requireDatabaseUrl(url: string): void {
  const problem = problemOf(url);
  if (problem === null) return;
  throw new EverstepError(
    "config_invalid",
    `EVERSTEP_STORE is not a URL of a database: ${problem}`,
    "write postgres://USER:PASSWORD@HOST/DATABASE, with every special character of the password percent-encoded (/ is %2F, @ is %40, # is %23, ? is %3F, % is %25)",
  );
}

function problemOf(url: string): string | null {
  if (/[\s\p{Cc}]/u.test(url)) return "it has spaces or control characters";
  const rest = url.slice(url.indexOf("://") + 3);
  const authority = rest.slice(0, rest.search(/[/?#]|$/));
  const [, ...afterAt] = authority.split("@");
  if (afterAt.length === 0 && rest.includes("@")) return "something that must be percent-encoded comes before the @";
  // The driver looks for several hosts after the first @, not after the last one.
  if (afterAt.length > 1 && authority.includes(",")) return "an @ in the password must be percent-encoded";
  try {
    decodeURIComponent(authority);
  } catch {
    return "a % in it begins no percent-encoded character";
  }
  const hosts = afterAt.at(-1) ?? authority;
  const isUrl = hosts.split(",").every((host) => URL.canParse(url.replace(hosts, () => host)));
  return isUrl ? null : "the host, the port or what stands before them cannot be read";
}
