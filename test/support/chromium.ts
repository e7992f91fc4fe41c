/** A real Chromium from the machine's package, with a temporary profile. The headless shell takes half of the CPU time of the whole browser. */
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { chromium } from 'playwright-core';
import type { Browser } from 'playwright-core';

/** They end the browser's own requests, and the protections that would block calls to loopback before the sidecar sees them. */
const FLAGS = [
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  // All pages share a process: starting processes takes longer than the pages.
  '--disable-site-isolation-trials',
  '--renderer-process-limit=1',
  '--disable-features=LocalNetworkAccessChecks,BlockInsecurePrivateNetworkRequests,HttpsUpgrades',
];

/**
 * Starts it; `await using` ends it.
 * @param names resolved to addresses of the test's choice: `{ 'evil.test': '127.0.0.1' }`; all others but literals fail
 * @throws Error when no Chromium is installed
 */
export async function startChromium(names: Readonly<Record<string, string>> = {}): Promise<Browser> {
  const rules = Object.entries(names).map(([name, address]) => `MAP ${name} ${address}`);
  const resolver = [...rules, 'MAP * ~NOTFOUND', 'EXCLUDE 127.0.0.1', 'EXCLUDE localhost'].join(', ');
  return chromium.launch({
    executablePath: findChromium(),
    chromiumSandbox: process.getuid?.() !== 0,
    args: [...FLAGS, `--host-resolver-rules=${resolver}`],
  });
}

function findChromium(): string {
  const paths = (process.env.PATH ?? '').split(delimiter).map((folder) => join(folder, 'chromium-headless-shell'));
  const path = paths.find((candidate) => existsSync(candidate));
  if (path === undefined)
    throw new Error('chromium-headless-shell is needed by this test (Debian: the package of this name)');
  return path;
}
