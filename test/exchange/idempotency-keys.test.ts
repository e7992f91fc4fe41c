/** The idempotency keys that the sidecar adds (retry.idempotencyKey.header), and which attempts they allow. */
import fc from 'fast-check';
import { writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { scratchFile } from '../config/base-env.ts';
import { startInProcess, until, type InProcessOptions } from '../composition/in-process.ts';
import { send } from '../composition/send.ts';
import { sendRaw } from '../support/raw-client.ts';
import { canonicalize, spellings } from '../support/field-spellings.ts';
import type { RecordedRequest, RespondTo } from '../support/recording-upstream.ts';

const HEADER = 'PayPal-Request-Id';
const UUID = /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/;
const WITHOUT_KEY = ['GET', 'OPTIONS', 'PUT', 'DELETE', 'PROPFIND'];
const WITH_KEY = ['POST', 'PATCH', 'LOCK'];
const ROUTES = `
routes:
  - { name: keyed, pathPrefix: /keyed, retry: { idempotencyKey: { header: ${HEADER} } } }
  - { name: plain, pathPrefix: /plain }`;

const keyed = (respond: RespondTo, file = ROUTES) => startInProcess({ respond, file: scratchFile(file) });

/** Does with each attempt what the next step says, and then succeeds. A step is a status, or a reset. A 429 asks to wait for an hour. */
function scripted(steps: readonly (number | 'reset')[], more: Readonly<Record<string, string>> = {}) {
  const left = [...steps];
  const respond: RespondTo = (_request, response) => {
    const step = left.shift();
    const headers = step === 429 ? { ...more, 'retry-after': '3600' } : more;
    if (step === 'reset') response.socket?.resetAndDestroy();
    else response.writeHead(step ?? 200, headers).end(`status ${String(step ?? 200)}`);
  };
  return { left, respond };
}

/** Of the attempts of one request: each one's fields of the configured name, as received. */
function keysOf(requests: readonly RecordedRequest[]): (readonly [name: string, value: string])[][] {
  return requests.map(({ rawHeaders }) =>
    rawHeaders.flatMap((name, at): [string, string][] =>
      at % 2 === 0 && canonicalize(name) === canonicalize(HEADER) ? [[name, rawHeaders[at + 1] ?? '']] : [],
    ),
  );
}

describe('an idempotency key', () => {
  it('is the same in each attempt, another one for each request, and the one of the application if it has one', async () => {
    const { left, respond } = scripted([]);
    const { url, api } = await keyed(respond);
    const seen = new Set<string>();
    let repeated = 0;
    const requests = fc.record({
      method: fc.constantFrom(...WITH_KEY, ...WITHOUT_KEY),
      path: fc.constantFrom('/keyed/a', '/keyed/b', '/plain/a', '/a'),
      body: fc.constantFrom('', 'x'),
      own: fc.option(fc.tuple(spellings(HEADER), fc.constantFrom('', '\u00a0', '""', 'own', '"own"'))),
      steps: fc.array(fc.constantFrom<number | 'reset'>('reset', 503, 502, 401, 200), { maxLength: 3 }),
    });
    // Run first, while the retry budget is unused.
    const steps: ('reset' | number)[] = ['reset', 503];
    const broken = WITH_KEY.map((method) => ({ method, path: '/keyed/a', body: 'x', own: null, steps }) as const);
    await fc.assert(
      fc.asyncProperty(requests, async ({ method, path, body, own, steps }) => {
        const before = api.requests.length;
        left.splice(0, left.length, ...steps);
        const hasBody = body !== '' && (WITH_KEY.includes(method) || method === 'PUT');
        await send(url + path, {
          method,
          ...(hasBody ? { body } : {}),
          headers: own === null ? {} : { [own[0]]: own[1] },
        });
        const keys = keysOf(api.requests.slice(before));
        const [[[name, value] = []] = []] = keys;
        expect(keys.length).toBeGreaterThan(0);
        for (const ofAttempt of keys) expect(ofAttempt).toEqual(keys[0]);
        const addsNone = WITHOUT_KEY.includes(method) || !path.startsWith('/keyed');
        // A blank field is no key, and is forwarded where none takes its place.
        if (own !== null && (addsNone || own[1].includes('own'))) expect(keys[0]).toEqual([own]);
        else if (addsNone) expect(keys[0]).toEqual([]);
        else {
          expect([name, value]).toEqual([HEADER, expect.stringMatching(UUID)]);
          expect(seen).not.toContain(value);
          seen.add(value ?? '');
          if (keys.length > 1) repeated++;
        }
      }),
      { numRuns: 200, examples: broken.map((example): [typeof example] => [example]) },
    );
    expect(repeated).toBeGreaterThanOrEqual(WITH_KEY.length);
  });

  it.each(WITH_KEY)(
    'has a %s repeated after a reset, a 408, a 502, a 503 and a 504, within retry.attempts',
    async (method) => {
      for (const step of ['reset', 408, 502, 503, 504] as const) {
        const { url, api } = await keyed(scripted([step]).respond);
        expect((await send(`${url}/keyed`, { method, body: 'x' })).status).toBe(200);
        expect(api.requests.map(({ body }) => body.toString())).toEqual(['x', 'x']);
      }
      const { url, api } = await keyed(scripted(Array<503>(9).fill(503)).respond);
      expect((await send(`${url}/keyed`, { method })).status).toBe(503);
      expect(api.requests).toHaveLength(4);
    },
  );

  it.each([
    ['of the application in that field', '/keyed', HEADER.toUpperCase(), 'own', 2],
    ['in another field: that one gets a key of its own', '/keyed', 'Idempotency-Key', 'own', 2],
    ['that is empty: the sidecar sends one in its place', '/keyed', HEADER, '', 2],
    ['that is an empty string in quotes', '/keyed', HEADER.toLowerCase(), '""', 2],
    ['that is empty, and whose name many servers drop', '/keyed', HEADER.replaceAll('-', '_'), '', 2],
    ['that is empty, where the setting is off', '/plain', HEADER, '', 1],
    ['whose name many servers drop', '/keyed', HEADER.replaceAll('-', '_'), 'own', 1],
    ['of the application where the setting is off', '/plain', HEADER, 'own', 1],
  ])('%s: a POST is sent so often after a reset', async (_, path, name, value, attempts) => {
    const { url, api } = await keyed(scripted(['reset']).respond);
    const { status } = await send(url + path, { method: 'POST', body: 'x', headers: { [name]: value } });
    expect(status).toBe(attempts === 2 ? 200 : 502);
    expect(api.requests).toHaveLength(attempts);
  });

  it('that the client names in Connection ends at the sidecar, which adds its own', async () => {
    const { url, api } = await keyed(scripted(['reset']).respond);
    const { hostname, port } = new URL(url);
    const head = `POST /keyed HTTP/1.1\r\nHost: ${hostname}:${port}\r\n${HEADER}: own\r\nConnection: close, ${HEADER}\r\nContent-Length: 1\r\n\r\nx`;
    expect((await sendRaw(url, head)).status).toBe(200);
    const keys = keysOf(api.requests);
    expect(keys).toEqual([[[HEADER, expect.stringMatching(UUID)]], keys[0]]);
  });

  it('is not in a request that came before a reload set it, and in each one after', async () => {
    const file = scratchFile('{}');
    const options: InProcessOptions = { file };
    const { url, api, sidecar, eventsOf } = await startInProcess(options);
    await send(url, { method: 'POST' });
    writeFileSync(file, `retry: { idempotencyKey: { header: ${HEADER} } }`);
    sidecar.reload();
    await until(() => eventsOf('configuration-read').length > 0, 'the configuration is read');
    await send(url, { method: 'POST' });
    expect(keysOf(api.requests)).toEqual([[], [[HEADER, expect.stringMatching(UUID)]]]);
  });
});

describe('a 409', () => {
  it.each(['reset', 502, 504] as const)(
    'after a %s is repeated: the first attempt may still be under way',
    async (step) => {
      const { url, api } = await keyed(scripted([step, 409, 409]).respond);
      expect(await send(`${url}/keyed`, { method: 'POST', body: 'x' })).toMatchObject({ status: 200 });
      expect(api.requests).toHaveLength(4);
    },
  );

  it('goes to the client when the attempts are spent', async () => {
    const { url, api } = await keyed(scripted(['reset', 409, 409, 409, 409]).respond);
    expect(await send(`${url}/keyed`, { method: 'POST', body: 'x' })).toMatchObject({
      status: 409,
      text: 'status 409',
    });
    expect(api.requests).toHaveLength(4);
  });

  it('that asks to wait past the deadline goes to the client at once', async () => {
    const { url, api } = await keyed(scripted(['reset', 409], { 'retry-after': '3600' }).respond);
    expect((await send(`${url}/keyed`, { method: 'POST', body: 'x' })).status).toBe(409);
    expect(api.requests).toHaveLength(2);
  });

  it.each([
    ['the first response', '/keyed', 'POST', [409], 1],
    ['after a 401', '/keyed', 'POST', [401, 409], 2],
    ['for a PUT, which has no key', '/keyed', 'PUT', ['reset', 409], 2],
    ['where the setting is off', '/plain', 'PUT', ['reset', 409], 2],
  ] as const)('goes to the client as %s', async (_, path, method, steps, attempts) => {
    const { url, api } = await keyed(scripted(steps).respond);
    expect((await send(url + path, { method, body: 'x' })).status).toBe(409);
    expect(api.requests).toHaveLength(attempts);
  });
});

describe('a refusal of a repeat says nothing of the first attempt, which may have been carried out', () => {
  const post = { method: 'POST', body: 'x' };

  it.each([
    ['a reset, 429', ['reset', 429], 'UPSTREAM_RESET'],
    ['a reset, two 401', ['reset', 401, 401], 'UPSTREAM_RESET'],
    ['a 504, 429', [504, 429], 504],
    ['a 502, 401, 401', [502, 401, 401], 502],
  ] as const)('after %s the application gets the result of the first one', async (_, steps, expected) => {
    const { url, api, requestRecords } = await keyed(scripted(steps).respond);
    const { status, code } = await send(`${url}/keyed`, post);
    expect(code ?? status).toBe(expected);
    expect(api.requests).toHaveLength(steps.length);
    expect(await requestRecords(1)).toMatchObject([{ isOutcomeUnknown: expected === 'UPSTREAM_RESET' }]);
  });

  it.each([
    ['that is the first one', '/keyed', {}, [429]],
    ['after a 401', '/keyed', {}, [401, 401]],
    ['whose key is that of the application, which can repeat it safely', '/keyed', { [HEADER]: 'own' }, ['reset', 429]],
  ] as const)('goes to the application for an attempt %s', async (_, path, headers, steps) => {
    const { url } = await keyed(scripted(steps).respond);
    expect(await send(url + path, { ...post, headers })).toMatchObject({ status: steps.at(-1), code: undefined });
  });
});
