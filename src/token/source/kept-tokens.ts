/**
 * Keeps the two newest tokens, and chooses the one to use: nodes of an API may accept a new token only some seconds after its issue
 * (replication delay). Pure: instants come in as arguments, on the clock of the tokens.
 */
import type { Token, TokenCaller, TokenUse } from '../token.ts';
import { usableUntil } from './refresh-schedule.ts';

/** By then every node is expected to accept a new token: after this share of its life, or this time, if that is shorter. */
const REPLICATION_SHARE = 0.5;
const MAX_REPLICATION_MS = 15_000;

/** A new token that was rejected is used again at one and a half times its age, at the earliest after this pause. */
const MIN_PAUSE_MS = 1_000;
const PAUSE_SHARE = 0.5;

/** How much longer calls that cannot be repeated use the previous token: others may test the new one first. */
const TEST_BY_OTHERS_MS = { accepted: 0, untested: MAX_REPLICATION_MS, rejected: Infinity };

/** When no token has been accepted for this long, the cause is not a replication delay: no call waits any longer. */
const SETTLE_PERIOD_MS = 10_000;

interface KeptToken {
  readonly token: Token;
  readonly usableUntil: number;
  /** Until then a previous token that is accepted is used instead. */
  usedFrom: number;
  verdict: 'untested' | 'accepted' | 'rejected';
  /** The latest change of the verdict to `accepted`; undefined = never accepted. */
  acceptedAt: number | undefined;
  /** The acceptance of a call that was sent before says nothing. */
  doubtedAt: number;
  /** Whether a rejection was ignored while the token was accepted, and whether a call was accepted after it. */
  dispute: 'none' | 'open' | 'confirmed';
}

export class KeptTokens {
  #newest: KeptToken | undefined;
  #previous: KeptToken | undefined;
  /** The authorization server has revoked a token when it issued the next one. */
  #isRevokedOnIssue = false;
  /** The first rejection since a token was accepted last. */
  #rejectedSince: number | undefined;

  /** Expired or not. */
  get newest(): Token | undefined {
    return this.#newest?.token;
  }

