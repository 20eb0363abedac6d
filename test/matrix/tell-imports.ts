// Loaded before the program (`--import`): prints each package of the crypto library that the program loads.
import { registerHooks } from "node:module";

registerHooks({
  resolve(specifier, context, next) {
    if (/fake-indexeddb|matrix-sdk-crypto-wasm/.test(specifier)) console.error(`imports ${specifier}`);
    return next(specifier, context);
  },
});
