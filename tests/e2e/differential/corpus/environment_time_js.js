console.log(new Date(0).toString(), process.execArgv, process.env.NODE_OPTIONS, [1, "x", null]);
process.emitWarning("hidden");
