/** A server that replaces the refresh token at each use and revokes all when one is used twice; the sidecar through restarts. */
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { ClientCredential } from '../../../src/token/client/client-authentication.ts';
import type { TokenRequestResult } from '../../../src/token/endpoint/token-response.ts';
import type { TokenNeed } from '../../../src/token/source/token-fetcher.ts';
import { RefreshTokens } from '../../../src/token/store/refresh-tokens.ts';
import type { TokenIdentity } from '../../../src/token/store/sealed-token.ts';
import { CachedTokenFetcher } from '../../../src/token/store/token-cache.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { credentialOf } from '../client/credential.ts';
import { ORDINARY_REQUEST } from './ordinary-request.ts';

const LIFETIME_MS = 60_000;
const GONE: TokenRequestResult = { kind: 'rejected', error: 'invalid_grant', detail: 'auth.test answered 400' };
const DOWN: TokenRequestResult = { kind: 'unavailable', detail: 'down' };

let folder: string;
let path: string;
let clock: ManualClock;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'refresh-tokens-'));
  path = join(folder, 'token');
  clock = new ManualClock();
});
afterEach(() => rm(folder, { recursive: true, maxRetries: 5 }));

class StrictServer {
  current = 'refresh-0';
  isReplacing = true;
  isDown = false;
  /** As the response to a request that uses the token up. */
  lost = 0;
  readonly received: string[] = [];
  mostInFlight = 0;
  #inFlight = 0;

  async respond({ extraParameters: { refresh_token: sent = '' } }: ClientCredential): Promise<TokenRequestResult> {
    this.mostInFlight = Math.max(this.mostInFlight, ++this.#inFlight);
    await Promise.resolve();
    this.#inFlight--;
    if (this.isDown) return DOWN;
    this.received.push(sent);
    if (sent !== this.current) {
      this.current = 'revoked';
      return GONE;
    }
    if (this.isReplacing) this.current = `refresh-${String(this.received.length)}`;
    const granted = { value: `access-${String(this.received.length)}`, lifetimeMs: LIFETIME_MS, scope: undefined };
    return { kind: 'ok', ...granted, ...(this.isReplacing && { refreshToken: this.current }) };
  }
}

interface Setup {
  readonly server: StrictServer;
  readonly configured?: string;
  readonly secret?: string | undefined;
  readonly at?: string | undefined;
  readonly lossCause?: string;
}

/** What a new process builds. */
function startProcess({ server, configured = 'refresh-0', secret = 's3cret', at = path, lossCause }: Setup) {
  const warnings: string[] = [];
  const masked: string[] = [];
  const refreshTokens = new RefreshTokens({
    send: (client) => server.respond(client),
    onReceived: (value) => masked.push(value),
    lossCause,
    warn: (message) => warnings.push(message),
  });
  const credential = { ...credentialOf('1'), extraParameters: { refresh_token: configured } };
  const requestedParameters = [['refresh_token', configured]] as const;
  const binding = {
    ...ORDINARY_REQUEST,
    tokenUrl: 'https://auth.test/',
    clientId: 'a',
    method: 'x',
    requestedParameters,
  };
  const identity: TokenIdentity | undefined = secret === '' ? undefined : { binding, keyMaterial: secret };
  const cached = new CachedTokenFetcher(
    { fetch: () => refreshTokens.request(credential) },
    {
      path: at,
      readIdentity: () => Promise.resolve(identity),
      refreshTokens,
      clock,
      observe: (event) => event.kind === 'warning' && warnings.push(event.message),
    },
  );
  const fetch = (reason: TokenNeed['reason'] = 'first') =>
    cached.fetch({ reason, held: undefined }, new AbortController().signal);
  return { fetch, refreshTokens, warnings, masked };
}

test('any sequence of renewals, 401s, outages, kills and changed client secrets sends each refresh token once', async () => {
  const step = fc.constantFrom('refresh', 'unauthorized', 'outage', 'kill', 'kill after the end', 'other secret');
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 25 }), fc.boolean(), async (steps, hasSecret) => {
      await rm(path, { force: true });
      const server = new StrictServer();
      let secret = hasSecret ? 's3cret' : '';
      let process = startProcess({ server, secret });
      await process.fetch();
      for (const [index, one] of steps.entries()) {
        server.isDown = one === 'outage';
        if (one.startsWith('kill')) {
          if (one.endsWith('end')) await clock.advance(LIFETIME_MS);
          process = startProcess({ server, secret });
          expect(['found', 'ok']).toContain((await process.fetch()).kind);
        } else if (one === 'other secret') {
          if (hasSecret) secret = `other-${String(index)}`;
          process = startProcess({ server, secret });
          expect((await process.fetch()).kind).toBe('ok');
        } else {
          const reason = one === 'outage' ? 'refresh' : (one as TokenNeed['reason']);
          expect((await process.fetch(reason)).kind).toBe(one === 'outage' ? 'unavailable' : 'ok');
        }
      }
      expect(new Set(server.received).size).toBe(server.received.length);
      expect(server.mostInFlight).toBe(1);
      expect(process.refreshTokens.fault).toBeUndefined();
    }),
    { numRuns: 40 },
  );
});

