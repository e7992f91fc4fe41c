/**
 * The URL of a Redis server: which is accepted, in place and in a file, and how it is shown without its password. The forms are
 * those of the IANA registrations of `redis` and `rediss`, and `unix:` for a socket file.
 */
import { isLoopbackHost } from '../../../platform/loopback.ts';
import { MASK } from '../../../platform/secret-redaction.ts';
import { format } from './formats.ts';
import type { Format } from './formats.ts';
import { maskUrl } from './url.ts';

const EXPECTED_URL = 'a URL such as rediss://user:password@host:6379/0 or unix:///run/redis/redis.sock';
const NETWORK_URL = /^rediss?:\/\/[^\s\\/?#\p{Cc}][^\s\\?#\p{Cc}]*$/iu;
const SOCKET_URL = /^unix:\/\/(?:[^\s/?#@\p{Cc}]*@)?\/[^\s?#\p{Cc}]+(?:\?db=\d+)?$/u;

/** A Redis URL, its password masked where it is shown. */
export function redisUrl(): Format<string> {
  return format({
    expected: EXPECTED_URL,
    check: (value) => typeof value === 'string' && (redisUrlFault(value) ?? true),
    show: maskUrl,
  });
}

/** Says what is wrong with a Redis URL, without showing it; undefined when nothing is. */
export function redisUrlFault(text: string): string | undefined {
  const expected = `expected ${EXPECTED_URL}`;
  const isNetwork = NETWORK_URL.test(text) && URL.canParse(text);
  if (!isNetwork && !SOCKET_URL.test(text)) return expected;
  if (text.includes(MASK)) return 'is masked: the password itself is expected';
  // Left to the client, one that does not decode would be told of at the first connection, with the URL in the message.
  if (!isDecodable(text)) return 'expected a percent sign in it to be written as %25';
  if (!isNetwork) return undefined;
  const { hostname, pathname } = new URL(text);
  return hostname !== '' && /^\/?$|^\/\d{1,5}$/.test(pathname) ? undefined : expected;
}

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

/** The password in a Redis URL, as it is sent; undefined when there is none. */
export function redisPassword(text: string): string | undefined {
  const password = /^[a-z]+:\/\/[^:@/]*:([^/?#]*)@/i.exec(text)?.[1];
  return password === undefined || password === '' ? undefined : decodeURIComponent(password);
}

/** Whether whoever listens on the network can read the password. */
export function hasUnencryptedPassword(text: string): boolean {
  return /^redis:/i.test(text) && redisPassword(text) !== undefined && !isLoopbackHost(new URL(text).hostname);
}
