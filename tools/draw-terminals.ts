/**
 * Pictures of the command line as it looks on a terminal, into docs/images/: the program runs on a real pseudo-terminal, Chromium draws
 * what that has shown. `npm run screenshots:terminal`.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { startChromium } from '../test/support/chromium.ts';
import { CTRL_C, openTerminal } from '../test/support/terminal.ts';
import type { Terminal } from '../test/support/terminal.ts';
import { renderTerminalHtml } from './terminal/ansi.ts';

const IMAGES = join(import.meta.dirname, '..', 'docs', 'images');
const SANDBOX = {
  SIDECAR_CLIENT_ID: 'my-app',
  SIDECAR_CLIENT_SECRET: 'a-secret-of-the-pictures',
  SIDECAR_LISTEN: 'localhost:0',
  SIDECAR_ADMIN_LISTEN: 'localhost:0',
};
const COLUMNS = 100;
const QUOTE = JSON.stringify({
  destination: 'ES',
  startDate: '2027-07-01',
  endDate: '2027-07-14',
  travellers: [{ birthDate: '1990-05-17' }],
});

mkdirSync(IMAGES, { recursive: true });
const folder = mkdtempSync(join(tmpdir(), 'sidecar-pictures-'));
// By its own name, as where it is installed: that is what it calls itself.
const programs = mkdtempSync(join(tmpdir(), 'sidecar-programs-'));
symlinkSync(join(import.meta.dirname, '..', 'src', 'main.ts'), join(programs, 'bearer-sidecar'));
const PATH = `${programs}:${process.env.PATH ?? ''}`;
const PROGRAM = `'${process.execPath}' '${join(programs, 'bearer-sidecar')}'`;
try {
  await using browser = await startChromium();
  await takeScreenshot(browser, 'help', '--help', (terminal) => terminal.exit, 80);
  await using sandbox = openTerminal({ name: 'picture-sandbox', command: `${PROGRAM} sandbox`, env: SANDBOX });
  const token = new URL((await sandbox.waitFor(/^token \S+/m)).slice('token '.length)).origin;
  execFileSync('curl', ['-sko', join(folder, 'ca.pem'), `${token}/ca.pem`]);
  const api = (await sandbox.waitFor(/^api \S+/m)).slice('api '.length);
  await takeScreenshot(browser, 'init', 'init', async (terminal) => {
    for (const [question, answer] of initAnswers(api, token)) {
      await terminal.waitFor(question);
      terminal.type(`${answer}\n`);
    }
    await terminal.exit;
  });
  await takeScreenshot(
    browser,
    'check',
    'check --config sidecar.yaml --probe /no-such-path',
    (terminal) => terminal.exit,
  );
  await takeScreenshot(browser, 'run', '--config sidecar.yaml', makeCalls);
} finally {
  for (const each of [folder, programs]) rmSync(each, { recursive: true, force: true });
}

function initAnswers(api: string, token: string): readonly (readonly [RegExp, string])[] {
  return [
    [/Configuration file/, ''],
    [/Base URL of the partner/, 'api.example.com'],
    [/! .*\s+Base URL of the partner/, api],
    [/1 or 2/, ''],
    [/Base URL of the authorization/, token],
    [/token endpoint/, ''],
    [/Client id/, SANDBOX.SIDECAR_CLIENT_ID],
    [/1, 2 or 3/, ''],
    [/not shown/, SANDBOX.SIDECAR_CLIENT_SECRET],
    [/Audience/, 'https://sales-api.sandbox.invalid/'],
    [/Scopes/, ''],
    [/Calls per second/, ''],
    [/Run check/, 'n'],
  ];
}

/** A few calls, then the end. */
async function makeCalls(terminal: Terminal): Promise<void> {
  const proxy = (await terminal.waitFor(/proxy +http:\S+/)).replace(/proxy +/, '');
  await terminal.waitFor(/token obtained/);
  for (const path of ['/quotes-requests', '/quotes-requests', '/no-such-path']) {
    const response = await fetch(proxy + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: QUOTE,
    });
    await response.arrayBuffer();
  }
  await terminal.waitFor(/no-such-path/);
  terminal.type(CTRL_C);
  await terminal.exit;
}

async function takeScreenshot(
  browser: Browser,
  name: string,
  args: string,
  play: (terminal: Terminal) => Promise<unknown>,
  columns = COLUMNS,
): Promise<void> {
  const { SIDECAR_LISTEN, SIDECAR_ADMIN_LISTEN } = SANDBOX;
  const env = { PATH, SIDECAR_LISTEN, SIDECAR_ADMIN_LISTEN, SIDECAR_CA_FILE: 'ca.pem' };
  const command = `${PROGRAM} ${args}`;
  await using terminal = openTerminal({ name: `picture-${name}`, command, cwd: folder, env, columns });
  await play(terminal);
  const page = await browser.newPage({ deviceScaleFactor: 1.5 });
  const home = terminal.screen().replaceAll(folder, '/home/me/partner');
  await page.setContent(renderTerminalHtml(`bearer-sidecar ${args}`, home, columns));
  await page.locator('pre').screenshot({ path: join(IMAGES, `terminal-${name}.png`) });
  await page.close();
}
