// What a program or a model writes never makes the browser look up a name or
// connect to anybody: a host's name alone would carry out what a program knows.
// Chromium's own log tells which names it tried to resolve.

import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { ask, ended, launch, run, screenshots, serverURL, useBrowser } from './browser.js';
import { Relay } from './relay.js';

const withPage = useBrowser();
const relay = new Relay(serverURL);
before(() => relay.listen());
after(() => relay.close());

/** Makes HTML, SVG or Markdown that names the URL. Each gets a host of its own. */
const html = {
  iframe: (url) => `<iframe src="${url}"></iframe>`,
  'iframe without a scheme': (url) => `<iframe src="${url.replace('http:', '')}"></iframe>`,
  'iframe in srcdoc': (url) => `<iframe srcdoc="<iframe src='${url}'></iframe>"></iframe>`,
  'iframe that loads later': (url) => `<iframe loading="lazy" src="${url}"></iframe>`,
  frame: (url) => `<frameset><frame src="${url}"></frameset>`,
  object: (url) => `<object data="${url}"></object>`,
  embed: (url) => `<embed src="${url}">`,
  'dns-prefetch': (url) => `<link rel="dns-prefetch" href="${url}">`,
  preconnect: (url) => `<link rel="preconnect" href="${url}">`,
  prefetch: (url) => `<link rel="prefetch" href="${url}">`,
  prerender: (url) => `<link rel="prerender" href="${url}">`,
  preload: (url) => `<link rel="preload" as="image" href="${url}">`,
  stylesheet: (url) => `<link rel="stylesheet" href="${url}">`,
  icon: (url) => `<link rel="icon" href="${url}">`,
  'meta refresh': (url) => `<meta http-equiv="refresh" content="0; url=${url}">`,
  'meta that allows prefetching': (url) =>
    `<meta http-equiv="x-dns-prefetch-control" content="on"><a href="${url}">x</a>`,
  base: (url) => `<base href="${url}"><img src="x.png">`,
  script: (url) => `<script src="${url}"></script>`,
  'speculation rules': (url) =>
    `<script type="speculationrules">{"prefetch":[{"urls":["${url}"],"eagerness":"immediate"}]}</script>`,
  image: (url) => `<img src="${url}">`,
  'image that has sources': (url) => `<img srcset="${url} 1x, ${url}2 2x">`,
  picture: (url) => `<picture><source srcset="${url}"><img></picture>`,
  'input of type image': (url) => `<input type="image" src="${url}">`,
  video: (url) => `<video src="${url}" poster="${url}" autoplay></video>`,
  audio: (url) => `<audio src="${url}" autoplay><track src="${url}"></audio>`,
  form: (url) => `<form action="${url}"><input autofocus><button>Go</button></form>`,
  link: (url) => `<a href="${url}" ping="${url}">x</a>`,
  area: (url) => `<img usemap="#m"><map name="m"><area href="${url}"></map>`,
  background: (url) => `<table background="${url}"><tr><td background="${url}">x</table>`,
  'style attribute': (url) => `<p style="background: url(${url})">x</p>`,
  'image-set in a style': (url) => `<p style="background-image: image-set('${url}' 1x)">x</p>`,
  'style with an escape': (url) => `<p style="background: \\75 rl(${url})">x</p>`,
  'style by a variable': (url) => `<style>p{--u:url(${url});background:var(--u)}</style><p>x</p>`,
  'style sheet': (url) => `<style>p { background: url("${url}") }</style><p>x</p>`,
  '@import': (url) => `<style>@import "${url}";</style>`,
  '@font-face': (url) =>
    `<style>@font-face { font-family: f; src: url("${url}") } p { font-family: f }</style><p>x</p>`,
  'cursor, list and content': (url) =>
    `<style>li { cursor: url(${url}), auto; list-style: url(${url}) } li::before { content: url(${url}) }</style><li>x</li>`,
  'style that ends in a selector': (url) =>
    `<style>[a="</style><iframe src='${url}'></iframe>"] { color: red }</style>`,
  'SVG image': (url) => `<svg><image href="${url}"/><use href="${url}#a"/></svg>`,
  'SVG filter': (url) =>
    `<svg><filter id="f"><feImage href="${url}"/></filter><rect filter="url(${url}#f)" width="9" height="9"/></svg>`,
  'SVG with HTML': (url) =>
    `<svg><foreignObject><iframe src="${url}"></iframe></foreignObject></svg>`,
  'MathML with HTML': (url) =>
    `<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;iframe src='${url}'&gt;"></math>`,
  template: (url) => `<template shadowrootmode="open"><iframe src="${url}"></iframe></template>`,
  noscript: (url) => `<noscript><p title="</noscript><iframe src='${url}'></iframe>"></noscript>`,
  'picture of SVG': (url) =>
    `<img src="data:image/svg+xml,${encodeURIComponent(svg(url)).replaceAll("'", '%27')}">`,
};

