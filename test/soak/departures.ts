/** How soon the sidecar drops a client that disconnects: while it is queued, in a pause, or in flight. */
import { setTimeout as sleep } from 'node:timers/promises';
import { startSidecarStack } from '../support/chain.ts';
import type { SidecarStack } from '../support/chain.ts';
import { openSocket } from '../support/raw-client.ts';

export type WaitingPlace = 'queued' | 'in a pause' | 'in flight';

/** One request in flight, and one place behind it. */
const ONE_AT_A_TIME = {
  SIDECAR_MAX_IN_FLIGHT: '1',
  SIDECAR_RATE: '1000',
  SIDECAR_BURST: '1000',
  SIDECAR_QUEUE_MAX: '1',
};

interface SidecarLoad {
  readonly queued: number;
  readonly inFlight: number;
}

/** Milliseconds from a client's RST to a status without it, each of `times` times; asking for the status is included. */
export async function measureClientAborts(place: WaitingPlace, times: number): Promise<number[]> {
  await using chain = await startSidecarStack({
    name: 'soak-departures',
    env: ONE_AT_A_TIME,
    respond: (_request, response) => {
      // Otherwise it never responds.
      if (place === 'in a pause') response.writeHead(429, { 'retry-after': '30' }).end();
    },
  });
  const took: number[] = [];
  const before = place === 'queued' ? [await sendAndWait(chain, { queued: 0, inFlight: 1 })] : [];
  const [without, within] = expectedLoads(place);
  for (let count = 0; count < times; count++) {
    const client = await sendAndWait(chain, within);
    const leftAt = performance.now();
    client.resetAndDestroy();
    await waitForLoad(chain, without);
    took.push(performance.now() - leftAt);
  }
  for (const socket of before) socket.destroy();
  return took;
}

/** The sidecar's load without the client that leaves, and with it. */
function expectedLoads(place: WaitingPlace): [SidecarLoad, SidecarLoad] {
  switch (place) {
    case 'queued':
      return [
        { queued: 0, inFlight: 1 },
        { queued: 1, inFlight: 1 },
      ];
    case 'in a pause':
      return [
        { queued: 0, inFlight: 0 },
        { queued: 1, inFlight: 0 },
      ];
    case 'in flight':
      return [
        { queued: 0, inFlight: 0 },
        { queued: 0, inFlight: 1 },
      ];
  }
}

async function sendAndWait(chain: SidecarStack, load: SidecarLoad) {
  const socket = await openSocket(chain.sidecar.proxyUrl);
  socket.on('error', () => socket.destroy());
  socket.write('GET /a HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n');
  await waitForLoad(chain, load);
  return socket;
}

async function waitForLoad({ sidecar }: SidecarStack, { queued, inFlight }: SidecarLoad): Promise<void> {
  const giveUpAt = performance.now() + 5000;
  while (performance.now() < giveUpAt) {
    const response = await fetch(`${sidecar.adminUrl}/status`);
    const { throttle } = (await response.json()) as { throttle: SidecarLoad };
    if (throttle.queued === queued && throttle.inFlight === inFlight) return;
    await sleep(1);
  }
  throw new Error(`the sidecar did not come to hold ${queued} waiting and ${inFlight} in flight`);
}
