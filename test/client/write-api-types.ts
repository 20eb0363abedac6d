import { writeFile } from "node:fs/promises";
import { ServerProcess } from "../server/server-fixture.ts";
import { API_TYPES, formattedApiTypes } from "./api-types-file.ts";

/** `npm run generate:client-types`: reads the API from a real server. */
const server = await ServerProcess.start();
try {
  await writeFile(API_TYPES, await formattedApiTypes(server.url));
} finally {
  await server[Symbol.asyncDispose]();
}
