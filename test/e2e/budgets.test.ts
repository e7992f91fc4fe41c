/** The sidecar on a machine that gives little: no descriptor runs out, and every client gets a response. The loads at length: `npm run soak:budgets`. */
import { expect, it } from 'vitest';
import { newCredential } from '../support/secrets.ts';
import { baseSettings, spawnSidecar } from '../support/sidecar-process.ts';
import { MAIN } from '../support/main-file.ts';
import { runLoad } from '../soak/budget-loads.ts';

it('with few descriptors serves some clients and refuses the others with 503', async () => {
  const load = { kind: 'posts', count: 18, size: 100 } as const;
  const { clients, log, isAlive } = await runLoad('short', { descriptors: 64 }, load);
  expect(isAlive).toBe(true);
  expect(log).not.toMatch(/EMFILE|ENFILE/);
  expect(log).toContain('the limit of 64 file descriptors is enough for');
  const { '200': served = 0, '503 QUEUE_FULL': refused = 0, ...others } = clients;
  expect(others).toEqual({});
  expect([served > 0, served + refused]).toEqual([true, 18]);
});

it('does not start with too few descriptors for one client, and says how many are needed', async () => {
  const program = ['/bin/sh', '-c', 'ulimit -n 32; exec "$0" "$@"', process.execPath, MAIN] as const;
  const env = baseSettings('http://127.0.0.1:9', 'http://127.0.0.1:9', newCredential());
  await using sidecar = spawnSidecar({ name: 'too-few-descriptors', program, env });
  expect(await sidecar.exit).toEqual({ code: 1, signal: null });
  expect(sidecar.stderr()).toMatch(
    /the limit of 32 file descriptors is too low to serve even one client: \d+ are needed/,
  );
});
