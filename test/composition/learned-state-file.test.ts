/** What is configured of the limit for several replicas, and over a restart. */
import { chmodSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { startInProcess } from './in-process.ts';

interface Shown {
  readonly throttle: { readonly rate: number | null; readonly learned: object | null };
}

async function statusOf(adminUrl: string): Promise<Shown> {
  return (await (await fetch(`${adminUrl}/status`)).json()) as Shown;
}

function scratch(): string {
  const directory = mkdtempSync(join(tmpdir(), 'learned-limits-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

describe('throttle.share', () => {
  it('gives each replica its part of a configured rate', async () => {
    const { sidecar, metric } = await startInProcess({ env: { SIDECAR_RATE: '50', SIDECAR_THROTTLE_SHARE: '4' } });
    expect((await statusOf(sidecar.adminUrl)).throttle).toMatchObject({ rate: 12.5, learned: null });
    expect(await metric('bearer_sidecar_permit_rate{route="default"}')).toBe(12.5);
  });
});

describe('throttle.stateFile', () => {
  const AUTO = { SIDECAR_RATE: 'auto', SIDECAR_BURST: '1' };

  it('that is invalid or not writable gives one warning, and the sidecar serves', async () => {
    const directory = scratch();
    const path = join(directory, 'learned.json');
    writeFileSync(path, 'garbage');
    const { sidecar, eventsOf } = await startInProcess({ env: { ...AUTO, SIDECAR_THROTTLE_STATE_FILE: path } });
    expect((await fetch(`${sidecar.adminUrl}/livez`)).status).toBe(200);
    await sidecar.drain();
    expect(eventsOf('warning').map(({ message }) => message)).toEqual([
      `throttle.stateFile: "${path}" is not what a sidecar writes: the limit is learned anew`,
    ]);

    const nowhere = await startInProcess({
      env: { ...AUTO, SIDECAR_THROTTLE_STATE_FILE: join(directory, 'nowhere', 'learned.json') },
    });
    await nowhere.sidecar.drain();
    expect(nowhere.eventsOf('warning').map(({ message }) => message)).toEqual([
      expect.stringContaining('what is learned ends with this process'),
    ]);
  });

  it('is not used with a configured rate', async () => {
    const directory = scratch();
    const path = join(directory, 'learned.json');
    writeFileSync(path, 'garbage');
    chmodSync(path, 0o600);
    const { sidecar, eventsOf } = await startInProcess({ env: { SIDECAR_THROTTLE_STATE_FILE: path } });
    await sidecar.drain();
    expect(eventsOf('warning')).toEqual([]);
    expect(readdirSync(directory)).toEqual(['learned.json']);
  });
});
