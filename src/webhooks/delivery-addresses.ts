import { BlockList, isIP } from "node:net";
import { EverstepError } from "../domain/errors.ts";

/** Networks that are not the public internet, and addresses by which clouds tell machines their secrets. */
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
  // Unspecified, loopback and addresses that only wrap one of IPv4.
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

/** Whether a text can stand in EVERSTEP_WEBHOOK_ALLOW: an address, a network, or the name of a host. */
export const isAllowedEntry = (entry: string): boolean => toNetwork(entry) !== null || HOST_NAME.test(entry);

/**
 * Which addresses deliveries may be sent to.
 *
 * ADDRESSES-1  What counts is the address that is connected to, not the name: a name may lead somewhere else a moment later.
 * ADDRESSES-2  An address of IPv4 within one of IPv6 is judged as the one of IPv4.
 */
export class DeliveryAddresses {
  readonly #refused = listOf(REFUSED);
  readonly #allowed: BlockList;
  readonly #names: ReadonlySet<string>;

  /** `allow` are addresses, networks and names that may be used though they are not public. */
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

  /** Why no delivery would ever go to this address, as far as can be told without asking for its name; null where it may. */
  problemOf(url: URL): EverstepError | null {
    const host = hostOf(url);
    if (isIP(host) !== 0) return this.mayConnect(host, host) ? null : addressRefused(host, [host]);
    const isOfThisMachine = /(?:^|\.)localhost\.?$/.test(host);
    return !isOfThisMachine || this.mayConnect(host, "127.0.0.1") || this.mayConnect(host, "::1")
      ? null
      : addressRefused(host, ["127.0.0.1"]);
  }
}

/** Without the brackets that an address of IPv6 has in a URL. */
export const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[|\]$/g, "");

export const addressRefused = (host: string, addresses: readonly string[]): EverstepError =>
  new EverstepError(
    "webhook_address_refused",
    `${host} is ${addresses.join(", ")}, which is not a public address`,
    "name a public one, or allow it by EVERSTEP_WEBHOOK_ALLOW",
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
