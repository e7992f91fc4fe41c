/** Share of the limit that clients with the known limit are configured with, as a careful user would. */
export const KNOWN_LIMIT_SHARE = 0.97;
