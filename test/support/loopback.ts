/** Starts and ends servers on a free port of 127.0.0.1. */
import { randomInt } from 'node:crypto';
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** @returns the server's base URL, without a slash at its end */
export async function listenOnLoopback(server: Server): Promise<string> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  return `http://127.0.0.1:${String(port)}`;
}

/** Ends the server and every connection it has. Closing again does nothing. */
export async function closeServer(server: Server): Promise<void> {
  if (!server.listening) return;
  await new Promise((resolve) => {
    server.close(resolve);
    server.closeAllConnections();
  });
}

/** Below the ports that systems give to clients: among those, another test may get the port, and a client that polls it may connect to itself. */
const [LOWEST_PORT, HIGHEST_PORT] = [10_000, 32_000];

/** A port that is free now: for a server that must keep it through restarts. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(LOWEST_PORT, HIGHEST_PORT);
    const probe = createServer();
    const isFree = await new Promise<boolean>((resolve) => {
      probe.once('error', () => resolve(false)).listen(port, '127.0.0.1', () => resolve(true));
    });
    if (!isFree) continue;
    await closeServer(probe);
    return port;
  }
}
