import "./suites/rooms.ts";
import "./suites/messages.ts";
import "./suites/nio.ts";
import "./suites/restarts.ts";
