// Never responds, and keeps running after the end of its input.
process.stdin.resume();
setInterval(() => {}, 1000);
process.stderr.write(`pid ${process.pid}\n`);
