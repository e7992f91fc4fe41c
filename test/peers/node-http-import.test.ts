/** What an import of node:http costs, and that the sidecar does not pay it. */
import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';

/** Fetch and the WebSocket client, as Node.js brings them. */
const BROUGHT_ALONG = 'NativeModule internal/deps/undici/undici';

function isLoadedBy(module: string): boolean {
  const script = `await import(${JSON.stringify(module)}); console.log(process.moduleLoadList.includes('${BROUGHT_ALONG}'))`;
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' });
  expect(stderr).toBe('');
  return JSON.parse(stdout) as boolean;
}

it('an import of node:http loads fetch; what runs the sidecar does not', () => {
  expect(isLoadedBy('node:http')).toBe(true);
  expect(isLoadedBy(new URL('../../src/commands/run.ts', import.meta.url).href)).toBe(false);
});
