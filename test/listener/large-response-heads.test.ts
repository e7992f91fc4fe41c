/** Large response heads through the proxy: to clients, to WebSocket clients, and in the memory that requests share. */
import { connect } from 'node:net';
import { describe, expect, it } from 'vitest';
import { ReplayMemory } from '../../src/exchange/request-body/replay-body.ts';
import { sendRaw } from '../support/raw-client.ts';
import { waitUntil } from '../support/until.ts';
import { afterHead, startWireServer } from '../upstream/wire.ts';
import { startProxy } from './proxy.ts';
import { startRawUpstream, startUpgrading, SWITCHING, upgradeRequest } from './websocket/raw-upgrades.ts';

const LIMIT = 65_536;

const ACCEPTED = SWITCHING.replace(/\r\n\r\n$/, '\r\n');
const DECLINED = 'HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\nX: 1\r\n';

/** The start of a head, and one more field so that names and values have so many bytes. */
function ofBytes(start: string, bytes: number): string {
  const others = start.slice(start.indexOf('\r\n')).replaceAll(/: |\r\n/g, '').length;
  return `${start}Long: ${'x'.repeat(bytes - others - 4)}\r\n\r\n`;
}

/** The start of a head, which has three fields, and as many more as are missing. */
function ofFields(start: string, fields: number): string {
  return `${start}${'y: \r\n'.repeat(fields - 3)}\r\n`;
}

describe('the response to an upgrade', () => {
  it.each([
    ['accepts it, of the limit', ofBytes(ACCEPTED, LIMIT), 101],
    ['accepts it, of 500 fields', ofFields(ACCEPTED, 500), 101],
    ['declines it, of the limit', ofBytes(DECLINED, LIMIT), 401],
    ['declines it, of 500 fields', ofFields(DECLINED, 500), 401],
  ])('%s, is relayed', async (_, head, status) => {
    await using upstream = await startRawUpstream((socket) => socket.write(head));
    await using proxy = await startUpgrading(upstream.url);
    const client = connect(Number(new URL(proxy.url).port), '127.0.0.1');
    let received = '';
    client.on('data', (bytes) => (received += bytes.toString('latin1'))).write(upgradeRequest());
    await waitUntil(() => received.includes('\r\n\r\n'), 'the head of the response');
    expect(received.slice(0, 13)).toBe(`HTTP/1.1 ${String(status)} `);
    expect(received.length).toBeGreaterThan(head.length - 10);
    client.destroy();
  });

  const TOO_LONG = /sent more than 65536 bytes of header fields .*upstream\.maxHeaderBytes/;
  it.each([
    ['one byte longer', (start: string) => ofBytes(start, LIMIT + 1), TOO_LONG],
    ['far longer', (start: string) => ofBytes(start, LIMIT + 40_000), TOO_LONG],
    ['of 501 fields', (start: string) => ofFields(start, 501), /sent more than 500 header fields/],
  ])('%s than the limit is dropped, whether it accepts or declines', async (_, build, words) => {
    for (const start of [ACCEPTED, DECLINED]) {
      await using upstream = await startRawUpstream((socket) => socket.write(build(start)));
      await using proxy = await startUpgrading(upstream.url);
      const { status, bytes } = await sendRaw(proxy.url, upgradeRequest());
      expect(status).toBe(502);
      expect(bytes.toString('latin1')).toMatch(words);
    }
  });
});

it('a large head takes memory of the bodies that are kept for retries until its response has ended', async () => {
  const TOTAL = 1024 * 1024;
  const memory = new ReplayMemory(TOTAL);
  const isFree = (): boolean => {
    const isWhole = memory.tryTake(TOTAL);
    if (isWhole) memory.giveBack(TOTAL);
    return isWhole;
  };
  let end: (() => void) | undefined;
  const head = `HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Long: ${'x'.repeat(60_000)}\r\n\r\n`;
  await using upstream = await startWireServer(afterHead(`${head}o`, (socket) => (end = () => void socket.write('k'))));
  await using proxy = await startProxy(upstream.url.href, { memory });
  const responding = sendRaw(proxy.url, 'GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n');
  await waitUntil(() => !isFree(), 'memory in use');
  end?.();
  expect((await responding).bytes.toString('latin1')).toContain('x'.repeat(60_000));
  await proxy.requestRecords(1);
  expect(isFree()).toBe(true);
});
