/** What the alert expressions count, read from the samples (pure). active-alerts.ts compares the sums with the thresholds. */
import type { Samples, Selector } from '../samples/samples.ts';
import { quotePattern } from '../samples/selector.ts';

const NO_RESPONSE = 'unreachable|reset|timeout';
const COUNTERS = {
  requests: ['requests_total', {}],
  failed: ['requests_total', { code: '401|429|5..' }],
  upstreamErrors: ['requests_total', { code: '5..', source: 'upstream' }],
  permits: ['permits_total', {}],
  rateLimited: ['rate_limited_total', {}],
  shed: ['queue_rejected_total', { reason: 'full|timeout|expected_wait' }],
  cut: ['responses_cut_total', { by: 'upstream' }],
  scopeRefusals: ['insufficient_scope_total', {}],
  rejections: ['token_requests_total', { outcome: 'rejected' }],
  rotationFailures: ['credential_rotation_failures_total', {}],
  attempts: ['upstream_attempts_total', {}],
  unauthorized: ['upstream_attempts_total', { outcome: 'unauthorized' }],
  withoutResponse: ['upstream_attempts_total', { outcome: NO_RESPONSE }],
  upstreamFaults: ['upstream_faults_total', {}],
  retriesRefused: ['retry_budget_exhausted_total', {}],
  reloadsFailed: ['config_reloads_total', { outcome: 'refused|invalid' }],
} as const satisfies Record<string, readonly [string, Selector]>;

export type RouteCounter = keyof typeof COUNTERS;
export type CredentialCounter = 'rejections' | 'rotationFailures';
export type ProcessCounter = RouteCounter;

export class AlertCounters {
  readonly samples: Samples;

  constructor(samples: Samples) {
    this.samples = samples;
  }

  countRoute(counter: RouteCounter, route: string, windowMs: number): number {
    const [metric, selector] = COUNTERS[counter];
    return this.samples.increase(metric, windowMs, { ...selector, route: quotePattern(route) });
  }

  countCredential(counter: CredentialCounter, credential: string, windowMs: number): number {
    const [metric, selector] = COUNTERS[counter];
    return this.samples.increase(metric, windowMs, { ...selector, credential: quotePattern(credential) });
  }

  countProcess(counter: ProcessCounter, windowMs: number): number {
    const [metric, selector] = COUNTERS[counter];
    return this.samples.increase(metric, windowMs, selector);
  }

  tokenAgeMs(credential: string): number {
    const at = this.samples.lastGrowthAt('token_requests_total', { credential, outcome: 'ok' });
    return at === undefined ? 0 : this.samples.now - at;
  }
}
