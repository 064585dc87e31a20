const { twice } = require("./lib");
const data = require("./data.json");
console.log(twice(data.n), Object.keys(require.cache));
