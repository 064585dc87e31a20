let n = 0;
process.stdin.on("data", (d) => { n += d.length; }).on("end", () => console.log("read", n));
