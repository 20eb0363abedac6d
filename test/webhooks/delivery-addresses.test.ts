import assert from "node:assert/strict";
import dns from "node:dns";
import { test } from "node:test";
import { DeliveryAddresses, isAllowedEntry } from "../../src/webhooks/delivery-addresses.ts";
import { postDelivery } from "../../src/webhooks/post-delivery.ts";
import { Receiver } from "./receiver.ts";

const addresses = new DeliveryAddresses([]);

const REFUSED = [
  "0.0.0.0",
  "10.1.2.3",
  "100.64.0.1",
  "100.100.100.200",
  "127.0.0.1",
  "127.255.255.254",
  "168.63.129.16",
  "169.254.169.254",
  "172.16.0.1",
  "172.31.255.255",
  "192.168.1.1",
  "198.18.0.1",
  "224.0.0.1",
  "255.255.255.255",
  "::",
  "::1",
  "::127.0.0.1",
  "::ffff:127.0.0.1",
  "::ffff:7f00:1",
  "::ffff:10.0.0.1",
  "::ffff:169.254.169.254",
  "64:ff9b::7f00:1",
  "2002:7f00:1::",
  "fc00::1",
  "fd00:ec2::254",
  "fe80::1",
  "fe80::1%eth0",
  "fec0::1",
  "ff02::1",
  "not an address",
];
const PUBLIC = ["1.1.1.1", "172.32.0.1", "100.128.0.1", "::ffff:8.8.8.8", "2606:4700:4700::1111"];

for (const address of REFUSED)
  test(`${address} is refused`, () => assert.equal(addresses.mayConnect("name.example", address), false));
for (const address of PUBLIC)
  test(`${address} is public`, () => assert.equal(addresses.mayConnect("name.example", address), true));

test("what is allowed by address, network or name is used, and nothing else", () => {
  const some = new DeliveryAddresses(["10.0.0.0/8", "127.0.0.1", "fd00::/8", "Hooks.Internal"]);
  const may = (host: string, address: string): boolean => some.mayConnect(host, address);
  assert.deepEqual(
    [may("a", "10.9.9.9"), may("a", "127.0.0.1"), may("a", "::ffff:127.0.0.1"), may("a", "fd12::1")],
    [true, true, true, true],
  );
  assert.deepEqual([may("hooks.internal.", "192.168.0.9"), may("a", "192.168.0.9")], [true, false]);
  assert.deepEqual([may("a", "127.0.0.2"), may("a", "fc00::1")], [false, false]);
});

test("an address is refused in whatever form it is written in a URL", () => {
  const urls = [
    "http://127.1/",
    "http://2130706433/",
    "http://0x7f.0.0.1/",
    "http://[::1]/",
    "http://[::ffff:7f00:1]:80/",
  ];
  for (const url of [...urls, "http://localhost:80/", "https://a.localhost/"])
    assert.equal(addresses.problemOf(new URL(url))?.code, "webhook_address_refused", url);
  assert.equal(addresses.problemOf(new URL("https://hooks.example/")), null);
});

test("what can be allowed is an address, a network or a name", () => {
  for (const entry of ["127.0.0.1", "10.0.0.0/8", "::1", "fd00::/8", "host.docker.internal", "localhost"])
    assert.ok(isAllowedEntry(entry), entry);
  for (const entry of ["10.0.0.0/33", "http://a", "a b", "a:80", "*"]) assert.ok(!isAllowedEntry(entry), entry);
});

test("a name that resolves first to a public address and then to a private one is refused at the second connection", async (t) => {
  await using receiver = await Receiver.start();
  // Resolves as a hostile name server would: the first address is public, the next ones are private.
  const answers = ["203.0.114.1", "127.0.0.1"];
  const asked: string[] = [];
  t.mock.method(dns, "lookup", (name: string, _options: unknown, callback: (...answer: unknown[]) => void) => {
    asked.push(name);
    callback(null, [{ address: answers.shift() ?? "127.0.0.1", family: 4 }]);
  });
  const post = (signal: AbortSignal) =>
    postDelivery(
      { url: `http://rebinding.example:${receiver.port}/`, body: "{}", headers: {}, timeout_ms: 5000, signal },
      addresses,
    );
  const first = await post(AbortSignal.timeout(200));
  assert.ok(!first.error?.includes("webhook_address_refused"), first.error ?? "");
  const second = await post(AbortSignal.timeout(5000));
  assert.match(second.error ?? "", /^webhook_address_refused: rebinding\.example is 127\.0\.0\.1/);
  assert.deepEqual([asked.length, receiver.received.length], [2, 0]);
});
