/** An API of several nodes that learn of a new token one after the other, and calls as the exchange makes them, in virtual time. */
import type { Token } from '../../../src/token/token.ts';
import { SourceHarness } from './source-harness.ts';

export interface ApiSetup {
  /** Of each node, from the issue of a token until the node accepts it, milliseconds; Infinity: never. Calls go round robin. */
  readonly nodeDelaysMs?: readonly number[];
  /** The authorization server revokes the previous token when it issues one. */
  readonly revokesOnIssue?: boolean;
  /** The time of a call to the API and back, milliseconds. */
  readonly latencyMs?: number;
  readonly lifetimeMs?: number;
  /** 0: a renewal at 65 % of a short lifetime; just below 1: at 75 %. */
  readonly random?: number;
}

export interface CallOptions {
  /** False: the body cannot be sent again. */
  readonly canReplay?: boolean;
  /** True: the API refuses the call with every token. */
  readonly isForbidden?: boolean;
}

export interface ApiCall {
  readonly sent: { readonly token: Token; readonly at: number; readonly status: 200 | 401 }[];
  readonly startedAt: number;
  readonly canReplay: boolean;
  readonly isForbidden: boolean;
  /** As the client sees it; undefined while the call lasts. */
  status: 200 | 401 | undefined;
  endedAt: number;
}

const never = new AbortController().signal;

export class ReplicatedApi {
  readonly harness: SourceHarness;
  readonly calls: ApiCall[] = [];
  readonly latencyMs: number;
  readonly #nodeDelaysMs: readonly number[];
  readonly #revokesOnIssue: boolean;
  /** Replaces the rule of the nodes for a token. */
  delayOf: (token: Token) => number | undefined = () => undefined;
  #nextNode = 0;

  constructor({ nodeDelaysMs = [0], revokesOnIssue = false, latencyMs = 50, lifetimeMs, random }: ApiSetup) {
    this.harness = new SourceHarness({
      lifetimeMs: lifetimeMs ?? 3_600_000,
      random: random ?? 0.5,
    });
    this.latencyMs = latencyMs;
    this.#nodeDelaysMs = nodeDelaysMs;
    this.#revokesOnIssue = revokesOnIssue;
  }

  /** A process whose first token every node accepts already. */
  static async warm(setup: ApiSetup): Promise<ReplicatedApi> {
    const api = new ReplicatedApi(setup);
    api.delayOf = ({ serial }) => (serial === 1 ? 0 : undefined);
    api.harness.source.start();
    await api.harness.clock.advance(api.harness.latencyMs);
    api.start();
    await api.harness.clock.advance(1_000);
    return api;
  }

  /** One call: waits for a token, is sent, and is replayed at most once. */
  start({ canReplay = true, isForbidden = false }: CallOptions = {}): ApiCall {
    const startedAt = this.harness.clock.now();
    const call: ApiCall = { sent: [], startedAt, canReplay, isForbidden, status: undefined, endedAt: NaN };
    this.calls.push(call);
    void this.#attempt(call, false).then((status) => {
      call.status = status;
      call.endedAt = this.harness.clock.now();
    });
    return call;
  }

  /** Calls at a steady rate, of which each `everyNth` cannot be sent again; resolves when they have ended. */
  async load(forMs: number, everyMs: number, everyNth = Infinity): Promise<ApiCall[]> {
    const calls: ApiCall[] = [];
    for (let elapsed = 0; elapsed < forMs; elapsed += everyMs) {
      calls.push(this.start({ canReplay: calls.length % everyNth !== everyNth - 1 }));
      await this.harness.clock.advance(everyMs);
    }
    await this.harness.clock.advance(10_000);
    return calls;
  }

  /** A load that skips the time in which nothing changes; a renewal is in the middle of each minute of load. */
  async loadAroundRenewals(renewals: number, everyMs: number, everyNth = Infinity): Promise<ApiCall[]> {
    const { source, clock } = this.harness;
    const calls: ApiCall[] = [];
    for (let n = 0; n < renewals; n++) {
      const dueInMs = source.state().nextRequestInMs ?? 0;
      await clock.advance(Math.max(0, dueInMs - 2_000));
      calls.push(...(await this.load(Math.min(40_000, this.harness.lifetimeMs * 0.5), everyMs, everyNth)));
    }
    return calls;
  }

  async #attempt(call: ApiCall, isReplay: boolean): Promise<200 | 401> {
    const { source } = this.harness;
    const facts = { arrivedAt: call.startedAt, canReplay: call.canReplay && !isReplay };
    let use = source.current(facts);
    while (use === undefined) {
      await source.waitForToken(never, facts);
      use = source.current(facts);
    }
    await this.#sleep(this.latencyMs / 2);
    const { token } = use;
    const status = this.#accepts(token) && !call.isForbidden ? 200 : 401;
    call.sent.push({ token, at: this.harness.clock.now(), status });
    await this.#sleep(this.latencyMs / 2);
    if (status === 200) source.recordAccepted(use, isReplay);
    else source.recordRejected(use);
    if (status === 200 || isReplay || !call.canReplay || !(await source.waitForReplacement(use, never))) return status;
    return this.#attempt(call, true);
  }

  #accepts(token: Token): boolean {
    const { clock, requests } = this.harness;
    const node = this.#nextNode++ % this.#nodeDelaysMs.length;
    if (this.#revokesOnIssue && token.value !== `token-${String(requests)}`) return false;
    return clock.now() - token.obtainedAt >= (this.delayOf(token) ?? this.#nodeDelaysMs[node] ?? 0);
  }

  #sleep(ms: number): Promise<void> {
    return new Promise((resolve) => void this.harness.clock.after(ms, resolve));
  }
}

/** The calls whose clients saw a 401. */
export function seen401s(calls: readonly ApiCall[]): ApiCall[] {
  return calls.filter(({ status }) => status !== 200);
}
