/** What an upstream's answer says about its rate limit. */

export interface RateLimitSignal {
  readonly status: number;
  /** How long the upstream says to wait, milliseconds from now; undefined when it does not say. */
  readonly statedWaitMs: number | undefined;
  /** At most this many further calls ... */
  readonly remaining: number | undefined;
  /** ... within this time, milliseconds from now. */
  readonly resetInMs: number | undefined;
  /** The fields as received, names in lower case, values cut to 200 characters: evidence for the operator. */
  readonly fields: Readonly<Record<string, string>>;
}
