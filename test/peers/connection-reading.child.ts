/** Child of connection-reading.test.ts: a client that never stops sending, against connections that are stopped. Prints what was seen. */
import type { Socket } from 'node:net';
import { pauseReading, resumeReading, stopParsing } from '../../src/listener/connection-reading.ts';
import { MAX_HEADER_FIELDS } from '../../src/listener/guard.ts';
import { createProxyHttpServer } from '../../src/listener/http-server.ts';
import { listenOnLoopback } from '../support/loopback.ts';
import { openSocket } from '../support/raw-client.ts';
import { waitUntil, waitUntilStable } from '../support/until.ts';

const REQUEST = 'GET / HTTP/1.1\r\n\r\n';
const OFFER = 'Connection: Upgrade\r\nUpgrade: h2c\r\n';
const FLOOD_BYTES = 16 * 1024 * 1024;

interface Seen {
  requests: number;
  errors: number;
  connection: Socket | undefined;
}

/** Floods a server that calls `onRequest` with the number of the request; the responses wait until the connection ends. */
async function flood(
  first: string,
  onRequest: (connection: Socket, number: number) => void,
  finish: (seen: Seen) => Promise<Record<string, unknown>>,
): Promise<Record<string, unknown>> {
  const seen: Seen = { requests: 0, errors: 0, connection: undefined };
  const server = createProxyHttpServer({ keepAliveMs: 5000, allowHalfClose: false }, () => true);
  server.on('request', ({ socket }) => {
    seen.connection = socket;
    onRequest(socket, ++seen.requests);
  });
  server.on('clientError', (_, socket) => {
    seen.errors++;
    pauseReading(socket);
  });
  const client = await openSocket(await listenOnLoopback(server));
  client.on('error', () => client.destroy()).resume();
  client.write(first + REQUEST.repeat(3000));
  await waitUntil(() => seen.requests > 0, 'a request has been read');
  client.write(REQUEST.repeat(FLOOD_BYTES / REQUEST.length));
  const result = await finish(seen);
  seen.connection?.destroy();
  await waitUntil(() => client.destroyed, 'the client has noticed the end');
  server.close();
  return result;
}

const bytesRead = ({ connection }: Seen): Promise<number> => waitUntilStable(() => connection?.bytesRead ?? 0);

/** A connection that has been paused reads no more than it had in hand, until it is resumed. */
const paused = (first: string) =>
  flood(
    first,
    (connection, number) => {
      if (number === 10) pauseReading(connection);
    },
    async (seen) => {
      const stoppedAfter = (await bytesRead(seen)) <= 4 * 65_536;
      const requests = seen.requests;
      if (seen.connection !== undefined) resumeReading(seen.connection);
      await waitUntil(() => seen.requests > requests + 3000, 'more is read after it has been resumed');
      return { stoppedAfter, errors: seen.errors };
    },
  );

/** A connection that is no longer parsed makes no request, reports an error, and stays paused when that pauses it. */
const stopped = (first: string) =>
  flood(
    first,
    (connection, number) => {
      if (number === 10) stopParsing(connection);
    },
    async (seen) => {
      const stoppedAfter = (await bytesRead(seen)) <= 4 * 65_536;
      return { stoppedAfter, requests: seen.requests, errors: seen.errors };
    },
  );

/** The number of fields that are seen of a head with so many, in so many packets; one more than are allowed for a refusal by node:http. */
async function countFields(fields: number, packets: number): Promise<number> {
  const server = createProxyHttpServer({ keepAliveMs: 5000, allowHalfClose: false }, () => true);
  const seen = new Promise<number>((resolve) => {
    server.on('request', ({ rawHeaders, socket }) => {
      resolve(rawHeaders.length / 2);
      socket.destroy();
    });
    server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
      if (error.code === 'HPE_HEADER_OVERFLOW') resolve(MAX_HEADER_FIELDS + 1);
      socket.destroy();
    });
  });
  const client = await openSocket(await listenOnLoopback(server));
  client.on('error', () => client.destroy());
  const bytes = `GET / HTTP/1.1\r\n${'a: b\r\n'.repeat(fields)}\r\n`;
  for (let packet = 0; packet < packets; packet++) {
    client.write(bytes.slice((bytes.length * packet) / packets, (bytes.length * (packet + 1)) / packets));
    await new Promise(setImmediate);
  }
  const count = await seen;
  server.close();
  return count;
}

const counts: string[] = [];
for (const fields of [1, 31, 32, 33, MAX_HEADER_FIELDS, MAX_HEADER_FIELDS + 1, MAX_HEADER_FIELDS + 30, 2000]) {
  for (const packets of [1, 50]) {
    const seen = await countFields(fields, packets);
    const isExact = seen === fields;
    const isBounded = fields > MAX_HEADER_FIELDS && seen > MAX_HEADER_FIELDS && seen < MAX_HEADER_FIELDS + 64;
    if (!isExact && !isBounded) counts.push(`${String(seen)} of ${String(fields)} in ${String(packets)} packets`);
  }
}

const UPGRADE = `GET / HTTP/1.1\r\n${OFFER}\r\n`;
const results = [await paused(''), await paused(UPGRADE), await stopped(''), await stopped(UPGRADE)];
console.log(JSON.stringify({ results, counts }));
process.exit();
