/** What each client program sees of each response that breaks off, from the sidecar and from the API itself. */
import { newCredential } from '../../support/secrets.ts';
import { baseSettings, startSidecar, waitUntilReady } from '../../support/sidecar-process.ts';
import { startTokenServer } from '../../support/token-server.ts';
import { readBroken } from './clients.ts';
import type { BrokenClient } from './clients.ts';
import { FRAMINGS, PLACES, sentBytes, startBreakingUpstream } from './upstream.ts';
import type { Framing, Place } from './upstream.ts';

export interface Seen {
  readonly framing: Framing;
  readonly place: Place;
  /** Bytes of the body that the program got. */
  readonly bytes: number;
  /** Bytes of the body that were sent. */
  readonly sent: number;
  /** The program sees that the body is not whole. */
  readonly isDetected: boolean;
}

export interface BrokenSite extends AsyncDisposable {
  readonly directUrl: string;
  readonly sidecarUrl: string;
}

const PATHS = FRAMINGS.flatMap((framing) => PLACES.map((place) => `/${framing}/${place}`));

/** @param name names the log of the sidecar */
export async function startBrokenSite(name: string): Promise<BrokenSite> {
  await using cleanup = new AsyncDisposableStack();
  const upstream = cleanup.use(await startBreakingUpstream());
  const tokens = cleanup.use(await startTokenServer());
  const env = { ...baseSettings(upstream.url, tokens.url, newCredential()), SIDECAR_LISTEN: 'localhost:0' };
  const sidecar = cleanup.use(await startSidecar({ name, env }));
  await waitUntilReady(sidecar);
  const all = cleanup.move();
  return {
    directUrl: upstream.url,
    sidecarUrl: sidecar.proxyUrl,
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

export async function readAll(client: BrokenClient, folder: string, url: string): Promise<Seen[]> {
  const reads = await readBroken(client, folder, url, PATHS);
  return reads.map(({ path, bytes, error }) => {
    const [, framing, place] = path.split('/') as [string, Framing, Place];
    return { framing, place, bytes, sent: sentBytes(framing, place), isDetected: error !== '' };
  });
}
