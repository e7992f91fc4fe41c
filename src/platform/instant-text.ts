/** The text of an instant, as /status, the page, the `status` command and the log show it. Pure. */

/**
 * RFC 3339 in UTC with milliseconds. An instant that may be unknown has no number, so that none is passed here.
 * @param wallAt epoch milliseconds, of the years 0 to 9999
 */
export function formatInstant(wallAt: number): string {
  return new Date(wallAt).toISOString();
}
