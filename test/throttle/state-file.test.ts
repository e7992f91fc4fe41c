/** The state file on a real file system, with a manual clock. */
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { StateFile } from '../../src/throttle/state-file.ts';
import type { LearnedState } from '../../src/throttle/throttle.ts';
import { until } from '../composition/in-process.ts';
import { ManualClock } from '../support/manual-clock.ts';

const ANEW = 'the limit is learned anew, and declared limits count from 0';
const OWNER = { upstream: 'https://api.example.com', client: 'hash-of-the-client' };

let clock: ManualClock;
let warnings: string[];
let directory: string;
let path: string;

beforeEach(() => {
  clock = new ManualClock();
  warnings = [];
  directory = mkdtempSync(join(tmpdir(), 'state-file-'));
  path = join(directory, 'learned.json');
  const made = directory;
  onTestFinished(() => rmSync(made, { recursive: true, force: true }));
});

function create(at = path): StateFile {
  return createFor(new Map([['default', OWNER]]), at);
}

function createFor(owners: ReadonlyMap<string, typeof OWNER>, at = path): StateFile {
  return new StateFile({ path: at, owners, clock, warn: (message) => warnings.push(message) });
}

/** The states of one throttle. */
function single(state: LearnedState | undefined): ReadonlyMap<string, LearnedState | undefined> {
  return new Map([['default', state]]);
}

async function restoredFrom(file: StateFile): Promise<LearnedState | undefined> {
  return (await file.restore()).get('default');
}

function learned(rate: number): LearnedState {
  return { version: 1, wallAt: clock.wallNow(), governor: { rate } };
}

/** Writes a rate as an earlier process. */
async function leave(rate: number): Promise<void> {
  const file = create();
  file.startWriting(() => single(learned(rate)));
  await file.stop();
}

interface Written {
  readonly limits: readonly (readonly [string, { readonly governor: { readonly rate: number } }])[];
}

function writtenRate(): unknown {
  return existsSync(path)
    ? (JSON.parse(readFileSync(path, 'utf8')) as Written).limits[0]?.[1].governor.rate
    : undefined;
}

describe('the learned limit', () => {
  it('is restored after a restart, from a file that only its owner can read', async () => {
    await leave(9.5);
    expect(await restoredFrom(create())).toEqual(learned(9.5));
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(warnings).toEqual([]);
  });

  it('is absent at the first start, without a warning', async () => {
    expect(await restoredFrom(create())).toBeUndefined();
    expect(readdirSync(directory)).toEqual([]);
    expect(warnings).toEqual([]);
  });

  it('is written every ten seconds if it has changed', async () => {
    const file = create();
    let state = learned(1);
    let snapshots = 0;
    file.startWriting(() => {
      snapshots++;
      return single(state);
    });
    await clock.advance(9_999);
    expect(snapshots).toBe(0);
    await clock.advance(1);
    await until(() => writtenRate() === 1, 'a first write');
    const first = statSync(path).ino;
    await clock.advance(10_000);
    await until(() => snapshots === 2, 'a second snapshot');
    state = learned(2);
    await clock.advance(10_000);
    await until(() => writtenRate() === 2, 'another write');
    expect(statSync(path).ino).not.toBe(first);
    await file.stop();
    expect(clock.pendingTimers).toBe(0);
    expect(readdirSync(directory)).toEqual(['learned.json']);
  });

  it('is not written again while it is unchanged', async () => {
    const file = create();
    file.startWriting(() => single(learned(1)));
    await clock.advance(10_000);
    await until(() => writtenRate() === 1, 'a first write');
    const { ino } = statSync(path);
    await file.stop();
    expect(statSync(path).ino).toBe(ino);
  });

  it('writes no file at the end when nothing was learned', async () => {
    const file = create();
    file.startWriting(() => single(undefined));
    await file.stop();
    expect(existsSync(path)).toBe(false);
  });

  it('replaces a symbolic link and not its target', async () => {
    const elsewhere = join(directory, 'elsewhere');
    writeFileSync(elsewhere, 'precious');
    symlinkSync(elsewhere, path);
    await leave(3);
    expect(readFileSync(elsewhere, 'utf8')).toBe('precious');
    expect(writtenRate()).toBe(3);
  });
});

