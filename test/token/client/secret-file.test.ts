import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { execFile } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readSecret } from '../../../src/token/client/secret-file.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'secret-file-'));
});
afterAll(async () => {
  await rm(folder, { recursive: true });
});

async function readWritten(content: string | Uint8Array): ReturnType<typeof readSecret> {
  const path = join(folder, 'secret');
  await writeFile(path, content);
  return readSecret('auth.clientSecret', { kind: 'file', path });
}

test.each([
  ['pä:ß%2B+/=', 'pä:ß%2B+/='],
  ['s3cret\n', 's3cret'],
  ['s3cret\r\n', 's3cret'],
  ['s3cret\n\n', 's3cret\n'],
  [' s3cret \n', ' s3cret '],
  ['\uFEFFs3cret', 's3cret'],
])('a file of %j holds %j', async (content, value) => {
  expect(await readWritten(content)).toEqual({ kind: 'read', value });
});

test('a value is returned unchanged', async () => {
  const reading = await readSecret('auth.clientSecret', { kind: 'value', value: 'x\n' });
  expect(reading).toEqual({ kind: 'read', value: 'x\n' });
});

test('a file is read every time', async () => {
  await readWritten('old');
  expect(await readWritten('new')).toEqual({ kind: 'read', value: 'new' });
});

test.each<[string, string | Uint8Array, string]>([
  ['empty', '', 'is empty'],
  ['a line end alone', '\n', 'is empty'],
  ['too large', 'hunter2'.repeat(20_000), 'is larger than 65536 bytes'],
  ['no text', Uint8Array.of(0x68, 0xff, 0xfe), 'is not UTF-8 text'],
])('the fault of %s names key and path, and shows no contents', async (_name, content, fault) => {
  const reading = await readWritten(content);
  expect(reading).toEqual({
    kind: 'unreadable',
    detail: `auth.clientSecret: the file ${join(folder, 'secret')} ${fault}`,
  });
});

test('a missing file, a directory and a pipe without a writer are unreadable', async () => {
  const pipe = join(folder, 'pipe');
  await promisify(execFile)('mkfifo', [pipe]);
  const faults = await Promise.all(
    [join(folder, 'missing'), folder, pipe].map((path) => readSecret('auth.clientId', { kind: 'file', path })),
  );
  expect(faults.map((fault) => fault.kind === 'unreadable' && fault.detail)).toEqual([
    expect.stringContaining('does not exist'),
    expect.stringContaining('is not a regular file'),
    expect.stringContaining('is not a regular file'),
  ]);
});
