/** What operators see of refusals: the last ones, those that are assumed, and the events. */
import type { LimitScope, SuspectStatus } from '../../telemetry/events.ts';
import type { AssumedRefusal } from '../pacing/assumed-refusals.ts';
import type { Governor } from '../pacing/governor.ts';
import type { RefusalRule } from '../refusal-rule.ts';
import type { RateLimitReport, RecentSignal } from '../throttle.ts';
import type { Reporting } from './shadow.ts';

const MAX_RECENT_SIGNALS = 20;
const ASSUMED_REPORT_INTERVAL_MS = 86_400_000;

export class RefusalReports {
  recentSignals: readonly RecentSignal[] = [];
  readonly #options: Reporting;
  readonly #governor: Governor;
  readonly #configured: () => readonly RefusalRule[];
  /** By status, monotonic. */
  readonly #assumedReportedAt = new Map<SuspectStatus, number>();

  /** @param configured `throttle.refusals` */
  constructor(options: Reporting, governor: Governor, configured: () => readonly RefusalRule[]) {
    this.#options = options;
    this.#governor = governor;
    this.#configured = configured;
  }

  recordRefused({ signal, fields = {} }: RateLimitReport, lengthMs: number, stated: boolean, scope: LimitScope): void {
    const { clock, route, observe } = this.#options;
    const { status } = signal;
    // Whole ones: the decimals of a wait are the upstream's text, which may hold digits of the token.
    const pauseMs = Math.ceil(lengthMs);
    const recent: RecentSignal = { wallAt: clock.wallNow(), status, pauseMs, stated, fields };
    this.recentSignals = [recent, ...this.recentSignals.slice(0, MAX_RECENT_SIGNALS - 1)];
    observe({ kind: 'rate-limited', route, scope, status, pauseMs, stated, fields });
  }

  /** @param isAssumed calls are paced by it */
  recordSuspect(status: SuspectStatus, isAssumed: boolean): void {
    const { clock, route, observe } = this.#options;
    observe({ kind: 'unconfigured-refusal', route, status });
    if (!isAssumed) return;
    observe({ kind: 'assumed-refusal', route });
    const now = clock.now();
    if (now - (this.#assumedReportedAt.get(status) ?? -Infinity) < ASSUMED_REPORT_INTERVAL_MS) return;
    this.#assumedReportedAt.set(status, now);
    const assumed = this.listAssumed(now).find((one) => one.status === status);
    if (assumed !== undefined)
      observe({ kind: 'limit-assumed', route, status, setting: assumed.setting, variable: assumed.variable });
  }

  listAssumed(now: number): readonly AssumedRefusal[] {
    const { isAssumed, assumedRefusals } = this.#governor;
    const wallAt = (at: number): number => this.#options.clock.wallNow() - (now - at);
    return isAssumed ? assumedRefusals.list(this.#configured(), wallAt) : [];
  }
}
