/**
 * Keeps the two newest tokens and whether the upstream accepts them. Some APIs accept a new token only some seconds after its issue
 * (replication delay): meanwhile the previous one is used, and one call at a time tests the new one. Pure: instants come in as arguments,
 * on the clock of the tokens. Which refusal causes a token request is decided in token-source.ts.
 */
import type { Token, TokenCall, TokenUse } from '../token.ts';
import { usableUntil } from './refresh-schedule.ts';

/** Pause between the tests of a refused token; it doubles with each refusal. */
const MIN_TEST_PAUSE_MS = 100;
const MAX_TEST_PAUSE_MS = 1_000;

/** When no token has been accepted for this long, the cause is not a replication delay: no call waits any longer. */
const SETTLE_PERIOD_MS = 10_000;

/** While a new token is untested, calls that cannot be repeated use the previous one; at most this long after its issue. */
const UNTESTED_PERIOD_MS = 10_000;

interface KeptToken {
  readonly token: Token;
  /** Until when it may be sent. */
  readonly usableUntil: number;
  /** What the upstream's latest response said about it. */
  verdict: 'untested' | 'accepted' | 'refused';
  /** The latest change of the verdict to `accepted`; undefined = never accepted. */
  acceptedAt: number | undefined;
  /** The latest change of the verdict to `refused`. */
  refusedAt: number;
  /** The next test of a refused token. */
  testAt: number;
  testPauseMs: number;
}

export class KeptTokens {
  #newest: KeptToken | undefined;
  #previous: KeptToken | undefined;
  /** The test in flight. */
  #test: TokenUse | undefined;
  /** The first refusal since a token was accepted last. */
  #refusedSince: number | undefined;

  /** Expired or not. */
  get newest(): Token | undefined {
    return this.#newest?.token;
  }

  /** The upstream refused the newest token, and accepted it never or not since. */
  get isNewestRefused(): boolean {
    return this.#newest?.verdict === 'refused';
  }

