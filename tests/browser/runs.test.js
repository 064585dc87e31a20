// How runs end, and what their outputs look like. The code is given; that it
// runs is the server's doing.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, beforeEach, test } from 'node:test';
import {
  ask,
  ended,
  run,
  sandboxNames,
  screenshots,
  serverURL,
  until,
  useBrowser,
} from './browser.js';
import { Relay } from './relay.js';

const withPage = useBrowser();
const relay = new Relay(serverURL);
before(() => relay.listen());
after(() => relay.close());
beforeEach(() => {
  relay.answer = null;
  relay.cut = null;
  relay.limits = null;
});

/** Opens a page on which the model has written the code, and runs it. */
function withRun(language, code, use) {
  relay.answer = async (write) => write('Here:\n\n~~~~' + language + '\n' + code + '\n~~~~\n');
  return withPage({ url: relay.url }, async (page) => {
    const answer = await ask(page, 'go');
    await use(await run(answer), page, answer);
  });
}

test('an exit code, with both streams told apart and in order', () =>
  withRun(
    'python',
    [
      'import sys',
      'print("one", flush=True)',
      'print("two", file=sys.stderr, flush=True)',
      'print("three", flush=True)',
      'sys.exit(3)',
    ].join('\n'),
    async (panel) => {
      const { status } = await ended(panel);
      assert.equal(status, 'Failed, exit code 3');
      const streams = await panel
        .locator('[data-stream]')
        .evaluateAll((all) =>
          all.map((el) => [
            el.getAttribute('data-stream'),
            el.innerText.replace(/\s+/g, ' ').trim(),
          ]),
        );
      assert.deepEqual(streams, [
        ['stdout', 'one'],
        ['stderr', 'stderr two'],
        ['stdout', 'three'],
      ]);
    },
  ));

test('figures, tables and values stand where they were displayed, and notes are shown', () =>
  withRun(
    'python',
    [
      'import matplotlib.pyplot as plt, pandas as pd',
      'print("before the figure")',
      'plt.plot([1, 3, 2]); plt.title("in between"); plt.show()',
      'print("after the figure")',
      'display(pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}))',
      'print("after the table")',
      'open("/tmp/elsewhere.csv", "w").close()',
      '"the last value"',
    ].join('\n'),
    async (panel, page) => {
      const { status } = await ended(panel);
      assert.equal(status, 'Succeeded');
      await panel.locator('iframe').waitFor();
      const order = await panel
        .locator('[data-testid=output], img, iframe, pre')
        .evaluateAll((all) => all.map((el) => (el.innerText ?? '').trim() || el.tagName));
      assert.deepEqual(order, [
        'before the figure',
        'IMG',
        'after the figure',
        'IFRAME',
        'after the table',
        "'the last value'",
      ]);
      await panel.getByText('/tmp/elsewhere.csv (0 bytes)').waitFor();
      await page.screenshot({ path: `${screenshots}results-in-order.png`, fullPage: true });
    },
  ));

test('a signal', () =>
  withRun('python', 'import os\nos.kill(os.getpid(), 11)', async (panel) => {
    assert.equal((await ended(panel)).status, 'Failed, SIGSEGV (139)');
  }));

test('a traceback is standard error', () =>
  withRun('python', '1 / 0', async (panel) => {
    assert.equal((await ended(panel)).status, 'Failed, exit code 1');
    assert.match(await panel.locator('[data-stream=stderr]').innerText(), /ZeroDivisionError/);
  }));

test('a program that ends at its time limit keeps what it wrote', () => {
  relay.limits = { timeout_seconds: 1 };
  return withRun('python', 'print("begun", flush=True)\nwhile True: pass', async (panel) => {
    const { status, output, detail } = await ended(panel);
    assert.equal(status, 'Timed out');
    assert.equal(output.trim(), 'begun');
    assert.match(detail, /time limit/);
  });
});

