import { setTimeout as sleep } from "node:timers/promises";
await sleep(5);
throw new RangeError("from a module");
