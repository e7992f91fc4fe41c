/** What operators see of refusals: the last ones, those that are assumed, and the events. */
import type { Clock } from '../../platform/clock.ts';
import type { EventObserver, LimitScope, SuspectStatus } from '../../telemetry/events.ts';
import type { AssumedRefusal } from '../pacing/assumed-refusals.ts';
import type { Governor } from '../pacing/governor.ts';
import type { RefusalRule } from '../refusal-rule.ts';
import type { RateLimitReport, RecentSignal } from '../throttle.ts';

const MAX_RECENT_SIGNALS = 20;
const ASSUMED_REPORT_INTERVAL_MS = 86_400_000;

export class RefusalReports {
  recentSignals: readonly RecentSignal[] = [];
  readonly #clock: Clock;
  readonly #route: string;
  readonly #observe: EventObserver;
  readonly #governor: Governor;
  readonly #configured: () => readonly RefusalRule[];
  /** By status, monotonic. */
  readonly #assumedReportedAt = new Map<SuspectStatus, number>();

  /** @param configured `throttle.refusals` */
  constructor(
    { clock, route, observe }: { readonly clock: Clock; readonly route: string; readonly observe: EventObserver },
    governor: Governor,
    configured: () => readonly RefusalRule[],
  ) {
    this.#clock = clock;
    this.#route = route;
    this.#observe = observe;
    this.#governor = governor;
    this.#configured = configured;
  }

  recordRefused({ signal, fields = {} }: RateLimitReport, lengthMs: number, stated: boolean, scope: LimitScope): void {
    const { status } = signal;
    // Whole ones: the decimals of a wait are the upstream's text, which may hold digits of the token.
    const pauseMs = Math.ceil(lengthMs);
    const recent: RecentSignal = { wallAt: this.#clock.wallNow(), status, pauseMs, stated, fields };
    this.recentSignals = [recent, ...this.recentSignals.slice(0, MAX_RECENT_SIGNALS - 1)];
    this.#observe({ kind: 'rate-limited', route: this.#route, scope, status, pauseMs, stated, fields });
  }

  /** @param isAssumed calls are paced by it */
  recordSuspect(status: SuspectStatus, isAssumed: boolean): void {
    const route = this.#route;
    this.#observe({ kind: 'unconfigured-refusal', route, status });
    if (!isAssumed) return;
    this.#observe({ kind: 'assumed-refusal', route });
    const now = this.#clock.now();
    if (now - (this.#assumedReportedAt.get(status) ?? -Infinity) < ASSUMED_REPORT_INTERVAL_MS) return;
    this.#assumedReportedAt.set(status, now);
    const assumed = this.listAssumed(now).find((one) => one.status === status);
    if (assumed !== undefined)
      this.#observe({ kind: 'limit-assumed', route, status, setting: assumed.setting, variable: assumed.variable });
  }

  listAssumed(now: number): readonly AssumedRefusal[] {
    const { isAssumed, assumedRefusals } = this.#governor;
    const wallAt = (at: number): number => this.#clock.wallNow() - (now - at);
    return isAssumed ? assumedRefusals.list(this.#configured(), wallAt) : [];
  }
}
