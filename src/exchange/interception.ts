/**
 * Recognizes a response that a firewall or a proxy between here and the API has sent (pure): a web page where an API would say in its own
 * format why it refuses, or a request for the credentials of a proxy.
 */
import { listReceivedHeaders, type ResponseHead } from '../upstream/upstream-response.ts';

/** The content type of a web page, at the beginning of a media type or range. */
export const WEB_PAGE = /^\s*(?:text\/html|application\/xhtml\+xml)\b/i;
/** Statuses that mean "not admitted". A 401 and a 404 with a page are usual for web servers, a 5xx for the gateways of an upstream. */
const NOT_ADMITTED: ReadonlySet<number> = new Set([403, 405, 406, 451]);
/** Header fields of firewalls that also challenge with other statuses; of a proxy that reports a fault of its own. */
const MARKS: Readonly<Record<string, string>> = {
  'cf-mitigated': 'Cloudflare',
  'x-amzn-waf-action': 'AWS WAF',
  'x-sucuri-block': 'Sucuri',
  'x-squid-error': 'Squid',
};

/** In words, fit for a log; undefined for a response of the API. @param head with a status from 400 on */
export function describeInterception(head: ResponseHead): string | undefined {
  const { status, contentType = '' } = head;
  if (status === 407) return 'a proxy in between asks for credentials (407)';
  if (!WEB_PAGE.test(contentType)) return undefined;
  const mark = listReceivedHeaders(head).find((name, at) => at % 2 === 0 && MARKS[name.toLowerCase()] !== undefined);
  if (mark === undefined && !NOT_ADMITTED.has(status)) return undefined;
  const by = mark === undefined ? '' : ` from ${MARKS[mark.toLowerCase()] ?? ''}`;
  return `a web page came${by} instead of a response from the API (${String(status)}, text/html)`;
}
