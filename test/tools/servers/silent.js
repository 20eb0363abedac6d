// Reads what it is sent and never answers.
process.stdin.resume();