test('a program without end of memory', () =>
  withRun('python', 'a = []\nwhile True: a.append(bytearray(10_000_000))', async (panel) => {
    assert.equal((await ended(panel)).status, 'Out of memory');
  }));

test('Stop ends the run, and its sandbox with it', () =>
  withRun(
    'python',
    'import time\nprint("begun", flush=True)\ntime.sleep(600)',
    async (panel, page) => {
      await panel.getByText('begun').waitFor();
      assert.equal(await panel.getByTestId('run-status').innerText(), 'Running');
      const sandbox = await panel.getByTestId('sandbox-name').innerText();
      await page.getByRole('button', { name: 'Stop', exact: true }).click();
      assert.equal((await ended(panel)).status, 'Stopped');
      await until('the sandbox is gone', async () => !(await sandboxNames()).includes(sandbox));
    },
  ));

test('what the server refuses is told with its field', () =>
  withRun('python', 'print(1)', async (panel, page) => {
    await ended(panel);
    await page.getByRole('button', { name: 'Edit' }).click();
    await page.getByLabel('Code to run').fill('');
    await page.getByLabel('Code to run').press('Control+Enter');
    await panel.getByText('Not accepted').waitFor();
    assert.match((await ended(panel)).detail, /^code: /);
  }));

test('edited code and standard input are what runs', () =>
  withRun('python', 'print(1)', async (panel, page) => {
    await ended(panel);
    await page.getByRole('button', { name: 'Edit' }).click();
    await page.getByLabel('Code to run').fill('print(input()[::-1])');
    await page.getByLabel('Standard input').fill('stressed');
    await page.getByLabel('Standard input').press('Control+Enter');
    await panel.getByText('desserts').waitFor();
    assert.equal((await ended(panel)).status, 'Succeeded');
  }));

test('progress bars, colours and markup', () =>
  withRun(
    'python',
    String.raw`print("  1%\r 50%\r100%")
print("\x1b[31mred\x1b[0m <b>not bold</b>")`,
    async (panel) => {
      const { output } = await ended(panel);
      assert.deepEqual(output.trim().split(/\n+/), ['100%', 'red <b>not bold</b>']);
      const red = panel.getByText('red', { exact: true });
      assert.notEqual(
        await red.evaluate((el) => getComputedStyle(el).color),
        await panel.getByTestId('output').evaluate((el) => getComputedStyle(el).color),
      );
    },
  ));

test('a very large output keeps the page small and shows its end', () =>
  withRun(
    'python',
    'for i in range(400_000): print(f"line {i}")\nprint("END")',
    async (panel, page) => {
      const { status, output } = await ended(panel);
      assert.equal(status, 'Succeeded');
      assert.match(output, /^line 0\n/);
      assert.match(output.trim(), /\nEND$/);
      assert.match(output, /left out|not shown/);
      const elements = await panel.evaluate((el) => el.querySelectorAll('*').length);
      assert.ok(elements < 3000, `${elements} elements`);
      await page.getByLabel('Your message').fill('still here');
    },
  ));

test('files that the program wrote can be saved', () =>
  withRun(
    'python',
    'import os\nos.makedirs("out")\nopen("out/a.csv", "w").write("a,b\\n1,2\\n")\nos.symlink("/etc/passwd", "x")',
    async (panel, page) => {
      assert.equal((await ended(panel)).status, 'Succeeded');
      const download = page.waitForEvent('download');
      await panel.getByRole('button', { name: /Download out\/a\.csv/ }).click();
      const file = await download;
      assert.equal(file.suggestedFilename(), 'a.csv');
      assert.equal(await readFile(await file.path(), 'utf8'), 'a,b\n1,2\n');
      assert.equal(await panel.getByRole('button', { name: /Download x/ }).count(), 0);
    },
  ));

