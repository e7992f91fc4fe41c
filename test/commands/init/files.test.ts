/** Files that init writes: whole, with their modes, over nothing that is there. */
import { chmodSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { secretPathFor, writeAll } from '../../../src/commands/init/files.ts';
import { scratchDirectory } from '../../config/base-env.ts';

const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8);

test('each with its mode, and nothing else', async () => {
  const folder = scratchDirectory();
  const [secret, yaml] = [join(folder, 's'), join(folder, 'y')];
  await writeAll(
    [
      { path: secret, text: 'sesame\n', mode: 0o600 },
      { path: yaml, text: 'a: 1\n', mode: 0o640 },
    ],
    false,
  );
  expect([readFileSync(secret, 'utf8'), readFileSync(yaml, 'utf8')]).toEqual(['sesame\n', 'a: 1\n']);
  expect([modeOf(secret), modeOf(yaml)]).toEqual(['600', '640']);
  expect(readdirSync(folder).sort()).toEqual(['s', 'y']);
});

test('one that has come in between stays as it is, and the others are gone again', async () => {
  const folder = scratchDirectory();
  const [secret, yaml] = [join(folder, 's'), join(folder, 'y')];
  writeFileSync(yaml, 'of somebody else');
  const files = [
    { path: secret, text: 'sesame\n', mode: 0o600 },
    { path: yaml, text: 'a: 1\n', mode: 0o644 },
  ];
  await expect(writeAll(files, false)).rejects.toThrow(/y" cannot be written: it exists; nothing was written$/);
  expect(readdirSync(folder)).toEqual(['y']);
  expect(readFileSync(yaml, 'utf8')).toBe('of somebody else');
});

test('by force over what is there, which others could read and now cannot', async () => {
  const folder = scratchDirectory();
  const secret = join(folder, 's');
  writeFileSync(secret, 'old');
  chmodSync(secret, 0o666);
  await writeAll([{ path: secret, text: 'new', mode: 0o600 }], true);
  expect([readFileSync(secret, 'utf8'), modeOf(secret)]).toEqual(['new', '600']);
  expect(readdirSync(folder)).toEqual(['s']);
});

test('by force, when the second cannot be written: the first is as it was', async () => {
  const folder = scratchDirectory();
  const [secret, yaml] = [join(folder, 's'), join(folder, 'y')];
  writeFileSync(secret, 'old', { mode: 0o640 });
  mkdirSync(yaml);
  const files = [
    { path: secret, text: 'new', mode: 0o600 },
    { path: yaml, text: 'a: 1\n', mode: 0o644 },
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
  await expect(writeAll([{ path: join(folder, name), text: '', mode: 0o600 }], false)).rejects.toThrow(why);
});

test.each([
  ['sidecar.yaml', 'sidecar.client-secret'],
  ['etc/partner.prod.yml', 'etc/partner.prod.client-secret'],
  ['/srv/conf', '/srv/conf.client-secret'],
])('the secret of %s is %s', (output, path) => {
  expect(secretPathFor(output)).toBe(path);
});
