// Runs the program of the JSON on stdin by the client that is named, and prints
// what the client gives for it.
import process from "node:process";

const server = process.env.PREHEAT_URL;
let text = "";
for await (const piece of process.stdin) text += piece;
const { language, code, stdin, args, timeout } = JSON.parse(text);

const clients = {
  async "piston-client"() {
    const { piston } = await import("piston-client");
    return piston({ server }).execute({
      language,
      files: [{ name: "main", content: code }],
      stdin,
      args,
      runTimeout: timeout,
    });
  },
  // It checks the answer against a schema.
  async "piston-api"() {
    const { PistonClient } = await import("piston-api");
    const client = new PistonClient({ baseUrl: server });
    return client.run({ language, version: "*", code, stdin, args, run_timeout: timeout });
  },
  async "piston-api-client"() {
    const { NodePistonClient } = await import("piston-api-client");
    const result = await new NodePistonClient({ server }).execute({
      language,
      version: "x",
      files: [{ name: "main", content: code }],
      stdin,
      args,
      run_timeout: timeout,
    });
    return result.success ? result.data : { message: String(result.error) };
  },
};

let shown;
try {
  shown = await clients[process.argv[2]]();
} catch (error) {
  shown = { message: String(error?.response?.data?.message ?? error) };
}
// One of the clients keeps Node alive.
process.stdout.write(JSON.stringify(shown), () => process.exit(0));
