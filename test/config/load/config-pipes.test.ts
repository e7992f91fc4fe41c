/** A configuration file that is no regular file: pipes with and without a writer, devices, sockets. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { readConfigFile } from '../../../src/config/load/sources.ts';

function scratchPath(): string {
  const folder = mkdtempSync(join(tmpdir(), 'config-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return join(folder, 'sidecar.yaml');
}

function createPipe(): string {
  const path = scratchPath();
  execFileSync('mkfifo', [path]);
  return path;
}

/** Runs a shell whose output goes to the pipe. It is open for writing when this resolves. */
async function writeTo(path: string, script: string): Promise<void> {
  // A pipe without a reader cannot be opened for writing.
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const command = `exec > "$0"; echo open >&2; ${script}`;
  const shell = spawn('sh', ['-c', command, path], { stdio: ['ignore', 'ignore', 'pipe'] });
  onTestFinished(() => {
    shell.kill('SIGKILL');
    closeSync(reader);
  });
  await once(shell.stderr, 'data');
}

describe('a pipe', () => {
  it('without a writer is refused at once', () => {
    const startedAt = performance.now();
    expect(readConfigFile(createPipe())).toBe('is a pipe without a writer');
    expect(performance.now() - startedAt).toBeLessThan(1000);
  });

  it.each([
    ['at once', 'printf "upstream: { baseUrl: "; printf "http://localhost }"'],
    ['late and in pieces', 'sleep 0.2; printf "upstream: { base"; sleep 0.2; printf "Url: http://localhost }"'],
  ])('that is written %s is read to its end', async (_, script) => {
    const path = createPipe();
    await writeTo(path, script);
    const reading = readConfigFile(path);
    expect(reading).toMatchObject({ problems: [] });
    expect(typeof reading === 'object' && reading.given.get('upstream.baseUrl')?.value).toBe('http://localhost');
  });

  it('whose writer never ends is refused once it has written too much', async () => {
    const path = createPipe();
    await writeTo(path, 'cat /dev/zero');
    expect(readConfigFile(path)).toBe('is larger than 1048576 bytes');
  });
});

describe('another kind of file', () => {
  it.each([
    ['/dev/zero', 'is larger than 1048576 bytes'],
    ['/tmp', 'is a directory'],
    ['/dev/null/x', 'does not exist'],
  ])('is refused: %s %s', (path, fault) => {
    expect(readConfigFile(path)).toBe(fault);
  });

  it('is refused: a socket', async () => {
    const path = scratchPath();
    const server = createServer().listen(path);
    onTestFinished(() => void server.close());
    await once(server, 'listening');
    expect(readConfigFile(path)).toBe('cannot be read (ENXIO)');
  });

  it('is empty: /dev/null', () => {
    expect(readConfigFile('/dev/null')).toMatchObject({ given: new Map() });
  });

  it('is read up to the largest size', () => {
    const path = scratchPath();
    const bytes = Buffer.alloc(1024 * 1024, ' ');
    writeFileSync(path, bytes);
    expect(readConfigFile(path)).toBeTypeOf('object');
    writeFileSync(path, Buffer.concat([bytes, Buffer.from(' ')]));
    expect(readConfigFile(path)).toBeTypeOf('string');
  });
});
