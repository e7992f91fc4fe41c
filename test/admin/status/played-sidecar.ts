/**
 * The parts of a sidecar that have a state to show, joined as composition/ joins them, on a manual clock: throttles, some of them in a fleet,
 * token sources, recorded activity, metrics. A test plays what upstream, token endpoint, operator and fleet do.
 */
import { createAdminHandler } from '../../../src/admin/server.ts';
import { createActivity } from '../../../src/admin/history/activity.ts';
import { Sampler } from '../../../src/admin/samples/sampler.ts';
import type { AdminHandler } from '../../../src/admin/admin-server.ts';
import type { ConfigurationState } from '../../../src/admin/status/states.ts';
import { ResponseClassifier } from '../../../src/exchange/response-classifier.ts';
import { FleetMember } from '../../../src/fleet/shared-quota/fleet-member.ts';
import type {
  PublishedLimit,
  QuotaListener,
  QuotaRequest,
  QuotaStore,
} from '../../../src/fleet/shared-quota/quota-store.ts';
import { parseReply } from '../../../src/fleet/shared-quota/redis-quota-store.ts';
import { ConnectionHealth } from '../../../src/fleet/redis/connection-health.ts';
import { RedisFault } from '../../../src/fleet/redis/redis-fault.ts';
import { createMetrics } from '../../../src/telemetry/metrics/metrics.ts';
import type { DeclaredLimit } from '../../../src/throttle/declared/declared-limit.ts';
import { createThrottle } from '../../../src/throttle/queue/queueing-throttle.ts';
import type { Permit, Throttle, ThrottleState, ThrottleTerms } from '../../../src/throttle/throttle.ts';
import { HeldTokenSource } from '../../../src/token/source/token-source.ts';
import type { TokenRequestResult } from '../../../src/token/endpoint/token-response.ts';
import type { TokenSource, TokenState } from '../../../src/token/token.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { createPermitRecorder, report } from '../../support/recorded-events.ts';
import type { RecordedEvent } from '../../support/recorded-events.ts';
import { eachSecondOf } from '../view.ts';

/** What the upstream does with one attempt. */
export type PlayedResponse =
  | { readonly status: number; readonly headers: Readonly<Record<string, string>> }
  | { readonly status: 'reset' };

export interface PlayedSetup {
  readonly wallStartMs: number;
  /** One throttle each, four at most; a fleet's quota is shared for each of them. */
  readonly routes: readonly (number | 'auto')[];
  readonly credentials: number;
  readonly isFleet: boolean;
  readonly maxPauseMs: number;
  /** Of each throttle. Default: none. */
  readonly limits?: readonly DeclaredLimit[];
  /** What an earlier process had learned. */
  readonly snapshot: unknown;
}

/** What the store of the fleet says; texts as the script returns them, instants in milliseconds from now. */
export interface PlayedReply {
  readonly leads: boolean;
  readonly epoch: number;
  readonly isPaused: boolean;
  readonly pausedForMs: number;
  readonly rate: string;
  readonly replicas: number;
  readonly permitsInMs: readonly number[];
  readonly model: string;
  readonly isTentative?: boolean;
}

const QUEUE = { max: 5, timeoutMs: 30_000 };
const LATENCY_MS = 40;
const REPLY_MS = 20;
const NAMES = ['default', 'second', 'third', 'fourth'];

/** Of the sidecar that was created last; their registry measures the process, so that one has to do for all. */
let current: { throttles: () => ThrottleState[]; tokens: () => TokenState[] } | undefined;
const metrics = createMetrics({
  ...{ routes: NAMES, credentials: NAMES },
  readStates: () => ({
    ...{ version: '1.2.3', tokens: current?.tokens() ?? [], throttles: current?.throttles() ?? [], fleet: undefined },
  }),
});

export class PlayedSidecar {
  readonly clock: ManualClock;
  readonly handler: AdminHandler;
  readonly events: RecordedEvent[] = [];
  readonly faults: string[] = [];
  readonly #routes: readonly PlayedRoute[];
  readonly #credentials: readonly PlayedCredential[];
  readonly #fleet: ConnectionHealth | undefined;
  readonly #observe: (event: RecordedEvent) => void;
  #configuration: ConfigurationState;
  #isDraining = false;

