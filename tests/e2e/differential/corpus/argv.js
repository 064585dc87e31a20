console.log(process.argv, process.execArgv, __filename, __dirname, require.main === module, module.id, module.paths);
console.log(process.title, process.argv0, require.main.filename, Object.keys(require.cache), module.parent, module.children.length);