  /** The newest that has not expired, if any. */
  usable(now: number): Token | undefined {
    return (this.#usable(this.#newest, now) ?? this.#usable(this.#previous, now))?.token;
  }

  /** False while every token that has not expired was refused. */
  hasPreferred(now: number): boolean {
    return this.#findPreferred(now) !== undefined;
  }

  isAcceptedNewest({ serial }: Token): boolean {
    return this.#newest?.token.serial === serial && this.#newest.verdict === 'accepted';
  }

  /** True while a refused new token is replaced by the previous one. */
  usesPrevious(now: number): boolean {
    const preferred = this.#findPreferred(now);
    return preferred !== undefined && preferred !== this.#newest && this.isNewestRefused;
  }

  /** True when no kept token is known to be accepted or is untested, and the newest was never accepted: it may be accepted later. */
  isUnsettled(now: number): boolean {
    const previous = this.#usable(this.#previous, now);
    const newest = this.#usable(this.#newest, now);
    return previous?.verdict === 'refused' && newest !== undefined && isNeverAccepted(newest);
  }

  /** When calls stop waiting for an accepted token; Infinity while none was refused. */
  get settleEndsAt(): number {
    return this.#refusedSince === undefined ? Infinity : this.#refusedSince + SETTLE_PERIOD_MS;
  }

  /** When the next test may start; Infinity while one is in flight. */
  get nextTestAt(): number {
    if (this.#test !== undefined) return Infinity;
    return Math.min(this.#newest?.testAt ?? Infinity, this.#previous?.testAt ?? Infinity);
  }

  /** A server may issue the same value again: its verdict stays. */
  add(token: Token): void {
    const [newest, previous] = [this.#newest, this.#previous].map((kept) =>
      kept?.token.value === token.value ? undefined : kept,
    );
    const same = [this.#newest, this.#previous].find((kept) => kept?.token.value === token.value);
    const isPreviousBetter =
      previous?.verdict === 'accepted' &&
      token.obtainedAt < previous.usableUntil &&
      newest !== undefined &&
      isNeverAccepted(newest);
    this.#previous = isPreviousBetter ? previous : (newest ?? previous);
    this.#newest = {
      token,
      usableUntil: usableUntil(token),
      verdict: same?.verdict ?? 'untested',
      acceptedAt: same?.acceptedAt,
      refusedAt: same?.refusedAt ?? -Infinity,
      testAt: -Infinity,
      testPauseMs: MIN_TEST_PAUSE_MS,
    };
    if (this.#previous !== undefined) this.#previous.testPauseMs = MIN_TEST_PAUSE_MS;
  }

  /**
   * The token for a call that is sent now; undefined when it has to wait. A test counts from `startTest` on.
   * @param call asked only when it matters
   * @param mayWait whether the call may wait for a token that is accepted
   */
  choose(now: number, call: Pick<TokenCall, 'canReplay'>, mayWait: () => boolean): TokenUse | undefined {
    const newest = this.#usable(this.#newest, now);
    if (newest?.verdict === 'accepted') return use(newest, now);
    const preferred = this.#findPreferred(now);
    if (preferred === undefined) return this.#chooseUnaccepted(now, mayWait);
    if (newest === undefined) return use(preferred, now);
    // A call that carries a test may be refused, and must not show it to its client.
    if (preferred !== newest) {
      return this.#isTestDue(newest, now) && call.canReplay !== false ? use(newest, now, true) : use(preferred, now);
    }
    const previous = this.#usable(this.#previous, now);
    const isCareful = previous?.verdict === 'accepted' && now - newest.token.obtainedAt < UNTESTED_PERIOD_MS;
    return use(isCareful && call.canReplay === false ? previous : newest, now);
  }

  #chooseUnaccepted(now: number, mayWait: () => boolean): TokenUse | undefined {
    const newest = this.#usable(this.#newest, now);
    const previous = this.#usable(this.#previous, now);
    const only = newest ?? previous;
    if (only === undefined || newest === undefined || previous === undefined) return only && use(only, now);
    if (!this.isUnsettled(now)) return use(newest, now);
    const next = previous.testAt <= newest.testAt ? previous : newest;
    if (this.#isTestDue(next, now)) return use(next, now, true);
    return mayWait() ? undefined : use(newest, now);
  }

  /** Whether a call that was refused with `used` can be sent again with another token, or with the same one, which has been accepted since. */
  hasReplacement(used: TokenUse, now: number): boolean {
    const preferred = this.#findPreferred(now);
    if (preferred === undefined) return false;
    return preferred.token.serial !== used.token.serial || isAcceptedSince(preferred, used);
  }

  /** The call that takes this use carries the test. */
  startTest(test: TokenUse): void {
    this.#test = test;
  }

  /** The test ended without a verdict. @returns false for a use that is not the test in flight */
  endTest(test: TokenUse, now: number): boolean {
    if (test !== this.#test) return false;
    this.#test = undefined;
    const kept = this.#find(test.token);
    if (kept !== undefined) kept.testAt = now + kept.testPauseMs;
    return true;
  }

  /** Whether the acceptance says something new about a kept token. A test that was accepted is over in any case. */
  isAcceptanceNew(used: TokenUse): boolean {
    if (this.#test === used) this.#test = undefined;
    const kept = this.#find(used.token);
    // A call from before the refusal says nothing about the time since.
    return kept !== undefined && kept.verdict !== 'accepted' && kept.refusedAt <= used.takenAt;
  }

  /** An acceptance that is new. @returns how long after its issue a token is accepted that was refused before */
  recordAccepted(used: TokenUse, now: number): number | undefined {
    const kept = this.#find(used.token);
    if (kept === undefined) return undefined;
    const delayMs = isNeverAccepted(kept) ? now - kept.token.obtainedAt : undefined;
    kept.verdict = 'accepted';
    kept.acceptedAt = now;
    this.#refusedSince = undefined;
    return delayMs;
  }

  /** Whether the refusal says something new about a kept token that has not expired. */
  isRefusalCurrent(used: TokenUse, now: number): boolean {
    const kept = this.#usable(this.#find(used.token), now);
    return kept !== undefined && !isAcceptedSince(kept, used);
  }

  /** A refusal that is current. */
  recordRefused(used: TokenUse, now: number): void {
    const kept = this.#find(used.token);
    if (kept === undefined) return;
    // A token that was not used for long may have been revoked: then the wait for its successor begins now.
    if (kept.verdict === 'untested' && now - kept.token.obtainedAt > SETTLE_PERIOD_MS) this.#refusedSince = undefined;
    const isTest = used === this.#test;
    if (isTest) this.#test = undefined;
    if (isTest || kept.verdict !== 'refused') {
      kept.testAt = now + kept.testPauseMs;
      kept.testPauseMs = Math.min(kept.testPauseMs * 2, MAX_TEST_PAUSE_MS);
    }
    if (kept.verdict !== 'refused') kept.refusedAt = now;
    kept.verdict = 'refused';
    if (this.#findPreferred(now) === undefined) this.#refusedSince ??= now;
  }

  /** The newest that was not refused; the previous one takes the place of one that was never accepted. */
  #findPreferred(now: number): KeptToken | undefined {
    const newest = this.#usable(this.#newest, now);
    if (newest !== undefined && newest.verdict !== 'refused') return newest;
    const previous = this.#usable(this.#previous, now);
    const wasAccepted = newest?.acceptedAt !== undefined;
    return !wasAccepted && previous?.verdict !== 'refused' ? previous : undefined;
  }

  #isTestDue({ testAt }: KeptToken, now: number): boolean {
    return this.#test === undefined && now >= testAt;
  }

  #find({ serial }: Token): KeptToken | undefined {
    const newest = this.#newest;
    return newest?.token.serial === serial
      ? newest
      : this.#previous?.token.serial === serial
        ? this.#previous
        : undefined;
  }

  #usable(kept: KeptToken | undefined, now: number): KeptToken | undefined {
    return kept !== undefined && now < kept.usableUntil ? kept : undefined;
  }
}

function use({ token }: KeptToken, now: number, isTest = false): TokenUse {
  return { token, takenAt: now, isTest };
}

function isNeverAccepted({ verdict, acceptedAt }: KeptToken): boolean {
  return verdict === 'refused' && acceptedAt === undefined;
}

/** The refusal is older than the acceptance: the call had been sent before. */
function isAcceptedSince({ verdict, acceptedAt = -Infinity }: KeptToken, { takenAt }: TokenUse): boolean {
  return verdict === 'accepted' && acceptedAt > takenAt;
}
