const { spawnSync, fork } = require("child_process");
if (process.argv[2]) { process.send({ got: process.argv[2] }); process.disconnect(); }
else {
  const r = spawnSync(process.execPath, ["-p", "1+1; process.execArgv"], { encoding: "utf8" });
  console.log(r.status, r.stdout, r.stderr);
  fork(__filename, ["x"]).on("message", (m) => console.log(m)).on("exit", (c) => console.log(c));
}
