/** What is configured of the limit for several replicas, and over a restart. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { startInProcess } from './in-process.ts';

interface Shown {
  readonly throttle: { readonly rate: number | null; readonly learned: object | null };
}

interface Kept {
  readonly counts?: readonly (readonly [
    string,
    { readonly limits: readonly { readonly counts: readonly [number, number][]; readonly leased: number }[] },
  ])[];
}

/** What the state file counts of the first limit of the first throttle. */
function readCount(path: string): { readonly used: number; readonly leased: number } | undefined {
  const limit = (JSON.parse(readFileSync(path, 'utf8')) as Kept).counts?.[0]?.[1].limits[0];
  return limit && { used: limit.counts.reduce((sum, [, calls]) => sum + calls, 0), leased: limit.leased };
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
      `throttle.stateFile: "${path}" is not what a sidecar writes: the limit is learned anew, and declared limits count from 0`,
    ]);

    const nowhere = await startInProcess({
      env: { ...AUTO, SIDECAR_THROTTLE_STATE_FILE: join(directory, 'nowhere', 'learned.json') },
    });
    expect(await nowhere.metric('bearer_sidecar_state_file_write_errors_total')).toBeGreaterThan(0);
    await nowhere.sidecar.drain();
    expect(nowhere.eventsOf('warning').map(({ message }) => message)).toEqual([
      expect.stringContaining('what is learned or counted ends with this process'),
    ]);
  });

  it('is not written before the first response, with a configured rate and no declared limit', async () => {
    const directory = scratch();
    const { sidecar, eventsOf } = await startInProcess({
      env: { SIDECAR_THROTTLE_STATE_FILE: join(directory, 'learned.json') },
    });
    await sidecar.drain();
    expect(eventsOf('warning')).toEqual([]);
    expect(readdirSync(directory)).toEqual([]);
  });

  it('keeps what has worked, and a later process goes on with it', async () => {
    const path = join(scratch(), 'state.json');
    const env = { SIDECAR_THROTTLE_STATE_FILE: path, SIDECAR_CLIENT_ID: 'the-same' };
    const readSuccesses = (): unknown => {
      const { successes } = JSON.parse(readFileSync(path, 'utf8')) as { successes: { entries: [string, number][] } };
      return successes.entries.find(([key]) => key === 'succeeded default')?.[1];
    };
    const first = await startInProcess({ env });
    for (let call = 0; call < 5; call++) expect((await fetch(first.url)).status).toBe(200);
    await first.sidecar.drain();
    expect(readSuccesses()).toBe(5);
    const second = await startInProcess({ env, apiUrl: first.api.url });
    for (let call = 0; call < 2; call++) expect((await fetch(second.url)).status).toBe(200);
    await second.sidecar.drain();
    expect(readSuccesses()).toBe(7);
    expect([...first.eventsOf('warning'), ...second.eventsOf('warning')]).toEqual([]);
  });

  it('keeps the counts of declared limits, also of one that a reload declares', async () => {
    const directory = scratch();
    const [file, path] = [join(directory, 'config.yaml'), join(directory, 'state.json')];
    const limits = (...names: string[]): void =>
      writeFileSync(
        file,
        `throttle: { limits: [${names.map((name) => `{ name: ${name}, calls: 100, per: 30d }`).join(', ')}] }`,
      );
    limits('monthly');
    const env = { SIDECAR_THROTTLE_STATE_FILE: path, SIDECAR_CLIENT_ID: 'the-same' };
    const first = await startInProcess({ env, file });
    expect(readCount(path)).toEqual({ used: 0, leased: 2 });
    for (let call = 0; call < 5; call++) expect((await fetch(first.url)).status).toBe(200);
    await first.sidecar.drain();
    expect(readCount(path)).toEqual({ used: 5, leased: 0 });
    const second = await startInProcess({ env, file, apiUrl: first.api.url });
    expect(readCount(path)).toEqual({ used: 5, leased: 2 });
    limits('other', 'monthly');
    second.sidecar.reload();
    expect((await fetch(second.url)).status).toBe(200);
    await second.sidecar.drain();
    expect(readCount(path)).toEqual({ used: 1, leased: 0 });
    expect([...first.eventsOf('warning'), ...second.eventsOf('warning')]).toEqual([]);
  });

  it('that is not set is named at the start where limits are declared', async () => {
    const file = join(scratch(), 'config.yaml');
    writeFileSync(file, 'throttle: { limits: [{ name: daily, calls: 100, per: 1d }] }');
    const { sidecar, eventsOf } = await startInProcess({ file });
    await sidecar.drain();
    expect(eventsOf('warning').map(({ message }) => message)).toEqual([
      'throttle.limits: counts end with this process; throttle.stateFile keeps them',
    ]);
  });
});
