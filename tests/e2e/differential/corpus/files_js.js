const fs = require("fs");
fs.mkdirSync("out"); fs.writeFileSync("out/a.json", "{}"); fs.writeFileSync("b.bin", Buffer.from([0, 255]));
console.log(fs.readdirSync(".").sort());
fs.promises.writeFile("c.txt", "async").then(() => console.log("written"));
