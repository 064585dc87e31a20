// Calls a server by the types that openapi-typescript generates.
import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { paths } from "./schema.js";

const client = createClient<paths>({ baseUrl: process.env.PREHEAT_URL });

const least = await client.POST("/v1/sandbox/execute", { body: { language: "python", code: "print(6 * 7)" } });
assert.ok(typeof least.data === "object", JSON.stringify(least.error));
assert.equal(least.data.stdout, "42\n");
assert.equal(least.data.status, "succeeded");

const more = await client.POST("/v1/sandbox/execute", {
  body: {
    language: "bash",
    code: 'cat in.txt - <<<"$GREETING $1"',
    args: ["world"],
    env: { GREETING: "hello" },
    files: [{ path: "in.txt", content: "file\n" }],
  },
});
assert.ok(typeof more.data === "object", JSON.stringify(more.error));
assert.equal(more.data.stdout, "file\nhello world\n");

const refused = await client.POST("/v1/sandbox/execute", { body: { language: "cobol", code: "1" } });
assert.equal(refused.error?.field, "language");

const languages = await client.GET("/v1/languages");
assert.ok(languages.data?.languages.some((l) => l.name === "python"));
console.log("openapi-typescript: passed");
