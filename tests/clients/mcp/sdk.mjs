// Calls the server by the SDK's client for Node, of the package that SDK names:
// the one for revisions until 2025-11-25, or the one that knows later ones, too.
import assert from "node:assert/strict";
import process from "node:process";

const url = new URL("/mcp", process.env.PREHEAT_URL);
const { Client, StreamableHTTPClientTransport } =
  process.env.SDK === "@modelcontextprotocol/sdk"
    ? {
        ...(await import("@modelcontextprotocol/sdk/client/index.js")),
        ...(await import("@modelcontextprotocol/sdk/client/streamableHttp.js")),
      }
    : await import("@modelcontextprotocol/client");

const client = new Client({ name: "test", version: "1" }, JSON.parse(process.env.OPTIONS ?? "{}"));
const transport = new StreamableHTTPClientTransport(url);
await client.connect(transport);
assert.equal(client.getServerVersion().name, "preheat");

const { tools } = await client.listTools();
assert.deepEqual(
  tools.map((tool) => tool.name),
  ["run_code"],
);

// The second argument of callTool is the result's schema in the older client.
const call = (args, options) => {
  const params = { name: "run_code", arguments: args };
  return process.env.SDK === "@modelcontextprotocol/sdk"
    ? client.callTool(params, undefined, options)
    : client.callTool(params, options);
};

// The structured content is checked against the schema by the client.
const good = await call({ language: "python", code: "print(6 * 7)" });
assert.ok(!good.isError);
assert.equal(good.content[0].text, "42\n");
assert.equal(good.structuredContent.exit_code, 0);

const bad = await call({ language: "python", code: "raise SystemExit(3)" });
assert.equal(bad.isError, true);
assert.match(bad.content[0].text, /exit code 3/);

const figure = await call({
  language: "python",
  code: "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()",
});
assert.equal(figure.content[1].mimeType, "image/png");

const messages = [];
await call(
  { language: "bash", code: "echo one; sleep 0.5; echo two" },
  { onprogress: (p) => messages.push(p.message), resetTimeoutOnProgress: true },
);
assert.match(messages.join(""), /one\n[^]*two\n/);
assert.ok(messages.findIndex((m) => m.includes("one")) < messages.findIndex((m) => m.includes("two")));

// A program that is cancelled ends: its sandbox is not in use any more.
const abort = new AbortController();
const cancelled = call(
  { language: "bash", code: "echo running; sleep 300", limits: { timeout_seconds: 300 } },
  { signal: abort.signal, onprogress: (p) => p.message.includes("running") && abort.abort("enough") },
);
await assert.rejects(cancelled);
for (let claimed = 1; claimed > 0; ) {
  const { pools } = await (await fetch(new URL("/v1/pools", url))).json();
  claimed = pools.reduce((n, pool) => n + pool.claimed, 0);
  await new Promise((resolve) => setTimeout(resolve, 20));
}

const revision = client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion;
await client.close();
// The tests compare it.
console.log(revision);
