/**
 * A sidecar in this process, between a token endpoint and an upstream that do as they are told, with every event it
 * told at hand. Without a clock of the test's own it keeps real time; backoffs take none, since chance is always 0.
 */
import { onTestFinished } from 'vitest';
import type { Clock } from '../../src/platform/clock.ts';
import { loadConfig } from '../../src/config/load/load.ts';
import { formatProblems } from '../../src/config/load/problems.ts';
import { startSidecar } from '../../src/sidecar/sidecar.ts';
import type { Sidecar } from '../../src/sidecar/sidecar.ts';
import type { RequestEvent, SidecarEvent } from '../../src/telemetry/events.ts';
import { startRecordingUpstream } from '../support/recording-upstream.ts';
import type { RespondTo, RecordingUpstream } from '../support/recording-upstream.ts';
import { newCredential } from '../support/secrets.ts';
import { waitUntil } from '../support/until.ts';

export { waitUntil as until };

export interface InProcessOptions {
  /** How the API answers. Default: echo. */
  readonly answer?: RespondTo;
  /** Another upstream in the API's stead. */
  readonly apiUrl?: string;
  /** How the token endpoint answers. Default: `giveToken`. */
  readonly tokenAnswer?: RespondTo;
  readonly env?: Readonly<Record<string, string>>;
  readonly clock?: Clock;
  /** Default true. */
  readonly keepsEvents?: boolean;
  /** A configuration file, which `reload` reads again. Default: none. */
  readonly file?: string;
}

type EventOf<K extends SidecarEvent['kind']> = Extract<SidecarEvent, { kind: K }>;

export interface InProcess {
  /** Where applications call. */
  readonly url: string;
  readonly sidecar: Sidecar;
  readonly api: RecordingUpstream;
  readonly tokens: RecordingUpstream;
  /** Every event, in order. */
  readonly events: readonly SidecarEvent[];
  told<K extends SidecarEvent['kind']>(kind: K): EventOf<K>[];
  /** Ends of requests, after `count` of them have been told; fails when they do not come. */
  endings(count: number): Promise<RequestEvent[]>;
  /** The value of one sample of the admin port's `/metrics`, by its exact name and labels. */
  metric(sample: string): Promise<number>;
  /** What the admin port tells of the throttle. */
  throttle(): Promise<Status['throttle']>;
}

/** Of `/status`, what these tests look at. */
export interface Status {
  readonly throttle: { readonly queued: number; readonly inFlight: number; readonly streams: number };
}

/** Nothing waits, nothing is under way. */
export const IDLE = { queued: 0, inFlight: 0, streams: 0 };

const UNTHROTTLED = { SIDECAR_RATE: '100000', SIDECAR_BURST: '10000' };

/** A token with an `expires_in` of an hour; its value tells which it is: `token-1-…`, `token-2-…`. */
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
  const tokens = await startRecordingUpstream(options.tokenAnswer ?? giveToken);
  const api = await startRecordingUpstream(options.answer);
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
  const events: SidecarEvent[] = [];
  const sidecar = await startSidecar({
    config: { ...loaded.config, shutdown: options.env?.SIDECAR_DRAIN_MS ? loaded.config.shutdown : AT_ONCE },
    version: '0.0.0',
    observe: (event) => {
      if (options.keepsEvents !== false) events.push(event);
    },
    logLinesDropped: () => 0,
    source: { loaded, load: options.file === undefined ? undefined : load, setLogLevel: () => undefined },
    random: () => 0,
    ...(options.clock === undefined ? {} : { clock: options.clock }),
  });
  const warnings = watchWarnings();
  let drained: Promise<number> | undefined;
  const drain = (): Promise<number> => (drained ??= sidecar.drain());
  onTestFinished(async () => {
    await drain();
    await Promise.all([api[Symbol.asyncDispose](), tokens[Symbol.asyncDispose]()]);
    const said = warnings.stop();
    if (said.length > 0) throw new Error(`the process was warned: ${said.join('; ')}`);
  });
  const told = <K extends SidecarEvent['kind']>(kind: K): EventOf<K>[] =>
    events.filter((event): event is EventOf<K> => event.kind === kind);
  return {
    url: sidecar.proxyUrl,
    sidecar: { ...sidecar, drain },
    api,
    tokens,
    events,
    told,
    async endings(count) {
      await waitUntil(() => told('request-ended').length >= count, `${String(count)} requests told of`);
      return told('request-ended');
    },
    async metric(sample) {
      const text = await (await fetch(`${sidecar.adminUrl}/metrics`)).text();
      const line = text.split('\n').find((candidate) => candidate.startsWith(`${sample} `));
      if (line === undefined) throw new Error(`no sample ${sample}`);
      return Number(line.slice(sample.length + 1));
    },
    async throttle() {
      const { throttle } = (await (await fetch(`${sidecar.adminUrl}/status`)).json()) as Status;
      return { queued: throttle.queued, inFlight: throttle.inFlight, streams: throttle.streams };
    },
  };
}

const AT_ONCE = { drainMs: 0, delayMs: 0 };

/** A door that stays shut until it is opened: for answers that have to wait. */
export function gate(): { readonly opened: Promise<void>; readonly open: () => void } {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  return { opened: promise, open: () => resolve(undefined) };
}

/** Node warns of leaked listeners, and of promises handled too late. */
function watchWarnings(): { stop: () => string[] } {
  const said: string[] = [];
  const hear = ({ message }: Error): void => void said.push(message);
  process.on('warning', hear);
  return {
    stop: () => {
      process.off('warning', hear);
      return said;
    },
  };
}
