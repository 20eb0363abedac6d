import type { Random } from "../store/random.ts";

const METHODS = [
  "GET",
  "POST",
  "PUT",
  "PATCH",
  "DELETE",
  "HEAD",
  "OPTIONS",
  "CONNECT",
  "TRACE",
  "get",
  "PRI",
  "G\u0000T",
  "",
  "M".repeat(300),
];
const TARGETS = [
  "/",
  "//",
  "///",
  "/api/agents",
  "/api/sessions/x/interrupt",
  "/health",
  "/metrics",
  "/nowhere",
  "/%",
  "/%zz",
  "/%00",
  "/..%2f..%2fetc/passwd",
  "/api/agents/%ff%fe",
  "/api/search?q=%",
  "/api/search?q=a&q=b",
  "/api/agent-steps?session_id[]=1",
  "*",
  "http://",
  "http://[",
  "http://[::1",
  "//[::1",
  "//x:99999",
  "http://127.0.0.1:99999/",
  "https://evil.example/api/agents",
  "/agent_ws/",
  "/agent_ws",
  "/agent_ws/?token=%",
  "/agent_ws/../health",
  "/socket.io/",
  "/socket.io/?EIO=4&transport=websocket",
  "/socket.io/?EIO=4&transport=polling",
  "/socket.io/?EIO=3&transport=polling",
  "/socket.io/?EIO=4&transport=nonsense",
  "/socket.io/?EIO=4&transport=polling&sid=__proto__",
  "/socket.io/?EIO=4&transport=polling&sid=constructor",
  "/socket.io/?sid=x&EIO=4&transport=websocket",
  "/socket.io/?%",
  "/socket.iofoo",
  "/socket.io/../../x",
  "/assets/..%2f..%2fpackage.json",
  "/assets/\u0000",
  "\u0000",
  "",
  "?",
  "#",
  "/a b",
  `/${"x".repeat(9000)}`,
  `/${"%41".repeat(6000)}`,
];
const VERSIONS = ["HTTP/1.1", "HTTP/1.0", "HTTP/2.0", "HTTP/9.9", "HTTP/1.1 ", "http/1.1", "", "SIP/2.0"];
const HEADERS = [
  "Host: 127.0.0.1",
  "Host: localhost",
  "Host: evil.example",
  "Host: %",
  "Host: [",
  "Host:",
  "Origin: null",
  "Origin: http://[",
  "Origin: \u0001",
  "Connection: Upgrade",
  "Connection: upgrade, close",
  "Connection: keep-alive",
  "Connection: close",
  "Upgrade: websocket",
  "Upgrade: WebSocket",
  "Upgrade: h2c",
  "Upgrade: ,",
  "Upgrade:",
  "Sec-WebSocket-Version: 13",
  "Sec-WebSocket-Version: 99",
  "Sec-WebSocket-Version: x",
  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
  "Sec-WebSocket-Key: short",
  "Sec-WebSocket-Protocol: ,,,",
  "Sec-WebSocket-Protocol: a\u00e9b",
  "Sec-WebSocket-Extensions: permessage-deflate",
  "Sec-WebSocket-Extensions: permessage-deflate; server_max_window_bits=99",
  "Sec-WebSocket-Extensions: ;;;=",
  "Content-Type: application/json",
  "Content-Type: application/json; charset=nonsense",
  "Content-Type: ;",
  "Content-Type: text/plain",
  "Content-Length: 5",
  "Content-Length: -1",
  "Content-Length: 99999999999999999999",
  "Content-Length: 1e3",
  "Content-Length: 2000000",
  "Transfer-Encoding: chunked",
  "Transfer-Encoding: gzip, chunked",
  "Transfer-Encoding: x",
  "Expect: 100-continue",
  "Expect: nonsense",
  "Authorization: Bearer ",
  "Authorization: Bearer wrong",
  "Authorization: Basic !!!",
  'If-None-Match: "',
  "Accept-Encoding: gzip;q=x",
  "Range: bytes=9-1",
  "Cookie: a=%",
  "x: \u00ff\u00fe",
  " folded: x",
  "no colon",
  ": no name",
  "a\u0000b: c",
  `x-long: ${"y".repeat(20_000)}`,
  "HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA",
];
const BODIES = [
  "",
  "{",
  "{}",
  "[]",
  "null",
  "\u0000",
  '5\r\n{"a":\r\n0\r\n\r\n',
  "fffffffffffffffff\r\n",
  "-1\r\n",
  "0\r\n\r\n",
  "[".repeat(5000),
  '{"__proto__":{}}',
  '{"agent_id":1e999}',
  "\ud800",
  "x".repeat(3000),
  "40",
  "1:2",
  "96:\u0000",
];

const USUAL =
  /^(?:Host: (?:127|localhost)|Connection: (?:keep|close)|Content-Type: application\/json$|Authorization|Accept|Cookie|If-None|Range|Upgrade|Sec-WebSocket|Expect: 100)/;
