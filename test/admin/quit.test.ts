/** Access to POST /quitquitquit, through the admin port. */
import { once } from 'node:events';
import { request } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createAdminServer } from '../../src/admin/admin-server.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { ConnectionSlots } from '../../src/platform/connection-slots.ts';
import type { AdminOptions } from '../../src/admin/server.ts';
import { createHandler, placePeers } from './admin-port.ts';

async function start(options: Partial<AdminOptions> = {}, ...peerAddress: [] | [string | undefined]) {
  let quits = 0;
  const handler = createHandler({ onQuit: () => (quits += 1), ...options });
  const server = createAdminServer(handler, new ConnectionSlots(64, 0, systemClock));
  if (peerAddress.length > 0) placePeers(server, peerAddress[0]);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const received = once(server, 'request');
  const ask = async (
    method: string,
    headers: Readonly<Record<string, string>> = {},
    path = '/quitquitquit',
    body?: string,
  ) => {
    const sent = request({ host: '127.0.0.1', port, path, method, headers, agent: false });
    sent.end(body);
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    return { status: response.statusCode, headers: response.headers, body: await text(response) };
  };
  return { port, ask, received, quits: () => quits };
}

/** A request whose connection is closed before it is handled, so that its address is unknown. */
async function askAndReset(port: number): Promise<void> {
  const socket = connect(port, '127.0.0.1');
  await once(socket, 'connect');
  socket.write('POST /quitquitquit HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n');
  socket.resetAndDestroy();
}

describe('POST /quitquitquit', () => {
  it('responds at once and calls back once', async () => {
    const { ask, quits } = await start();
    const { status, headers, body } = await ask('POST');
    expect([status, body]).toEqual([200, '{"draining":true}\n']);
    expect(headers).toMatchObject({ 'content-type': 'application/json', connection: 'close' });
    expect(quits()).toBe(1);
  });

  it('is accepted with a body', async () => {
    const { ask, quits } = await start();
    expect((await ask('POST', {}, '/quitquitquit?now', 'please')).status).toBe(200);
    expect(quits()).toBe(1);
  });

  it.each(['GET', 'HEAD', 'PUT', 'DELETE', 'OPTIONS'])('%s is 405 with Allow', async (method) => {
    const { ask, quits } = await start();
    expect(await ask(method)).toMatchObject({ status: 405, headers: { allow: 'POST' } });
    expect(quits()).toBe(0);
  });

  it('responds 404 unless admin.allowQuit is set', async () => {
    const { ask } = await start({ onQuit: undefined });
    expect((await ask('POST')).status).toBe(404);
  });

  it('is refused for a peer that has reset its connection, since its address is unknown', async () => {
    const { port, received, quits } = await start({ exposeAll: true });
    await askAndReset(port);
    await received;
    expect(quits()).toBe(0);
  });

  it('is accepted on a socket file, whose peers have no address and are local', async () => {
    const { ask, quits } = await start({ isOnSocketFile: true }, undefined);
    expect((await ask('POST')).status).toBe(200);
    expect(quits()).toBe(1);
  });

  it('is refused to other machines, also with exposeAll', async () => {
    const { ask, quits } = await start({ exposeAll: true }, '10.0.0.9');
    expect((await ask('GET', {}, '/status')).status).toBe(200);
    const { status, body } = await ask('POST');
    expect(status).toBe(403);
    expect(JSON.parse(body)).toMatchObject({ code: 'REQUEST_NOT_ALLOWED' });
    expect(quits()).toBe(0);
  });

  it.each([
    ['a rebound name', { Host: 'evil.example' }],
    ['another origin', { Origin: 'http://evil.example' }],
    ['a sandboxed frame', { Origin: 'null' }],
    ['a page of this port', { Origin: 'http://localhost', Host: 'localhost' }],
    ['an address that was typed', { 'Sec-Fetch-Site': 'none' }],
    ['a page without an origin', { 'Sec-Fetch-Site': 'same-origin' }],
    ['a navigation', { 'sec-fetch-mode': 'navigate' }],
    ['an image', { 'Sec-Fetch-Dest': 'image' }],
  ])('is refused to a browser: %s', async (_, headers) => {
    const { ask, quits } = await start();
    expect((await ask('POST', headers)).status).toBe(403);
    expect(quits()).toBe(0);
  });
});
