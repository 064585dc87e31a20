// How answers are shown while they come. W3: which code can be run follows
// CommonMark's rule for fences, also while the text is still coming.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { lastAnswer, runButton, serverURL, useBrowser } from './browser.js';
import { Relay } from './relay.js';

const withPage = useBrowser();
const relay = new Relay(serverURL);
before(() => relay.listen());
after(() => relay.close());

const cases = [
  ['tildes', '~~~python\nprint(1)\n~~~', 1],
  ['an info string with more words', '```python title=x\nprint(1)\n```', 1],
  ['an alias', '```py\nprint(1)\n```', 1],
  ['four backticks that hold three', '````markdown\n```python\nprint(1)\n```\n````', 0],
  ['tildes that hold backticks', '~~~text\n```python\nprint(1)\n```\n~~~', 0],
  ['in a list', '1. First:\n\n   ```python\n   print(1)\n   ```\n', 1],
  ['indented code', 'Code:\n\n    print(1)\n', 0],
  ['an indented fence', 'Code:\n\n    ```python\n    print(1)\n    ```\n', 0],
  ['a fence that is never closed', '```python\nprint(1)\n', 0],
  ['a closing fence that is too short', '````python\nprint(1)\n```\n', 0],
  ['a closing fence of the other kind', '~~~python\nprint(1)\n```\n', 0],
  ['a language that no pool runs', '```cobol\nDISPLAY 1\n```', 0],
  ['no language', '```\nprint(1)\n```', 0],
  ['HTML that looks like a button', '<button aria-label="Run this">x</button>', 0],
];

for (const [name, text, runnable] of cases) {
  test(`${name}: ${runnable} runnable`, () => {
    // The first block shows when all that a Run button needs has come.
    relay.answer = async (write) => {
      for (const character of '```python\nprint(0)\n```\n\n' + text) write(character);
    };
    return withPage({ url: relay.url }, async (page) => {
      await page.getByLabel('Your message').fill('go');
      await page.keyboard.press('Enter');
      const answer = await lastAnswer(page, 'complete');
      await runButton(answer).first().waitFor();
      assert.equal(await runButton(answer).count(), 1 + runnable);
    });
  });
}

test('no Run and no Copy until the fence is closed', () => {
  let proceed;
  let waiting = new Promise((resolve) => (proceed = resolve));
  const next = () => {
    const go = proceed;
    waiting = new Promise((resolve) => (proceed = resolve));
    go();
  };
  relay.answer = async (write) => {
    for (const part of ['```python\nprint("first")\n', '```', '\n', 'and more']) {
      write(part);
      await waiting;
    }
  };
  return withPage({ url: relay.url }, async (page) => {
    await page.getByLabel('Your message').fill('go');
    await page.keyboard.press('Enter');
    const block = page.locator('figure');
    await block.getByText('first').waitFor();
    const copy = block.getByRole('button', { name: 'Copy' });
    assert.equal((await runButton(block).count()) + (await copy.count()), 0, 'an open fence');

    next();
    // What follows the fence's third backtick may still make it text.
    await page.waitForFunction(() => !document.querySelector('figure')?.innerText.includes('``'));
    assert.equal((await runButton(block).count()) + (await copy.count()), 0, 'an unfinished line');

    next();
    await runButton(block).waitFor();
    await copy.waitFor();
    assert.equal(await page.locator('article[data-state=streaming]').count(), 1);

    // The code runs while the answer goes on, and its output stays.
    await runButton(block).click();
    await block.getByText('Succeeded').waitFor();
    next();
    await page.getByText('and more').waitFor();
    next();
    await page.locator('article[data-state=complete]').waitFor();
    await block.getByText('Succeeded').waitFor();
  });
});

test('an answer that breaks off is an error', () =>
  withPage({ url: relay.url }, async (page) => {
    const piece = page.getByText('This answer will not');
    relay.answer = async (write) => {
      write('This answer will not');
      await piece.waitFor();
      throw new Error('the relay breaks the answer');
    };
    await page.getByLabel('Your message').fill('go');
    await page.keyboard.press('Enter');
    await page.getByText('The answer is not complete').waitFor();
    await piece.waitFor();
    await page.getByRole('button', { name: 'Try again' }).waitFor();
  }));

test('Stop ends the answer, keeps what came, and tells the server', () =>
  withPage({ url: relay.url }, async (page) => {
    let gone;
    const closed = new Promise((resolve) => (gone = resolve));
    relay.answer = async (write, res) => {
      res.on('close', gone);
      write('Half of an');
      await closed;
    };
    await page.getByLabel('Your message').fill('go');
    await page.keyboard.press('Enter');
    await page.getByText('Half of an').waitFor();
    await page.getByRole('button', { name: 'Stop answering' }).click();
    await closed;
    const answer = await lastAnswer(page, 'stopped');
    assert.match(await answer.innerText(), /Half of an\s+Stopped\./);
    await page.getByRole('button', { name: 'Send' }).waitFor();
  }));

test('the page follows the answer until the reader scrolls away', () =>
  withPage({ url: relay.url }, async (page) => {
    let proceed;
    const scrolled = new Promise((resolve) => (proceed = resolve));
    const paragraphs = (n) => `${'Some words to fill a line. '.repeat(12)}\n\n`.repeat(n);
    relay.answer = async (write) => {
      write(paragraphs(30) + 'middle\n\n');
      await scrolled;
      write(paragraphs(30) + 'end');
    };
    await page.getByLabel('Your message').fill('go');
    await page.keyboard.press('Enter');
    const middle = page.getByText('middle', { exact: true });
    await page.waitForFunction(inView, await middle.elementHandle());
    await middle.hover();
    await page.mouse.wheel(0, -600);
    const back = page.getByRole('button', { name: 'Go to the latest' });
    await back.waitFor();
    proceed();
    await page.locator('article[data-state=complete]').waitFor();
    const end = page.getByText('end', { exact: true });
    await end.waitFor();
    assert.equal(await end.evaluate(inView), false, 'the reader is left where they are');
    await back.click();
    await page.waitForFunction(inView, await end.elementHandle());
    await back.waitFor({ state: 'detached' });
  }));

test('Copy puts the code on the clipboard', () => {
  const code = 'if True:\n\tprint("a  b")';
  relay.answer = async (write) => write('```python\n' + code + '\n```\n');
  return withPage(
    { url: relay.url, permissions: ['clipboard-read', 'clipboard-write'] },
    async (page) => {
      await page.getByLabel('Your message').fill('go');
      await page.keyboard.press('Enter');
      await page.getByRole('button', { name: 'Copy' }).click();
      await page.getByRole('button', { name: 'Copied' }).waitFor();
      assert.equal(await page.evaluate(() => navigator.clipboard.readText()), code);
    },
  );
});

function inView(element) {
  const { top, bottom } = element.getBoundingClientRect();
  return top >= 0 && bottom <= innerHeight;
}
