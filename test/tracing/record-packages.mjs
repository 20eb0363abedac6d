// Loaded before the program: records which of OpenTelemetry's packages it loads, by import or require, and for which package.
import { appendFileSync } from "node:fs";
import { registerHooks } from "node:module";

const file = process.env.LOADED_PACKAGES;
const packageOf = (url) => /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(url ?? "")?.[1];

registerHooks({
  resolve(specifier, context, nextResolve) {
    const resolved = nextResolve(specifier, context);
    const name = packageOf(resolved.url);
    const from = packageOf(context.parentURL) ?? "everstep";
    if (file && name?.startsWith("@opentelemetry/") && name !== from) appendFileSync(file, `${name} for ${from}\n`);
    if (file && resolved.url.endsWith("/src/main/serve.ts")) appendFileSync(file, "serve\n");
    return resolved;
  },
});
