// Runs the cells of a session, one after the other, in one context.
//
// warm.cjs loads this file in place of main.js. A cell comes on fd 3 as the runner
// writes it: four bytes of length (big endian), fields that each end in NUL (its
// number, the path of its standard input or nothing, the number of arguments,
// these, the number of entries of its environment, these), and the source. Its
// end goes to fd 4: {"cell": {"sequence": …, "exit_code": …}}, as a record with
// its length in four bytes before it, behind all that the cell has written. The
// end of fd 3 is the end of the session.
//
// V8 evaluates cells as the consoles of browsers do (Runtime.evaluate, replMode):
// const and let can be declared again, and await works everywhere.
'use strict';

const fs = require('node:fs');
const inspector = require('node:inspector');
const Module = require('node:module');
const net = require('node:net');
const util = require('node:util');
const vm = require('node:vm');

const CONTROL = 3;
const RESULTS = 4;
const INTERRUPTED = 130;

// Exit is what process.exit() throws: it ends the cell and nothing else.
class Exit {
  constructor(code) { this.code = code; }
}

const console_ = new inspector.Session();
console_.connect();

let cell = null; // the one that runs
const queue = []; // those that have come
let received = Buffer.alloc(0);

// Cells come in.

function start() {
  const control = new net.Socket({ fd: CONTROL, readable: true, writable: false });
  control.on('data', (data) => {
    received = received.length ? Buffer.concat([received, data]) : data;
    while (received.length >= 4 && received.length >= 4 + received.readUInt32BE()) {
      const size = 4 + received.readUInt32BE();
      queue.push(parse(received.subarray(4, size)));
      received = received.subarray(size);
    }
    next();
  });
  control.on('end', () => process.reallyExit(0));
}

function parse(message) {
  let at = 0;
  const field = () => {
    const end = message.indexOf(0, at);
    const text = message.toString('utf8', at, end);
    at = end + 1;
    return text;
  };
  const list = () => Array.from({ length: Number(field()) }, field);
  return { sequence: Number(field()), stdin: field(), args: list(), env: list(), source: message.toString('utf8', at) };
}

function next() {
  if (!cell && queue.length) {
    cell = queue.shift();
    serve(cell);
  }
}

// Cells run.

function serve(c) {
  c.code = 0;
  c.name = `cell-${c.sequence}.js`;
  process.argv.splice(1, Infinity, c.name, ...c.args);
  c.before = setEnvironment(c.env.map((e) => [e.slice(0, e.indexOf('=')), e.slice(e.indexOf('=') + 1)]));
  setInput(c.stdin);
  try {
    // SIGINT ends code that does not return: the handler below could not run then.
    run(() => evaluate(c));
  } catch (e) {
    end(c, e?.code === 'ERR_SCRIPT_EXECUTION_INTERRUPTED' ? interrupt() : report(e));
  }
}

const script = new vm.Script('globalThis[Symbol.for("preheat.run")]()', { filename: 'node:session' });

// run calls f so that SIGINT ends it.
function run(f) {
  const name = Symbol.for('preheat.run');
  Object.defineProperty(globalThis, name, { value: f, configurable: true, enumerable: false });
  try {
    script.runInThisContext({ breakOnSigint: true });
  } finally {
    delete globalThis[name];
  }
}

function evaluate(c) {
  console_.post('Runtime.evaluate', {
    expression: `${c.source}\n//# sourceURL=${c.name}`, replMode: true, awaitPromise: true, userGesture: false,
  }, (error, answer) => {
    if (cell !== c) return; // it was interrupted before
    if (error) return end(c, interrupt()); // V8 was told to stop
    if (answer.exceptionDetails) return end(c, failed(c, answer.exceptionDetails));
    if (!c.source.trimEnd().endsWith(';')) display(take(answer.result));
    end(c, 0);
  });
}

function end(c, code) {
  if (cell !== c) return;
  setEnvironment(c.before);
  record({ cell: { sequence: c.sequence, exit_code: c.code || code } });
  cell = null;
  setImmediate(next);
}

