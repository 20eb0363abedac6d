/** All suites in one process, so that they share one homeserver. */
import "./suites/commands.ts";
import "./suites/messages.ts";
import "./suites/nio.ts";
import "./suites/outages.ts";
import "./suites/resetting.ts";
import "./suites/restarts.ts";
import "./suites/rooms.ts";
import "./suites/saving.ts";
