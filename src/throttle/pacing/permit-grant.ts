/** What is remembered of a granted permit until its attempt has ended, so that the answer can be judged by it. */
export interface PermitGrant {
  /** Monotonic instant. */
  readonly at: number;
  /** Rises by one with every grant. */
  readonly serial: number;
  /** Rises with every pause: an answer to a grant of an older epoch says nothing new. */
  readonly epoch: number;
  /** Permits per second at the time. */
  readonly rate: number;
  /** The first call after a pause, while the others wait for its answer. */
  readonly isPauseProbe: boolean;
  /** Someone waited for this permit: the app offered at least as much as the rate allows. */
  readonly isWaitedFor: boolean;
  /** Sent beyond the limit that is believed in, to see whether it still holds. */
  readonly isProbeCall: boolean;
  /** Calls under way at the time. */
  readonly inFlight: number;
}
