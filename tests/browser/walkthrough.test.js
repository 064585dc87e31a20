// The walkthrough: what someone who tries Preheat does first.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  ask,
  ended,
  excusePrompt,
  lastAnswer,
  poolsAreFull,
  run,
  runButton,
  sandboxNames,
  serverURL,
  until,
  useBrowser,
} from './browser.js';

const withPage = useBrowser();

test('a greeting is answered and no sandbox is touched', () =>
  withPage({}, async (page) => {
    await poolsAreFull();
    const before = await sandboxNames();
    const answer = await ask(page, 'Hi, how are you?');
    assert.ok((await answer.innerText()).length > 10);
    assert.equal(await runButton(answer).count(), 0);
    assert.deepEqual(await sandboxNames(), before);
  }));

test('the excuse runs, each time in another sandbox', () =>
  withPage({}, async (page) => {
    await poolsAreFull();
    const names = await sandboxNames();
    const answer = await ask(page, excusePrompt);
    assert.deepEqual(await sandboxNames(), names, 'writing code needs no sandbox');

    const first = await ended(await run(answer));
    assert.equal(first.status, 'Succeeded');
    assert.match(first.output, /\w{3,}/);
    assert.ok(names.includes(first.sandbox), 'the sandbox was warm before it was asked for');

    const second = await ended(await run(answer));
    assert.equal(second.status, 'Succeeded');
    assert.notEqual(second.sandbox, first.sandbox);
    await until('the used sandboxes are gone', async () => {
      const now = await sandboxNames();
      return !now.includes(first.sandbox) && !now.includes(second.sandbox);
    });
  }));

test('a plot is shown as a picture', () =>
  withPage({}, async (page) => {
    const answer = await ask(page, 'Plot a damped sine wave with matplotlib');
    const panel = await run(answer);
    assert.equal((await ended(panel)).status, 'Succeeded');
    const picture = panel.getByRole('img', { name: /Figure 1/ });
    await picture.waitFor();
    const width = await picture.evaluate(async (img) => {
      await img.decode();
      return img.naturalWidth;
    });
    assert.ok(width > 100, `the picture is ${width} pixels wide`);
  }));

test('the examples of the empty page ask their questions, and a new chat forgets them', () =>
  withPage({}, async (page) => {
    const examples = page.getByRole('list', { name: 'Examples' }).getByRole('button');
    assert.equal(await examples.count(), 4);
    await examples.filter({ hasText: 'Bash' }).click();
    const answer = await lastAnswer(page, 'complete');
    assert.equal((await ended(await run(answer))).status, 'Succeeded');
    await page.getByRole('button', { name: 'New chat' }).click();
    await examples.first().waitFor();
    assert.equal(await page.locator('article').count(), 0);
  }));

test('the page says which model answers', () =>
  withPage({}, async (page) => {
    const label = page.getByTestId('model');
    await label.waitFor();
    const response = await fetch(`${serverURL}/v1/chat/status`);
    const status = await response.json();
    assert.match(await label.innerText(), status.demo ? /not a language model/ : /model/i);
    if (status.demo) {
      await label.click();
      await page.getByText('PREHEAT_LLM_URL').waitFor();
    }
  }));

test('the page shows the pools and follows them', () =>
  withPage({}, async (page) => {
    await poolsAreFull();
    const names = await sandboxNames();
    await page.getByTestId('pool-meter').click();
    for (const name of names) await page.getByText(name, { exact: true }).waitFor();
    const response = await fetch(`${serverURL}/v1/sandbox/execute`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ language: 'python', code: 'print(1)' }),
    });
    const { sandbox_name: used } = await response.json();
    assert.ok(names.includes(used));
    await page.getByText(used, { exact: true }).waitFor({ state: 'detached' });
  }));

test('everything can be done with the keyboard', () =>
  withPage({}, async (page) => {
    const tabTo = async (name, key = 'Tab') => {
      for (let i = 0; i < 60; i++) {
        await page.keyboard.press(key);
        const focus = await page.evaluate(() => {
          const el = document.activeElement;
          if (!el || el === document.body) return { name: '', outline: 'none' };
          return {
            name: el.getAttribute('aria-label') ?? el.textContent,
            outline: getComputedStyle(el).outlineStyle,
          };
        });
        if (name.test(focus.name ?? '')) {
          assert.notEqual(focus.outline, 'none', 'the focus can be seen');
          return;
        }
      }
      assert.fail(`no ${name} on the way of ${key}`);
    };
    await tabTo(/random excuse/);
    await page.keyboard.press('Enter');
    const answer = await lastAnswer(page, 'complete');
    await tabTo(/^Run this python code$/);
    await page.keyboard.press('Enter');
    const panel = answer.getByLabel('Output', { exact: true });
    assert.equal((await ended(panel)).status, 'Succeeded');
    await tabTo(/^What the program wrote$/);
    await tabTo(/^New chat$/, 'Shift+Tab');

    const field = page.getByLabel('Your message');
    await field.focus();
    await page.keyboard.type('one');
    await page.keyboard.press('Shift+Enter');
    await page.keyboard.type('two');
    assert.equal(await field.inputValue(), 'one\ntwo');
    await page.keyboard.press('Enter');
    await page.locator('article[aria-label=You]').nth(1).waitFor();
    assert.equal(await field.inputValue(), '');
  }));
