process.stdin.on("end", () => console.log("end")).resume();