describe('several throttles', () => {
  const QUOTES = { ...OWNER, upstream: 'https://quotes.example.com' };

  it('each restore their own limit, and no limit of another upstream', async () => {
    const file = createFor(
      new Map([
        ['default', OWNER],
        ['quotes', QUOTES],
        ['idle', OWNER],
      ]),
    );
    file.startWriting(
      () =>
        new Map([
          ['default', learned(1)],
          ['quotes', learned(2)],
          ['idle', undefined],
        ]),
    );
    await file.stop();
    const later = createFor(
      new Map([
        ['quotes', QUOTES],
        ['default', QUOTES],
        ['idle', OWNER],
        ['new', OWNER],
      ]),
    );
    expect(await later.restore()).toEqual(new Map([['quotes', learned(2)]]));
    expect(warnings).toEqual([
      `throttle.stateFile: ${JSON.stringify(path)}, default: was learned from another upstream: the limit is learned anew`,
    ]);
  });

  it('are all written when one of them has changed', async () => {
    const file = createFor(
      new Map([
        ['default', OWNER],
        ['quotes', QUOTES],
      ]),
    );
    let rate = 1;
    file.startWriting(
      () =>
        new Map([
          ['default', learned(9)],
          ['quotes', learned(rate)],
        ]),
    );
    await clock.advance(10_000);
    await until(() => existsSync(path), 'a first write');
    rate = 2;
    await file.stop();
    expect((await createFor(new Map([['quotes', QUOTES]])).restore()).get('quotes')).toEqual(learned(2));
  });
});

describe('an unusable file causes one warning and is overwritten', () => {
  it.each([
    ['with another content', 'garbage', 'is not what a sidecar writes'],
    ['with 1 MiB', 'x'.repeat(1024 * 1024), 'is not what a sidecar writes'],
    ['without a byte', '', 'is not what a sidecar writes'],
  ])('%s', async (_, contents, reason) => {
    writeFileSync(path, contents);
    const file = create();
    expect(await restoredFrom(file)).toBeUndefined();
    expect(warnings).toEqual([`throttle.stateFile: ${JSON.stringify(path)} ${reason}: ${ANEW}`]);
    file.startWriting(() => single(learned(4)));
    await file.stop();
    expect(writtenRate()).toBe(4);
    expect(warnings).toHaveLength(1);
  });

  it('of another client', async () => {
    await leave(9.5);
    const other = createFor(new Map([['default', { ...OWNER, client: 'another' }]]));
    expect(await restoredFrom(other)).toBeUndefined();
    expect(warnings).toEqual([expect.stringContaining('was learned with another client id')]);
  });

  it('older than a day', async () => {
    await leave(9.5);
    clock.stepWall(25 * 3_600_000);
    expect(await restoredFrom(create())).toBeUndefined();
    expect(warnings).toEqual([expect.stringContaining('is more than a day old')]);
  });
});

describe('a path that cannot be written', () => {
  it.each([
    ['its directory does not exist', () => join(directory, 'nowhere', 'learned.json'), 'ENOENT'],
    ['its directory is a file', () => join(directory, 'file', 'learned.json'), 'ENOTDIR'],
    ['its directory is read-only', () => join('/proc/self', 'learned.json'), /E(?:NOENT|ACCES|PERM|ROFS)/],
  ])('causes one warning at the start and no failure: %s', async (_, pathOf, code) => {
    writeFileSync(join(directory, 'file'), '');
    const file = create(pathOf());
    expect(await restoredFrom(file)).toBeUndefined();
    const atStart = [...warnings];
    expect(atStart).toEqual([expect.stringMatching(code)]);
    expect(atStart[0]).toContain('what is learned or counted ends with this process');
    file.startWriting(() => single(learned(1)));
    await clock.advance(30_000);
    await file.stop();
    expect(warnings).toEqual(atStart);
  });

  it('causes two warnings when it is a directory, and leaves no temporary file', async () => {
    mkdirSync(join(path, 'full'), { recursive: true });
    const file = create();
    expect(await restoredFrom(file)).toBeUndefined();
    file.startWriting(() => single(learned(1)));
    await file.stop();
    expect(warnings).toEqual([
      expect.stringContaining('cannot be read (EINVAL)'),
      expect.stringContaining('what is learned or counted ends with this process'),
    ]);
    expect(readdirSync(directory)).toEqual(['learned.json']);
  });

  it('causes a second warning after a write in between succeeded', async () => {
    const parent = join(directory, 'volume');
    mkdirSync(parent);
    const file = create(join(parent, 'learned.json'));
    let rate = 1;
    file.startWriting(() => single(learned(rate++)));
    const write = async (): Promise<void> => {
      await clock.advance(10_000);
    };
    rmSync(parent, { recursive: true });
    await write();
    await until(() => warnings.length === 1, 'a warning');
    mkdirSync(parent);
    chmodSync(parent, 0o700);
    await write();
    const path = join(parent, 'learned.json');
    await until(() => existsSync(path), 'a file');
    const first = readFileSync(path, 'utf8');
    // A write begins when the one before has succeeded: a file is visible a little earlier.
    await write();
    await until(() => readFileSync(path, 'utf8') !== first, 'another file');
    rmSync(parent, { recursive: true });
    await file.stop();
    expect(warnings).toHaveLength(2);
  });
});
