import x from "./y.js";
console.log(x);
