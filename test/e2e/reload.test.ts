/** SIGHUP: settings that change under load without a restart, and what is refused as a whole. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { call, callConcurrently } from '../support/calls.ts';
import { writeConfigFile } from '../support/config-file.ts';
import { MAIN } from '../support/main-file.ts';
import { startNginx } from '../support/nginx.ts';
import { startRecordingUpstream } from '../support/recording-upstream.ts';
import { newCredential } from '../support/secrets.ts';
import { baseSettings, startSidecar, waitUntilReady } from '../support/sidecar-process.ts';
import type { RunningSidecar } from '../support/sidecar-process.ts';
import { startTokenServer } from '../support/token-server.ts';
import { waitUntil } from '../support/until.ts';
import { maxCountInWindow } from '../support/windows.ts';

interface ConfigurationLine {
  readonly msg: string;
  readonly level: string;
  readonly changes?: readonly string[];
  readonly keys?: readonly string[];
  readonly problem?: string;
}

/** Log lines about the configuration. */
function configurationLines(sidecar: RunningSidecar): ConfigurationLine[] {
  const lines = sidecar.stdout().split('\n').slice(0, -1);
  return lines.map((line) => JSON.parse(line) as ConfigurationLine).filter(({ msg }) => msg.includes('configuration'));
}

async function reloads(sidecar: RunningSidecar): Promise<Record<string, number>> {
  const text = await (await fetch(`${sidecar.adminUrl}/metrics`)).text();
  const samples = text.matchAll(/^bearer_sidecar_config_reloads_total\{outcome="(\w+)"\} (\d+)$/gm);
  return Object.fromEntries([...samples].map(([, outcome = '', count]) => [outcome, Number(count)] as const));
}

interface Configured {
  readonly degraded: readonly string[];
  readonly alerts: readonly { readonly name: string }[];
  readonly throttle: { readonly rate: number };
  readonly configuration: {
    readonly loadedAt: string;
    readonly lastReload: { readonly at: string; readonly outcome: string; readonly detail: string } | null;
  };
}

async function status(sidecar: RunningSidecar): Promise<Configured> {
  return (await (await fetch(`${sidecar.adminUrl}/status`)).json()) as Configured;
}

/** Sends SIGHUP and waits until it has been dealt with. */
async function hangUp(sidecar: RunningSidecar, count = 1): Promise<void> {
  process.kill(sidecar.pid, 'SIGHUP');
  await waitUntil(() => configurationLines(sidecar).length >= count, 'a line about the configuration is logged');
}

