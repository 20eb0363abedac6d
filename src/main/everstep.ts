import { EverstepError } from "../domain/errors.ts";
import { serve } from "./serve.ts";

const HELP = `everstep: runs long-lived agents that never lose a step

  everstep serve    opens the store and keeps it until SIGINT or SIGTERM
  everstep --help   this text

Environment: EVERSTEP_STORE=lancedb:./data names the folder that holds everything.`;

async function main(command: string | undefined): Promise<number> {
  switch (command) {
    case "serve":
      await serve();
      return 0;
    case undefined:
    case "--help":
    case "-h":
      console.log(HELP);
      return 0;
    default:
      console.error(`everstep: no command is named ${JSON.stringify(command)}; everstep --help lists them`);
      return 2;
  }
}

try {
  process.exitCode = await main(process.argv[2]);
} catch (error) {
  console.error(error instanceof EverstepError ? error.message : error);
  process.exitCode = 1;
}
