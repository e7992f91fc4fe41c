/**
 * The unit as systemd itself checks it. That the process runs under all of its restrictions is shown by `npm run systemd:boot`,
 * which starts a systemd of its own.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { SETTINGS } from '../../src/config/schema/schema.ts';

const UNIT = readFileSync(join(import.meta.dirname, '..', '..', 'deploy', 'systemd', 'bearer-sidecar.service'), 'utf8');

/** A copy whose program is one that exists, with further changes. */
function writeUnit(change: (unit: string) => string = (unit) => unit): string {
  const folder = mkdtempSync(join(tmpdir(), 'unit-'));
  onTestFinished(() => {
    rmSync(folder, { recursive: true });
  });
  const file = join(folder, 'bearer-sidecar.service');
  writeFileSync(file, change(UNIT.replace('ExecStart=/usr/local/bin/bearer-sidecar', `ExecStart=${process.execPath}`)));
  return file;
}

function analyze(...args: string[]) {
  const { status, stdout, stderr, error } = spawnSync('systemd-analyze', args, { encoding: 'utf8' });
  if (error !== undefined)
    throw new Error('systemd-analyze is needed by this test (Debian: systemd)', { cause: error });
  return { status, stdout, stderr };
}

/** All values of a directive. */
const valuesOf = (name: string): string[] =>
  UNIT.split('\n').flatMap((line) => (line.startsWith(`${name}=`) ? [line.slice(name.length + 1)] : []));

it('systemd-analyze verify accepts the unit, and refuses a wrong one', () => {
  expect(analyze('verify', '--man=no', writeUnit())).toEqual({ status: 0, stdout: '', stderr: '' });
  const wrong = writeUnit((unit) => unit.replace('RestartSec=1', 'RestartSec=soon\nProtectSytem=strict'));
  const { stderr } = analyze('verify', '--man=no', wrong);
  expect(stderr).toContain('Failed to parse sec value');
  expect(stderr).toContain('ProtectSytem');
});

it('systemd-analyze security: exposure below 2 of 10', () => {
  const { status, stdout } = analyze('security', '--offline=true', '--no-pager', '--threshold=20', writeUnit());
  const version = analyze('--version').stdout.split('\n')[0] ?? '';
  console.info(`${version}: ${/Overall exposure level.*/.exec(stdout)?.[0] ?? 'no level'}`);
  expect(status).toBe(0);
  // Without the hardening the same check fails.
  const soft = writeUnit((unit) => unit.replace(/^(?:Protect|Private|Restrict|SystemCall|Capability).*$/gm, ''));
  expect(analyze('security', '--offline=true', '--no-pager', '--threshold=20', soft).status).not.toBe(0);
});

it('the secret is a credential, and the stop time exceeds the drain', () => {
  const environment = Object.fromEntries(
    valuesOf('Environment').map((value) => value.split('=', 2) as [string, string]),
  );
  expect(environment).toMatchObject({ SIDECAR_CLIENT_SECRET_FILE: '%d/client-secret' });
  expect(valuesOf('LoadCredential').join()).toContain('client-secret:');
  const known = [...SETTINGS.values()].map(({ env }) => env);
  const named = Object.keys(environment).filter((name) => name.startsWith('SIDECAR_'));
  expect(known).toEqual(expect.arrayContaining(named));
  const drainMs = SETTINGS.get('shutdown.drainMs')?.default;
  expect(Number(valuesOf('TimeoutStopSec')[0]) * 1000).toBeGreaterThan(Number(drainMs));
});

it('the memory settings are those of the image', () => {
  const dockerfile = readFileSync(join(import.meta.dirname, '..', '..', 'Dockerfile'), 'utf8');
  const memoryMax = Number(/^(\d+)M$/.exec(valuesOf('MemoryMax')[0] ?? '')?.[1]);
  const ofImage = [...dockerfile.matchAll(/^ENV ((?:NODE_OPTIONS|MALLOC_).*)$/gm)].map(([, line = '']) =>
    line
      .replaceAll('"', '')
      // Not every Node.js that the package runs on knows a share of the limit.
      .replace(/(--max-old-space-size)-percentage=(\d+)/, (_, name: string, share: string) =>
        [name, Math.floor((memoryMax * Number(share)) / 100)].join('='),
      ),
  );
  expect(ofImage).toHaveLength(2);
  const ofUnit = valuesOf('Environment').map((value) => value.replaceAll('"', ''));
  expect(ofUnit).toEqual(expect.arrayContaining(ofImage));
});
