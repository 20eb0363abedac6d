import { registerHooks } from "node:module";

const MONIKER = new URL("./public.ts", import.meta.url).href;

let isRegistered = false;

/** Lets a moniker in any folder import `everstep/moniker`: there need be no package around it. */
export function resolveOwnPackage(): void {
  if (isRegistered) return;
  isRegistered = true;
  registerHooks({
    resolve: (specifier, context, next) =>
      specifier === "everstep/moniker" ? { url: MONIKER, shortCircuit: true } : next(specifier, context),
  });
}
