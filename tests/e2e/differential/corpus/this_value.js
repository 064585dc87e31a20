console.log(this === module.exports, typeof globalThis.require, arguments.length, Object.keys(globalThis));
var leaked = 1; console.log(globalThis.leaked);
return 5;
