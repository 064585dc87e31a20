// Holds Node.js back until there is a program for it.
//
// The runner starts `node --require warm.cjs main.js` before main.js exists.
// This file waits on fd 3 while Node.js initialises itself; afterwards Node.js
// loads main.js as it always does. The format on the pipe is the one that
// _preheat.py describes; fd 4 gets one byte when this process waits. When it is
// started on demand, main.js is there already and _PREHEAT is not "warm".
'use strict';

const fs = require('node:fs');

const CONTROL = 3;
const RESULTS = 4;

function read(size) {
  const data = Buffer.alloc(size);
  for (let n = 0; n < size;) {
    const got = fs.readSync(CONTROL, data, n, size - n, null);
    if (got === 0) process.exit(0); // the runner is gone
    n += got;
  }
  return data;
}

function wait() {
  fs.writeSync(RESULTS, 'R');
  const fields = read(read(4).readUInt32BE()).toString().split('\0');
  const next = () => fields.shift();
  process.argv.splice(2, Infinity, ...Array.from({ length: Number(next()) }, next));
  for (const name of Object.keys(process.env)) delete process.env[name];
  for (const pair of Array.from({ length: Number(next()) }, next)) {
    const at = pair.indexOf('=');
    process.env[pair.slice(0, at)] = pair.slice(at + 1);
  }
}

// Node.js does not wait for what a full pipe could not take yet, so that
// process.exit() would cut the output. A write that blocks has no such rest.
function block(stream) {
  if (typeof stream._handle?.setBlocking === 'function') stream._handle.setBlocking(true);
}

// The threads that a program starts load this file as well.
if (require('node:worker_threads').isMainThread) {
  block(process.stdout);
  block(process.stderr);
  if (process.env._PREHEAT === 'warm') wait();
  else delete process.env._PREHEAT;
  if (process.env._PREHEAT_SESSION) {
    delete process.env._PREHEAT_SESSION;
    require('./session.cjs');
  } else {
    fs.closeSync(CONTROL);
    fs.closeSync(RESULTS);
  }
}
process.execArgv.length = 0;
delete require.cache[__filename];
