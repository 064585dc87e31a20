// What the page says of the platform itself, on one machine. cluster.js is the
// same on a cluster.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { serverURL, useBrowser } from './browser.js';

const withPage = useBrowser();

test('without a cluster there are no Knative Services, and none are shown', () =>
  withPage({}, async (page) => {
    const response = await fetch(`${serverURL}/v1/services`);
    assert.deepEqual(await response.json(), { services: [] });
    await page.getByTestId('pool-meter').click();
    await page.getByRole('heading', { level: 2 }).first().waitFor();
    assert.equal(await page.getByText('Knative Services').count(), 0);
  }));
