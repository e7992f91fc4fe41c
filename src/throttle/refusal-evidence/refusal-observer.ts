/**
 * Collects the evidence that an upstream's bare 503 or 403 (a suspect response) is a rate limit that no setting names, and reports a proposal
 * once, and again daily. It has no way to delay, repeat or pace a call. The rule is in window-evidence.ts.
 */
import type { Clock } from '../../platform/clock.ts';
import { SUSPECT_STATUSES, type EventObserver, type SuspectStatus } from '../../telemetry/events.ts';
import type { RefusalRule } from '../refusal-rule.ts';
import { createProposal, describeProposal, type RefusalProposal } from './refusal-proposal.ts';
import { StatusEvidence, type AttemptSign, type ObservedAttempt, type RefusalFinding } from './status-evidence.ts';

const REPORT_INTERVAL_MS = 86_400_000;
/** Without a suspect response for so long, all evidence is dropped. */
const FORGET_AFTER_MS = 86_400_000;
/** Attempts are examined in the order in which they were sent: so long after that, most of the older ones have ended. */
const SORTED_MS = 10_000;
/** Attempts that wait for that; the oldest goes first. */
const MAX_WAITING = 4096;

export interface RefusalObserverOptions {
  /** The throttle's name, for events. */
  readonly route: string;
  readonly clock: Clock;
  readonly observe: EventObserver;
  /** The rules that `throttle.refusals` has now. */
  readonly configured: () => readonly RefusalRule[];
}

export class RefusalObserver {
  readonly #options: RefusalObserverOptions;
  readonly #byStatus = new Map<SuspectStatus, StatusEvidence>();
  /** In the order in which they were sent. */
  readonly #waiting: ObservedAttempt[] = [];
  #lastSuspectAt = 0;
  /** Of the accepted attempts before the first suspect response. */
  #shortestMs = Infinity;
  readonly #reportedAt = new Map<SuspectStatus, number>();

  constructor(options: RefusalObserverOptions) {
    this.#options = options;
  }

  /** The head of an attempt's response has come, or it has ended without one. */
  record(attempt: ObservedAttempt): void {
    const { sentAt, endedAt, sign } = attempt;
    if (typeof sign === 'string' && this.#byStatus.size === 0) {
      if (sign === 'accepted' && endedAt - sentAt < this.#shortestMs) this.#shortestMs = endedAt - sentAt;
      return;
    }
    if (typeof sign === 'string' && endedAt - this.#lastSuspectAt > FORGET_AFTER_MS) {
      this.#byStatus.clear();
      this.#waiting.length = 0;
      return;
    }
    if (typeof sign === 'number' && !this.#byStatus.has(sign))
      this.#byStatus.set(sign, new StatusEvidence(sign, this.#shortestMs));
    this.#examineInOrder(attempt);
    if (typeof sign === 'number') this.#reportSuspect(sign, endedAt);
  }

  /** One for each status that is likely a rate limit. */
  get findings(): readonly RefusalFinding[] {
    return [...this.#byStatus.values()].flatMap(({ finding }) => finding ?? []);
  }

  /** The proposals of now; a status that the setting names has none. */
  proposals(): readonly RefusalProposal[] {
    const { clock } = this.#options;
    const configured = this.#options.configured();
    const [now, wallNow] = [clock.now(), clock.wallNow()];
    return this.findings
      .filter(({ status }) => !configured.some((rule) => rule.status === status))
      .map((finding) => createProposal(finding, configured, (at) => wallNow - (now - at)));
  }

  /** A limiter counts calls as they arrive, while their responses come in another order. */
  #examineInOrder(attempt: ObservedAttempt): void {
    const waiting = this.#waiting;
    const { sentAt, endedAt } = attempt;
    if (sentAt >= (waiting.at(-1)?.sentAt ?? sentAt)) waiting.push(attempt);
    else waiting.splice(waiting.findLastIndex((other) => other.sentAt <= sentAt) + 1, 0, attempt);
    while (waiting.length > MAX_WAITING || (waiting[0]?.sentAt ?? endedAt) < endedAt - SORTED_MS) {
      const next = waiting.shift();
      if (next !== undefined) for (const evidence of this.#byStatus.values()) evidence.add(next);
    }
  }

  #reportSuspect(suspect: SuspectStatus, at: number): void {
    this.#lastSuspectAt = at;
    const { route, observe } = this.#options;
    observe({ kind: 'unconfigured-refusal', route, status: suspect });
    if (this.findings.length === 0) return;
    for (const proposal of this.proposals()) {
      const reportedAt = this.#reportedAt.get(proposal.status) ?? -Infinity;
      if (at - reportedAt < REPORT_INTERVAL_MS) continue;
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

function isSuspectStatus(status: number): status is SuspectStatus {
  return (SUSPECT_STATUSES as readonly number[]).includes(status);
}
