/** What clients that must be told the limit are told: a little less than the truth, as a careful user would. */
export const KNOWN_LIMIT_SHARE = 0.97;