test('two requests at once are sent one after the other, each with the newest token', async () => {
  const server = new StrictServer();
  const { fetch } = startProcess({ server });
  const results = await Promise.all([fetch(), fetch('refresh'), fetch('unauthorized')]);
  expect(results.map(({ kind }) => kind)).toEqual(['ok', 'ok', 'ok']);
  expect(server.received).toEqual(['refresh-0', 'refresh-1', 'refresh-2']);
});

test('a server that replaces none gets the configured one each time, and the file holds the access token only', async () => {
  const server = new StrictServer();
  server.isReplacing = false;
  const process = startProcess({ server });
  await process.fetch();
  await process.fetch('refresh');
  await process.fetch('unauthorized');
  await expect.poll(() => readFile(path, 'utf8').catch(() => '')).toMatch(/^bst3\.[\w-]+\n$/);
  expect(server.received).toEqual(['refresh-0', 'refresh-0', 'refresh-0']);
  expect([process.masked, process.refreshTokens.fault]).toEqual([[], undefined]);
});

test('the file shows no token, and has the new refresh token before the access token is used', async () => {
  const server = new StrictServer();
  const process = startProcess({ server });
  await process.fetch();
  const text = await readFile(path, 'utf8');
  expect(text).toMatch(/^bst3\.[\w-]+\nbsr1\.[\w-]+\n$/);
  expect(process.masked).toEqual(['refresh-1']);
  await process.fetch('unauthorized');
  expect(await readFile(path, 'utf8')).toMatch(/\nbsr1\.[\w-]+\n$/);
});

describe('the configured refresh token', () => {
  test('beats the kept one when it has changed', async () => {
    const server = new StrictServer();
    await startProcess({ server }).fetch();
    server.current = 'refresh-new';
    const next = startProcess({ server, configured: 'refresh-new' });
    await next.fetch();
    expect(server.received).toEqual(['refresh-0', 'refresh-new']);
    await clock.advance(LIFETIME_MS);
    await startProcess({ server, configured: 'refresh-new' }).fetch();
    expect(server.received.at(-1)).toBe('refresh-2');
  });

  test('is tried once when the kept one is refused, for a server that was set up anew', async () => {
    const server = new StrictServer();
    await startProcess({ server }).fetch();
    server.current = 'refresh-0';
    await clock.advance(LIFETIME_MS);
    const next = startProcess({ server: Object.assign(server, { respond: forgiving(server) }) });
    expect((await next.fetch()).kind).toBe('ok');
    expect(server.received).toEqual(['refresh-0', 'refresh-1', 'refresh-0']);
    expect((await next.fetch('refresh')).kind).toBe('ok');
  });

  test('is not tried again and again when both are refused', async () => {
    const server = new StrictServer();
    const { fetch } = startProcess({ server });
    await fetch();
    server.current = 'revoked';
    for (let n = 0; n < 4; n++) expect(await fetch('refresh')).toEqual(GONE);
    expect(server.received).toEqual(['refresh-0', 'refresh-1', 'refresh-0', 'refresh-1', 'refresh-1', 'refresh-1']);
  });
});

/** Refuses without revoking. */
function forgiving(server: StrictServer): StrictServer['respond'] {
  const strict = server.respond.bind(server);
  return async (client) => {
    const { current } = server;
    const result = await strict(client);
    if (result.kind === 'rejected') server.current = current;
    return result;
  };
}

describe('what cannot be kept', () => {
  test('is reported once, with what to do, and only when the server replaces it', async () => {
    const server = new StrictServer();
    server.isReplacing = false;
    const process = startProcess({ server, lossCause: 'auth.cacheFile is not set' });
    await process.fetch();
    expect([process.warnings, process.refreshTokens.fault]).toEqual([[], undefined]);
    server.isReplacing = true;
    for (let n = 0; n < 3; n++) await process.fetch('refresh');
    expect(process.warnings).toEqual([process.refreshTokens.fault]);
    expect(process.refreshTokens.fault).toMatch(
      /auth\.cacheFile is not set: after a restart .*SIDECAR_AUTH_CACHE_FILE/,
    );
  });

  test('because the file cannot be written is a fault until it is written', async () => {
    const server = new StrictServer();
    const at = join(folder, 'full', 'token');
    const process = startProcess({ server, at });
    expect((await process.fetch()).kind).toBe('ok');
    expect(process.refreshTokens.fault).toContain('auth.cacheFile cannot be written');
    await mkdir(join(folder, 'full'));
    await clock.advance(30_000);
    await expect.poll(() => process.refreshTokens.fault).toBeUndefined();
    await clock.advance(LIFETIME_MS);
    expect((await startProcess({ server, at }).fetch()).kind).toBe('ok');
    expect(process.warnings).toEqual([
      expect.stringMatching(/ENOENT.*tried again/),
      expect.stringContaining('auth.cacheFile cannot be written: after a restart'),
    ]);
  });
});

test.each([
  ['an older version wrote', (text: string) => text.split('\n')[0] ?? ''],
  ['is damaged in the second line', (text: string) => text.replace(/bsr1\..{8}/, 'bsr1.AAAAAAAA')],
  ['is garbage', () => 'hello\nworld\n\0'],
])('a file that %s does not stop the start', async (_name, change) => {
  const server = new StrictServer();
  await startProcess({ server }).fetch();
  await writeFile(path, change(await readFile(path, 'utf8')));
  server.current = 'refresh-0';
  await clock.advance(LIFETIME_MS);
  expect((await startProcess({ server }).fetch()).kind).toBe('ok');
});
