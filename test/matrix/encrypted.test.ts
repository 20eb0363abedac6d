import { encryptionSuite } from "./suites/encryption.ts";
import { nioSuite } from "./suites/nio.ts";
import { recoverySuite } from "./suites/recovery.ts";
import { roomsSuite } from "./suites/rooms.ts";
import { upgradesSuite } from "./suites/upgrades.ts";

// In one process, so that they share one homeserver.
encryptionSuite();
nioSuite();
recoverySuite();
roomsSuite();
upgradesSuite();
