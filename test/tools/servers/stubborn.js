// Never answers, and goes on after the end of its input.
process.stdin.resume();
setInterval(() => {}, 1000);
process.stderr.write(`pid ${process.pid}\n`);
