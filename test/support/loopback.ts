/** Starts and ends servers on a free port of 127.0.0.1. */
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

/** A port that is free now: for a server that must keep it through restarts. */
export async function freePort(): Promise<number> {
  const probe = createServer();
  const { port } = new URL(await listenOnLoopback(probe));
  await closeServer(probe);
  return Number(port);
}
