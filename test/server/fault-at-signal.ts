// Loaded before the program (`--import`): at SIGUSR2 something fails that belongs to no step, request or moniker, as a defect
// deep inside the program would.
process.on("SIGUSR2", () => {
  if (process.env["FAULT"] === "rejection") void Promise.reject(new Error("a defect"));
  else if (process.env["FAULT"] === "reset")
    throw Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET", syscall: "read" });
  else throw new Error("a defect");
});
