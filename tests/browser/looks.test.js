// The page in both colour schemes, wide and narrow: pictures for people to
// look at, and what a program can check of them.

import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { ask, ended, excusePrompt, run, screenshots, useBrowser } from './browser.js';

const withPage = useBrowser();
const axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

const sizes = { wide: { width: 1200, height: 800 }, narrow: { width: 360, height: 740 } };

for (const colorScheme of ['light', 'dark']) {
  for (const [size, viewport] of Object.entries(sizes)) {
    test(`${colorScheme}, ${size}`, () =>
      withPage({ colorScheme, viewport, reducedMotion: 'reduce' }, async (page) => {
        const look = async (name) => {
          await page.evaluate(() => document.fonts.ready);
          await page.screenshot({ path: `${screenshots}${name}-${colorScheme}-${size}.png` });
          const overflow = await page.evaluate(
            () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
          );
          assert.ok(overflow <= 0, `${name} is ${overflow} pixels too wide`);
          assert.deepEqual(await violations(page), [], `accessibility of ${name}`);
        };
        await page.getByTestId('pool-meter').waitFor();
        await look('welcome');
        const excuse = await ask(page, excusePrompt);
        assert.equal((await ended(await run(excuse))).status, 'Succeeded');
        await look('excuse');
        const plot = await ask(page, 'Plot a damped sine wave with matplotlib');
        const panel = await run(plot);
        assert.equal((await ended(panel)).status, 'Succeeded');
        await panel.getByRole('img', { name: /Figure/ }).scrollIntoViewIfNeeded();
        await look('plot');
        const bash = await ask(page, 'Show me a Bash one-liner');
        await bash.getByRole('button', { name: 'Edit' }).click();
        await page.getByLabel('Code to run').fill('echo working; ls /nowhere; exit 2');
        assert.equal((await ended(await run(bash))).status, 'Failed, exit code 2');
        await look('failed');
      }));
  }
}

test('the scheme follows the system, and the reader can change it', () =>
  withPage({ colorScheme: 'dark' }, async (page) => {
    const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const dark = await background();
    await page.emulateMedia({ colorScheme: 'light' });
    await page.waitForFunction(
      (was) => getComputedStyle(document.body).backgroundColor !== was,
      dark,
    );
    const light = await background();
    await page.getByRole('button', { name: 'Use dark colours' }).click();
    await page.waitForFunction(
      (was) => getComputedStyle(document.body).backgroundColor !== was,
      light,
    );
    assert.equal(await background(), dark);
  }));

/** What axe finds against WCAG 2.2 AA, in words. */
async function violations(page) {
  await page.evaluate(axe);
  const result = await page.evaluate(() =>
    globalThis.axe.run(document, {
      runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
    }),
  );
  return result.violations.flatMap((v) =>
    v.nodes.map((n) => `${v.id}: ${n.target.join(' ')}: ${n.failureSummary}`),
  );
}
