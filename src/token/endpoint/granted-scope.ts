/** What was asked for and what was granted (RFC 6749 §3.3, §5.1). Pure. */

/**
 * Scopes asked for and not granted, each once, in the order asked.
 * @param granted undefined or empty: unknown, which is taken for all that was asked for
 */
export function findMissingScopes(asked: string | undefined, granted: string | undefined): readonly string[] {
  const names = new Set(splitScope(asked));
  const given = splitScope(granted);
  if (given.length === 0) return [];
  for (const name of given) names.delete(name);
  return [...names];
}

function splitScope(scope: string | undefined): string[] {
  return (scope ?? '').split(' ').filter((name) => name !== '');
}
