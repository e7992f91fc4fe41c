/**
 * What the clients run against: a partner's API, a token server, and two sidecars in processes of their own: one with its defaults,
 * and one with `listen.forwardProxy`. Each run of a client calls paths of its own, under which the API records what it received.
 */
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startRecordingUpstream } from '../../support/recording-upstream.ts';
import type { RecordedRequest, RecordingUpstream } from '../../support/recording-upstream.ts';
import { newCredential } from '../../support/secrets.ts';
import { baseSettings, startSidecar, waitUntilReady } from '../../support/sidecar-process.ts';
import type { Environment, RunningSidecar } from '../../support/sidecar-process.ts';
import { startTokenServer } from '../../support/token-server.ts';
import { EVENTS, WAYS, WSDL, makeContents, soapResponse } from './cells.ts';
import type { BodySizes, Contents, Way } from './cells.ts';

export const PARTNER_HOST = 'partner.test';
export const BASE_PATH = '/sales/v1';
/** A client that buffers never confirms an event. */
const EVENT_TIMEOUT_MS = 15_000;
const PARTNER_NAME = join(import.meta.dirname, 'partner-name.child.ts');

export interface Site extends AsyncDisposable {
  readonly contents: Contents;
  /** Holds the bodies to send, by cell. */
  readonly folder: string;
  readonly upstream: RecordingUpstream;
  readonly sidecars: Readonly<Record<Way, RunningSidecar>>;
  /** All requests of a cell, as the API received them. */
  requestsOf(run: string, cell: string): readonly RecordedRequest[];
  /** SHA-256 of what the API sent for a cell: the bodies of all its responses in turn. */
  sentFor(run: string, cell: string): { readonly bytes: number; readonly sha256: string };
  /** The client has received this event; only then is the next one sent. */
  confirmEvent(run: string, event: string): void;
  isIssued(token: string): boolean;
}

/** @param name names the logs of the sidecars */
export async function startSite(name: string, sizes: BodySizes): Promise<Site> {
  await using cleanup = new AsyncDisposableStack();
  const contents = makeContents(sizes);
  const folder = mkdtempSync(join(tmpdir(), 'client-bodies-'));
  cleanup.defer(() => {
    rmSync(folder, { recursive: true, force: true });
  });
  for (const cell of ['post', 'up'] as const) writeFileSync(join(folder, cell), contents[cell]);
  const sent = new Map<string, Buffer[]>();
  const confirmed = new Map<string, (event: string) => void>();

  const upstream = cleanup.use(
    await startRecordingUpstream(async (request, response) => {
      const [run = '', cell = ''] = request.path.slice(BASE_PATH.length + 1).split('/');
      if (cell === 'sse') {
        await sendEvents(response, (listener) => void confirmed.set(run, listener));
        return;
      }
      const { type, body } = responseTo(cell, request, contents);
      const key = `${run}/${cell}`;
      sent.set(key, [...(sent.get(key) ?? []), body]);
      response.writeHead(200, { 'content-type': type, 'content-length': body.length }).end(body);
    }),
  );
  const tokens = cleanup.use(await startTokenServer());
  const sidecars = await Promise.all(
    WAYS.map(async (way) => {
      const env = { ...partnerSettings(upstream, tokens.url), SIDECAR_LISTEN_FORWARD_PROXY: String(way === 'proxy') };
      const sidecar = cleanup.use(await startSidecar({ name: `${name}-${way}`, env }));
      await waitUntilReady(sidecar);
      return [way, sidecar] as const;
    }),
  );
  const all = cleanup.move();
  return {
    contents,
    folder,
    upstream,
    sidecars: Object.fromEntries(sidecars) as Record<Way, RunningSidecar>,
    requestsOf: (run, cell) => upstream.requests.filter(({ path }) => path === `${BASE_PATH}/${run}/${cell}`),
    sentFor: (run, cell) => {
      const hash = createHash('sha256');
      let bytes = 0;
      for (const body of sent.get(`${run}/${cell}`) ?? []) {
        hash.update(body);
        bytes += body.length;
      }
      return { bytes, sha256: hash.digest('hex') };
    },
    confirmEvent: (run, event) => confirmed.get(run)?.(event),
    isIssued: (token) => tokens.issued.some(({ value }) => value === token),
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

/** Settings of a sidecar whose API is `http://partner.test` under a base path. */
export function partnerSettings(upstream: RecordingUpstream, tokenUrl: string): Environment {
  const { port } = new URL(upstream.url);
  return {
    ...baseSettings(`http://${PARTNER_HOST}:${port}${BASE_PATH}`, tokenUrl, newCredential()),
    SIDECAR_ALLOW_INSECURE_HTTP: 'true',
    SIDECAR_LISTEN: 'localhost:0',
    NODE_OPTIONS: `--import=${PARTNER_NAME}`,
  };
}

function responseTo(cell: string, request: RecordedRequest, contents: Contents): { type: string; body: Buffer } {
  const isSoap = request.headers['content-type']?.startsWith('text/xml') ?? false;
  const content = cell === 'down' ? contents.down : cell === 'post' ? contents.post : Buffer.from(request.bodySha256);
  if (isSoap) return { type: 'text/xml; charset=utf-8', body: soapResponse(content) };
  if (cell === 'get' || cell === 'wsdl') return { type: 'text/xml; charset=utf-8', body: Buffer.from(WSDL) };
  return { type: 'application/json', body: content };
}

/** Each event only when the client has received the one before; the response breaks off when it does not. */
async function sendEvents(
  response: ServerResponse,
  onConfirmed: (listener: (event: string) => void) => void,
): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  for (let event = 1; event <= EVENTS; event++) {
    const received = new Promise<boolean>((resolve) => {
      const timer = setTimeout(() => resolve(false), EVENT_TIMEOUT_MS);
      response.once('close', () => resolve(false));
      onConfirmed((name) => {
        if (name !== String(event)) return;
        clearTimeout(timer);
        resolve(true);
      });
    });
    response.write(`data: ${String(event)}\n\n`);
    if (await received) continue;
    response.destroy();
    return;
  }
  response.end();
}
