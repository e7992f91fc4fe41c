/**
 * The URL of a token endpoint as a partner gives it: how it is split into auth.url and auth.tokenPath, and how a URL that was joined
 * from parts that overlap is corrected. Sends nothing. Pure.
 */
import { maskQueryValues } from '../../platform/secret-redaction.ts';

const DEFAULT_TOKEN_PATH = '/oauth/token';
/** A last segment such as `token`, `accesstoken`, `token.oauth2` or `tokens`. */
const TOKEN_SEGMENT = /token/i;

/** Whether a path is that of a token endpoint, by its last segment. */
export function isTokenPath(pathname: string): boolean {
  return TOKEN_SEGMENT.test(pathname.replace(/\/+$/, '').split('/').at(-1) ?? '');
}

/**
 * Splits the whole URL of a token endpoint into the two settings that are the URL again when one slash joins them, the query with the path;
 * undefined when it has no path, or one that two joined settings cannot express. Fragment and user information are left out.
 */
export function splitTokenUrl({ origin, pathname, search }: URL) {
  const defaultAt = pathname.endsWith(DEFAULT_TOKEN_PATH) ? [pathname.length - DEFAULT_TOKEN_PATH.length] : [];
  const emptySegments = pathname.matchAll(/\/\/+[^/]+/g);
  const afterEmptySegments = Array.from(emptySegments, ({ index, 0: text }) => index + text.length);
  const at = [...defaultAt, 0, ...afterEmptySegments].find((start) => canSplitAt(pathname, start));
  return at === undefined
    ? undefined
    : { authUrl: origin + pathname.slice(0, at), tokenPath: pathname.slice(at) + search };
}

/** auth.tokenPath has no empty segment, and begins with the only slash between the two. */
function canSplitAt(pathname: string, at: number): boolean {
  const [base, path] = [pathname.slice(0, at), pathname.slice(at)];
  return !base.endsWith('/') && /^\/[^/]/.test(path) && !path.includes('//');
}

/**
 * The URL that was probably meant, when the path of a token endpoint repeats itself (`/oauth/token/oauth/token`, `/oauth/oauth/token`)
 * or continues after a token endpoint (`/oauth2/token/oauth/token`); undefined when it does neither.
 */
export function correctTokenUrl(url: URL): URL | undefined {
  const segments = url.pathname.replace(/\/$/, '').split('/').slice(1);
  const corrected = dropRepetition(segments) ?? dropAfterEndpoint(segments);
  if (corrected === undefined) return undefined;
  const meant = new URL(url);
  meant.pathname = `/${corrected.join('/')}`;
  return meant;
}

/** `set auth.url (…) to … and auth.tokenPath (…) to …`. Values of a query are masked. */
export function describeTokenUrlSettings(
  url: URL,
  nameSetting: (key: 'auth.url' | 'auth.tokenPath') => string,
): string {
  const { authUrl, tokenPath } = splitTokenUrl(url) ?? { authUrl: url.origin, tokenPath: '/' };
  return `set ${nameSetting('auth.url')} to ${authUrl} and ${nameSetting('auth.tokenPath')} to ${maskQueryValues(tokenPath)}`;
}

/** Removes one of two equal neighbouring runs of segments, the longest; undefined without such runs. */
function dropRepetition(segments: readonly string[]): readonly string[] | undefined {
  // Longer paths are not written by hand, and comparing them all takes long.
  if (segments.length > MAX_SEGMENTS) return undefined;
  for (let length = Math.floor(segments.length / 2); length > 0; length--)
    for (let at = 0; at + 2 * length <= segments.length; at++) {
      const [first, second] = [segments.slice(at, at + length), segments.slice(at + length, at + 2 * length)];
      if (first.every((segment, index) => segment === second[index])) return segments.toSpliced(at, length);
    }
  return undefined;
}

const MAX_SEGMENTS = 32;

function dropAfterEndpoint(segments: readonly string[]): readonly string[] | undefined {
  const at = segments.findIndex((segment) => TOKEN_SEGMENT.test(segment));
  return at < 0 || at === segments.length - 1 ? undefined : segments.slice(0, at + 1);
}