test('hidden characters of names, values and code are shown', () =>
  withRun(
    'python',
    'open("report\\u202egpj.exe", "w").write("x")\n' +
      'class V:\n    def _repr_mimebundle_(self, **_): return {"text/plain": "a\\u2066b"}\n' +
      'display(V())\nprint("c\\u202ed")\nx = "\u202e"  # the character itself',
    async (panel, page) => {
      const { status, output } = await ended(panel);
      assert.equal(status, 'Succeeded');
      assert.equal(output.trim(), 'c\\u202ed');
      await panel.getByRole('button', { name: 'Download report\\u202egpj.exe' }).waitFor();
      await panel.getByText('a\\u2066b').waitFor();
      const code = page.getByLabel('python code', { exact: true });
      assert.match(await code.innerText(), /x = "\\u202e"/);
      assert.doesNotMatch(await page.locator('body').innerText(), /[\u202a-\u202e\u2066-\u2069]/);
      await page.screenshot({ path: `${screenshots}hidden-characters.png` });
    },
  ));

test('colours, backspaces and carriage returns of hostile output leave the page alive', () =>
  withRun(
    'python',
    String.raw`import sys
sys.stdout.write("\x1b[31ma\x1b[32mb" * 4500 + "\bx" * 40000 + "\n" + "\r" * 90000 + "\nEND\n")`,
    async (panel, page) => {
      const { status, output } = await ended(panel);
      assert.equal(status, 'Succeeded');
      assert.match(output.trim(), /END$/);
      const elements = await panel.evaluate((el) => el.querySelectorAll('*').length);
      assert.ok(elements < 10_000, `${elements} elements`);
      await page.getByLabel('Your message').fill('still here');
    },
  ));

test('HTML of a program is shown without being able to run', () =>
  withRun(
    'python',
    'import pandas as pd\npd.DataFrame({"fruit": ["<script>parent.document.title = \'owned\'</script>pear"]})',
    async (panel, page) => {
      assert.equal((await ended(panel)).status, 'Succeeded');
      const frame = panel.locator('iframe');
      await frame.waitFor();
      assert.equal(await frame.getAttribute('sandbox'), 'allow-same-origin');
      await frame.contentFrame().getByText('fruit').waitFor();
      assert.equal(await page.title(), 'Preheat');
    },
  ));

for (const how of ['reset', 'end']) {
  test(`W1: a stream that is cut before its exit event is an error (${how})`, () => {
    let arrived;
    relay.cut = { how, when: new Promise((resolve) => (arrived = resolve)) };
    return withRun('python', 'print("all is well")', async (panel) => {
      await panel.getByText('all is well').waitFor();
      assert.equal(await panel.getByTestId('run-status').innerText(), 'Running');
      arrived();
      const { status, output, detail } = await ended(panel);
      assert.equal(status, 'Connection lost');
      assert.equal(output.trim(), 'all is well');
      assert.match(detail, /broke before the end; the result is unknown/);

      relay.cut = null;
      await panel.getByRole('button', { name: 'Run again' }).click();
      await panel.getByText('Succeeded').waitFor();
    });
  });
}

test('without a server the page says so, and recovers', () =>
  withRun('python', 'print("here")', async (panel, page, answer) => {
    assert.equal((await ended(panel)).status, 'Succeeded');
    await relay.close();
    const banner = page.getByTestId('connection');
    await banner.waitFor();
    await run(answer);
    await panel.getByText('No connection', { exact: true }).waitFor();
    assert.match((await ended(panel)).detail, /could not be reached/);
    await page.getByLabel('Your message').fill('anyone?');
    await page.keyboard.press('Enter');
    await page.getByText('No answer came').waitFor();

    await relay.listen();
    await banner.getByRole('button', { name: 'Try now' }).click();
    await banner.waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.locator('article[data-state=complete]').nth(1).waitFor();
    await page.getByRole('button', { name: 'Run again' }).click();
    await page.locator('figure').first().getByText('Succeeded').waitFor();
  }));
