/** The format of a Redis URL: the IANA registrations of `redis` and `rediss`, and `unix:` for a socket file. */
import { isLoopbackHost } from '../../../platform/loopback.ts';
import { MASK } from '../../../platform/secret-redaction.ts';
import { tryRead } from '../../../platform/try-read.ts';
import { checkedText } from './formats.ts';
import { maskUrl } from './url.ts';

const EXPECTED_URL = 'a URL such as rediss://user:password@host:6379/0 or unix:///run/redis/redis.sock';
const NETWORK_URL = /^rediss?:\/\/[^\s\\/?#\p{Cc}][^\s\\?#\p{Cc}]*$/iu;
const SOCKET_URL = /^unix:\/\/(?:[^\s/?#@\p{Cc}]*@)?\/[^\s?#\p{Cc}]+(?:\?db=\d+)?$/u;

/** A Redis URL; its password is masked in messages. */
export const redisUrl = checkedText({
  expected: EXPECTED_URL,
  check: (text) => redisUrlFault(text) ?? true,
  show: maskUrl,
  pattern: String.raw`^(?:[Rr][Ee][Dd][Ii][Ss][Ss]?|[Uu][Nn][Ii][Xx])://[^\s]+$`,
});

/** The fault of a Redis URL, without quoting it; undefined when there is none. */
export function redisUrlFault(text: string): string | undefined {
  const expected = `expected ${EXPECTED_URL}`;
  const isNetwork = NETWORK_URL.test(text) && URL.canParse(text);
  if (!isNetwork && !SOCKET_URL.test(text)) return expected;
  if (text.includes(MASK)) return 'is masked: the password itself is expected';
  // The Redis client would report this only at the first connection, and would quote the URL.
  if (tryRead(() => decodeURIComponent(text)) === undefined)
    return 'expected a percent sign in it to be written as %25';
  if (!isNetwork) return undefined;
  const { hostname, pathname } = new URL(text);
  return hostname !== '' && /^\/?$|^\/\d{1,5}$/.test(pathname) ? undefined : expected;
}

/** The decoded password of a Redis URL; undefined when there is none. */
export function redisPassword(text: string): string | undefined {
  const password = /^[a-z]+:\/\/[^:@/]*:([^/?#]*)@/i.exec(text)?.[1];
  return password === undefined || password === '' ? undefined : decodeURIComponent(password);
}

/** Whether the password crosses a network unencrypted. */
export function hasUnencryptedPassword(text: string): boolean {
  return /^redis:/i.test(text) && redisPassword(text) !== undefined && !isLoopbackHost(new URL(text).hostname);
}
