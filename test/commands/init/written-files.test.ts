/** Files that init writes: complete, with their modes, without overwriting existing ones. */
import { chmodSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { secretPathFor, writeAll } from '../../../src/commands/init/written-files.ts';
import { scratchDirectory } from '../../config/base-env.ts';

const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8);

test('writes each file for this user only, and no other file', async () => {
  const folder = scratchDirectory();
  const [secret, yaml] = [join(folder, 's'), join(folder, 'y')];
  await writeAll(
    [
      { path: secret, text: 'sesame\n' },
      { path: yaml, text: 'a: 1\n' },
    ],
    false,
  );
  expect([readFileSync(secret, 'utf8'), readFileSync(yaml, 'utf8')]).toEqual(['sesame\n', 'a: 1\n']);
  expect([modeOf(secret), modeOf(yaml)]).toEqual(['600', '600']);
  expect(readdirSync(folder).sort()).toEqual(['s', 'y']);
});

test('keeps a file created meanwhile, and removes the others', async () => {
  const folder = scratchDirectory();
  const [secret, yaml] = [join(folder, 's'), join(folder, 'y')];
  writeFileSync(yaml, 'of another user');
  const files = [
    { path: secret, text: 'sesame\n' },
    { path: yaml, text: 'a: 1\n' },
  ];
  await expect(writeAll(files, false)).rejects.toThrow(/y" cannot be written: it exists; nothing was written$/);
  expect(readdirSync(folder)).toEqual(['y']);
  expect(readFileSync(yaml, 'utf8')).toBe('of another user');
});

test('by force replaces an existing file and its mode', async () => {
  const folder = scratchDirectory();
  const secret = join(folder, 's');
  writeFileSync(secret, 'old');
  chmodSync(secret, 0o666);
  await writeAll([{ path: secret, text: 'new' }], true);
  expect([readFileSync(secret, 'utf8'), modeOf(secret)]).toEqual(['new', '600']);
  expect(readdirSync(folder)).toEqual(['s']);
});

test('by force restores the first file when the second cannot be written', async () => {
  const folder = scratchDirectory();
  const [secret, yaml] = [join(folder, 's'), join(folder, 'y')];
  writeFileSync(secret, 'old', { mode: 0o640 });
  mkdirSync(yaml);
  const files = [
    { path: secret, text: 'new' },
    { path: yaml, text: 'a: 1\n' },
  ];
  await expect(writeAll(files, true)).rejects.toThrow(/y" cannot be written: .*; nothing was written$/);
  expect([readFileSync(secret, 'utf8'), modeOf(secret)]).toEqual(['old', '640']);
  expect(readdirSync(folder).sort()).toEqual(['s', 'y']);
});

test.each([
  ['missing/s', 'its directory does not exist'],
  ['file/s', 'ENOTDIR'],
])('%s: %s', async (name, why) => {
  const folder = scratchDirectory();
  writeFileSync(join(folder, 'file'), '');
  await expect(writeAll([{ path: join(folder, name), text: '' }], false)).rejects.toThrow(why);
});

test.each([
  ['sidecar.yaml', 'sidecar.client-secret'],
  ['etc/partner.prod.yml', 'etc/partner.prod.client-secret'],
  ['/srv/conf', '/srv/conf.client-secret'],
])('the secret of %s is %s', (output, path) => {
  expect(secretPathFor(output, 'auth.clientSecretFile')).toBe(path);
  expect(secretPathFor(output, 'auth.tokenFile')).toBe(path.replace('client-secret', 'token'));
});
