import { commandsSuite } from "./suites/commands.ts";
import { hostileAnswersSuite } from "./suites/hostile-answers.ts";
import { messagesSuite } from "./suites/messages.ts";
import { savingSuite } from "./suites/saving.ts";
import { stoppingSuite } from "./suites/stopping.ts";
import { threadsSuite } from "./suites/threads.ts";

// In one process, so that they share one homeserver.
commandsSuite();
hostileAnswersSuite();
messagesSuite();
savingSuite();
stoppingSuite();
threadsSuite();
