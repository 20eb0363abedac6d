import { BlockList, isIP } from "node:net";
import { EverstepError } from "../domain/errors.ts";

/** Networks outside the public internet, and the addresses of cloud metadata services. */
const REFUSED: readonly string[] = [
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "168.63.129.16/32",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.88.99.0/24",
  "192.168.0.0/16",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/4",
  "240.0.0.0/4",
  // Unspecified, loopback and IPv4-compatible addresses.
  "::/96",
  "64:ff9b::/96",
  "64:ff9b:1::/48",
  "100::/64",
  "2001::/32",
  "2001:db8::/32",
  "2002::/16",
  "fc00::/7",
  "fe80::/10",
  "fec0::/10",
  "ff00::/8",
];

const HOST_NAME = /^(?!-)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*\.?$/i;

/** Whether a text is valid in EVERSTEP_WEBHOOK_ALLOW: an address, a network, or a host name. */
export const isAllowedEntry = (entry: string): boolean => toNetwork(entry) !== null || HOST_NAME.test(entry);

/**
 * Decides which addresses deliveries may be sent to.
 *
 * ADDRESSES-1  The address connected to counts, not the name: a name may resolve to something else a moment later.
 * ADDRESSES-2  An IPv4 address embedded in IPv6 is judged as IPv4.
 */
export class DeliveryAddresses {
  readonly #refused = listOf(REFUSED);
  readonly #allowed: BlockList;
  readonly #names: ReadonlySet<string>;

  /** `allow`: addresses, networks and names allowed although they are not public. */
  constructor(allow: readonly string[]) {
    this.#allowed = listOf(allow.filter((entry) => toNetwork(entry) !== null));
    this.#names = new Set(allow.filter((entry) => toNetwork(entry) === null).map(plainName));
  }

  mayConnect(host: string, address: string): boolean {
    if (this.#names.has(plainName(host))) return true;
    const [plain = ""] = address.split("%");
    const family = isIP(plain) === 6 ? "ipv6" : "ipv4";
    return isIP(plain) !== 0 && (this.#allowed.check(plain, family) || !this.#refused.check(plain, family));
  }

  /** Why no delivery could ever go to this URL, as far as is known without resolving its name; null if it may. */
  problemOf(url: URL): EverstepError | null {
    const host = hostOf(url);
    if (isIP(host) !== 0) return this.mayConnect(host, host) ? null : addressRefused(host, [host]);
    const isLocalhost = /(?:^|\.)localhost\.?$/.test(host);
    return !isLocalhost || this.mayConnect(host, "127.0.0.1") || this.mayConnect(host, "::1")
      ? null
      : addressRefused(host, ["127.0.0.1"]);
  }
}

/** Without the brackets around an IPv6 address. */
export const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[|\]$/g, "");

export const addressRefused = (host: string, addresses: readonly string[]): EverstepError =>
  new EverstepError(
    "webhook_address_refused",
    `${host} is ${addresses.join(", ")}, which is not a public address`,
    "use a public address, or allow this one with EVERSTEP_WEBHOOK_ALLOW",
  );

const plainName = (name: string): string => name.toLowerCase().replace(/\.$/, "");

type Network = { address: string; prefix: number; family: "ipv4" | "ipv6" };

function toNetwork(entry: string): Network | null {
  const [, address = "", bits] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(entry) ?? [];
  const version = isIP(address);
  if (version === 0) return null;
  const longest = version === 6 ? 128 : 32;
  const prefix = bits === undefined ? longest : Number(bits);
  return prefix > longest ? null : { address, prefix, family: version === 6 ? "ipv6" : "ipv4" };
}

function listOf(entries: readonly string[]): BlockList {
  const list = new BlockList();
  for (const entry of entries) {
    const network = toNetwork(entry);
    if (network) list.addSubnet(network.address, network.prefix, network.family);
  }
  return list;
}
