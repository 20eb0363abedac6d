// Loaded before the program (`--import`): prints its process id, and fails at SIGUSR2 as a defect deep inside the program
// would.
console.error(`pid ${process.pid}`);
process.on("SIGUSR2", () => {
  if (process.env["FAULT"] === "reset")
    throw Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET", syscall: "read" });
  void Promise.reject(new Error("a defect"));
});
