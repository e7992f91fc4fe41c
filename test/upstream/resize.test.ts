/** Another bound for the connections while some are in use. */
import { expect, it } from 'vitest';
import { openUpstream, send, startWireServer, until } from './wire.ts';

const HEAD = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n';

/** Responds to each request with a head alone. */
function startHalfResponding() {
  return startWireServer((socket, received) => {
    if (received.endsWith('\r\n\r\n')) socket.write(HEAD);
  });
}

it('more connections are there at once, for those that wait as well', async () => {
  await using server = await startHalfResponding();
  await using upstream = openUpstream(server.url, { maxConnections: 1 });
  const first = send(upstream);
  const waiting = send(upstream);
  await until(() => first.heads.length === 1);
  expect(waiting.heads).toHaveLength(0);
  upstream.resize(3);
  const others = [send(upstream), send(upstream)];
  await until(() => waiting.heads.length === 1 && others[0]?.heads.length === 1);
  expect(server.sockets).toHaveLength(3);
  expect(others[1]?.heads).toHaveLength(0);
  for (const socket of server.sockets) socket.write('ok');
  await until(() => others[1]?.heads.length === 1);
  for (const socket of server.sockets) socket.write('ok');
  for (const { end } of [first, waiting, ...others])
    expect(await end).toMatchObject({ kind: 'relayed', fault: undefined });
  expect(server.sockets).toHaveLength(3);
});

it('idle connections beyond the bound are given up, and those in use when they are free', async () => {
  await using server = await startHalfResponding();
  await using upstream = openUpstream(server.url, { maxConnections: 3 });
  const all = [send(upstream), send(upstream), send(upstream)];
  await until(() => all.every(({ heads }) => heads.length === 1));
  server.sockets[0]?.write('ok');
  await Promise.race(all.map(({ end }) => end));
  await new Promise(setImmediate);
  upstream.resize(1);
  await until(() => server.sockets.filter(({ destroyed }) => destroyed).length === 1);
  for (const socket of server.sockets) if (!socket.destroyed) socket.write('ok');
  for (const { end } of all) expect(await end).toMatchObject({ kind: 'relayed', fault: undefined });
  await until(() => server.sockets.filter(({ destroyed }) => destroyed).length === 2);
});

it('fewer connections hold for what comes after', async () => {
  await using server = await startWireServer((socket, received) => {
    if (received.endsWith('\r\n\r\n')) setTimeout(() => socket.write(`${HEAD}ok`), 20);
  });
  await using upstream = openUpstream(server.url, { maxConnections: 3 });
  upstream.resize(1);
  const ends = await Promise.all([send(upstream), send(upstream), send(upstream)].map(({ end }) => end));
  expect(ends.map(({ kind }) => kind)).toEqual(['relayed', 'relayed', 'relayed']);
  expect(server.sockets).toHaveLength(1);
});

it('closing ends what is under way on the former connections as well', async () => {
  await using server = await startHalfResponding();
  await using upstream = openUpstream(server.url, { maxConnections: 1 });
  const busy = send(upstream);
  await until(() => busy.heads.length === 1);
  upstream.resize(2);
  await upstream.close();
  expect((await busy.end).kind).toBe('relayed');
  expect(busy.seen.state).toBe('cut');
  await until(() => server.sockets.every(({ destroyed }) => destroyed));
});
