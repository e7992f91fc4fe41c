import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { SidecarEvent } from '../../../src/telemetry/events.ts';
import type { TokenBinding } from '../../../src/token/store/sealed-token.ts';
import type { DeclinableFetchResult, TokenNeed } from '../../../src/token/source/token-fetcher.ts';
import { withTokenCache } from '../../../src/token/store/token-cache.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const HOUR_MS = 3_600_000;
const SECRET = 's3cret-of-the-tests';
const BINDING: TokenBinding = {
  tokenUrl: 'https://auth.test/oauth/token',
  clientId: 'legacy-app',
  method: 'client_secret_basic',
  requestedParameters: [['scope', 'a b']],
};
const DOWN: DeclinableFetchResult = { kind: 'unavailable', detail: 'down' };

let folder: string;
let path: string;
let clock: ManualClock;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'token-cache-'));
  path = join(folder, 'token');
  clock = new ManualClock();
});
afterEach(async () => {
  // What is written last may still be on its way.
  await rm(folder, { recursive: true, maxRetries: 5 });
});

interface Setup {
  readonly answer?: DeclinableFetchResult;
  readonly binding?: TokenBinding;
  readonly keyMaterial?: string;
  readonly isReadable?: boolean;
  readonly at?: string;
}

/** One process after another, as far as the file goes. */
function startProcess({ at = path, answer = grant('fresh'), isReadable = true, ...seal }: Setup = {}) {
  const events: SidecarEvent[] = [];
  const process = {
    answer,
    isReadable,
    asked: 0,
    warnings: (): string[] => events.flatMap((event) => (event.kind === 'warning' ? [event.message] : [])),
  };
  const supply = withTokenCache(
    {
      fetch: () => {
        process.asked += 1;
        return Promise.resolve(process.answer);
      },
      watchCredentials: () => () => undefined,
      credentialFault: () => undefined,
    },
    {
      path: at,
      readIdentity: () =>
        Promise.resolve(process.isReadable ? { binding: BINDING, keyMaterial: SECRET, ...seal } : undefined),
      clock,
      observe: (event) => events.push(event),
    },
  );
  const fetch = (reason: TokenNeed['reason'] = 'first'): Promise<DeclinableFetchResult> =>
    supply.fetch({ reason, held: undefined }, new AbortController().signal);
  return Object.assign(process, { fetch });
}

function grant(value: string): DeclinableFetchResult {
  return { kind: 'ok', value, lifetimeMs: HOUR_MS, scope: 'a' };
}

/** Files are written behind the caller's back. */
async function until(condition: () => Promise<boolean>): Promise<void> {
  for (let turn = 0; turn < 500; turn++) {
    if (await condition()) return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error('it did not come to pass');
}

const isThere = (): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  );

/** A file as the last process left it. */
async function leaveToken(value = 'kept', setup: Setup = {}): Promise<string> {
  await startProcess({ ...setup, answer: grant(value) }).fetch();
  await until(isThere);
  return readFile(path, 'utf8');
}

describe('a restart', () => {
  test('begins with the token of the last process, and asks nobody', async () => {
    await leaveToken();
    await clock.advance(HOUR_MS / 2);
    const next = startProcess({ answer: DOWN });
    const wallNow = clock.wallNow();
    expect(await next.fetch()).toEqual({
      kind: 'found',
      from: 'auth.cacheFile',
      token: { value: 'kept', scope: 'a', obtainedWallAt: wallNow - HOUR_MS / 2, expiresWallAt: wallNow + HOUR_MS / 2 },
    });
    expect(next).toMatchObject({ asked: 0 });
    expect(next.warnings()).toEqual([]);
  });

  test('only its first look is at the file', async () => {
    await leaveToken();
    const next = startProcess({ answer: DOWN });
    await next.fetch();
    expect(await next.fetch()).toEqual(DOWN);
    expect(next.asked).toBe(1);
  });

  test('the newest token is the one that is kept', async () => {
    const first = startProcess({ answer: grant('one') });
    await first.fetch();
    await until(isThere);
    const before = await readFile(path, 'utf8');
    first.answer = grant('two');
    await first.fetch('refresh');
    await until(async () => (await readFile(path, 'utf8')) !== before);
    expect(await startProcess().fetch()).toMatchObject({ kind: 'found', token: { value: 'two' } });
  });

  test.each([
    ['an expired one', HOUR_MS],
    ['one too near its end for a flight', HOUR_MS - 1_000],
  ])('%s is not used', async (_name, ageMs) => {
    await leaveToken();
    await clock.advance(ageMs);
    const next = startProcess();
    expect(await next.fetch()).toMatchObject({ kind: 'ok', value: 'fresh' });
    expect(next.warnings()).toEqual([]);
  });

  test('one from the future is not used: nobody knows how much of its life is left', async () => {
    await leaveToken();
    clock.stepWall(-10 * 60_000);
    const next = startProcess();
    expect(await next.fetch()).toMatchObject({ kind: 'ok' });
    expect(next.warnings()).toEqual([expect.stringContaining('from the future')]);
  });

  test('without a file there is nothing to say', async () => {
    const next = startProcess();
    expect(await next.fetch()).toMatchObject({ kind: 'ok', value: 'fresh' });
    expect(next.warnings()).toEqual([]);
  });
});

