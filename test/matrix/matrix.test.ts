import "./suites/rooms.ts";
import "./suites/restarts.ts";
import "./suites/outages.ts";
