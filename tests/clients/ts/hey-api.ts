// Calls a server by the client that @hey-api/openapi-ts generates.
import assert from "node:assert/strict";
import { client } from "./client.gen.js";
import { execute, languages } from "./sdk.gen.js";

client.setConfig({ baseUrl: process.env.PREHEAT_URL });

const least = await execute({ body: { language: "python", code: "print(6 * 7)" } });
assert.ok(typeof least.data === "object", JSON.stringify(least.error));
assert.equal(least.data.stdout, "42\n");
assert.equal(least.data.status, "succeeded");

const failed = await execute({ body: { language: "bash", code: "echo oops >&2; exit 3", limits: { timeout_seconds: 5 } } });
assert.ok(typeof failed.data === "object", JSON.stringify(failed.error));
assert.equal(failed.data.exit_code, 3);
assert.equal(failed.data.stderr, "oops\n");

const refused = await execute({ body: { language: "cobol", code: "1" } });
assert.equal(refused.error?.field, "language");

const offered = await languages();
assert.ok(offered.data?.languages.some((l) => l.name === "python"));
console.log("@hey-api/openapi-ts: passed");
