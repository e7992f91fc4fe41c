/** A sidecar as the verdict sees it, in played seconds: counters, states, attempts in flight, last faults. */
import type { PendingAttempt } from '../../../src/exchange/exchange.ts';
import { PastSuccesses } from '../../../src/admin/history/past-successes.ts';
import type { LastFault } from '../../../src/admin/status/states.ts';
import type { VerdictInputs } from '../../../src/admin/verdict/symptoms.ts';
import { evaluateVerdict, type Verdict } from '../../../src/admin/verdict/verdict.ts';
import type { FaultCause, ForeignCause } from '../../../src/telemetry/events.ts';
import { PlayedSamples } from '../samples/played-samples.ts';
import { unpaced, validToken } from '../states.ts';

const WALL = Date.UTC(2026, 10, 1);

export interface PlayedCall {
  readonly route?: string;
  readonly upstreamMs?: number;
  readonly queuedMs?: number;
}

export class PlayedVerdict {
  readonly played = new PlayedSamples();
  readonly faults: LastFault[] = [];
  states: Partial<VerdictInputs> = {};
  pending: PendingAttempt[] = [];
  readonly successes = new PastSuccesses(this.played, { wallNow: () => this.wallNow });

  get wallNow(): number {
    return WALL + this.played.now;
  }

  with(states: Partial<VerdictInputs>): this {
    this.states = states;
    return this;
  }

  /** Requests that end with a status of the upstream. */
  respond(code: number, times = 1, { route = 'default', upstreamMs = 40, queuedMs = 0 }: PlayedCall = {}): this {
    const outcome = code === 401 ? 'unauthorized' : code === 429 ? 'rate_limited' : code >= 400 ? 'error_status' : 'ok';
    this.played
      .count('requests_total', { route, method: 'GET', code: String(code), source: 'upstream' }, times)
      .observe('request_duration_seconds', upstreamMs + queuedMs, { route }, times);
    if (code === 429) this.played.count('rate_limited_total', { route }, times);
    return this.attempt(outcome, times, { route, upstreamMs, queuedMs });
  }

  /** Requests that get a response with status 200 that is none of the API. */
  respondForeign(times = 1, call: PlayedCall & { readonly cause?: ForeignCause } = {}): this {
    const { route = 'default', cause = 'foreign_network' } = call;
    this.faults.push({ route, cause, detail: '200 with text/html instead of JSON', wallAt: this.wallNow });
    this.played.count('foreign_responses_total', { route }, times);
    return this.respond(200, times, call);
  }

  attempt(outcome: string, times = 1, { route = 'default', upstreamMs = 40, queuedMs = 0 }: PlayedCall = {}): this {
    this.played
      .count('upstream_attempts_total', { route, outcome }, times)
      .observe('upstream_duration_seconds', upstreamMs, { route, outcome }, times)
      .count('permits_total', { route }, times)
      .observe('queue_wait_seconds', queuedMs, { route }, times);
    return this;
  }

  /** Requests whose client leaves during an attempt. */
  leave(times: number, call: PlayedCall): this {
    const labels = { route: call.route ?? 'default', method: 'GET', code: '499', source: 'sidecar' };
    this.played.count('requests_total', labels, times);
    return this.attempt('client_left', times, call);
  }

  /** Requests that the sidecar replies to itself. */
  reply(
    code: string,
    times = 1,
    route = 'default',
    status = code.startsWith('UPSTREAM') ? 502 : 503,
    method = 'GET',
  ): this {
    this.played
      .count('requests_total', { route, method, code: String(status), source: 'sidecar' }, times)
      .count('local_replies_total', { route, code }, times);
    return this;
  }

  /** Requests whose attempt fails. */
  fail(cause: FaultCause, times = 1, route = 'default', upstreamMs = 5, method = 'GET'): this {
    const [outcome, code] = cause.startsWith('reset') ? ['reset', 'RESET'] : ['unreachable', 'UNREACHABLE'];
    const detail = `the upstream cannot be reached: ${cause} in its own words`;
    this.faults.push({ route, cause, detail, wallAt: this.wallNow });
    this.played.count('upstream_faults_total', { route, cause }, times);
    return this.attempt(outcome, times, { route, upstreamMs }).reply(`UPSTREAM_${code}`, times, route, 502, method);
  }

  reject(reason: string, times = 1, route = 'default'): this {
    this.played.count('queue_rejected_total', { route, reason }, times);
    if (reason === 'client_left') {
      this.played.count('requests_total', { route, method: 'GET', code: '499', source: 'sidecar' }, times);
      return this;
    }
    return this.reply(reason === 'full' ? 'QUEUE_FULL' : 'QUEUE_TIMEOUT', times, route);
  }

  /** Attempts in flight that have begun so long ago. */
  hold(count: number, ageMs: number, wasSent = true, route = 'default'): this {
    const startedAt = this.played.now - ageMs;
    this.pending = Array.from({ length: count }, () => ({ route, startedAt, wasSent }));
    return this;
  }

  play(seconds: number, each: (scene: this, second: number) => void = () => undefined): this {
    this.played.play(seconds, (_, second) => {
      this.successes.sample();
      each(this, second);
    });
    this.successes.sample();
    return this;
  }

  get verdict(): Verdict {
    return evaluateVerdict({
      ...{ samples: this.played.samples, wallNow: this.wallNow, uptimeMs: this.played.now, draining: false },
      ...{ tokens: [validToken], throttles: [unpaced], pending: this.pending, faults: this.faults, alerts: [] },
      ...{ version: '1.2.3', settings: undefined },
      successes: this.successes,
      ...this.states,
    });
  }
}
