import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { SidecarEvent } from '../../../src/telemetry/events.ts';
import type { TokenBinding } from '../../../src/token/store/sealed-token.ts';
import type { DeclinableFetchResult, TokenNeed } from '../../../src/token/source/token-fetcher.ts';
import { CachedTokenFetcher } from '../../../src/token/store/token-cache.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { ORDINARY_REQUEST } from './ordinary-request.ts';

const HOUR_MS = 3_600_000;
const SECRET = 's3cret-of-the-tests';
const BINDING: TokenBinding = {
  tokenUrl: 'https://auth.test/oauth/token',
  clientId: 'legacy-app',
  method: 'client_secret_basic',
  requestedParameters: [['scope', 'a b']],
  ...ORDINARY_REQUEST,
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
  // The last write may still be in progress.
  await rm(folder, { recursive: true, maxRetries: 5 });
});

interface Setup {
  readonly result?: DeclinableFetchResult;
  readonly binding?: TokenBinding;
  readonly keyMaterial?: string;
  readonly isReadable?: boolean;
  readonly at?: string;
}

/** A fetcher as a new process creates it. */
function startProcess({ at = path, result = grant('fresh'), isReadable = true, ...seal }: Setup = {}) {
  const events: SidecarEvent[] = [];
  const process = {
    result,
    isReadable,
    requests: 0,
    warnings: (): string[] => events.flatMap((event) => (event.kind === 'warning' ? [event.message] : [])),
  };
  const fetcher = new CachedTokenFetcher(
    {
      fetch: () => {
        process.requests += 1;
        return Promise.resolve(process.result);
      },
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
    fetcher.fetch({ reason, held: undefined }, new AbortController().signal);
  return Object.assign(process, { fetch });
}

function grant(value: string): DeclinableFetchResult {
  return { kind: 'ok', value, lifetimeMs: HOUR_MS, scope: 'a' };
}

/** Files are written in the background. */
async function until(condition: () => Promise<boolean>): Promise<void> {
  for (let turn = 0; turn < 500; turn++) {
    if (await condition()) return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error('the condition did not become true');
}

const hasFile = (): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  );

/** Writes a cache file as an earlier process would. */
async function writeCacheFile(value = 'kept', setup: Setup = {}): Promise<string> {
  await startProcess({ ...setup, result: grant(value) }).fetch();
  await until(hasFile);
  return readFile(path, 'utf8');
}

describe('a restart', () => {
  test('begins with the token of the last process, without a request', async () => {
    await writeCacheFile();
    await clock.advance(HOUR_MS / 2);
    const next = startProcess({ result: DOWN });
    const wallNow = clock.wallNow();
    expect(await next.fetch()).toEqual({
      kind: 'found',
      from: 'auth.cacheFile',
      token: { value: 'kept', scope: 'a', obtainedWallAt: wallNow - HOUR_MS / 2, expiresWallAt: wallNow + HOUR_MS / 2 },
    });
    expect(next).toMatchObject({ requests: 0 });
    expect(next.warnings()).toEqual([]);
  });

  test('reads the file for the first fetch only', async () => {
    await writeCacheFile();
    const next = startProcess({ result: DOWN });
    await next.fetch();
    expect(await next.fetch()).toEqual(DOWN);
    expect(next.requests).toBe(1);
  });

  test('finds the newest token', async () => {
    const first = startProcess({ result: grant('one') });
    await first.fetch();
    await until(hasFile);
    const before = await readFile(path, 'utf8');
    first.result = grant('two');
    await first.fetch('refresh');
    await until(async () => (await readFile(path, 'utf8')) !== before);
    expect(await startProcess().fetch()).toMatchObject({ kind: 'found', token: { value: 'two' } });
  });

  test.each([
    ['an expired token', HOUR_MS],
    ['a token that expires too soon', HOUR_MS - 1_000],
  ])('does not use %s', async (_name, ageMs) => {
    await writeCacheFile();
    await clock.advance(ageMs);
    const next = startProcess();
    expect(await next.fetch()).toMatchObject({ kind: 'ok', value: 'fresh' });
    expect(next.warnings()).toEqual([]);
  });

  test('does not use a token from the future, whose remaining lifetime is unknown', async () => {
    await writeCacheFile();
    clock.stepWall(-10 * 60_000);
    const next = startProcess();
    expect(await next.fetch()).toMatchObject({ kind: 'ok' });
    expect(next.warnings()).toEqual([expect.stringContaining('from the future')]);
  });

  test('without a file causes no warning', async () => {
    const next = startProcess();
    expect(await next.fetch()).toMatchObject({ kind: 'ok', value: 'fresh' });
    expect(next.warnings()).toEqual([]);
  });
});

describe('a 401', () => {
  test('removes the file before the next request', async () => {
    await writeCacheFile();
    const next = startProcess({ result: DOWN });
    await next.fetch();
    await next.fetch('unauthorized');
    await until(async () => !(await hasFile()));
    const last = startProcess({ result: DOWN });
    expect(await last.fetch()).toEqual(DOWN);
  });

  test('stores the token that follows it', async () => {
    await writeCacheFile();
    const next = startProcess();
    await next.fetch();
    await next.fetch('unauthorized');
    // The refused one is found until it is removed.
    const isFresh = (found: DeclinableFetchResult): boolean => found.kind === 'found' && found.token.value === 'fresh';
    await until(async () => isFresh(await startProcess({ result: DOWN }).fetch()));
    expect(await startProcess({ result: DOWN }).fetch()).toMatchObject({ token: { value: 'fresh' } });
  });
});

describe('the file', () => {
  test('is readable by this user only, shows neither token nor secret, and leaves no temporary file', async () => {
    const text = await writeCacheFile();
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect(text).toMatch(/^bst3\.[\w-]+\n$/);
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
    ['another header field of the calls', { binding: { ...BINDING, tokenHeaders: ['x-api-key: '] } }],
  ])('written for %s is ignored with one warning, and replaced', async (_name, setup) => {
    const before = await writeCacheFile('foreign', setup);
    const next = startProcess();
    expect(await next.fetch()).toMatchObject({ kind: 'ok', value: 'fresh' });
    expect(next.warnings()).toEqual([expect.stringContaining(path)]);
    await until(async () => (await readFile(path, 'utf8')) !== before);
    expect(await startProcess().fetch()).toMatchObject({ token: { value: 'fresh' } });
  });

  test.each<[string, string | Uint8Array]>([
    ['empty', ''],
    ['another text', 'hello\n'],
    ['not text', Uint8Array.of(0xff, 0xfe, 0)],
    ['far too large', 'x'.repeat(100_000)],
    ['a token in the clear', JSON.stringify({ access_token: 'x', expires_in: 3600 })],
  ])('that is %s is ignored with one warning, and replaced', async (_name, content) => {
    await writeFile(path, content);
    const next = startProcess();
    expect(await next.fetch()).toMatchObject({ kind: 'ok', value: 'fresh' });
    expect(next.warnings()).toHaveLength(1);
    await until(async () => (await startProcess({ result: DOWN }).fetch()).kind === 'found');
  });

  test('that is a link is replaced, and its target stays', async () => {
    const other = join(folder, 'other');
    await writeFile(other, 'precious');
    await symlink(other, path);
    await startProcess().fetch();
    await until(async () => (await startProcess({ result: DOWN }).fetch()).kind === 'found');
    expect(await readFile(other, 'utf8')).toBe('precious');
  });

  test('is neither used nor written while the credentials cannot be read', async () => {
    const before = await writeCacheFile();
    const next = startProcess({ isReadable: false });
    expect(await next.fetch()).toMatchObject({ kind: 'ok', value: 'fresh' });
    next.isReadable = true;
    next.result = grant('later');
    expect(await readFile(path, 'utf8')).toBe(before);
    await next.fetch('refresh');
    await until(async () => (await readFile(path, 'utf8')) !== before);
    expect(await startProcess().fetch()).toMatchObject({ token: { value: 'later' } });
  });
});

test.each([
  ['the directory is missing', 'missing/token', 'missing'],
  ['there is a directory in its place', 'directory', 'elsewhere'],
])('when %s, tokens pass with one warning, and each one is written again', async (_name, at, other) => {
  await mkdir(join(folder, 'directory'));
  const target = join(folder, at);
  const process = startProcess({ at: target });
  for (let n = 0; n < 5; n++) expect(await process.fetch('refresh')).toMatchObject({ kind: 'ok' });
  await until(() => Promise.resolve(process.warnings().length > 0));
  await rm(join(folder, 'directory'), { recursive: true });
  await mkdir(join(folder, other));
  await process.fetch('refresh');
  await until(async () => (await startProcess({ at: target, result: DOWN }).fetch()).kind === 'found');
  expect(process.warnings()).toEqual([expect.stringMatching(/cannot be written \((ENOENT|EISDIR)\)/)]);
});

test('what could not be written is written as soon as it can be, without another token request', async () => {
  const target = join(folder, 'full', 'token');
  const process = startProcess({ at: target });
  await process.fetch('refresh');
  process.result = grant('newest');
  await process.fetch('refresh');
  await until(() => Promise.resolve(process.warnings().length > 0));
  await clock.advance(60_000);
  await mkdir(join(folder, 'full'));
  await until(async () => {
    await clock.advance(30_000);
    return (await readdir(join(folder, 'full'))).includes('token');
  });
  expect(process.requests).toBe(2);
  expect(process.warnings()).toHaveLength(1);
  expect(await startProcess({ at: target, result: DOWN }).fetch()).toMatchObject({ token: { value: 'newest' } });
});

test('a refused token that could not be removed from the file is removed later', async () => {
  await writeCacheFile();
  const process = startProcess({ result: DOWN });
  // As root can write everywhere, a directory in place of the file makes its removal fail.
  await rm(path);
  await mkdir(join(path, 'in the way'), { recursive: true });
  await process.fetch('unauthorized');
  await until(() => Promise.resolve(process.warnings().length > 0));
  await rm(path, { recursive: true });
  await writeFile(path, 'refused');
  await until(async () => {
    await clock.advance(30_000);
    return !(await hasFile());
  });
});
