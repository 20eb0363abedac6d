import { defineSandbox } from "eve/sandbox";
import { JustBashSandbox } from "eve/sandbox/just-bash";

// The sandbox that needs neither containers nor virtual machines. The bench never uses it.
export const environment = JustBashSandbox.environment();
export default defineSandbox(() => environment.open());