  /** The newest that has not expired, if any. */
  usable(now: number): Token | undefined {
    return (this.#usable(this.#newest, now) ?? this.#usable(this.#previous, now))?.token;
  }

  /** The upstream rejected the newest token, and every other one that has not expired. */
  isSuspect(now: number): boolean {
    return (
      this.#newest?.verdict === 'rejected' && (this.#usable(this.#previous, now)?.verdict ?? 'rejected') === 'rejected'
    );
  }

  /** True while a rejected new token is replaced by the previous one. */
  usesPrevious(now: number): boolean {
    return this.#newest?.verdict === 'rejected' && !this.isSuspect(now);
  }

  isAcceptedNewest({ serial }: Token): boolean {
    return this.#newest?.token.serial === serial && this.#newest.verdict === 'accepted';
  }

  /** A rejection of the newest token while it is accepted, that causes no request. */
  recordDispute(now: number): void {
    if (this.#newest?.dispute !== 'none') return;
    this.#newest.dispute = 'open';
    this.#newest.doubtedAt = now;
  }

  /** Some nodes accept the newest token and some reject it, and it is still young: another one would be younger. */
  isSpreading(now: number): boolean {
    return this.#newest?.dispute === 'confirmed' && now < this.#newest.token.obtainedAt + MAX_REPLICATION_MS;
  }

  /** True when both kept tokens were rejected, and the newest was never accepted: it may be accepted later. */
  isUnsettled(now: number): boolean {
    const isPreviousRejected = this.#usable(this.#previous, now)?.verdict === 'rejected';
    const newest = this.#usable(this.#newest, now);
    return isPreviousRejected && newest !== undefined && isNeverAccepted(newest);
  }

  /** When calls stop waiting for an accepted token; Infinity while none was rejected. */
  get settleEndsAt(): number {
    return this.#rejectedSince === undefined ? Infinity : this.#rejectedSince + SETTLE_PERIOD_MS;
  }

  /** A server may issue the same value again: its verdict stays. @param isUsedAtOnce the previous token may have been revoked */
  add(token: Token, now: number, isUsedAtOnce: boolean): void {
    const kept = [this.#newest, this.#previous];
    const same = kept.find((one) => one?.token.value === token.value);
    const [newest, previous] = kept.map((one) => (one === same ? undefined : one));
    const isPreviousBetter =
      previous?.verdict === 'accepted' && token.obtainedAt < previous.usableUntil && newest?.verdict !== 'accepted';
    this.#previous = isPreviousBetter ? previous : (newest ?? previous);
    if (this.#previous?.verdict === 'accepted' && (isUsedAtOnce || this.#isRevokedOnIssue)) {
      this.#previous.verdict = 'untested';
      this.#previous.doubtedAt = now;
    }
    const replicationMs = Math.min((token.expiresAt - token.obtainedAt) * REPLICATION_SHARE, MAX_REPLICATION_MS);
    this.#newest = {
      usedFrom: token.obtainedAt + replicationMs,
      verdict: 'untested',
      acceptedAt: undefined,
      doubtedAt: -Infinity,
      dispute: 'none',
      ...same,
      token,
      usableUntil: usableUntil(token),
    };
  }

  /**
   * The token for a call that is sent now; undefined while every one was rejected.
   * @param caller asked only when it matters: one that cannot be repeated uses no token that was never accepted while another is
   */
  findPreferred(now: number, caller: Pick<TokenCaller, 'canReplay'>): Token | undefined {
    const newest = this.#newest !== undefined && now < this.#newest.usableUntil ? this.#newest : undefined;
    const previous = this.#previous !== undefined && now < this.#previous.usableUntil ? this.#previous : undefined;
    if (newest !== undefined && previous?.verdict === 'accepted') {
      const { usedFrom, verdict } = newest;
      const isTooEarly = now < usedFrom || (now < usedFrom + TEST_BY_OTHERS_MS[verdict] && caller.canReplay === false);
      return (isTooEarly ? previous : newest).token;
    }
    if (newest !== undefined && newest.verdict !== 'rejected') return newest.token;
    return previous?.verdict === 'rejected' ? undefined : previous?.token;
  }

  /** The one whose rejection is the oldest: when the upstream accepts none, calls use the two in turn. */
  findRejected(now: number): Token | undefined {
    const newest = this.#usable(this.#newest, now);
    const previous = this.#usable(this.#previous, now);
    if (newest === undefined || previous === undefined) return (newest ?? previous)?.token;
    return (isNeverAccepted(newest) && previous.doubtedAt < newest.doubtedAt ? previous : newest).token;
  }

  /** Whether a call that was rejected with `used` can be sent again with another token, or with the same one, which has been accepted since. */
  hasReplacement(used: TokenUse, now: number): boolean {
    const preferred = this.findPreferred(now, { canReplay: false });
    if (preferred === undefined) return false;
    if (preferred.serial !== used.token.serial) return true;
    const kept = this.#find(preferred);
    return kept !== undefined && (isAcceptedSince(kept, used) || (kept === this.#newest && this.isSpreading(now)));
  }

  /** Whether the acceptance says something new about a kept token. */
  isAcceptanceNew(used: TokenUse): boolean {
    const kept = this.#newest?.token === used.token ? this.#newest : this.#find(used.token);
    const isDisputed = kept?.verdict !== 'accepted' || kept.dispute === 'open';
    return kept !== undefined && isDisputed && kept.doubtedAt <= used.takenAt;
  }

  /** An acceptance that is new. @returns how long after its issue a token is accepted that was rejected before */
  recordAccepted(used: TokenUse, now: number): number | undefined {
    const kept = this.#find(used.token);
    if (kept === undefined) return undefined;
    const delayMs = isNeverAccepted(kept) ? now - kept.token.obtainedAt : undefined;
    if (kept.dispute === 'open') kept.dispute = 'confirmed';
    if (kept.verdict !== 'accepted') kept.acceptedAt = now;
    kept.verdict = 'accepted';
    this.#rejectedSince = undefined;
    return delayMs;
  }

  /** Whether the rejection says something new about a kept token that has not expired. */
  isRejectionCurrent(used: TokenUse, now: number): boolean {
    const kept = this.#usable(this.#find(used.token), now);
    return kept !== undefined && !isAcceptedSince(kept, used);
  }

  recordRejected(used: TokenUse, now: number): void {
    const kept = this.#find(used.token);
    if (kept === undefined) return;
    const ageMs = now - kept.token.obtainedAt;
    // A token that was not used for long may have been revoked: then the wait for its successor begins now.
    if (kept.verdict === 'untested' && ageMs > SETTLE_PERIOD_MS) this.#rejectedSince = undefined;
    if (kept.verdict === 'accepted') {
      // What revoked a token that was accepted may have revoked the previous one too.
      if (kept === this.#newest) this.#previous = undefined;
      // A node may not know a young one yet, and a call that was sent long ago says nothing about the issue of the newest.
      else if (now >= kept.usedFrom && this.findPreferred(now, { canReplay: false }) === kept.token)
        this.#isRevokedOnIssue = true;
    }
    if (kept.verdict !== 'rejected' || kept.doubtedAt <= used.takenAt) {
      kept.doubtedAt = now;
      kept.usedFrom = now + Math.max(MIN_PAUSE_MS, ageMs * PAUSE_SHARE);
    }
    kept.verdict = 'rejected';
    if (this.findPreferred(now, {}) === undefined) this.#rejectedSince ??= now;
  }

  #find({ serial }: Token): KeptToken | undefined {
    if (this.#newest?.token.serial === serial) return this.#newest;
    return this.#previous?.token.serial === serial ? this.#previous : undefined;
  }

  #usable(kept: KeptToken | undefined, now: number): KeptToken | undefined {
    return kept !== undefined && now < kept.usableUntil ? kept : undefined;
  }
}

function isNeverAccepted({ verdict, acceptedAt }: KeptToken): boolean {
  return verdict === 'rejected' && acceptedAt === undefined;
}

/** The rejection is older than the acceptance: the call had been sent before. */
function isAcceptedSince({ verdict, acceptedAt = -Infinity }: KeptToken, { takenAt }: TokenUse): boolean {
  return verdict === 'accepted' && acceptedAt > takenAt;
}
