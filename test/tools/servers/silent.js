// Reads its input and never responds.
process.stdin.resume();
