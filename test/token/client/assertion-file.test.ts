/** The file of an assertion: read as the kubelet writes it, and never from the folder of the cluster's default token. */
import { link, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readAssertionFile } from '../../../src/token/client/assertion-file.ts';
import { ASSERTION_AUDIENCE, createAssertionIssuer } from '../../support/assertion-issuer.ts';
import { mountSecret } from '../../support/mounted-secret.ts';
import type { MountedSecret } from '../../support/mounted-secret.ts';

const { issue } = createAssertionIssuer();
const audience = ASSERTION_AUDIENCE;

let folder: string;
let clusterTokens: MountedSecret;
/** As `/var/run/secrets/kubernetes.io/serviceaccount`, whose `/var/run` is a link to `/run`. */
let clusterTokenFolder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'assertion-file-'));
  clusterTokens = await mountSecret({ token: issue(), 'ca.crt': 'x' });
  await mkdir(join(folder, 'run'));
  await symlink('run', join(folder, 'var-run'));
  await symlink(clusterTokens.path('.'), join(folder, 'run', 'serviceaccount'));
  clusterTokenFolder = join(folder, 'var-run', 'serviceaccount');
});
afterAll(async () => {
  await rm(folder, { recursive: true });
  await clusterTokens[Symbol.asyncDispose]();
});

async function write(name: string, contents: string | Uint8Array): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, contents);
  return path;
}

const read = (path: string) => readAssertionFile({ path, audience, clusterTokenFolder }, Date.now());

async function faultOf(path: string): Promise<string> {
  const reading = await read(path);
  return reading.kind === 'unreadable' ? reading.detail : 'none';
}

it.each(['', '\n', '\r\n'])('is read without its line end %j', async (end) => {
  const assertion = issue();
  expect(await read(await write('token', assertion + end))).toMatchObject({ kind: 'read', assertion });
});

it.each([
  ['missing', 'gone', undefined, /does not exist$/],
  ['empty', 'empty', '\n', /is empty; expected a JWT$/],
  ['a folder', '.', undefined, /is not a regular file$/],
  ['long', 'long', 'x'.repeat(16 * 1024 + 1), /is larger than 16384 bytes$/],
  ['not text', 'binary', Buffer.from([0xff, 0xfe]), /is not UTF-8 text$/],
  ['no JWT', 'secret', 'sesame', /holds no signed JWT; expected three base64url parts/],
])('%s: the fault names the setting and the file, not the contents', async (_, name, contents, fault) => {
  const path = contents === undefined ? join(folder, name) : await write(name, contents);
  const detail = await faultOf(path);
  expect(detail.startsWith(`auth.assertionFile: the file ${path} `)).toBe(true);
  expect(detail).toMatch(fault);
  expect(detail).not.toContain('sesame');
});

describe("the cluster's default token is refused", () => {
  const refusal = /is the cluster's default token, which must not leave the cluster; expected a projected token for /;

  it.each<[string, () => string | Promise<string>]>([
    ['by its usual path', () => join(clusterTokenFolder, 'token')],
    ['by the path that the links lead to', () => clusterTokens.path('token')],
    ['by the folder of the kubelet', () => clusterTokens.path('..data/token')],
    ['by the other name of /var/run', () => join(folder, 'run', 'serviceaccount', 'token')],
    ['by a path with ..', () => join(folder, 'run') + '/../var-run/./serviceaccount//token'],
    ['by a relative path', () => relative(process.cwd(), join(clusterTokenFolder, 'token'))],
    ['by /proc', () => `/proc/self/root${join(clusterTokenFolder, 'token')}`],
    [
      'by a link to the file',
      async () => {
        await symlink(join(clusterTokenFolder, 'token'), join(folder, 'to-file'));
        return join(folder, 'to-file');
      },
    ],
    [
      'by a link to the folder',
      async () => {
        await symlink(clusterTokenFolder, join(folder, 'to-folder'));
        return join(folder, 'to-folder', 'token');
      },
    ],
    [
      'by a link to a link',
      async () => {
        await symlink(join(clusterTokenFolder, '..data'), join(folder, 'one'));
        await symlink('one', join(folder, 'two'));
        return join(folder, 'two', 'token');
      },
    ],
    ['when there is none', () => join(clusterTokenFolder, 'no-such-token')],
  ])('%s', async (_, make) => {
    expect(await faultOf(await make())).toMatch(refusal);
  });

  it('when a file in its folder is a link to elsewhere', async () => {
    const target = await write('elsewhere', issue());
    await symlink(target, clusterTokens.path('linked'));
    expect(await faultOf(join(clusterTokenFolder, 'linked'))).toMatch(refusal);
    expect(await faultOf(target)).toBe('none');
  });

  it('and a neighbour whose name begins the same is not', async () => {
    await mkdir(join(folder, 'run', 'serviceaccount-projected'));
    const path = await write(join('run', 'serviceaccount-projected', 'token'), issue());
    expect(await faultOf(path)).toBe('none');
  });

  it('nor is any file where there is no such folder', async () => {
    const file = { path: await write('plain', issue()), audience, clusterTokenFolder: join(folder, 'no', 'folder') };
    expect(await readAssertionFile(file, Date.now())).toMatchObject({ kind: 'read' });
  });

  it('nor is a hard link from another folder, which only its claims can give away', async () => {
    const path = await write('original', issue({ aud: 'https://oidc.cluster.example' }));
    await link(path, join(folder, 'hard-link'));
    expect(await faultOf(join(folder, 'hard-link'))).toMatch(/audience is its own issuer/);
  });
});

it('is read whole while the kubelet replaces it: always one of its versions', async () => {
  const versions = Array.from({ length: 40 }, () => issue());
  await using mounted = await mountSecret({ token: versions[0] ?? '' });
  let isDone = false;
  const replaceAll = async (): Promise<void> => {
    for (const token of versions) await mounted.replace({ token });
    isDone = true;
  };
  const seen = new Set<string>();
  const readAll = async (): Promise<void> => {
    while (!isDone) {
      const reading = await read(mounted.path('token'));
      expect(reading).toMatchObject({ kind: 'read' });
      if (reading.kind === 'read') seen.add(reading.assertion);
    }
  };
  await Promise.all([replaceAll(), readAll(), readAll()]);
  expect(versions).toEqual(expect.arrayContaining([...seen]));
  expect(seen.size).toBeGreaterThan(1);
});