/** A sidecar with a file, before an nginx. */
async function startWithFile(name: string, yaml: string, env: Readonly<Record<string, string>> = {}) {
  const stack = new AsyncDisposableStack();
  const upstream = stack.use(await startNginx());
  const tokens = stack.use(await startTokenServer());
  const file = stack.use(await writeConfigFile(yaml));
  const all = { ...baseSettings(upstream.url, tokens.url, newCredential()), SIDECAR_CONFIG: file.path, ...env };
  const sidecar = stack.use(await startSidecar({ name, env: all }));
  await waitUntilReady(sidecar);
  return { upstream, file, sidecar, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

it('rate 5 to 20 under load: nothing is lost, and the new rate holds at once and as a bound', async () => {
  await using world = await startWithFile('reload-rate', 'throttle: { rate: 5 }\nqueue: { timeoutMs: 60000 }\n');
  const { upstream, file, sidecar } = world;
  const startedAt = Date.now();
  const calls = callConcurrently(80, (index) => call(`${sidecar.proxyUrl}/calls/${String(index)}`));
  await sleep(1000);
  await file.replace('throttle: { rate: 20, burst: 40 }\nqueue: { timeoutMs: 60000 }\n');
  const signalledAt = Date.now();
  await hangUp(sidecar);

  const responses = await calls;
  expect(responses.map((response) => response.status)).toEqual(responses.map(() => 200));
  // nginx writes the line of a request after its response.
  await waitUntil(() => upstream.requests().length >= 80, 'nginx has logged all calls');
  const arrivals = upstream.requests().map(({ at }) => at);
  expect(arrivals).toHaveLength(80);
  const before = arrivals.filter((at) => at < signalledAt);
  const afterMs = Math.max(...arrivals) - signalledAt;
  console.info(
    `5/s, then 20/s: ${before.length} before, the others in ${afterMs} ms, fullest second ${maxCountInWindow(arrivals, 1000)}`,
  );
  // One at once and five a second; two that were on their way.
  expect(before.length).toBeLessThanOrEqual(3 + (5 * (signalledAt - startedAt)) / 1000);
  // A busy machine grants late and does not make up for it; half as fast is still twice the rate of before.
  expect(afterMs).toBeLessThan(((80 - before.length) * 1000) / 10);
  // 21 on a quiet machine, and calls of one second arrive together on a busy one; a burst at the change would make it 61.
  expect(maxCountInWindow(arrivals, 1000)).toBeLessThanOrEqual(45);
  const changes = ['throttle.rate: 5 → 20', 'throttle.burst: 1 → 40'].map((change) => `${change} (file ${file.path})`);
  expect(configurationLines(sidecar)).toMatchObject([{ level: 'info', msg: 'configuration reloaded', changes }]);
  expect(await reloads(sidecar)).toEqual({ ok: 1, refused: 0, invalid: 0 });
  const { throttle, configuration, degraded } = await status(sidecar);
  expect({ throttle, degraded }).toMatchObject({ throttle: { rate: 20 }, degraded: [] });
  expect(configuration.lastReload).toMatchObject({ outcome: 'ok', detail: changes.join('; ') });
  expect(Date.parse(configuration.loadedAt)).toBeGreaterThanOrEqual(signalledAt);
});

it('no request fails during ten reloads under load', async () => {
  const yaml = (
    round: number,
  ): string => `throttle: { rate: ${String(2000 + round)}, burst: 100, maxInFlight: ${String(20 + (round % 3) * 20)} }
queue: { max: ${String(5000 - round)} }
request: { deadlineMs: ${String(50_000 + round)} }
upstream: { requestTimeoutMs: ${String(20_000 + round)} }
retry: { attempts: ${String(1 + (round % 4))}, replayTotalBytes: ${String(1_000_000 + round)} }
`;
  await using world = await startWithFile('reload-ten', yaml(0));
  const { file, sidecar } = world;
  const outcomes: (number | string)[] = [];
  const calls: Promise<unknown>[] = [];
  const startedAt = performance.now();
  const load = setInterval(() => {
    while (calls.length * 5 < performance.now() - startedAt)
      calls.push(
        call(`${sidecar.proxyUrl}/calls/${String(calls.length)}`).then(
          (response) => outcomes.push(response.status),
          (error: unknown) => outcomes.push(String(error)),
        ),
      );
  }, 5);
  for (let round = 1; round <= 10; round++) {
    await sleep(200);
    await file.replace(yaml(round));
    await hangUp(sidecar, round);
  }
  await sleep(200);
  clearInterval(load);
  await Promise.all(calls);
  console.info(`ten reloads: ${outcomes.length} requests`);
  expect(outcomes.length).toBeGreaterThan(100);
  expect(outcomes.filter((outcome) => outcome !== 200)).toEqual([]);
  expect(await reloads(sidecar)).toEqual({ ok: 10, refused: 0, invalid: 0 });
});

describe('as a whole or not at all', () => {
  it('refuses all changes when one key needs a restart, by its name and without its value', async () => {
    await using world = await startWithFile('reload-refused', 'throttle: { rate: 100 }\n');
    const { file, sidecar } = world;
    await file.replace('throttle: { rate: 7 }\nadmin: { exposeAll: true }\nlisten: { keepAliveMs: 5000 }\n');
    await hangUp(sidecar);
    expect(configurationLines(sidecar)).toMatchObject([
      {
        level: 'warn',
        keys: ['listen.keepAliveMs', 'admin.exposeAll'],
        msg: expect.stringMatching(/need a restart/) as string,
      },
    ]);
    const { throttle, configuration, degraded } = await status(sidecar);
    expect(throttle.rate).toBe(100);
    expect(configuration.lastReload).toMatchObject({ outcome: 'refused' });
    expect(degraded).toEqual([expect.stringMatching(/restart is needed for: listen\.keepAliveMs; admin\.exposeAll$/)]);
    expect(await reloads(sidecar)).toEqual({ ok: 0, refused: 1, invalid: 0 });
    const isAlerted = async (): Promise<boolean> =>
      (await status(sidecar)).alerts.some(({ name }) => name === 'BearerSidecarReloadFailed');
    await waitUntil(isAlerted, 'the alert is shown');

    await file.replace('throttle: { rate: 7 }\n');
    await hangUp(sidecar, 2);
    expect(await status(sidecar)).toMatchObject({ throttle: { rate: 7 }, degraded: [] });
    await waitUntil(async () => !(await isAlerted()), 'the alert has ended with the reason');
  });

  it.each([
    [
      'a value',
      'throttle: { rate: fast }\nqueue: { max: -1 }\n',
      [/^throttle\.rate \(SIDECAR_RATE\): found "fast"/, /^queue\.max/],
    ],
    ['YAML', 'throttle: { rate: 7\n', [/^configuration file \(SIDECAR_CONFIG\): .*not valid YAML/]],
    ['a key', 'throttel: { rate: 7 }\n', [/^throttel: unknown key in /]],
  ])('%s that is wrong: the problems as at the start, and everything goes on', async (_, yaml, problems) => {
    await using world = await startWithFile('reload-invalid', 'throttle: { rate: 100 }\n');
    const { file, sidecar } = world;
    await file.replace(yaml);
    await hangUp(sidecar, problems.length);
    const lines = configurationLines(sidecar);
    expect(lines.map(({ level }) => level)).toEqual(problems.map(() => 'error'));
    for (const [index, problem] of problems.entries()) expect(lines[index]?.problem).toMatch(problem);
    expect(await status(sidecar)).toMatchObject({
      throttle: { rate: 100 },
      configuration: { lastReload: { outcome: 'invalid' } },
    });
    expect((await call(`${sidecar.proxyUrl}/calls/1`)).status).toBe(200);
    expect(await reloads(sidecar)).toEqual({ ok: 0, refused: 0, invalid: 1 });
  });
});

it('applies the environment over the file as at the start, and logs each change of the log level', async () => {
  const env = { SIDECAR_RATE: '60' };
  await using world = await startWithFile('reload-level', 'throttle: { rate: 100 }\n', env);
  const { file, sidecar } = world;
  for (const [round, level] of ['error', 'info'].entries()) {
    await file.replace(`throttle: { rate: 7 }\nlog: { level: ${level} }\n`);
    await hangUp(sidecar, round + 1);
  }
  const from = `(file ${file.path})`;
  expect(configurationLines(sidecar).map(({ changes }) => changes)).toEqual([
    [`log.level: info → error ${from}`],
    [`log.level: error → info ${from}`],
  ]);
  expect(await status(sidecar)).toMatchObject({ throttle: { rate: 60 } });
});

it('logs one line without a configuration file, and continues', async () => {
  await using world = await startWithFile('reload-no-file', '', { SIDECAR_CONFIG: '' });
  const { sidecar } = world;
  await hangUp(sidecar);
  expect(configurationLines(sidecar)).toMatchObject([
    { level: 'warn', msg: expect.stringMatching(/no configuration file/) as string },
  ]);
  expect((await call(`${sidecar.proxyUrl}/calls/1`)).status).toBe(200);
  expect(await reloads(sidecar)).toEqual({ ok: 0, refused: 0, invalid: 0 });
  expect(await sidecar.stop()).toEqual({ code: 0, signal: null });
});

describe('on a terminal', () => {
  it('reloads on SIGHUP, and drains when the terminal is closed', async () => {
    await using upstream = await startRecordingUpstream(async (_request, response) => {
      await sleep(500);
      response.end('late');
    });
    await using tokens = await startTokenServer();
    await using file = await writeConfigFile('throttle: { rate: 100 }\n');
    const env = {
      ...baseSettings(upstream.url, tokens.url, newCredential()),
      SIDECAR_LISTEN: '127.0.0.1:0',
      SIDECAR_ADMIN_LISTEN: '127.0.0.1:0',
      SIDECAR_LOG_FORMAT: 'json',
    };
    await using terminal = openTerminal({ ...env, SIDECAR_CONFIG: file.path });
    const pid = Number((await terminal.line(/^pid (\d+)/))[1]);
    const proxyUrl = (await terminal.line(/"server":"proxy","url":"([^"]+)"/))[1] ?? '';
    await file.replace('throttle: { rate: 200 }\n');
    process.kill(pid, 'SIGHUP');
    await terminal.line(/configuration reloaded/);

    const response = call(`${proxyUrl}/late`);
    await waitUntil(() => upstream.requests.length === 1, 'the call at the upstream');
    terminal.close();
    expect(await response).toMatchObject({ status: 200, text: 'late' });
    await waitUntil(() => !isThere(pid), 'the end of the process');
  });
});

/** `script` gives the process a terminal of its own, which is gone when `script` is. */
function openTerminal(env: Readonly<Record<string, string>>) {
  const command = `echo pid $$; exec '${process.execPath}' ${MAIN}`;
  const child = spawn('script', ['-qec', command, '/dev/null'], {
    cwd: join(import.meta.dirname, '..', '..'),
    env: { PATH: process.env.PATH ?? '', SHELL: '/bin/sh', ...env },
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  let shown = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    shown += text;
  });
  return {
    async line(pattern: RegExp): Promise<RegExpExecArray> {
      let found = new RegExp(pattern, 'm').exec(shown);
      await waitUntil(() => (found = new RegExp(pattern, 'm').exec(shown)) !== null, `${String(pattern)} is shown`);
      if (found === null) throw new Error('not shown');
      return found;
    },
    close: () => void child.kill('SIGKILL'),
    [Symbol.asyncDispose]: async () => {
      const pid = Number(/^pid (\d+)/m.exec(shown)?.[1]);
      if (pid > 0 && isThere(pid)) process.kill(pid, 'SIGKILL');
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
  };
}

function isThere(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
