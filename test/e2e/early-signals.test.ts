/** Signals that come while the program starts as process 1, as in a container: the kernel drops those that have no handler. Linux. */
import { describe, expect, it } from 'vitest';
import { MAIN } from '../support/main-file.ts';
import { newCredential } from '../support/secrets.ts';
import { baseSettings, spawnSidecar, type SidecarProcess } from '../support/sidecar-process.ts';

/** Sends signals to its own process before it loads the module of this number; the program itself has number 0. */
function signalAtModule(number: number, signals: readonly NodeJS.Signals[]): string {
  const preload = `
    import { registerHooks } from 'node:module';
    let count = 0;
    registerHooks({
      load(url, context, next) {
        if (url.startsWith('file:') && count++ === ${String(number)})
          for (const signal of ${JSON.stringify(signals)}) process.kill(process.pid, signal);
        return next(url, context);
      },
    });`;
  return `data:text/javascript,${encodeURIComponent(preload)}`;
}

/** In a process namespace of its own. */
function spawnAsProcess1(module: number, args: readonly string[], signals: readonly NodeJS.Signals[]): SidecarProcess {
  const asUser = process.getuid?.() === 0 ? [] : ['--map-root-user'];
  const namespace = [...asUser, '--pid', '--fork', '--kill-child', '--mount-proc'];
  return spawnSidecar({
    name: 'early-signals',
    program: ['unshare', ...namespace, process.execPath, '--import', signalAtModule(module, signals), MAIN],
    args,
    env: {
      ...baseSettings('http://127.0.0.1:1', 'http://127.0.0.1:1', newCredential()),
      ...{ SIDECAR_LISTEN: '127.0.0.1:0', SIDECAR_ADMIN_LISTEN: '127.0.0.1:0' },
    },
  });
}

describe('a signal during the imports of process 1', () => {
  it.each([
    ...[1, 2, 3, 10, 20].map((module) => [['run'], module, 0] as const),
    ...[1, 10].map((module) => [['sandbox'], module, 0] as const),
    ...[1, 10].map((module) => [['check'], module, 1] as const),
    [['wait', '--max', '60s'], 1, 1] as const,
    [['reload'], 1, 1] as const,
  ])('ends %j at module %i with %i, before it serves', async (args, module, code) => {
    await using sidecar = spawnAsProcess1(module, args, ['SIGTERM']);
    expect(await sidecar.exit).toEqual({ code, signal: null });
    expect(sidecar.stdout()).not.toContain('"listening"');
  });

  it.each([
    ['SIGTERM', 'SIGINT'],
    ['SIGINT', 'SIGINT'],
    ['SIGTERM', 'SIGTERM', 'SIGTERM'],
  ] as const)('followed by a second one ends it at once with 1: %s, %s', async (...signals) => {
    await using sidecar = spawnAsProcess1(1, ['run'], signals);
    expect(await sidecar.exit).toEqual({ code: 1, signal: null });
    expect(sidecar.stdout()).toBe('');
  });
});
