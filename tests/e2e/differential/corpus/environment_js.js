console.log(Object.entries(process.env).sort());
process.env.NEW = 1; delete process.env.LANG;
console.log(require("child_process").execSync("echo $NEW ${LANG-unset}", { encoding: "utf8" }));
