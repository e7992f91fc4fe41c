/** The sandbox: its settings work, and its printed command can be pasted. */
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { connect } from 'node:net';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { startSandbox } from '../../src/sandbox/sandbox.ts';
import type { Sandbox } from '../../src/sandbox/sandbox.ts';
import { formatSandboxLines as describeSandbox } from '../../src/commands/run-sandbox.ts';
import { trusting } from './https-client.ts';

const run = promisify(execFile);

let sandbox: Sandbox;
let fetch: ReturnType<typeof trusting>;
beforeEach(async () => {
  sandbox = await startSandbox();
  fetch = trusting(sandbox.certificate);
});
afterEach(async () => {
  await sandbox.close();
});

async function fetchToken(): Promise<string> {
  const { clientId, clientSecret, audience, scope } = sandbox;
  const response = await fetch(sandbox.tokenUrl, {
    method: 'POST',
    headers: {
      authorization: `Basic ${Buffer.from(`${clientId}:${clientSecret}`).toString('base64')}`,
      'content-type': 'application/x-www-form-urlencoded',
    },
    body: new URLSearchParams({ grant_type: 'client_credentials', audience, scope }).toString(),
  });
  const { access_token: token } = (await response.json()) as { access_token: string };
  return token;
}

function lineOf(proxyUrl: string, word: string): string {
  const lines = describeSandbox(sandbox, { proxyUrl, adminUrl: 'http://localhost:19464' });
  return lines.find((line) => line.startsWith(`${word} `))?.slice(word.length + 1) ?? '';
}

/** The arguments that a POSIX shell passes to curl. */
async function wordsOf(line: string): Promise<string[]> {
  const { stdout } = await run('/bin/sh', ['-c', `curl() { for word; do printf '%s\\0' "$word"; done; }; ${line}`]);
  return stdout.split('\0').slice(0, -1);
}

describe('the settings for a sidecar', () => {
  test('get a token that the API accepts', async () => {
    const headers = { authorization: `Bearer ${await fetchToken()}` };
    const url = `${sandbox.apiUrl.href}/policies/${randomUUID()}`;
    expect((await fetch(url, { headers })).status).toBe(404);
  });

  test('differ at every start', async () => {
    const other = await startSandbox();
    await other.close();
    expect(other.clientId).not.toBe(sandbox.clientId);
    expect(other.clientSecret).not.toBe(sandbox.clientSecret);
  });

  test('detect a client that form-encodes its credentials', () => {
    expect(encodeURIComponent(sandbox.clientSecret)).not.toBe(sandbox.clientSecret);
    expect(sandbox.clientId).not.toContain(':');
  });

  test('are on loopback, and unreachable after the close', async () => {
    expect(new Set([sandbox.tokenUrl.hostname, sandbox.apiUrl.hostname])).toEqual(new Set(['127.0.0.1']));
    await Promise.all([sandbox.close(), sandbox.close()]);
    await expect(fetch(sandbox.tokenUrl)).rejects.toThrow();
    await expect(fetch(sandbox.apiUrl)).rejects.toThrow();
  });

  test('a client that never ends its TLS handshake does not delay the close', async () => {
    const socket = connect(Number(sandbox.apiUrl.port), sandbox.apiUrl.hostname);
    const ended = new Promise((resolve) => socket.once('close', resolve).on('error', () => socket.destroy()));
    await new Promise((resolve) => socket.once('connect', resolve));
    await sandbox.close();
    await ended;
  });

  test('only clients that trust the certificate of this start get through, which the token server sends', async () => {
    const other = await startSandbox();
    await expect(trusting(other.certificate)(sandbox.apiUrl)).rejects.toThrow('fetch failed');
    expect(await (await fetch(sandbox.certificateUrl)).text()).toBe(sandbox.certificate);
    expect((await fetch(sandbox.apiUrl.href.replace('127.0.0.1', 'localhost'))).status).toBe(401);
    await other.close();
  });

  test('the default limit refuses a loop, with Retry-After', async () => {
    // One connection, since ten handshakes can take a second.
    const fetchInTurn = trusting(sandbox.certificate, 1);
    await fetchInTurn(sandbox.apiUrl);
    const responses = await Promise.all(Array.from({ length: 10 }, async () => fetchInTurn(sandbox.apiUrl)));
    const refused = responses.filter(({ status }) => status === 429);
    expect(refused.length).toBeGreaterThan(0);
    expect(refused[0]?.headers.get('retry-after')).toBe('1');
  });
});

describe('the printed lines', () => {
  test('name every address and contain no secret', () => {
    const lines = describeSandbox(sandbox, { proxyUrl: 'http://localhost:18080', adminUrl: 'http://localhost:19464' });
    expect(lines.slice(0, 4)).toEqual([
      'proxy http://localhost:18080',
      'admin http://localhost:19464',
      `token ${sandbox.tokenUrl.href}`,
      `api ${sandbox.apiUrl.href}`,
    ]);
    expect(lines.at(-1)).toMatch(/^try curl /);
    expect(lines.slice(4, -1).every((line) => line.startsWith('note '))).toBe(true);
    expect(lines.slice(4, -1).join(' ')).toContain('simulated');
    expect(lines.join('')).not.toContain(sandbox.clientSecret);
    expect(lines.join('')).not.toContain('\n');
  });

  test('the curl command, read by a shell, is a POST that returns 201', async () => {
    const [include, header, field = '', data, body = '', url = '', ...rest] = await wordsOf(
      lineOf(sandbox.apiUrl.href, 'try'),
    );
    expect([include, header, data, rest]).toEqual(['-i', '-H', '-d', []]);
    expect(field).toBe('Content-Type: application/json');
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${await fetchToken()}` };
    const response = await fetch(url, { method: 'POST', headers, body });
    expect(response.status).toBe(201);
    expect(await response.json()).toMatchObject({ premium: { currency: 'EUR' }, simulated: true });
  });

  test('a unix socket with any name is called through --unix-socket', async () => {
    const words = await wordsOf(lineOf(`unix:/run/it's a socket.sock`, 'try'));
    expect(words.slice(0, 3)).toEqual(['-i', '--unix-socket', `/run/it's a socket.sock`]);
    expect(words.at(-1)).toBe('http://localhost/quotes-requests');
  });

  test.each([
    ['http://localhost:18080/', 'http://localhost:18080/quotes-requests'],
    ['http://[::1]:18080', 'http://[::1]:18080/quotes-requests'],
    ['http://0.0.0.0:18080', 'http://localhost:18080/quotes-requests'],
    ['http://[::]:18080', 'http://localhost:18080/quotes-requests'],
  ])('a proxy at %s is called at %s', async (proxyUrl, called) => {
    expect((await wordsOf(lineOf(proxyUrl, 'try'))).at(-1)).toBe(called);
  });
});