const USUAL_HEADERS = HEADERS.filter((header) => USUAL.test(header));

/** A request with one or more defects: one with a single defect gets far into the server. */
export function malformedRequest(random: Random): Buffer {
  const method = random.chance(0.85) ? random.pick(METHODS.slice(0, 7)) : random.pick(METHODS);
  const version = random.chance(0.95) ? "HTTP/1.1" : random.pick(VERSIONS);
  const headers = Array.from({ length: random.below(4) }, () =>
    random.pick(random.chance(0.85) ? USUAL_HEADERS : HEADERS),
  );
  if (!headers.some((header) => header.startsWith("Host")) && random.chance(0.95)) headers.push("Host: 127.0.0.1");
  if (random.chance(0.2)) headers.push(...UPGRADE);
  const body = random.chance(0.5) ? random.pick(BODIES) : "";
  if (body !== "" && random.chance(0.9))
    headers.push("Content-Type: application/json", `Content-Length: ${Buffer.byteLength(body, "latin1")}`);
  const end = random.chance(0.97) ? "\r\n" : random.pick(["\n", "\r", "\r\r\n", ""]);
  const line = `${method} ${random.pick(TARGETS)} ${version}`;
  return flipped(random, Buffer.from([line, ...headers, "", body].join(end), "latin1"), 0.1);
}
const UPGRADE = [
  "Connection: Upgrade",
  "Upgrade: websocket",
  "Sec-WebSocket-Version: 13",
  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
];

/** Some bytes replaced, some cut off. */
function flipped(random: Random, bytes: Buffer, probability: number): Buffer {
  if (bytes.length === 0 || !random.chance(probability)) return bytes;
  const copy = Buffer.from(bytes);
  for (let times = 1 + random.below(4); times > 0; times -= 1) copy[random.below(copy.length)] = random.below(256);
  return random.chance(0.3) ? copy.subarray(0, random.below(copy.length)) : copy;
}

const PACKETS = [
  "40",
  '40{"token":5}',
  "40/x,",
  "41",
  '42["subscribe"]',
  '42["subscribe",{"all":true}]',
  '420["subscribe",{"session_id":"x"}]',
  '42["subscribe",{"session_id":{}}]',
  '42["unsubscribe",null]',
  "42[]",
  "42{}",
  "42[5]",
  '42["__proto__"]',
  '42["disconnect"]',
  '42["error",1]',
  '42["connect"]',
  "43[]",
  "430[]",
  "44",
  "45",
  '451-["x",{"_placeholder":true,"num":0}]',
  "459999999-[]",
  "45-[]",
  "46",
  "4",
  "2",
  "2probe",
  "3",
  "5",
  "6",
  "1",
  "0",
  "9",
  "",
  "b",
  "bAAAA",
  "\u0000",
  '42["subscribe",',
  `42["subscribe",${"[".repeat(3000)}`,
  `42["x","${"y".repeat(30_000)}"]`,
  '429007199254740993["subscribe",{}]',
  '42/,["x"]',
  '42/admin,["x"]',
];
const CHAT = [
  "",
  "{",
  "null",
  "5",
  "[]",
  "{}",
  '{"type":"user_message"}',
  '{"type":"user_message","text":5}',
  '{"type":"user_message","text":""}',
  '{"type":"user_message","text":"help","request_id":5}',
  '{"type":"status"}',
  '{"type":"__proto__"}',
  "\u0000",
  "[".repeat(20_000),
  `{"type":"user_message","text":5,"request_id":"${"x".repeat(300)}"}`,
];
const TEXT = 0x1;
const OPCODES = [0x0, TEXT, TEXT, TEXT, TEXT, 0x2, 0x3, 0x7, 0x8, 0x9, 0xa, 0xb, 0xf];
const MASKED = 0x80;
const FINAL = 0x80;

/** A WebSocket frame whose payload, opcode, flags, length or mask may be wrong. */
export function malformedFrame(random: Random, surface: "socket.io" | "agent_ws"): Buffer {
  const payload = flipped(random, Buffer.from(random.pick(surface === "socket.io" ? PACKETS : CHAT)), 0.3);
  const flags = random.chance(0.9) ? FINAL : random.below(16) << 4;
  const claimedLength = random.chance(0.95) ? payload.length : random.below(2 ** 16);
  const mask = random.chance(0.97) ? MASKED : 0;
  const opcode = random.chance(0.85) ? TEXT : random.pick(OPCODES);
  const length =
    claimedLength < 126
      ? [mask | claimedLength]
      : claimedLength < 65_536
        ? [mask | 126, claimedLength >> 8, claimedLength & 255]
        : [mask | 127, 0, 0, 0, 0, 0, claimedLength >> 16, (claimedLength >> 8) & 255, claimedLength & 255];
  return Buffer.concat([Buffer.from([flags | opcode, ...length]), mask ? Buffer.alloc(4) : Buffer.alloc(0), payload]);
}
