import type { CallMatch } from './call-match.ts';

/** One limit of the partner that is known and configured: an entry of `throttle.limits`. */
export interface DeclaredLimit {
  /** Names it in metrics, logs and stored counts. */
  readonly name: string;
  /** Allowed calls in one window, at least 1. */
  readonly calls: number;
  /** Length of the window: a whole number and `s`, `m`, `h` or `d`, or `1mo`. A sliding month has 30 days. */
  readonly per: string;
  /**
   * `sliding`: any time of this length. `calendar`: up to `1h` aligned to the Unix epoch, `1d` and `1mo` from midnight to midnight of
   * `timeZone`.
   */
  readonly window: 'sliding' | 'calendar';
  /** IANA name; of a calendar day or month. */
  readonly timeZone: string;
  /** A call that was refused for its rate counts as well. */
  readonly countsRefused: boolean;
  /** `even`: what is left is dealt out over the time that is left. */
  readonly spread: 'none' | 'even';
  /** Calls kept for requests of high priority, below `calls`. */
  readonly reserve: number;
  /** The calls that it counts. Default: all. */
  readonly match?: CallMatch | undefined;
  /** Each value of the `*` segments in the path of `match` has a count of its own. Default: false. */
  readonly each?: boolean | undefined;
}

/** What the admin port and the metrics show of a declared limit. */
export interface DeclaredLimitState {
  readonly name: string;
  readonly calls: number;
  readonly per: string;
  /** Calls that count now; in a fleet those of all replicas, as of the last exchange. */
  readonly used: number;
  readonly reserve: number;
  /**
   * Epoch milliseconds: when it is used up at the rate of the last hour; Infinity when it is not, at this rate, and for a window that
   * is shorter than the hour.
   */
  readonly usedUpAt: number;
  /** Epoch milliseconds: when the window ends, or, if it is sliding, when the oldest counted call leaves it; Infinity when nothing is counted. */
  readonly resetsAt: number;
  /** The calls that it counts, as `describeMatch` names them. Default: all. */
  readonly match?: string | undefined;
  /** How many values have a count of their own; the other members are of the fullest count. Undefined without `each`. */
  readonly values?: number | undefined;
}
