/**
 * Feeds the evidence with the attempts of one throttle, counts suspect responses and reports a proposal once, and again daily. It has no way
 * to delay, repeat or pace a call.
 */
import type { Clock } from '../../platform/clock.ts';
import type { EventObserver } from '../../telemetry/events.ts';
import type { RefusalRule } from '../refusal-rule.ts';
import { isSuspectStatus, RefusalEvidence, type AttemptSign } from './refusal-evidence.ts';
import { createProposal, describeProposal, type RefusalProposal } from './refusal-proposal.ts';

const REPORT_INTERVAL_MS = 86_400_000;

export interface RefusalObserverOptions {
  /** The throttle's name, for events. */
  readonly route: string;
  readonly clock: Clock;
  readonly observe: EventObserver;
  /** The rules that `throttle.refusals` has now. */
  readonly configured: () => readonly RefusalRule[];
}

export class RefusalObserver {
  /** Suspect responses have come: `start` and `end` are of use. Otherwise `recordCalm` suffices for a call that was accepted. */
  isCollecting = false;
  readonly #options: RefusalObserverOptions;
  readonly #evidence = new RefusalEvidence();
  readonly #reportedAt = new Map<number, number>();

  constructor(options: RefusalObserverOptions) {
    this.#options = options;
  }

  /**
   * An attempt is sent.
   * @param at monotonic milliseconds
   * @param isRetry the sidecar has sent the same call before
   * @returns its number for `end`
   */
  start(at: number, isRetry: boolean): number {
    return this.#evidence.start(at, isRetry);
  }

  /**
   * An attempt that was not started has been accepted.
   * @param latencyMs from the send to the response head
   */
  recordCalm(latencyMs: number): void {
    this.#evidence.recordCalm(latencyMs);
  }

  /** The head of its response has come, or it has ended without one; later calls do nothing. */
  end(attempt: number, at: number, sign: AttemptSign, method: string, path: string): void {
    this.#evidence.end(attempt, at, sign, method, path);
    this.isCollecting = this.#evidence.isCollecting;
    if (typeof sign === 'string') return;
    const { route, observe } = this.#options;
    observe({ kind: 'unconfigured-refusal', route, status: sign });
    this.#report(at);
  }

  /** The proposals of now; a status that the setting names has none. */
  proposals(): readonly RefusalProposal[] {
    const { clock } = this.#options;
    const configured = this.#options.configured();
    const [now, wallNow] = [clock.now(), clock.wallNow()];
    return this.#evidence.findings
      .filter(({ status }) => !configured.some((rule) => rule.status === status))
      .map((finding) => createProposal(finding, configured, (at) => wallNow - (now - at)));
  }

  #report(at: number): void {
    if (this.#evidence.findings.length === 0) return;
    const { route, observe } = this.#options;
    for (const proposal of this.proposals()) {
      const reportedAt = this.#reportedAt.get(proposal.status);
      if (reportedAt !== undefined && at - reportedAt < REPORT_INTERVAL_MS) continue;
      this.#reportedAt.set(proposal.status, at);
      const { status, refused, accepted, setting, variable } = proposal;
      const evidence = describeProposal(proposal);
      observe({ kind: 'refusal-proposed', route, status, refused, accepted, evidence, setting, variable });
    }
  }
}

const GATEWAY_FAULTS: readonly number[] = [502, 504];

/**
 * What a response says.
 * @param isExplained its rate limit, or its missing scope, is known by its headers or by a setting
 */
export function signOfResponse(status: number, isExplained: boolean): AttemptSign {
  if (isExplained || status === 401) return 'other';
  if (isSuspectStatus(status)) return status;
  if (GATEWAY_FAULTS.includes(status)) return 'fault';
  return status < 500 ? 'accepted' : 'other';
}
