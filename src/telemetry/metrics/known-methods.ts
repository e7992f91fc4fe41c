/** The methods that everybody knows (RFC 9110 §9.3, RFC 5789). Whatever else a client makes up gets one name for all: names are few. */
export const KNOWN_METHODS: ReadonlySet<string> = new Set([
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'DELETE',
  'CONNECT',
  'OPTIONS',
  'TRACE',
  'PATCH',
]);
