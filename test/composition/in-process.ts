/**
 * A sidecar in this process, with a token endpoint and an upstream that a test programs, and every event that it emitted. Time is real
 * unless a test passes a clock; backoffs take no time, since the random number is always 0.
 */
import { onTestFinished } from 'vitest';
import type { Clock } from '../../src/platform/clock.ts';
import { loadConfig } from '../../src/config/load/load.ts';
import { formatProblems } from '../../src/config/load/problems.ts';
import { startSidecar } from '../../src/composition/sidecar.ts';
import type { Sidecar, SidecarOptions } from '../../src/composition/sidecar.ts';
import { createRecordingLog } from '../support/recorded-events.ts';
import type { RecordedEvent, RecordedEventOf, RequestEnded } from '../support/recorded-events.ts';
import { startRecordingUpstream } from '../support/recording-upstream.ts';
import type { RespondTo, RecordingUpstream } from '../support/recording-upstream.ts';
import { newCredential } from '../support/secrets.ts';
import { waitUntil } from '../support/until.ts';

export { waitUntil as until };

export interface InProcessOptions {
  /** How the API responds. Default: echo. */
  readonly respond?: RespondTo;
  /** Another upstream instead of `api`. */
  readonly apiUrl?: string;
  /** How the token endpoint responds. Default: `giveToken`. */
  readonly respondToTokenRequest?: RespondTo;
  readonly env?: Readonly<Record<string, string>>;
  readonly clock?: Clock;
  /** Instead of one that records events. */
  readonly log?: SidecarOptions['log'];
  readonly startTracer?: SidecarOptions['startTracer'];
  /** Default true. */
  readonly keepsEvents?: boolean;
  /** A configuration file, which `reload` reads again. Default: none. */
  readonly file?: string;
}

export interface InProcess {
  /** Where applications call. */
  readonly url: string;
  readonly sidecar: Sidecar;
  readonly api: RecordingUpstream;
  readonly tokens: RecordingUpstream;
  /** Every event, in order. */
  readonly events: readonly RecordedEvent[];
  /** Those of one kind. */
  eventsOf<K extends RecordedEvent['kind']>(kind: K): RecordedEventOf<K>[];
  /** The ended requests, once `count` of them have ended; fails when they do not. */
  requestRecords(count: number): Promise<RequestEnded[]>;
  /** The value of one sample of the admin port's `/metrics`, by its exact name and labels. */
  metric(sample: string): Promise<number>;
  /** What `/status` says about the throttle. */
  throttle(): Promise<Status['throttle']>;
  /** What `/status` says about the proxy port. */
  listener(): Promise<Status['listener']>;
}

/** The part of `/status` that tests read. */
export interface Status {
  readonly throttle: { readonly queued: number; readonly inFlight: number; readonly streams: number };
  readonly listener: { readonly connections: number; readonly requests: number };
}

/** No request waits or is in flight. */
export const IDLE = { queued: 0, inFlight: 0, streams: 0 };

const UNTHROTTLED = { SIDECAR_RATE: '100000', SIDECAR_BURST: '10000' };

/** A token with an `expires_in` of an hour; the values are `token-1-…`, `token-2-…`. */
export const giveToken: RespondTo = (_request, response, index) => {
  sendToken(response, index, 3600);
};

/** @param expiresIn seconds */
export function sendToken(response: Parameters<RespondTo>[1], index: number, expiresIn: number): void {
  const token = {
    access_token: `token-${String(index + 1)}-of-the-tests`,
    token_type: 'Bearer',
    expires_in: expiresIn,
  };
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(token));
}

/** Starts all three; they end with the test. */
export async function startInProcess(options: InProcessOptions = {}): Promise<InProcess> {
  const tokens = await startRecordingUpstream(options.respondToTokenRequest ?? giveToken);
  const api = await startRecordingUpstream(options.respond);
  const { id, secret } = newCredential();
  const load = () =>
    loadConfig({
      file: options.file,
      env: {
        SIDECAR_BASE_URL: options.apiUrl ?? api.url,
        SIDECAR_AUTH_URL: tokens.url,
        SIDECAR_CLIENT_ID: id,
        SIDECAR_CLIENT_SECRET: secret,
        SIDECAR_AUDIENCE: 'https://api.partner.example/',
        SIDECAR_LISTEN: '127.0.0.1:0',
        SIDECAR_ADMIN_LISTEN: '127.0.0.1:0',
        ...UNTHROTTLED,
        ...options.env,
      },
    });
  const loaded = load();
  if (!loaded.ok) throw new Error(formatProblems(loaded.problems));
  const events: RecordedEvent[] = [];
  const record = (event: RecordedEvent): void => {
    if (options.keepsEvents !== false) events.push(event);
  };
  const sidecar = await startSidecar({
    config: { ...loaded.config, shutdown: options.env?.SIDECAR_DRAIN_MS ? loaded.config.shutdown : AT_ONCE },
    version: '0.0.0',
    log: options.log ?? createRecordingLog(record),
    startTracer: options.startTracer,
    source: { loaded, load: options.file === undefined ? undefined : load },
    random: () => 0,
    ...(options.clock === undefined ? {} : { clock: options.clock }),
  });
  const warnings = watchWarnings();
  let drained: Promise<number> | undefined;
  const drain = (): Promise<number> => (drained ??= sidecar.drain());
  onTestFinished(async () => {
    await drain();
    await Promise.all([api[Symbol.asyncDispose](), tokens[Symbol.asyncDispose]()]);
    const messages = warnings.stop();
    if (messages.length > 0) throw new Error(`the process was warned: ${messages.join('; ')}`);
  });
  const readStatus = async () => (await (await fetch(`${sidecar.adminUrl}/status`)).json()) as Status;
  const eventsOf = <K extends RecordedEvent['kind']>(kind: K): RecordedEventOf<K>[] =>
    events.filter((event): event is RecordedEventOf<K> => event.kind === kind);
  return {
    url: sidecar.proxyUrl,
    sidecar: { ...sidecar, drain },
    api,
    tokens,
    events,
    eventsOf,
    async requestRecords(count) {
      await waitUntil(() => eventsOf('request-ended').length >= count, `${String(count)} requests have ended`);
      return eventsOf('request-ended');
    },
    async metric(sample) {
      const text = await (await fetch(`${sidecar.adminUrl}/metrics`)).text();
      const line = text.split('\n').find((candidate) => candidate.startsWith(`${sample} `));
      if (line === undefined) throw new Error(`no sample ${sample}`);
      return Number(line.slice(sample.length + 1));
    },
    async throttle() {
      const { queued, inFlight, streams } = (await readStatus()).throttle;
      return { queued, inFlight, streams };
    },
    async listener() {
      const { connections, requests } = (await readStatus()).listener;
      return { connections, requests };
    },
  };
}

const AT_ONCE = { drainMs: 0, delayMs: 0 };

/** What a test waits for until it is opened, such as a response that is held back. */
export function createLatch(): { readonly opened: Promise<void>; readonly open: () => void } {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  return { opened: promise, open: () => resolve(undefined) };
}

/** Node warns of leaked listeners, and of promises handled too late. */
function watchWarnings(): { stop: () => string[] } {
  const messages: string[] = [];
  const onWarning = ({ message }: Error): void => void messages.push(message);
  process.on('warning', onWarning);
  return {
    stop: () => {
      process.off('warning', onWarning);
      return messages;
    },
  };
}