// take returns the value itself that V8 describes.
function take(described) {
  if (!('objectId' in described)) {
    if (!('unserializableValue' in described)) return described.value;
    return described.type === 'bigint' ? BigInt(described.unserializableValue.slice(0, -1)) : Number(described.unserializableValue);
  }
  const name = Symbol.for('preheat.take');
  let value;
  Object.defineProperty(globalThis, name, { value: (v) => { value = v; }, configurable: true, enumerable: false });
  try {
    console_.post('Runtime.callFunctionOn', {
      objectId: described.objectId, functionDeclaration: 'function () { "use strict"; globalThis[Symbol.for("preheat.take")](this) }',
    });
    console_.post('Runtime.releaseObject', { objectId: described.objectId });
  } finally {
    delete globalThis[name];
  }
  return value;
}

function display(value) {
  if (value === undefined) return;
  const text = Buffer.from(util.inspect(value));
  record({ parts: [{ mime: 'text/plain', size: text.length }] }, text);
}

function record(head, content = Buffer.alloc(0)) {
  const json = Buffer.from(JSON.stringify(head));
  const size = Buffer.alloc(4);
  size.writeUInt32BE(json.length);
  let data = Buffer.concat([size, json, content]);
  try {
    while (data.length) data = data.subarray(fs.writeSync(RESULTS, data));
  } catch { /* nobody collects */ }
}

// What goes wrong.

function failed(c, details) {
  const error = details.exception ? take(details.exception) : details.text;
  if (error instanceof SyntaxError && !/\n\s+at .*cell-/.test(String(error.stack))) {
    const line = c.source.split('\n')[details.lineNumber] ?? '';
    write(`${c.name}:${details.lineNumber + 1}\n${line}\n${' '.repeat(details.columnNumber)}^\n\n`);
  }
  return report(error);
}

// report prints an error as Node.js's console does, and returns the exit code.
function report(error) {
  if (error instanceof Exit) return error.code;
  trim(error);
  let text;
  try {
    text = util.inspect(error);
  } catch (e) {
    text = `an exception that cannot be shown: ${e}`;
  }
  write(`Uncaught ${text}\n`);
  return 1;
}

function interrupt() {
  write('Uncaught Interrupt: the run was interrupted\n');
  return INTERRUPTED;
}

function write(text) {
  try { fs.writeSync(2, text); } catch { /* it is closed */ }
}

// trim takes this file's frames off an error's stack, and those of its causes.
function trim(error) {
  for (let depth = 0; error instanceof Error && depth < 20; error = error.cause, depth++) {
    try {
      const lines = String(error.stack).split('\n');
      let last = lines.length;
      while (last > 1 && /^\s+at .*(node:|\/opt\/preheat\/)/.test(lines[last - 1])) last--;
      error.stack = lines.slice(0, last).join('\n');
    } catch { return; }
  }
}

// What cells find.

function setEnvironment(entries) {
  return entries.map(([name, value]) => {
    const before = process.env[name];
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
    return [name, before];
  });
}

function setInput(path) {
  try { fs.closeSync(0); } catch { /* the program has */ }
  fs.openSync(path || '/dev/null'); // the lowest number that is free
  if (path) fs.unlinkSync(path);
  let stream;
  Object.defineProperty(process, 'stdin', {
    configurable: true, enumerable: true,
    get: () => (stream ??= Object.assign(new fs.ReadStream(null, { fd: 0, autoClose: false }), { fd: 0 })),
  });
}

function prepare() {
  const require = Module.createRequire(`${process.cwd()}/`);
  for (const [name, value] of Object.entries({ require, module: new Module('<session>'), exports: {} })) {
    Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false });
  }
  process.exit = (code = process.exitCode ?? 0) => {
    process.exitCode = undefined;
    throw new Exit(Number(code) & 0xff);
  };
  process.on('SIGINT', () => {
    const c = cell;
    if (c) end(c, interrupt());
  });
  process.on('uncaughtException', (error) => {
    const c = cell;
    const code = report(error);
    if (error instanceof Exit) {
      if (c) end(c, code);
    } else if (c) c.code = code;
  });
}

Module.runMain = () => {
  prepare();
  start();
};
