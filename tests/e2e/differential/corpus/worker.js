const { Worker, isMainThread, workerData } = require("worker_threads");
if (isMainThread) new Worker(__filename, { workerData: 5 }).on("exit", (c) => console.log("worker ended", c));
else console.log("in worker", workerData);
