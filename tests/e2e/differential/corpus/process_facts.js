console.log(process.cwd(), process.version, process.execPath, process.getuid(), process.exitCode, process._events && Object.keys(process._events));
console.log(process.listenerCount("exit"), process.config.variables.napi_build_version, process.env.NODE_OPTIONS, process.stdout.writableHighWaterMark);
console.log(new Error("x").stack);
console.log(require("module").builtinModules.length, process.allowedNodeEnvironmentFlags.size, process.uptime() < 1000, performance.timeOrigin > 0);