const svg = (url) =>
  `<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><?xml-stylesheet href="${url}"?>` +
  `<style>@import "${url}"; rect { fill: url(${url}#a) }</style><image href="${url}" width="9" height="9"/>` +
  `<foreignObject width="9" height="9"><iframe xmlns="http://www.w3.org/1999/xhtml" src="${url}"></iframe></foreignObject>` +
  `<rect width="9" height="9"/></svg>`;

const markdown = {
  image: (url) => `![a picture](${url})`,
  link: (url) => `[a link](${url}) <${url}>`,
  'bare address': (url) => url,
  reference: (url) => `![x][r]\n\n[r]: ${url}`,
  'HTML image': (url) => `<img src="${url}">`,
  'HTML link': (url) => `<link rel="dns-prefetch" href="${url}">`,
  'HTML frame': (url) => `<iframe src="${url}"></iframe>`,
};

/** The URLs that the test puts in: hosts by name, and a listener by its address. */
class Trap {
  hosts = new Map();
  connections = 0;
  #server = net.createServer((socket) => {
    this.connections++;
    socket.destroy();
  });

  async listen() {
    await new Promise((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
  }

  close() {
    return new Promise((resolve) => this.#server.close(resolve));
  }

  /** One text for each kind, by a name and by the listener's address. */
  texts(kind, makers) {
    return Object.entries(makers).flatMap(([name, make], i) => {
      const host = `${kind}-${i}.leak.test`;
      this.hosts.set(host, `${kind}: ${name}`);
      return [make(`http://${host}/`), make(`http://127.0.0.1:${this.#server.address().port}/`)];
    });
  }
}

/** Runs use in a browser of its own, and returns the hosts that the browser resolved. */
async function namesResolvedIn(use) {
  const folder = await mkdtemp(join(tmpdir(), 'preheat-names-'));
  try {
    const log = join(folder, 'net.json');
    const browser = await launch([`--log-net-log=${log}`]);
    try {
      await use(browser);
    } finally {
      await browser.close();
    }
    const { constants, events } = JSON.parse(await readFile(log, 'utf8'));
    const kinds = Object.entries(constants.logEventTypes)
      .filter(([name]) => /^HOST_RESOLVER|^DNS_/.test(name))
      .map(([, number]) => number);
    return new Set(
      events
        .filter((e) => kinds.includes(e.type))
        .flatMap((e) => JSON.stringify(e.params ?? {}).match(/[a-z0-9-]+\.leak\.test/g) ?? []),
    );
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** Makes the browser resolve a name, which no server knows. */
async function resolve(browser, host) {
  const page = await browser.newPage();
  await assert.rejects(page.goto(`http://${host}/`));
  await page.close();
}

/** As Styler.to_html writes it; the sandbox has no Jinja, which the Styler needs. */
const styler = `<style type="text/css">
#T_5f3 caption { font-size: 18px; }
#T_5f3 th { background-color: rgb(240, 240, 250); }
#T_5f3_row0_col1 { background-color: #e5f5ac; color: #000000; }
#T_5f3_row0_col2 { width: 10em; background: linear-gradient(90deg, transparent 10.0%, #d65f5f 10.0%, #d65f5f 39.2%, transparent 39.2%); color: crimson; font-weight: bold; }
#T_5f3_row1_col1 { background-color: #004529; color: #f1f1f1; }
#T_5f3_row1_col2 { width: 10em; background: linear-gradient(90deg, transparent 39.2%, #5fba7d 39.2%, #5fba7d 84.4%, transparent 84.4%); }
</style>
<table id="T_5f3"><caption>Harvest</caption>
<thead><tr><th id="T_5f3_level0_col0" class="col_heading level0 col0" >fruit</th><th class="col_heading level0 col1" >kilos</th><th class="col_heading level0 col2" >change</th></tr></thead>
<tbody>
<tr><td id="T_5f3_row0_col0" class="data row0 col0" >pear</td><td id="T_5f3_row0_col1" class="data row0 col1" >3.5</td><td id="T_5f3_row0_col2" class="data row0 col2" >-20%</td></tr>
<tr><td id="T_5f3_row1_col0" class="data row1 col0" >plum</td><td id="T_5f3_row1_col1" class="data row1 col1" >12.2</td><td id="T_5f3_row1_col2" class="data row1 col2" >+31%</td></tr>
</tbody></table>`;

/** The code of a program that shows each [mime, data] as a result. */
const showing = (values) => `import base64, json
for mime, data in json.loads(base64.b64decode("${Buffer.from(JSON.stringify(values)).toString('base64')}")):
    class Value:
        def _repr_mimebundle_(self, **_): return {mime: data}
    display(Value())`;

test('results and answers make the browser resolve no name and open no connection', async () => {
  const trap = new Trap();
  await trap.listen();
  const asHTML = trap.texts('html', html).map((text) => ['text/html', text]);
  const asSVG = trap.texts('svg', { file: svg }).map((text) => ['image/svg+xml', text]);
  const asText = trap.texts('markdown', markdown).join('\n\n');
  const shown = [];
  const names = await namesResolvedIn(async (browser) => {
    const page = await browser.newPage();
    await page.goto(relay.url);
    // Without these the test would pass where the log does not tell. What the
    // browser began before the second one stands in the log before it.
    await resolve(browser, 'begin.leak.test');
    // Each run takes few enough results for the server's limit.
    const values = [...asHTML, ...asSVG];
    for (let at = 0; at < values.length; at += 20) {
      const code = showing(values.slice(at, at + 20));
      relay.answer = async (write) => write('~~~python\n' + code + '\n~~~\n\n' + asText);
      const panel = await run(await ask(page, 'go'));
      assert.equal((await ended(panel)).status, 'Succeeded');
      const views = panel.locator('iframe, img');
      await views.last().scrollIntoViewIfNeeded();
      shown.push(await views.count());
    }
    await page.getByRole('link', { name: 'a picture' }).last().hover();
    await resolve(browser, 'end.leak.test');
  });
  await trap.close();
  assert.equal(
    shown.reduce((sum, n) => sum + n),
    asHTML.length + asSVG.length,
    'all were shown',
  );
  for (const control of ['begin.leak.test', 'end.leak.test']) {
    assert.ok(names.delete(control), 'the log tells names');
  }
  assert.deepEqual([...names].map((name) => trap.hosts.get(name) ?? name).sort(), []);
  assert.equal(trap.connections, 0, 'connections');
});

test('a styled table of pandas keeps its looks', () => {
  const code = showing([['text/html', styler]]);
  relay.answer = async (write) => write('~~~python\n' + code + '\n~~~\n');
  return withPage({ url: relay.url }, async (page) => {
    const panel = await run(await ask(page, 'go'));
    assert.equal((await ended(panel)).status, 'Succeeded');
    const frame = panel.locator('iframe').contentFrame();
    await frame.getByText('Harvest').waitFor();
    const look = (text, property) =>
      frame
        .getByText(text, { exact: true })
        .evaluate((el, name) => getComputedStyle(el).getPropertyValue(name), property);
    assert.equal(await look('Harvest', 'font-size'), '18px');
    assert.equal(await look('fruit', 'background-color'), 'rgb(240, 240, 250)');
    assert.equal(await look('-20%', 'color'), 'rgb(220, 20, 60)');
    assert.match(await look('+31%', 'background-image'), /^linear-gradient/);
    assert.notEqual(await look('12.2', 'background-color'), await look('3.5', 'background-color'));
    await panel.locator('iframe').scrollIntoViewIfNeeded();
    await page.screenshot({ path: `${screenshots}styled-table.png` });
  });
});