  constructor(setup: PlayedSetup) {
    const clock = (this.clock = new ManualClock(setup.wallStartMs));
    const observers: ((event: RecordedEvent) => void)[] = [(event) => this.events.push(event)];
    this.#observe = (event) => observers.forEach((observe) => observe(event));
    const observe = this.#observe;
    this.#configuration = { loadedWallAt: clock.wallNow(), isReloadable: true, lastReload: undefined };
    this.#fleet = setup.isFleet ? new ConnectionHealth({ clock, observe, timeoutMs: 100 }) : undefined;
    this.#routes = setup.routes.map((rate, index) => new PlayedRoute(NAMES[index] ?? '', rate, setup, clock, observe));
    this.#credentials = Array.from(
      { length: setup.credentials },
      (_, index) => new PlayedCredential(NAMES[index] ?? '', clock, observe),
    );
    const throttles = () => this.#routes.map(({ throttle }) => throttle.state());
    const tokens = () => this.#credentials.map(({ source }) => source.state());
    current = { throttles, tokens };
    const activity = createActivity(clock);
    const { counters, durations, bounds } = metrics.series;
    const source = { counters, durations, bounds, gauges: metrics.readGauges };
    const sampler = new Sampler({ clock, source, routes: NAMES.length, runEverySecond: eachSecondOf(clock) });
    const recorders = { requests: [activity.recordRequest] };
    observers.push((event) => report(event, { ...metrics, observe: activity.observe, recorders }));
    observers.push((event) => report(event, { observe: metrics.observe }));
    this.handler = createAdminHandler({
      ...{ version: '1.2.3', allowedHosts: [], exposeAll: false, isOnSocketFile: false },
      ...{ tokens, throttles, activity, sampler, metrics, clock, pendingAttempts: () => [] },
      ...{ logTrouble: () => undefined, onNotReady: () => undefined },
      listener: () => ({ connections: 1, connectionsLimit: 10_000, requests: 0, requestsLimit: Infinity }),
      fleet: () => this.#fleet?.state(),
      configuration: () => this.#configuration,
      settings: () => [],
      draining: () => this.#isDraining,
      onFault: (reason) => this.faults.push(reason),
    });
    sampler.start();
    for (const { source } of this.#credentials) source.start();
  }

  /** A client sends a request; the response comes when the clock moves. */
  call(route: number, response: PlayedResponse): void {
    const played = this.#routes[route % this.#routes.length];
    played?.call(response, this.#credentials[route % this.#credentials.length]?.source);
  }

  /** What the token endpoint responds from now on. */
  setTokenResult(credential: number, result: TokenRequestResult): void {
    const played = this.#credentials[credential % this.#credentials.length];
    if (played !== undefined) played.result = result;
    played?.source.requestIfMissing();
  }

  reconfigure(route: number, rate: number | 'auto'): void {
    this.#routes[route % this.#routes.length]?.reconfigure(rate);
  }

  reload(outcome: 'ok' | 'refused' | 'invalid'): void {
    const wallAt = this.clock.wallNow();
    const lines = outcome === 'ok' ? [] : ['throttle.rate: expected auto or a number'];
    const loadedWallAt = outcome === 'ok' ? wallAt : this.#configuration.loadedWallAt;
    this.#configuration = { loadedWallAt, isReloadable: true, lastReload: { wallAt, outcome, lines } };
    this.#observe({ kind: 'configuration-read', outcome, lines });
  }

  drain(): void {
    this.#isDraining = true;
    this.#observe({ kind: 'draining', inFlight: 0, queued: 0, drainMs: 25_000 });
    for (const { throttle } of this.#routes) throttle.shutDown();
  }

  connectFleet(reply: PlayedReply): void {
    this.#fleet?.recordConnected();
    for (const route of this.#routes) route.connect(reply);
  }

  disconnectFleet(isDegraded: boolean): void {
    if (isDegraded) this.#fleet?.recordDegraded({ late: 9, commands: 10, medianLateMs: undefined });
    else this.#fleet?.recordDisconnected(new RedisFault('closed the connection'));
    for (const route of this.#routes) route.disconnect();
  }
}

class PlayedRoute {
  readonly name: string;
  readonly throttle: Throttle;
  readonly #clock: ManualClock;
  readonly #observe: (event: RecordedEvent) => void;
  readonly #classifier: ResponseClassifier;
  readonly #store: PlayedStore | undefined;
  readonly #terms: (rate: number | 'auto') => ThrottleTerms;

  constructor(
    name: string,
    rate: number | 'auto',
    { isFleet, maxPauseMs, limits, snapshot }: PlayedSetup,
    clock: ManualClock,
    observe: (event: RecordedEvent) => void,
  ) {
    this.name = name;
    this.#clock = clock;
    this.#observe = observe;
    this.#classifier = new ResponseClassifier({ route: name, replicas: 1, clock, observe });
    this.#terms = (one) => ({
      throttle: { rate: one, burst: 1, maxInFlight: 8, maxStreams: 4, maxPauseMs, limits },
      queue: QUEUE,
    });
    const terms = this.#terms(rate);
    this.#store = isFleet ? new PlayedStore(clock) : undefined;
    const fleet = this.#store && new FleetMember({ store: this.#store, id: 'own', settings: terms.throttle, clock });
    const restored =
      snapshot === undefined ? undefined : { version: 1 as const, wallAt: clock.wallNow(), governor: snapshot };
    const recordPermit = createPermitRecorder(observe, name);
    this.throttle = createThrottle({
      route: name,
      ...terms,
      fleet,
      restored,
      clock,
      random: () => 0.5,
      observe,
      recordPermit,
    });
  }

  call(response: PlayedResponse, tokens: TokenSource | undefined): void {
    const { throttle } = this;
    const startedAt = this.#clock.now();
    const fail = (): void => this.#end(503, 'sidecar', startedAt);
    try {
      const ticket = throttle.enter(startedAt + 60_000, undefined, false);
      ticket.waitForPermit().then((permit) => {
        permit.markSent();
        this.#clock.after(LATENCY_MS, () => {
          this.#respond(permit, response, tokens, startedAt);
          ticket.leave();
        });
      }, fail);
    } catch {
      fail();
    }
  }

