import { installPromtool } from "./promtool.ts";

console.log(`promtool is at ${await installPromtool()}`);
