import { commandsSuite } from "./suites/commands.ts";
import { crashesSuite } from "./suites/crashes.ts";
import { encryptionSuite } from "./suites/encryption.ts";
import { hostileAnswersSuite } from "./suites/hostile-answers.ts";
import { messagesSuite } from "./suites/messages.ts";
import { nioSuite } from "./suites/nio.ts";
import { outagesSuite } from "./suites/outages.ts";
import { resettingSuite } from "./suites/resetting.ts";
import { restartsSuite } from "./suites/restarts.ts";
import { roomsSuite } from "./suites/rooms.ts";
import { savingSuite } from "./suites/saving.ts";
import { stoppingSuite } from "./suites/stopping.ts";

// All in one process, so that they share one homeserver.
for (const suite of [
  commandsSuite,
  crashesSuite,
  encryptionSuite,
  hostileAnswersSuite,
  messagesSuite,
  nioSuite,
  outagesSuite,
  resettingSuite,
  restartsSuite,
  roomsSuite,
  savingSuite,
  stoppingSuite,
])
  suite();
