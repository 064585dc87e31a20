process.on("unhandledRejection", (r) => { console.log("handled", r.message); process.exitCode = 6; });
Promise.reject(new Error("x"));
