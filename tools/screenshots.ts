/**
 * Pictures of the status page for docs/images, those that a page shows: a situation and a look each, after a while of calls. With a
 * folder as argument they go there; `--seconds N` is how long each situation is played (default 100).
 */
import { mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { Browser } from 'playwright-core';
import { startScene } from '../test/e2e/status-scenes.ts';
import type { SceneName } from '../test/e2e/status-scenes.ts';
import { startChromium } from '../test/support/chromium.ts';

const { values, positionals } = parseArgs({
  options: {
    seconds: { type: 'string', default: '100' },
    only: { type: 'string' },
    full: { type: 'boolean', default: false },
  },
  allowPositionals: true,
});
const FOLDER = positionals[0] ?? join(import.meta.dirname, '..', 'docs', 'images');
type ViewName = keyof typeof VIEWS;
const VIEWS = {
  light: { colorScheme: 'light', viewport: { width: 1120, height: 820 } },
  dark: { colorScheme: 'dark', viewport: { width: 1120, height: 820 } },
  phone: { colorScheme: 'light', viewport: { width: 360, height: 760 } },
} as const;
/** What README.md and docs/operations.md show. */
const SCREENSHOTS: readonly (readonly [name: SceneName, looks: readonly ViewName[]])[] = [
  ['healthy', ['light']],
  ['throttled', ['light', 'dark']],
  ['failing', ['phone']],
  ['refused', ['light']],
  ['outage', ['dark']],
  ['wrong-path', ['light']],
  ['idle', ['light']],
];

async function takeScreenshots(browser: Browser, name: SceneName, looks: readonly ViewName[]): Promise<void> {
  await using scene = await startScene(name);
  await sleep(Number(values.seconds) * 1000);
  for (const look of looks) {
    await using context = await browser.newContext(VIEWS[look]);
    const page = await context.newPage();
    await page.goto(scene.url);
    await page.waitForSelector('#link:text-is("live")');
    await sleep(1500);
    const path = join(FOLDER, `status-${name}-${look}.png`);
    await page.screenshot({ path, fullPage: values.full });
    console.log(`${path}: ${String(Math.round(statSync(path).size / 1000))} kB`);
  }
}

mkdirSync(FOLDER, { recursive: true });
await using browser = await startChromium();
const wanted = SCREENSHOTS.filter(([name]) => (values.only ?? name) === name);
await Promise.all(wanted.map(([name, looks]) => takeScreenshots(browser, name, looks)));
