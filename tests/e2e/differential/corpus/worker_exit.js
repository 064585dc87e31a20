const { Worker, isMainThread } = require("worker_threads");
if (isMainThread) new Worker(__filename, { argv: ["a"] }).on("error", (e) => console.log("error", e.message)).on("exit", (c) => console.log(c));
else { console.log(process.argv.length, process.argv[2], process.execArgv); throw new Error("in a worker"); }
