// Takes the picture in the README from the running server.

import { mkdir } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { ask, ended, launch, run, serverURL } from './browser.js';

const folder = fileURLToPath(new URL('../../docs/images/', import.meta.url));
await mkdir(folder, { recursive: true });
const browser = await launch();
try {
  const page = await browser.newPage({
    colorScheme: 'light',
    viewport: { width: 1080, height: 1180 },
    deviceScaleFactor: 1.5,
  });
  await page.goto(serverURL);
  await page.getByTestId('pool-meter').waitFor();
  const answer = await ask(page, 'Plot a damped sine wave with matplotlib');
  const panel = await run(answer);
  await ended(panel);
  await panel.getByRole('img', { name: /Figure/ }).waitFor();
  await page.evaluate(() => document.fonts.ready);
  await page.mouse.move(0, 0);
  await page.screenshot({ path: `${folder}preheat.png` });
} finally {
  await browser.close();
}
