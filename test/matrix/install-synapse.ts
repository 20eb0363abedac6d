import { installSynapse } from "./synapse/installation.ts";

const { version } = await installSynapse((line) => console.log(line));
console.log(`Synapse ${version} is there`);
