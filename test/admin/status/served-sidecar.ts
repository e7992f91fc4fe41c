/** The admin port of a played sidecar over a real socket, for all tests of a file. */
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll } from 'vitest';
import { createAdminServer } from '../../../src/admin/admin-server.ts';
import { systemClock } from '../../../src/platform/clock.ts';
import { ConnectionSlots } from '../../../src/platform/connection-slots.ts';
import { PlayedSidecar } from './played-sidecar.ts';
import type { PlayedSetup } from './played-sidecar.ts';

export interface ServedSidecar {
  readonly port: () => number;
  /** A new sidecar behind the port. */
  play(setup: PlayedSetup): PlayedSidecar;
  /** The body; for another status than 200 a text that begins with `HTTP` and has the faults. */
  get(path: string): Promise<string>;
  /** The first snapshot of an opened page, and the update of the next second. */
  readEvents(): Promise<string>;
}

/** To be called at the top of a test file: listens before its tests and closes after them. */
export function createServedSidecar(): ServedSidecar {
  let played: PlayedSidecar | undefined;
  const server = createAdminServer(
    async (request, response) => played?.handler(request, response),
    new ConnectionSlots(64, 0, systemClock),
  );
  beforeAll(async () => {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });
  const port = (): number => (server.address() as AddressInfo).port;
  const fetchPath = (path: string, signal?: AbortSignal) =>
    fetch(`http://127.0.0.1:${String(port())}${path}`, { signal: signal ?? null });
  return {
    port,
    play: (setup) => (played = new PlayedSidecar(setup)),
    async get(path) {
      const response = await fetchPath(path);
      const body = await response.text();
      if (response.status === 200) return body;
      return `HTTP ${String(response.status)} of ${path}: ${played?.faults.join('; ') ?? ''}`;
    },
    async readEvents() {
      const leave = new AbortController();
      const { body, status } = await fetchPath('/events', leave.signal);
      if (status !== 200 || body === null) return `HTTP ${String(status)} of /events`;
      const decoder = new TextDecoder();
      let text = '';
      for await (const chunk of body) {
        text += decoder.decode(chunk as Uint8Array, { stream: true });
        if (!text.endsWith('\n\n')) continue;
        if (text.includes('event: tick')) break;
        if (text.includes('event: hello')) await played?.clock.advance(1000);
      }
      leave.abort();
      return text;
    },
  };
}
