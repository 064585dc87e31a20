// A relay between the browser and the server. It can answer as the model would,
// so that a test says what code stands on the page, and it can break what the
// server sends. Executions stay the server's own.

import http from 'node:http';

export class Relay {
  /** Answers chat requests in the server's place: gets a function that writes text, and the response. */
  answer = null;
  /**
   * How to break execution streams before their exit event: null, or how, a
   * "reset" or an orderly "end", and a promise of when.
   */
  cut = null;
  /** Limits to ask for in every execution. */
  limits = null;

  #target;
  #server;
  #sockets = new Set();
  #port = 0;

  constructor(target) {
    this.#target = new URL(target);
  }

  get url() {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Listens; after a close on the same port as before. */
  async listen() {
    this.#server = http.createServer((req, res) => void this.#serve(req, res));
    this.#server.on('connection', (socket) => {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
    });
    await new Promise((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(this.#port, '127.0.0.1', resolve);
    });
    this.#port = this.#server.address().port;
    return this;
  }

  /** Stops listening and breaks all connections. */
  async close() {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  async #serve(req, res) {
    if (this.answer && req.url === '/v1/chat/completions') {
      req.resume();
      await this.#answer(res).catch(() => res.destroy());
    } else {
      await this.#forward(req, res);
    }
  }

  async #answer(res) {
    res.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' });
    const send = (data) => res.write(`data: ${data}\n\n`);
    await this.answer(
      (content) => send(JSON.stringify({ choices: [{ delta: { content } }] })),
      res,
    );
    send('[DONE]');
    res.end();
  }

  async #forward(req, res) {
    const execution = req.url === '/v1/sandbox/execute';
    let body = await read(req);
    if (execution && this.limits) {
      body = Buffer.from(JSON.stringify({ ...JSON.parse(body.toString()), limits: this.limits }));
    }
    const headers = { ...req.headers, 'content-length': body.length };
    const { hostname, port } = this.#target;
    const upstream = http.request(
      { hostname, port, method: req.method, path: req.url, headers },
      (answer) => {
        res.writeHead(answer.statusCode, answer.headers);
        res.flushHeaders();
        answer.on('data', (chunk) => {
          const exit = execution && this.cut ? chunk.indexOf('event: exit') : -1;
          if (exit < 0) {
            res.write(chunk);
          } else {
            res.write(chunk.subarray(0, exit));
            answer.removeAllListeners();
            upstream.destroy();
            const { how, when } = this.cut;
            void when.then(() => (how === 'end' ? res.end() : res.destroy()));
          }
        });
        answer.on('end', () => res.end());
        answer.on('error', () => res.destroy());
      },
    );
    upstream.on('error', () => res.destroy());
    res.on('close', () => upstream.destroy());
    upstream.end(body);
  }
}

async function read(stream) {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks);
}
