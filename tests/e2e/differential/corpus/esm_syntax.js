import fs from "node:fs";
import { join } from "node:path";
console.log(join("a", "b"), typeof fs.readFileSync, import.meta.filename, import.meta.url, typeof require);
