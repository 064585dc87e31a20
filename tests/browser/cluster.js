// The page against a cluster: PREHEAT_URL=… node --test cluster.js. It is no
// part of the other tests, whose server runs on one machine.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  ask,
  ended,
  excusePrompt,
  poolsAreFull,
  run,
  sandboxNames,
  screenshots,
  serverURL,
  until,
  useBrowser,
} from './browser.js';

const withPage = useBrowser();

/** Keeps every text that the meter shows from now on; the function returned reads them. */
async function recordMeter(page) {
  const meter = page.getByTestId('pool-meter');
  await meter.waitFor();
  await meter.evaluate((el) => {
    const seen = (window.meterTexts = [el.innerText]);
    new MutationObserver(() => seen.push(el.innerText)).observe(el, {
      subtree: true,
      childList: true,
      characterData: true,
    });
  });
  return () => page.evaluate(() => window.meterTexts);
}

test('ask, Run, output, and the pool changes while it happens', () =>
  withPage({}, async (page) => {
    await poolsAreFull();
    const names = await sandboxNames();
    const answer = await ask(page, excusePrompt);
    assert.deepEqual(await sandboxNames(), names, 'writing code needs no sandbox');

    const texts = await recordMeter(page);
    const result = await ended(await run(answer));
    assert.equal(result.status, 'Succeeded');
    assert.match(result.output, /\w{3,}/);
    assert.ok(names.includes(result.sandbox), 'the sandbox was warm before it was asked for');
    await until('the pool is full again', async () => {
      const seen = await texts();
      return seen.some((t) => /^1 warm/.test(t)) && /^2 warm/.test(seen.at(-1));
    });
    await until(
      'the used sandbox is gone',
      async () => !(await sandboxNames()).includes(result.sandbox),
    );
  }));

test('the platform’s Knative Services are shown as the cluster has them', () =>
  withPage({}, async (page) => {
    const response = await fetch(`${serverURL}/v1/services`);
    const { services } = await response.json();
    assert.deepEqual(services.map((s) => s.name).sort(), ['chat', 'execute']);
    await poolsAreFull();
    await page.getByTestId('pool-meter').click();
    for (const s of services) {
      assert.ok(s.ready, `${s.name} is ready: ${s.problem}`);
      assert.match(s.url, /^http/);
      const shown = page.getByTestId(`service-${s.name}`);
      for (const text of [s.name, s.revision, s.url]) {
        await shown.getByText(text, { exact: true }).waitFor();
      }
      await shown.getByText('ready', { exact: true }).waitFor();
      await shown.getByText(/^(scaled to zero|1 replica|\d+ replicas)$/).waitFor();
    }
    await page.screenshot({ path: `${screenshots}cluster.png` });
  }));
