/** A token that another program writes into a file: when it is read, what is used, and what a fault of the file does. */
import { writeFileSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { execFileSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import { FileTokenSource } from '../../../src/token/source/file-token-source.ts';
import type { TokenSource, TokenUse } from '../../../src/token/token.ts';
import type { SidecarEvent } from '../../../src/telemetry/events.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { mountSecret } from '../../support/mounted-secret.ts';
import { registerSecret } from '../../support/secrets.ts';
import { watch } from './source-harness.ts';
import { waitUntil } from '../../support/until.ts';

interface Harness {
  readonly path: string;
  readonly clock: ManualClock;
  readonly source: TokenSource;
  readonly events: SidecarEvent[];
  readonly recorded: string[];
}

const NEVER = new AbortController().signal;

async function createHarness(given?: string): Promise<Harness> {
  const folder = await mkdtemp(join(tmpdir(), 'token-file-'));
  const path = given ?? join(folder, 'token');
  const clock = new ManualClock();
  const [events, recorded]: [SidecarEvent[], string[]] = [[], []];
  const source = new FileTokenSource({
    credential: 'default',
    path,
    onToken: (value) => recorded.push(value),
    clock,
    observe: (event) => events.push(event),
  });
  onTestFinished(async () => {
    source.stop();
    await rm(folder, { recursive: true, force: true });
  });
  return { path, clock, source, events, recorded };
}

function newToken(): string {
  const token = `key-${randomBytes(12).toString('hex')}`;
  registerSecret('a token in a file', token);
  return token;
}

/** Moves time in small steps while the work waits for it. */
async function settle<T>(clock: ManualClock, work: Promise<T>): Promise<T> {
  const seen = watch(work);
  while (!seen.settled) await clock.advance(10);
  return work;
}

/** Time stands still, so that no poll reads the file while the test changes it. */
async function useFirst({ source }: Harness): Promise<TokenUse> {
  source.start();
  await source.waitForToken(NEVER);
  const use = source.current();
  if (use === undefined) throw new Error('no token');
  return use;
}

/** A call with this use got a 401. */
function refuse(source: TokenSource, use: TokenUse): Promise<boolean> {
  source.recordRejected(use);
  return source.waitForReplacement(use, NEVER);
}

/** A poll begins 2 s after the end of the one before, which reads a real file: time moves on until it was read. */
async function pollUntil(clock: ManualClock, holds: () => boolean, what: string): Promise<void> {
  await waitUntil(async () => {
    await clock.advance(2_000);
    return holds();
  }, what);
}

const kinds = (events: readonly SidecarEvent[]): string[] =>
  events.map((event) => ('outcome' in event ? `${event.kind} ${event.outcome}` : event.kind));

describe('the contents', () => {
  it.each<[string, (token: string) => string | Buffer]>([
    ['one line end', (token) => `${token}\n`],
    ['a Windows line end', (token) => `${token}\r\n`],
    ['a byte order mark', (token) => `\uFEFF${token}`],
    ['nothing more', (token) => token],
  ])('are a token with %s', async (_, form) => {
    const harness = await createHarness();
    const token = newToken();
    await writeFile(harness.path, form(token));
    expect((await useFirst(harness)).token).toMatchObject({ value: token, expiresAt: Infinity, serial: 1 });
    expect(harness.recorded).toEqual([token]);
    expect(harness.events).toMatchObject([{ kind: 'token-requested', outcome: 'ok', file: harness.path }]);
    expect(harness.source.state()).toMatchObject({
      ...{ status: 'valid', validForMs: undefined, expiresWallAt: undefined, nextRequestInMs: undefined },
      ...{ file: harness.path, consecutiveFailures: 0, lastFailure: undefined, credentialFault: undefined },
    });
  });

  const CHARACTERS = 'holds characters that a token may not have, such as a blank, a comma or a second line';
  it.each<[string, (path: string, token: string) => unknown, string]>([
    ['is missing', () => undefined, 'does not exist'],
    ['is empty', (path) => writeFile(path, ''), 'is empty'],
    ['is a line end', (path) => writeFile(path, '\n'), 'is empty'],
    ['is a folder', (path) => mkdir(path), 'is not a regular file'],
    ['is a pipe', (path) => execFileSync('mkfifo', [path]), 'is not a regular file'],
    ['has two lines', (path, token) => writeFile(path, `${token}\n${token}`), CHARACTERS],
    ['has a second line end', (path, token) => writeFile(path, `${token}\n\n`), CHARACTERS],
    ['has a blank', (path, token) => writeFile(path, `${token} `), CHARACTERS],
    ['has a comma', (path, token) => writeFile(path, `${token},x`), CHARACTERS],
    ['has a control character', (path, token) => writeFile(path, `${token}\0`), CHARACTERS],
    ['has an umlaut', (path, token) => writeFile(path, `${token}ü`), CHARACTERS],
    ['is not UTF-8', (path) => writeFile(path, Buffer.from([0x61, 0xff])), 'is not UTF-8 text'],
    ['is too large', (path) => writeFile(path, 'a'.repeat(16 * 1024 + 1)), 'is larger than 16384 bytes'],
  ])('a file that %s is one fault, until it is written', async (_, spoil, fault) => {
    const harness = await createHarness();
    const { path, clock, source, events } = harness;
    const token = newToken();
    await spoil(path, token);
    source.start();
    const detail = `auth.tokenFile: the file ${path} ${fault}`;
    await expect(settle(clock, source.waitForToken(NEVER))).rejects.toMatchObject({
      ...{ code: 'TOKEN_UNAVAILABLE', message: `No access token: ${detail}` },
    });
    for (let polls = 0; polls < 3; polls++) await clock.advance(2_000);
    expect(events).toMatchObject([{ kind: 'token-requested', outcome: 'unavailable', file: path }]);
    expect(source.state()).toMatchObject({
      ...{ status: 'none', consecutiveFailures: 1, hasHadToken: false, credentialFault: undefined },
      lastFailure: { outcome: 'unavailable', detail },
    });
    expect(JSON.stringify([events, source.state()])).not.toContain(token);
    // A further call is not held up.
    await expect(source.waitForToken(NEVER)).rejects.toThrow(detail);

    await rm(path, { recursive: true, force: true });
    await writeFile(`${path}.new`, token);
    await rename(`${path}.new`, path);
    await pollUntil(clock, () => source.current() !== undefined, 'the token is read');
    expect(source.state()).toMatchObject({ status: 'valid', lastFailure: undefined, hasHadToken: true });
  });
});

describe('a change', () => {
  it('is used by all later calls after the next poll, also through the links of Kubernetes', async () => {
    const [first, second] = [newToken(), newToken()];
    await using mounted = await mountSecret({ token: first });
    const harness = await createHarness(mounted.path('token'));
    const { source, clock } = harness;
    expect((await useFirst(harness)).token.value).toBe(first);
    await mounted.replace({ token: second });
    await pollUntil(clock, () => source.current()?.token.value === second, 'the new token');
    expect(source.current()?.token.serial).toBe(2);
    expect(kinds(harness.events)).toEqual(['token-requested ok', 'token-requested ok']);
  });

  it('is found by a 401 without a wait, and calls that used the old token are repeated', async () => {
    const harness = await createHarness();
    const { path, source, clock } = harness;
    await writeFile(path, newToken());
    const use = await useFirst(harness);
    const second = newToken();
    await writeFile(path, second);
    const at = clock.now();
    expect(await Promise.all([refuse(source, use), refuse(source, use), refuse(source, use)])).toEqual([
      true,
      true,
      true,
    ]);
    expect(clock.now()).toBe(at);
    expect(source.current()?.token.value).toBe(second);
    // A late 401 of the old token.
    expect(await refuse(source, use)).toBe(true);
    expect(source.state().status).toBe('valid');
  });

  it('is found by a 401 that comes while the file is being read', async () => {
    const harness = await createHarness();
    const { path, source } = harness;
    await writeFile(path, newToken());
    const use = await useFirst(harness);
    source.recordRejected(use);
    writeFileSync(path, newToken());
    expect(await refuse(source, use)).toBe(true);
  });

  it('is found while the file is truncated and written, for 100 ms', async () => {
    const harness = await createHarness();
    const { path, source, clock, events } = harness;
    await writeFile(path, newToken());
    const use = await useFirst(harness);
    await writeFile(path, '');
    const second = newToken();
    const pending = refuse(source, use);
    clock.exactlyAt(clock.now() + 100, () => void writeFile(path, second));
    expect(await settle(clock, pending)).toBe(true);
    expect(source.current()?.token.value).toBe(second);
    expect(kinds(events)).toEqual(['token-requested ok', 'token-requested ok']);
  });

  it('does not replace a token by a fault: one warning for each, and none for what comes back', async () => {
    const harness = await createHarness();
    const { path, source, clock, events } = harness;
    const token = newToken();
    await writeFile(path, token);
    const use = await useFirst(harness);
    await rm(path);
    await settle(clock, refuse(source, use));
    for (let polls = 0; polls < 3; polls++) await clock.advance(2_000);
    expect(kinds(events)).toEqual(['token-requested ok', 'credential-rotation unreadable']);
    const detail = `auth.tokenFile: the file ${path} does not exist`;
    expect(source.state()).toMatchObject({ credentialFault: { detail }, consecutiveFailures: 0, hasHadToken: true });
    expect(source.current()).toBe(use);
    await writeFile(path, token);
    expect(await refuse(source, use)).toBe(false);
    expect(source.state().credentialFault).toBeUndefined();
    expect(events).toHaveLength(2);
  });
});

describe('a 401 without a change', () => {
  it('goes to the client without a wait, and the token stays in use', async () => {
    const harness = await createHarness();
    const { path, source, clock, events } = harness;
    await writeFile(path, newToken());
    const use = await useFirst(harness);
    const at = clock.now();
    for (let calls = 0; calls < 5; calls++) expect(await refuse(source, use)).toBe(false);
    expect(clock.now()).toBe(at);
    expect(source.current()).toBe(use);
    expect(kinds(events)).toEqual(['token-requested ok']);
  });

  it('makes the token suspect only when no call is accepted for 10 s', async () => {
    const harness = await createHarness();
    const { path, source, clock } = harness;
    await writeFile(path, newToken());
    const use = await useFirst(harness);
    for (let calls = 0; calls < 20; calls++) {
      source.recordAccepted(use, false);
      await refuse(source, use);
      await clock.advance(1_000);
      expect(source.state().status).toBe('valid');
    }
    await clock.advance(9_000);
    expect(source.state().status).toBe('suspect');
    source.recordAccepted(use, false);
    expect(source.state().status).toBe('valid');
  });
});

it('the token of the newest good contents is held, for any history of the file', async () => {
  const step = fc.constantFrom('write', 'rename', 'truncate', 'remove', 'spoil', 'nothing');
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 8 }), async (steps) => {
      const folder = await mkdtemp(join(tmpdir(), 'token-file-'));
      const path = join(folder, 'token');
      const clock = new ManualClock();
      const events: SidecarEvent[] = [];
      const recorded: string[] = [];
      const source = new FileTokenSource({
        ...{ credential: 'default', path, clock },
        onToken: (value) => recorded.push(value),
        observe: (event) => events.push(event),
      });
      const good = ['token-of-the-start'];
      await writeFile(path, good[0] ?? '');
      source.start();
      await settle(clock, source.waitForToken(NEVER));
      for (const [at, kind] of steps.entries()) {
        const token = `token-of-step-${String(at)}`;
        if (kind === 'write') await writeFile(path, token);
        if (kind === 'truncate') await writeFile(path, '');
        if (kind === 'remove') await rm(path, { force: true });
        if (kind === 'spoil') await writeFile(path, `${token} and more`);
        if (kind === 'rename') {
          await writeFile(`${path}.new`, token);
          await rename(`${path}.new`, path);
        }
        if (kind === 'write' || kind === 'rename') good.push(token);
        const use = source.current();
        if (use === undefined) throw new Error('no token');
        await settle(clock, refuse(source, use));
        expect(source.current()?.token).toMatchObject({ value: good.at(-1), serial: good.length });
      }
      expect(recorded).toEqual(good);
      expect(events.filter(({ kind }) => kind === 'token-requested')).toHaveLength(good.length);
      expect(JSON.stringify(events)).not.toContain('token-of');
      source.stop();
      await rm(folder, { recursive: true });
    }),
    { numRuns: 20 },
  );
});

it('a source that is stopped rejects its waiters, and reads no more', async () => {
  const { source, clock } = await createHarness();
  source.start();
  const waiting = source.waitForToken(NEVER);
  source.stop();
  await expect(waiting).rejects.toMatchObject({ code: 'TOKEN_UNAVAILABLE' });
  await waitUntil(() => clock.pendingTimers === 0, 'no timer is left');
  source.start();
  expect(clock.pendingTimers).toBe(0);
});
