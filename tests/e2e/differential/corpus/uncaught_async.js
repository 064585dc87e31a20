setTimeout(() => { throw new Error("later"); }, 10);
process.on("exit", (c) => console.log("exit", c));
