/** Addresses: both loopback families on one port, socket files and their modes, stale ones, and faults in words. */
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer, connect } from 'node:net';
import type { Server } from 'node:net';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { bind } from '../../src/listener/bind.ts';
import type { BoundServers } from '../../src/listener/bind.ts';

let folder = '';
const opened: Server[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'bind-'));
});
afterEach(() => {
  for (const server of opened.splice(0)) server.close();
  rmSync(folder, { recursive: true, force: true });
});

function make(): Server {
  const server = createServer((socket) => socket.on('error', () => socket.destroy()).end('hello'));
  opened.push(server);
  return server;
}

const tcp = (host: string, port = 0) => ({ kind: 'tcp', host, port }) as const;

async function greeting(where: { host: string; port: number } | { path: string }): Promise<string> {
  const socket = connect(where);
  const [bytes] = (await once(socket, 'data')) as [Buffer];
  socket.destroy();
  return bytes.toString();
}

function portOf(bound: BoundServers<Server>): number {
  return Number(new URL(bound.url).port);
}

describe('localhost', () => {
  const hasIpv6 = networkInterfaces().lo?.some(({ family }) => family === 'IPv6') === true;

  it('with port 0 gets one free port for both loopback families', async () => {
    const bound = await bind(make, tcp('localhost'));
    expect(bound.url).toMatch(/^http:\/\/localhost:[1-9]\d*$/);
    expect(bound.servers).toHaveLength(hasIpv6 ? 2 : 1);
    for (const host of hasIpv6 ? ['127.0.0.1', '::1'] : ['127.0.0.1']) {
      expect(await greeting({ host, port: portOf(bound) })).toBe('hello');
    }
  });

  it('fails with a message when its port is taken, and leaves no server listening', async () => {
    const first = await bind(make, tcp('localhost'));
    await expect(bind(make, tcp('localhost', portOf(first)))).rejects.toThrow(
      `cannot listen on localhost:${String(portOf(first))}: it is in use (EADDRINUSE)`,
    );
    expect(opened.filter(({ listening }) => listening)).toHaveLength(first.servers.length);
  });

  it('an error names the setting of the address', async () => {
    const port = portOf(await bind(make, tcp('127.0.0.1')));
    await expect(bind(make, tcp('127.0.0.1', port), { setting: 'listen.address (SIDECAR_LISTEN)' })).rejects.toThrow(
      `listen.address (SIDECAR_LISTEN): cannot listen on 127.0.0.1:${String(port)}: it is in use (EADDRINUSE); stop what`,
    );
  });
});

describe('an address', () => {
  it('is bound alone, and its actual port returned', async () => {
    const bound = await bind(make, tcp('127.0.0.1'));
    expect(bound.url).toMatch(/^http:\/\/127\.0\.0\.1:[1-9]\d*$/);
    expect(await greeting({ host: '127.0.0.1', port: portOf(bound) })).toBe('hello');
  });

  it.each([
    ['203.0.113.7', 'this machine has no such address'],
    ['nowhere.invalid', 'the name does not resolve'],
  ])('%s fails: %s', async (host, words) => {
    await expect(bind(make, tcp(host))).rejects.toThrow(words);
  });
});

describe('a socket file', () => {
  it.each([0o600, 0o660])('has the mode %i, and the umask of the process is unchanged', async (mode) => {
    const path = join(folder, 'sidecar.sock');
    writeFileSync(join(folder, 'before'), '');
    const bound = await bind(make, { kind: 'unix', path }, { socketMode: mode });
    expect(bound.url).toBe(`unix:${path}`);
    expect(statSync(path).mode & 0o777).toBe(mode);
    writeFileSync(join(folder, 'after'), '');
    expect(statSync(join(folder, 'after')).mode).toBe(statSync(join(folder, 'before')).mode);
    expect(await greeting({ path })).toBe('hello');
  });

  it('of a process that died is replaced', async () => {
    const path = join(folder, 'stale.sock');
    const script = `require('net').createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, 'SIGKILL'))`;
    expect(() => execFileSync(process.execPath, ['-e', script], { stdio: 'ignore' })).toThrow();
    expect(existsSync(path)).toBe(true);
    await bind(make, { kind: 'unix', path });
    expect(await greeting({ path })).toBe('hello');
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  it('of a running process is not replaced', async () => {
    const path = join(folder, 'sidecar.sock');
    await bind(make, { kind: 'unix', path });
    await expect(bind(make, { kind: 'unix', path })).rejects.toThrow(`cannot listen on unix:${path}: it is in use`);
    expect(await greeting({ path })).toBe('hello');
  });

  it('never replaces a file of another kind', async () => {
    const path = join(folder, 'notes.txt');
    writeFileSync(path, 'mine');
    await expect(bind(make, { kind: 'unix', path })).rejects.toThrow('in use');
    expect(statSync(path).size).toBe(4);
  });
});
