/** Which versions of Node.js the program refuses, as the version says of itself. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { MAIN } from '../support/main-file.ts';

const ROOT = join(import.meta.dirname, '..', '..');

function runOn(version: string) {
  const preload = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } })`;
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ['--import', `data:text/javascript,${encodeURIComponent(preload)}`, join(ROOT, MAIN), '--version'],
    { encoding: 'utf8' },
  );
  return { status, stdout, stderr };
}

it.each(['20.19.0', '22.20.0', '23.11.1', '24.0.0', '24.8.0'])('refuses Node.js %s with what is needed', (version) => {
  const stderr = `bearer-sidecar: Node.js 22.21 (or a newer 22), or 24.9 or newer, is needed; this is ${version}\n`;
  expect(runOn(version)).toEqual({ status: 2, stdout: '', stderr });
});

it.each(['22.21.0', '22.23.3', '24.9.0', '24.21.0', '25.0.0', '26.0.0'])('runs on Node.js %s', (version) => {
  expect(runOn(version)).toMatchObject({ status: 0, stderr: '' });
});
