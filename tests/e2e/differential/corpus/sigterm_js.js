process.on("SIGTERM", () => { console.log("got it"); process.exit(0); });
process.kill(process.pid, "SIGTERM"); setTimeout(() => {}, 5000);