  reconfigure(rate: number | 'auto'): void {
    this.throttle.reconfigure(this.#terms(rate));
  }

  connect(reply: PlayedReply): void {
    this.#store?.connect(reply);
  }

  disconnect(): void {
    this.#store?.disconnect();
  }

  #respond(permit: Permit, response: PlayedResponse, tokens: TokenSource | undefined, startedAt: number): void {
    const { name: route } = this;
    const durationMs = this.#clock.now() - permit.grantedAt;
    if (response.status === 'reset') {
      permit.release();
      this.#observe({ kind: 'attempt-ended', route, outcome: 'reset', durationMs, isOwn: false });
      this.#observe({ kind: 'attempt-failed', route, outcome: 'reset', cause: 'reset_after_sent', detail: 'reset' });
      this.#end(502, 'sidecar', startedAt);
      return;
    }
    const { status } = response;
    const headers = Object.entries(response.headers).flat();
    const classified = this.#classifier.classify({ status, statusText: '', headers });
    permit.report(classified.permitReport);
    permit.release();
    const use = tokens?.current({ arrivedAt: startedAt });
    if (use !== undefined && status === 401) tokens?.recordRejected(use);
    else if (use !== undefined) tokens?.recordAccepted(use, false);
    const outcome = classified.isRateLimited ? 'rate_limited' : status < 400 ? 'ok' : 'error_status';
    this.#observe({ kind: 'attempt-ended', route, outcome, durationMs, isOwn: false });
    this.#end(status, 'upstream', startedAt);
  }

  #end(code: number, source: 'upstream' | 'sidecar', startedAt: number): void {
    const durationMs = this.#clock.now() - startedAt;
    this.#observe({
      ...{ kind: 'request-ended', route: this.name, method: 'GET', path: '/', code, source, durationMs },
      ...{ queuedMs: 0, attempts: 1, requestBytes: 0, responseBytes: 0 },
    });
  }
}

class PlayedCredential {
  readonly name: string;
  readonly source: TokenSource;
  result: TokenRequestResult = { kind: 'unavailable', detail: 'connect to auth.internal refused' };

  constructor(name: string, clock: ManualClock, observe: (event: RecordedEvent) => void) {
    this.name = name;
    this.source = new HeldTokenSource({
      ...{ credential: name, scope: 'quotes.write policies.write', invalidationCooldownMs: 5000, settleMs: 2000 },
      fetcher: { fetch: () => Promise.resolve(this.result) },
      credentialWatch: undefined,
      ...{ clock, random: () => 0.5, observe },
    });
  }
}

/** Replies with what is played and what its leader has published, in the texts of the script; its clock is a minute ahead. */
class PlayedStore implements QuotaStore {
  readonly #clock: ManualClock;
  #listener: QuotaListener | undefined;
  #reply: PlayedReply | undefined;

  constructor(clock: ManualClock) {
    this.#clock = clock;
  }

  async exchange({ published }: QuotaRequest) {
    await new Promise<void>((resolve) => void this.#clock.after(REPLY_MS, resolve));
    if (this.#reply === undefined) return undefined;
    if (published !== undefined) this.#reply = applyPublication(this.#reply, published);
    const {
      leads,
      epoch,
      isPaused,
      pausedForMs,
      rate,
      replicas,
      permitsInMs,
      model,
      isTentative = false,
    } = this.#reply;
    const now = this.#clock.now() + 60_000;
    return parseReply([
      ...[String(now), leads ? '1' : '0', String(epoch), isPaused ? '1' : '0', String(now + pausedForMs), rate, '1'],
      ...[String(replicas), '0', String(now), '100', permitsInMs.join(' '), '', '1', model, '3000'],
      isTentative ? '1' : '0',
    ]);
  }

  listen(listener: QuotaListener): void {
    this.#listener = listener;
  }

  connect(reply: PlayedReply): void {
    this.#reply = reply;
    this.#listener?.onConnected();
  }

  disconnect(): void {
    this.#reply = undefined;
    this.#listener?.onDisconnected();
  }
}

function applyPublication(reply: PlayedReply, { rate, isTentative, epoch, model }: PublishedLimit): PlayedReply {
  const isPaused = reply.isPaused && epoch !== reply.epoch;
  return { ...reply, rate: String(Number.isFinite(rate) ? rate : 0), isTentative, isPaused, model };
}
