/** A rule of `throttle.refusals` (pure). The formats that it may have are the configuration's; it is applied in exchange/refusals. */

/** A response that refuses a call for its rate. All members that are given must match. */
export interface RefusalRule {
  readonly status: number;
  /** The name of a header field, or `Name: value`; both are compared without regard to case. */
  readonly header?: string;
  /** A text in the body, compared byte by byte in UTF-8. */
  readonly bodyContains?: string;
}
