/** What check prints of a running sidecar's assumptions. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Config } from '../../../src/config/config.ts';
import { systemClock } from '../../../src/platform/clock.ts';
import { checkRunningSidecar, readAssumed } from '../../../src/commands/check/running-sidecar.ts';
import { parseJsonObject } from '../../../src/token/endpoint/json-object.ts';

const ASSUMED = {
  ...{ status: 503, count: 60 },
  ...{ setting: 'throttle: { refusals: [{"status":503}] }', variable: `SIDECAR_THROTTLE_REFUSALS='[{"status":503}]'` },
};

const context = { clock: systemClock, stop: new AbortController().signal, signal: new AbortController().signal };

function configFor(port: number): Config {
  const credentials = [{ auth: { endpoint: { kind: 'url' } } }];
  return { admin: { address: { kind: 'tcp', host: 'localhost', port } }, credentials } as unknown as Config;
}

async function checkAgainst(body: string, status = 200) {
  const server = createServer((_, response) => response.writeHead(status).end(body));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const steps = await checkRunningSidecar(configFor(port), context);
  server.close();
  return { steps, port };
}

test('warns with the line to paste for each refusal that a running sidecar assumes', async () => {
  const { steps } = await checkAgainst(JSON.stringify({ throttles: [{ assumed: [] }, { assumed: [ASSUMED] }] }));
  expect(steps).toMatchObject([
    {
      ...{
        step: 'refusals',
        outcome: 'warn',
        detail: '503 is taken for a rate limit, and calls are paced (60 refused)',
      },
      advice: `if it is one, set ${ASSUMED.setting} or ${ASSUMED.variable}`,
    },
  ]);
});

test('says the verdict of a running sidecar', async () => {
  const verdict = { level: 'bad', where: 'partner', headline: 'The partner is slow', detail: '9 requests delayed.' };
  const rest = { since: null, other: null, advice: 'Set `SIDECAR_RATE`.' };
  const { steps } = await checkAgainst(JSON.stringify({ verdict: { ...verdict, ...rest }, throttles: [] }));
  const detail = 'The partner is slow. 9 requests delayed.';
  expect(steps).toMatchObject([{ step: 'verdict', outcome: 'warn', detail, advice: 'Set SIDECAR_RATE.' }]);
});

test('warns of the next token request while a sidecar holds a token', async () => {
  const { steps } = await checkAgainst(JSON.stringify({ tokens: [{ validForSeconds: 0 }, { validForSeconds: 9 }] }));
  expect(steps).toMatchObject([
    { step: 'token', outcome: 'warn', advice: expect.stringContaining('interrupt') as string },
  ]);
  expect((await checkAgainst(JSON.stringify({ tokens: [{ validForSeconds: null }, 7] }))).steps).toEqual([]);
});

test('says nothing when no sidecar runs, or another program responds', async () => {
  const { steps, port } = await checkAgainst('<html>', 200);
  expect(steps).toEqual([]);
  expect(await checkRunningSidecar(configFor(port), context)).toEqual([]);
  expect((await checkAgainst(JSON.stringify({ throttles: [{ assumed: [ASSUMED] }] }), 500)).steps).toEqual([]);
});

test('reads assumed refusals out of any JSON without a fault', () => {
  fc.assert(
    fc.property(fc.json(), (text) => {
      expect(readAssumed(parseJsonObject(text) ?? {})).toEqual([]);
    }),
  );
  const members = fc.dictionary(fc.constantFrom(...Object.keys(ASSUMED)), fc.jsonValue());
  fc.assert(
    fc.property(fc.array(members), (assumed) => {
      for (const { setting, count } of readAssumed({ throttles: [null, { assumed }] }))
        expect([typeof setting, typeof count]).toEqual(['string', 'number']);
    }),
  );
});
