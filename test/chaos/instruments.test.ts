/** The tools of these tests: the ledger finds each kind of imbalance, the proxy breaks a connection at the exact byte. */
import { createHash } from 'node:crypto';
import { connect, createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { Agent } from 'undici';
import { describe, expect, it, onTestFinished } from 'vitest';
import { startChaosProxy } from '../support/chaos-proxy.ts';
import type { Fault } from '../support/chaos-proxy.ts';
import { OutcomeChecker } from '../support/ledger.ts';
import { openSocket, readToEnd } from '../support/raw-client.ts';
import { callVerified } from '../support/witness-client.ts';
import { startVerifyingUpstream } from '../support/witness-upstream.ts';

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
const POST = { method: 'POST', sent: 'question', expected: 'response', withinMs: 60_000 };
const RESPONDED = { kind: 'responded', status: 200, body: 'response' } as const;

describe('the ledger', () => {
  it('balances where everything went well', () => {
    const ledger = new OutcomeChecker();
    ledger.recordSent('a', POST);
    ledger.recordReceived('a', sha256('question'));
    expect(ledger.recordOutcome('a', RESPONDED)).toBe('responded 200');
    expect(ledger.report()).toMatchObject({ requests: 1, seen: 1, violations: [], outcomes: { 'responded 200': 1 } });
  });

  it.each<[string, (ledger: OutcomeChecker) => void, string]>([
    ['a request without an outcome', (ledger) => ledger.recordReceived('a', sha256('question')), 'no outcome'],
    [
      'a POST seen twice',
      (ledger) => ['', ''].forEach(() => ledger.recordReceived('a', sha256('question'))),
      '2 times',
    ],
    [
      'a damaged request body',
      (ledger) => ledger.recordReceived('a', sha256('quest')),
      'took a damaged body for whole',
    ],
    ['a request that was not sent', (ledger) => ledger.recordReceived('b', sha256('')), 'it was not sent'],
    ['a damaged response', (ledger) => ledger.recordOutcome('a', { ...RESPONDED, body: 'resp' }), 'damaged response'],
    ['a response out of nowhere', (ledger) => ledger.recordOutcome('a', RESPONDED), 'never saw it'],
    [
      'two outcomes',
      (ledger) => ['', ''].forEach(() => ledger.recordOutcome('a', { kind: 'cut' })),
      'a second outcome',
    ],
    [
      'a client that was left alone',
      (ledger) => ledger.recordOutcome('a', { kind: 'gave-up' }),
      'left without an outcome',
    ],
  ])('finds %s', (_, happen, words) => {
    const ledger = new OutcomeChecker();
    ledger.recordSent('a', POST);
    happen(ledger);
    expect(ledger.report().violations.join()).toContain(words);
  });

  it.each<[number, string, boolean]>([
    [429, 'slow down', true],
    [401, '', true],
    [503, '{"code":"DRAINING"}', true],
    [502, '{"code":"UPSTREAM_UNREACHABLE"}', true],
    [502, '{"code":"UPSTREAM_RESET","outcome":"unknown"}', false],
    [504, '{"code":"UPSTREAM_TIMEOUT","outcome":"unknown"}', false],
  ])('finds a request that was carried out and got %i %s: %s', (status, body, isFound) => {
    const ledger = new OutcomeChecker();
    for (const id of ['done', 'undone']) {
      ledger.recordSent(id, POST);
      ledger.recordOutcome(id, { kind: 'responded', status, body });
    }
    // The upstream may carry it out after the client has its response.
    ledger.recordReceived('done', sha256('question'));
    const { falselyRefused, violations } = ledger.report();
    expect([falselyRefused, violations.length]).toEqual(isFound ? [1, 1] : [0, 0]);
  });

  it('finds a POST that was carried out and whose reply leaves that open without saying so', () => {
    const ledger = new OutcomeChecker();
    for (const id of ['done', 'undone']) {
      ledger.recordSent(id, POST);
      ledger.recordOutcome(id, { kind: 'responded', status: 502, body: '{"code":"UPSTREAM_RESET"}' });
    }
    ledger.recordReceived('done', sha256('question'));
    expect(ledger.report()).toMatchObject({ unmarked: 1, falselyRefused: 0, violations: [expect.any(String)] });
  });

  it('finds a request that took too long', () => {
    const ledger = new OutcomeChecker();
    ledger.recordSent('a', { ...POST, withinMs: -1 });
    ledger.recordOutcome('a', { kind: 'cut' });
    expect(ledger.report().violations.join()).toContain('took');
  });
});

/** An upstream that responses every head with `response` and ends; `received` is all that came. */
async function startTarget(response: string) {
  const target = { received: '', url: '' };
  const server = createServer((socket) => {
    socket.setEncoding('latin1').on('error', () => socket.destroy());
    socket.on('data', (text: string) => {
      target.received += text;
      if (target.received.endsWith('\r\n\r\n')) socket.end(response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
  });
  target.url = `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`;
  return target;
}

describe('the witness', () => {
  /** Calls a witness through a relay that changes what the client has sent and what it gets. */
  async function callThrough(change: (text: string) => string) {
    await using upstream = await startVerifyingUpstream();
    await using relay = await startChangingRelay(upstream.url, change);
    const agent = new Agent();
    const outcome = await callVerified(agent, relay.url, {
      id: 'a',
      method: 'POST',
      requestBytes: 40,
      responseBytes: 60,
    });
    await agent.destroy();
    return { ...outcome, altered: upstream.stats.altered, brokenOff: upstream.stats.brokenOff };
  }

  it('finds nothing where nothing is changed', async () => {
    const found = await callThrough((text) => text);
    expect(found).toMatchObject({ status: 200, alteration: undefined, altered: [], brokenOff: [] });
  });

  const flipLast = (text: string): string =>
    text.slice(0, -1) + String.fromCharCode(text.charCodeAt(text.length - 1) ^ 1);
  it.each<[string, (text: string) => string, object]>([
    [
      'another byte in a request',
      (text) => (text.startsWith('POST') ? flipLast(text) : text),
      { altered: ['upstream: a: 40 bytes of 40, with other contents'], alteration: undefined },
    ],
    [
      'a shorter request that says so',
      (text) => text.replace('content-length: 40', 'content-length: 39'),
      { altered: ['upstream: a: 39 bytes of 40'] },
    ],
    [
      'another byte in a response',
      (text) => (text.startsWith('HTTP/1.1 200') ? flipLast(text) : text),
      { altered: [], alteration: 'client: response to a: 60 bytes of 60, with other contents' },
    ],
    [
      'the response to another request',
      (text) => text.replace(/reply-a|x-witness: a /, 'x-witness: b '),
      { alteration: expect.stringContaining('a got the response to') as string },
    ],
  ])('finds %s', async (_, change, expected) => {
    expect(await callThrough(change)).toMatchObject(expected);
  });
});

/** Each packet of these short messages is one text. */
async function startChangingRelay(target: string, change: (text: string) => string) {
  const relay = createServer((client) => {
    const behind = connect(Number(new URL(target).port), '127.0.0.1');
    client.on('data', (chunk) => behind.write(change(chunk.toString('latin1')), 'latin1'));
    behind.on('data', (chunk) => client.write(change(chunk.toString('latin1')), 'latin1'));
    client.on('error', () => behind.destroy()).on('close', () => behind.destroy());
    behind.on('error', () => client.destroy()).on('close', () => client.destroy());
  });
  await new Promise<void>((resolve) => relay.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${String((relay.address() as AddressInfo).port)}/a`;
  return { url, [Symbol.asyncDispose]: () => new Promise<void>((resolve) => void relay.close(() => resolve())) };
}

describe('the chaos proxy', () => {
  const REQUEST = 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n';
  const RESPONSE = 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody';

  it.each([0, 1, 17, RESPONSE.length])('lets %i bytes of a response pass before a FIN', async (offset) => {
    const target = await startTarget(RESPONSE);
    await using proxy = await startChaosProxy(() => ({ direction: 'response', offset, fault: 'fin' }));
    proxy.target = target.url;
    const socket = await openSocket(proxy.url);
    socket.write(REQUEST);
    expect((await readToEnd(socket)).bytes.toString()).toBe(RESPONSE.slice(0, offset));
  });

  it.each<[Fault, string, 'fin' | 'reset']>([
    ['reset', '', 'reset'],
    ['drip', RESPONSE, 'fin'],
  ])('%s within a request', async (fault, response, end) => {
    const target = await startTarget(RESPONSE);
    await using proxy = await startChaosProxy(() => ({ direction: 'request', offset: 9, fault }));
    proxy.target = target.url;
    const socket = await openSocket(proxy.url);
    socket.write(REQUEST);
    const seen = await readToEnd(socket);
    expect([seen.bytes.toString(), seen.end]).toEqual([response, end]);
    await expect.poll(() => target.received).toBe(fault === 'drip' ? REQUEST : REQUEST.slice(0, 9));
  });

  it('stalls without a word: neither bytes nor an end pass', async () => {
    const target = await startTarget(RESPONSE);
    await using proxy = await startChaosProxy(() => ({ direction: 'request', offset: 9, fault: 'stall' }));
    proxy.target = target.url;
    const socket = await openSocket(proxy.url);
    let bytes = 0;
    socket.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
    });
    socket.write(REQUEST);
    while (target.received.length < 9) await new Promise(setImmediate);
    for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate);
    expect([target.received, bytes, socket.closed]).toEqual([REQUEST.slice(0, 9), 0, false]);
    socket.destroy();
  });
});
