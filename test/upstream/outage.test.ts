/** An upstream that is away: no one waits for it in vain, and it is found again; connections age, and trust is followed. */
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createPlainServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { SidecarEvent } from '../../src/telemetry/events.ts';
import { createTlsContextProvider } from '../../src/platform/tls.ts';
import { PROBE_INTERVAL_MS } from '../../src/upstream/circuit-breaker.ts';
import { makeCertificates } from '../support/certificates.ts';
import { freePort } from '../support/loopback.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { openUpstream, send, soFar, startWireServer, until } from './wire.ts';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

/** A server that takes connections and never shakes hands; `connections` counts them. */
async function startSilentServer() {
  let connections = 0;
  const server = createPlainServer((socket) => {
    connections++;
    socket.on('error', () => socket.destroy()).resume();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  return { url: new URL(`https://127.0.0.1:${String(port)}`), connections: () => connections };
}

function warnings(events: readonly SidecarEvent[]): string[] {
  return events.map((event) => (event.kind === 'warning' ? event.message : event.kind));
}

describe('an upstream that lets every connection time out', () => {
  it('keeps the first callers waiting, and 1000 later ones not: one probe per interval goes out for all', async () => {
    const silent = await startSilentServer();
    const clock = new ManualClock();
    const events: SidecarEvent[] = [];
    const observe = (event: SidecarEvent): void => void events.push(event);
    const options = {
      clock,
      observe,
      trust: createTlsContextProvider(undefined),
      connectTimeoutMs: 1000,
    };
    await using upstream = openUpstream(silent.url, options);
    const first = Array.from({ length: 5 }, () => send(upstream).end);
    // Four connections at a time.
    for (const opened of [4, 5]) {
      await until(() => silent.connections() === opened);
      await clock.advance(1000);
    }
    const timedOut = { kind: 'unreachable', proxyStatus: 'connection_timeout', permanent: false };
    for (const end of await Promise.all(first)) expect(end).toMatchObject({ kind: 'failed', failure: timedOut });

    const sent = Array.from({ length: 1000 }, () => send(upstream).end);
    // No timer has to end and no packet to come for it.
    for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve));
    const later = await Promise.all(sent.map(soFar));
    for (const end of later) expect(end).toMatchObject({ kind: 'failed', failure: { ...timedOut, permanent: true } });
    expect(silent.connections()).toBe(5);

    await clock.advance(PROBE_INTERVAL_MS);
    const probing = Array.from({ length: 20 }, () => send(upstream).end);
    await until(() => silent.connections() === 6);
    await clock.advance(1000);
    const withProbe = await Promise.all(probing);
    expect(withProbe.filter((end) => end.kind === 'failed' && !end.failure.permanent)).toHaveLength(1);
    expect(silent.connections()).toBe(6);
    expect(warnings(events)).toEqual([expect.stringContaining('requests fail at once now')]);
  });
});

it('an upstream that comes back is found by the next probe, and serves all callers at once', async () => {
  const clock = new ManualClock();
  const events: SidecarEvent[] = [];
  const observe = (event: SidecarEvent): void => void events.push(event);
  const server = createPlainServer((socket) => {
    socket.on('error', () => socket.destroy()).on('data', () => socket.write(OK));
  });
  const port = await freePort();
  onTestFinished(() => void server.close());
  await using upstream = openUpstream(new URL(`http://127.0.0.1:${String(port)}`), { clock, observe });
  for (let times = 0; times < 5; times++) {
    await send(upstream).end;
    await clock.advance(300);
  }
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  expect(await send(upstream).end).toMatchObject({
    failure: { kind: 'unreachable', proxyStatus: 'connection_refused', permanent: true },
  });
  await clock.advance(PROBE_INTERVAL_MS);
  expect((await send(upstream).end).kind).toBe('relayed');
  const all = await Promise.all(Array.from({ length: 4 }, () => send(upstream).end));
  expect(all.map(({ kind }) => kind)).toEqual(Array(4).fill('relayed'));
  expect(warnings(events)).toEqual([expect.stringContaining('ECONNREFUSED'), 'the upstream can be reached again']);
});

describe('a connection that has grown old', () => {
  it('takes no further request: the next one looks the name up anew', async () => {
    const clock = new ManualClock();
    await using server = await startWireServer((socket, received) => {
      if (received.endsWith('\r\n\r\n')) socket.write(OK);
    });
    await using upstream = openUpstream(server.url, { clock, maxConnectionAgeMs: 300_000, maxConnections: 1 });
    await send(upstream).end;
    await clock.advance(299_000);
    await send(upstream).end;
    expect(server.sockets).toHaveLength(1);
    await clock.advance(2000);
    expect((await send(upstream).end).kind).toBe('relayed');
    expect(server.sockets).toHaveLength(2);
  });

  it('finishes what is under way on it, and takes nothing more', async () => {
    const clock = new ManualClock();
    await using server = await startWireServer((socket, _, index) => {
      if (index > 0) socket.write(OK);
    });
    await using upstream = openUpstream(server.url, { clock, maxConnectionAgeMs: 1000, maxConnections: 1 });
    const old = send(upstream);
    while (server.received[0]?.includes('GET') !== true) await new Promise(setImmediate);
    await clock.advance(2000);
    server.sockets[0]?.write(OK);
    expect(await old.end).toMatchObject({ kind: 'relayed', fault: undefined });
    expect((await send(upstream).end).kind).toBe('relayed');
    expect(server.sockets).toHaveLength(2);
    await until(() => server.sockets[0]?.destroyed === true);
  });
});

describe('the file of trusted authorities', () => {
  it('is read again when it changes, and a broken one changes nothing', async () => {
    using before = makeCertificates();
    using after = makeCertificates();
    const folder = mkdtempSync(join(tmpdir(), 'trust-'));
    onTestFinished(() => {
      rmSync(folder, { recursive: true });
    });
    const caFile = join(folder, 'ca.pem');
    copyFileSync(before.caFile, caFile);

    const server = createTlsServer(before, (socket) => {
      socket.on('error', () => socket.destroy()).once('data', () => socket.end(OK));
    });
    onTestFinished(() => void server.close());
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = new URL(`https://127.0.0.1:${String((server.address() as AddressInfo).port)}`);
    await using upstream = openUpstream(url, { trust: createTlsContextProvider(caFile) });
    expect((await send(upstream).end).kind).toBe('relayed');

    server.setSecureContext(after);
    expect(await send(upstream).end).toMatchObject({ failure: { proxyStatus: 'tls_certificate_error' } });
    writeFileSync(caFile, 'half a cer');
    server.setSecureContext(before);
    expect((await send(upstream).end).kind).toBe('relayed');
    copyFileSync(after.caFile, caFile);
    server.setSecureContext(after);
    expect((await send(upstream).end).kind).toBe('relayed');
    rmSync(caFile);
    expect((await send(upstream).end).kind).toBe('relayed');
  });

  it('must be there, and hold a certificate, at the start', () => {
    const folder = mkdtempSync(join(tmpdir(), 'trust-'));
    onTestFinished(() => {
      rmSync(folder, { recursive: true });
    });
    const file = join(folder, 'ca.pem');
    expect(() => createTlsContextProvider(file)).toThrow('ENOENT');
    writeFileSync(file, 'no certificate');
    expect(() => createTlsContextProvider(file)).toThrow(
      `${file} of trusted authorities does not begin with a PEM certificate`,
    );
  });
});
