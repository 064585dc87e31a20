// What the tests share: a real browser, a page under watch, and a look at the
// server's pools. The server under test is a running one, at PREHEAT_URL.

import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { after, before } from 'node:test';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

export const serverURL = process.env.PREHEAT_URL ?? 'http://127.0.0.1:8080';

export const screenshots = fileURLToPath(new URL('../../build/screenshots/', import.meta.url));

export const excusePrompt =
  'Write Python code that generates a random excuse for being late to a meeting';

/** Starts Debian's Chromium. */
export function launch(more = []) {
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    // Chromium's own sandbox does not work for root.
    chromiumSandbox: process.getuid?.() !== 0,
    args: [
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      ...more,
    ],
  });
}

/** Starts a browser for the tests of a file; use returns pages of it. */
export function useBrowser() {
  let browser;
  before(async () => {
    await mkdir(screenshots, { recursive: true });
    browser = await launch();
  });
  after(() => browser?.close());

  /**
   * Opens the page and runs use with it. Errors of the page itself, such as a
   * violated content policy, fail the test; what the network does is the
   * test's own matter.
   */
  return async function withPage({ url = serverURL, ...options }, use) {
    const context = await browser.newContext({
      viewport: { width: 1200, height: 800 },
      acceptDownloads: true,
      ...options,
    });
    const errors = [];
    try {
      const page = await context.newPage();
      page.setDefaultTimeout(60_000);
      page.on('pageerror', (error) => errors.push(String(error)));
      page.on('console', (message) => {
        const text = message.text();
        if (message.type() === 'error' && !text.startsWith('Failed to load resource')) {
          errors.push(text);
        }
      });
      await page.goto(url);
      await page.getByRole('heading', { level: 1 }).waitFor();
      await use(page);
    } finally {
      await context.close();
    }
    assert.deepEqual(errors, [], 'errors of the page');
  };
}

/** Asks the model and returns its answer, once it is complete. */
export async function ask(page, question) {
  const field = page.getByLabel('Your message');
  await field.fill(question);
  await field.press('Enter');
  return lastAnswer(page, 'complete');
}

export async function lastAnswer(page, state) {
  const answer = page.locator('article[aria-label=Answer]').last();
  await page.locator(`article[aria-label=Answer][data-state=${state}]`).last().waitFor();
  return answer;
}

export const runButton = (scope) => scope.getByRole('button', { name: /^Run this/ });

/** Runs the first runnable block of an answer and returns its output panel. */
export async function run(answer) {
  await runButton(answer).first().click();
  return answer.getByLabel('Output', { exact: true }).first();
}

/** Waits for the end of a run and returns its status and other words. */
export async function ended(panel) {
  await panel
    .and(
      panel
        .page()
        .locator('[data-run-state]:not([data-run-state=waiting]):not([data-run-state=running])'),
    )
    .waitFor();
  return {
    status: await panel.getByTestId('run-status').innerText(),
    sandbox: await textOf(panel.getByTestId('sandbox-name')),
    output: await textOf(panel.getByTestId('output')),
    detail: await textOf(panel.getByTestId('run-detail')),
  };
}

async function textOf(locator) {
  return (await locator.allInnerTexts()).join('\n');
}

export async function pools() {
  const response = await fetch(`${serverURL}/v1/pools`);
  assert.equal(response.status, 200);
  return (await response.json()).pools;
}

export async function sandboxNames() {
  return (await pools()).flatMap((p) => p.sandboxes.map((s) => s.name)).sort();
}

/** Waits until every pool has all the warm sandboxes that it wants, and nothing else. */
export async function poolsAreFull() {
  await until('the pools are full', async () =>
    (await pools()).every((p) => p.warm === p.desired && p.sandboxes.length === p.desired),
  );
}

/** Waits for a condition; it fails the test when it does not come true at all. */
export async function until(what, condition, limitMs = 60_000) {
  const deadline = Date.now() + limitMs;
  while (!(await condition())) {
    if (Date.now() > deadline) assert.fail(`gave up waiting until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
