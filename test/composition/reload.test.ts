/** What a reload changes for requests, and which events it emits. */
import { writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { Secrets } from '../../src/platform/secrets.ts';
import type { Config } from '../../src/config/config.ts';
import { loadConfig } from '../../src/config/load/load.ts';
import type { LoadedConfig, LoadResult } from '../../src/config/load/load.ts';
import { createReloader } from '../../src/composition/reload.ts';
import type { SidecarEvent } from '../../src/telemetry/events.ts';
import { BASE_ENV, scratchFile } from '../config/base-env.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { createLatch, startInProcess, until } from './in-process.ts';
import { send } from './send.ts';

const START = Date.UTC(2026, 10, 1);

function load(yaml: string): LoadResult {
  return loadConfig({ env: BASE_ENV, file: scratchFile(yaml) });
}

/** A reloader with the configurations that it loads next, and a record of what it did. */
function harness(yaml: string) {
  const clock = new ManualClock();
  const done: (string | SidecarEvent)[] = [];
  let next = load(yaml);
  if (!next.ok) throw new Error('the first one is fine');
  const loaded: LoadedConfig = next;
  const reloader = createReloader({
    source: { loaded, load: () => next },
    log: { secrets: new Secrets({ now: () => 0 }), setLevel: (level) => done.push(`level ${level}`) },
    apply: ({ routes }: Config) => done.push(`rate ${String(routes[0].throttle.rate)}`),
    clock,
    observe: (event) => done.push(event),
  });
  const reload = async (changed: string) => {
    done.length = 0;
    next = load(changed);
    await clock.advance(1000);
    reloader.reload();
    return done;
  };
  return { reloader, reload };
}

describe('a reload', () => {
  it('applies all changes, emits an event, and is the base of the next comparison', async () => {
    const { reloader, reload } = harness('throttle: { rate: 5 }');
    expect(reloader.state()).toEqual({ loadedWallAt: START, isReloadable: true, lastReload: undefined });
    expect(await reload('throttle: { rate: 6 }')).toEqual([
      'rate 6',
      { kind: 'configuration-read', outcome: 'ok', lines: [expect.stringMatching(/^throttle\.rate: 5 → 6/)] },
      'level info',
    ]);
    expect(reloader.state()).toMatchObject({ loadedWallAt: START + 1000, lastReload: { outcome: 'ok' } });
    expect(await reload('throttle: { rate: 6 }')).toContainEqual({
      kind: 'configuration-read',
      outcome: 'ok',
      lines: [],
    });
  });

  it('with one key that needs a restart applies nothing, and the configuration in force stays the base of comparison', async () => {
    const { reloader, reload } = harness('throttle: { rate: 5 }');
    expect(await reload('throttle: { rate: 6 }\nshutdown: { drainMs: 1 }\nlog: { level: error }')).toEqual([
      { kind: 'configuration-read', outcome: 'refused', lines: ['shutdown.drainMs'] },
    ]);
    const lastReload = { wallAt: START + 1000, outcome: 'refused', lines: ['shutdown.drainMs'] };
    expect(reloader.state()).toEqual({ loadedWallAt: START, isReloadable: true, lastReload });
    expect(await reload('throttle: { rate: 6 }')).toContain('rate 6');
  });

  it('of an invalid configuration applies nothing and reports the problems', async () => {
    const { reloader, reload } = harness('throttle: { rate: 5 }');
    const [event, ...others] = await reload('throttle: { rate: 0 }');
    expect(event).toMatchObject({
      outcome: 'invalid',
      lines: [expect.stringMatching(/^throttle\.rate \(SIDECAR_RATE\): /)],
    });
    expect(others).toEqual([]);
    expect(reloader.state()).toMatchObject({ loadedWallAt: START, lastReload: { outcome: 'invalid' } });
  });

  it.each(['', '\n# nothing\n', '{}', 'null', '$schema: x'])(
    'of a file that has become empty applies nothing: %j',
    async (empty) => {
      const { reload } = harness('throttle: { rate: 5 }');
      for (let time = 0; time < 2; time++)
        expect(await reload(empty)).toEqual([
          {
            kind: 'configuration-read',
            outcome: 'invalid',
            lines: [expect.stringMatching(/^configuration file: .*empty/)],
          },
        ]);
      expect(await reload('throttle: { rate: 6 }')).toContain('rate 6');
    },
  );

  it('of a file that was empty before is taken over, and so is one without the settings that it had', async () => {
    const { reload } = harness('');
    expect(await reload('')).toContainEqual({ kind: 'configuration-read', outcome: 'ok', lines: [] });
    expect(await reload('throttle: { rate: 6 }')).toContain('rate 6');
    expect(await reload('log: { level: info }')).toContain('rate auto');
  });

  it('is logged with the more verbose of the two log levels', async () => {
    const { reload } = harness('log: { level: error }');
    const steps = async (yaml: string) =>
      (await reload(yaml)).map((step) => (typeof step === 'string' ? step : step.kind));
    expect((await steps('log: { level: info }')).slice(1, 3)).toEqual(['level info', 'configuration-read']);
    expect((await steps('log: { level: fatal }')).slice(1, 3)).toEqual(['configuration-read', 'level fatal']);
  });
});

describe('requests', () => {
  it('under way keep their settings, and later ones have the new ones', async () => {
    const latch = createLatch();
    const file = scratchFile('request: { deadlineMs: 20000 }');
    const sidecar = await startInProcess({
      file,
      respond: async (_request, response) => {
        await latch.opened;
        response.end('served');
      },
    });
    const before = send(`${sidecar.url}/a`);
    await until(() => sidecar.api.requests.length === 1, 'the first one is under way');
    writeFileSync(file, 'request: { deadlineMs: 50 }');
    sidecar.sidecar.reload();
    expect(await send(`${sidecar.url}/b`)).toMatchObject({ status: 504, code: 'UPSTREAM_TIMEOUT' });
    latch.open();
    expect((await before).text).toBe('served');
  });

  it('get the new number of attempts and the new number of connections', async () => {
    const latch = createLatch();
    const unthrottled = 'throttle: { rate: 1000, burst: 100, maxInFlight: 2, maxStreams: 0 }\n';
    const file = scratchFile(`${unthrottled}retry: { attempts: 3 }`);
    const env = { SIDECAR_RATE: '', SIDECAR_BURST: '' };
    const sidecar = await startInProcess({
      file,
      env,
      respond: async ({ path }, response) => {
        if (path === '/held') await latch.opened;
        response.writeHead(path === '/held' ? 200 : 503).end();
      },
    });
    await send(`${sidecar.url}/a`);
    expect(sidecar.api.requests).toHaveLength(3);
    writeFileSync(file, `${unthrottled.replace('maxInFlight: 2', 'maxInFlight: 9')}retry: { attempts: 1 }`);
    sidecar.sidecar.reload();
    await send(`${sidecar.url}/a`);
    expect(sidecar.api.requests).toHaveLength(4);
    const held = Array.from({ length: 9 }, () => send(`${sidecar.url}/held`));
    await until(() => sidecar.api.requests.length === 13, 'all nine are at the upstream');
    latch.open();
    expect((await Promise.all(held)).map(({ status }) => status)).toEqual(held.map(() => 200));
  });

  it('are buffered within the new total', async () => {
    const file = scratchFile('retry: { attempts: 2 }');
    const sidecar = await startInProcess({ file, respond: (_request, response) => void response.writeHead(503).end() });
    const put = { method: 'PUT', body: 'some bytes' };
    await send(`${sidecar.url}/a`, put);
    expect(sidecar.api.requests).toHaveLength(2);
    writeFileSync(file, 'retry: { attempts: 2, replayTotalBytes: 5 }');
    sidecar.sidecar.reload();
    await send(`${sidecar.url}/a`, put);
    expect(sidecar.api.requests).toHaveLength(3);
  });

  it('get cookies as the new setting says', async () => {
    const file = scratchFile('response: { cookies: pass }');
    const sidecar = await startInProcess({
      file,
      respond: (_request, response) => void response.writeHead(200, { 'set-cookie': 'a=1; Secure; HttpOnly' }).end(),
    });
    expect((await send(sidecar.url)).fields['set-cookie']).toBe('a=1; Secure; HttpOnly');
    writeFileSync(file, 'response: { cookies: adapt }');
    sidecar.sidecar.reload();
    expect((await send(sidecar.url)).fields['set-cookie']).toBe('a=1; HttpOnly');
  });

  it('match the routes by their new paths and methods', async () => {
    const routes = (path: string, more = ''): string =>
      `routes: [{ name: a, pathPrefix: ${path}, stripPrefix: true ${more} }]`;
    const file = scratchFile(routes('/one'));
    const sidecar = await startInProcess({ file });
    await send(`${sidecar.url}/one/x`);
    writeFileSync(file, routes('/two', ', methods: GET'));
    sidecar.sidecar.reload();
    await send(`${sidecar.url}/two/x`);
    await send(`${sidecar.url}/one/x`);
    expect(sidecar.api.requests.map(({ path }) => path)).toEqual(['/x', '/x', '/one/x']);
    expect(await send(`${sidecar.url}/two/x`, { method: 'POST' })).toMatchObject({
      status: 405,
      code: 'METHOD_NOT_ALLOWED',
    });
    expect((await sidecar.requestRecords(4)).map(({ route }) => route)).toEqual(['a', 'a', 'default', 'a']);
  });
});

it('a reload without a file gives a warning, and is not counted', async () => {
  const sidecar = await startInProcess();
  sidecar.sidecar.reload();
  expect(sidecar.eventsOf('warning').map(({ message }) => message)).toEqual([
    expect.stringMatching(/no configuration file/),
  ]);
  expect(await sidecar.metric('bearer_sidecar_config_reloads_total{outcome="ok"}')).toBe(0);
});
