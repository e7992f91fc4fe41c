/** Compares requested and granted scopes (RFC 6749 §3.3, §5.1). Pure. */

/**
 * Requested scopes that were not granted, each once, in the order requested.
 * @param granted undefined or empty = unknown, which counts as all granted
 */
export function findMissingScopes(requested: string | undefined, granted: string | undefined): readonly string[] {
  const missing = new Set(splitScope(requested));
  const grantedNames = splitScope(granted);
  if (grantedNames.length === 0) return [];
  for (const name of grantedNames) missing.delete(name);
  return [...missing];
}

function splitScope(scope: string | undefined): string[] {
  return (scope ?? '').split(' ').filter((name) => name !== '');
}
