/** A granted permit, remembered until its attempt has ended, so that the response is judged by the circumstances of the call. */
export interface PermitGrant {
  /** Monotonic instant. */
  readonly at: number;
  /** Rises by one with every grant. */
  readonly serial: number;
  /** Rises with every pause: the response to a grant of an older epoch says nothing new. */
  readonly epoch: number;
  /** Permits per second at the time. */
  readonly rate: number;
  /** The first call after a pause; the others wait for its response. */
  readonly isPauseProbe: boolean;
  /** A request waited for this permit: the application uses the whole rate. */
  readonly isWaitedFor: boolean;
  /** Exceeds the selected limit, to see whether it was raised. */
  readonly isProbeCall: boolean;
  /** Calls without a response at the time. */
  readonly inFlight: number;
}