describe('a 401', () => {
  test('takes the token out of the file before another one is asked for', async () => {
    await leaveToken();
    const next = startProcess({ answer: DOWN });
    await next.fetch();
    await next.fetch('unauthorized');
    await until(async () => !(await isThere()));
    const last = startProcess({ answer: DOWN });
    expect(await last.fetch()).toEqual(DOWN);
  });

  test('the token that comes of it is kept again', async () => {
    await leaveToken();
    const next = startProcess();
    await next.fetch();
    await next.fetch('unauthorized');
    // Until it is taken out the refused one may still be found.
    const isFresh = (found: DeclinableFetchResult): boolean => found.kind === 'found' && found.token.value === 'fresh';
    await until(async () => isFresh(await startProcess({ answer: DOWN }).fetch()));
    expect(await startProcess({ answer: DOWN }).fetch()).toMatchObject({ token: { value: 'fresh' } });
  });
});

describe('the file', () => {
  test('is for this user alone, shows neither token nor secret, and has no drafts beside it', async () => {
    const text = await leaveToken();
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect(text).toMatch(/^bst1\.[\w-]+\n$/);
    await until(async () => (await readdir(folder)).length === 1);
    await chmod(path, 0o644);
    await startProcess().fetch('refresh');
    await until(async () => (await readFile(path, 'utf8')) !== text);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
  });

  test.each<[string, Setup]>([
    ['another secret', { keyMaterial: 'another' }],
    ['another client', { binding: { ...BINDING, clientId: 'other-app' } }],
    ['another endpoint', { binding: { ...BINDING, tokenUrl: 'https://evil.test/oauth/token' } }],
    ['another scope', { binding: { ...BINDING, requestedParameters: [['scope', 'a']] } }],
    ['another method', { binding: { ...BINDING, method: 'client_secret_post' } }],
  ])('written for %s is ignored with one warning, and replaced', async (_name, setup) => {
    const before = await leaveToken('foreign', setup);
    const next = startProcess();
    expect(await next.fetch()).toMatchObject({ kind: 'ok', value: 'fresh' });
    expect(next.warnings()).toEqual([expect.stringContaining(path)]);
    await until(async () => (await readFile(path, 'utf8')) !== before);
    expect(await startProcess().fetch()).toMatchObject({ token: { value: 'fresh' } });
  });

  test.each<[string, string | Uint8Array]>([
    ['empty', ''],
    ['text of another kind', 'hello\n'],
    ['no text', Uint8Array.of(0xff, 0xfe, 0)],
    ['far too large', 'x'.repeat(100_000)],
    ['a token in the clear', JSON.stringify({ access_token: 'x', expires_in: 3600 })],
  ])('%s: ignored with one warning, and replaced', async (_name, content) => {
    await writeFile(path, content);
    const next = startProcess();
    expect(await next.fetch()).toMatchObject({ kind: 'ok', value: 'fresh' });
    expect(next.warnings()).toHaveLength(1);
    await until(async () => (await startProcess({ answer: DOWN }).fetch()).kind === 'found');
  });

  test('a link is replaced, and what it points to is left alone', async () => {
    const other = join(folder, 'other');
    await writeFile(other, 'precious');
    await symlink(other, path);
    await startProcess().fetch();
    await until(async () => (await startProcess({ answer: DOWN }).fetch()).kind === 'found');
    expect(await readFile(other, 'utf8')).toBe('precious');
  });

  test('credentials that cannot be read now: neither used nor written, and nothing breaks', async () => {
    const before = await leaveToken();
    const next = startProcess({ isReadable: false });
    expect(await next.fetch()).toMatchObject({ kind: 'ok', value: 'fresh' });
    next.isReadable = true;
    next.answer = grant('later');
    expect(await readFile(path, 'utf8')).toBe(before);
    await next.fetch('refresh');
    await until(async () => (await readFile(path, 'utf8')) !== before);
    expect(await startProcess().fetch()).toMatchObject({ token: { value: 'later' } });
  });
});

test.each([
  ['the directory is missing', 'missing/token', 'missing'],
  ['there is a directory in its place', 'directory', 'elsewhere'],
])(
  '%s: one warning however many tokens come, they all go through, and writing is tried on',
  async (_name, at, other) => {
    await mkdir(join(folder, 'directory'));
    const target = join(folder, at);
    const process = startProcess({ at: target });
    for (let n = 0; n < 5; n++) expect(await process.fetch('refresh')).toMatchObject({ kind: 'ok' });
    await until(() => Promise.resolve(process.warnings().length > 0));
    await rm(join(folder, 'directory'), { recursive: true });
    await mkdir(join(folder, other));
    await process.fetch('refresh');
    await until(async () => (await startProcess({ at: target, answer: DOWN }).fetch()).kind === 'found');
    expect(process.warnings()).toEqual([expect.stringMatching(/cannot be written \((ENOENT|EISDIR)\)/)]);
  },
);
