/**
 * Every way in which traffic through the sidecar is meant to differ from the same traffic without it. Each entry changes what was seen
 * without the sidecar into what must be seen with it; docs/differences.md says the same in words, and a test compares the two.
 */
import { STATUS_CODES } from 'node:http';
import type { Fields, SeenRequest, SeenResponse } from './raw-exchange.ts';

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** What is expected with the sidecar, so far. */
export interface Expected {
  readonly request: Mutable<SeenRequest>;
  readonly response: Mutable<SeenResponse>;
}

export interface Circumstances {
  /** What was seen without the sidecar. */
  readonly sent: SeenRequest;
  readonly received: SeenResponse;
  /** `host:port` of the origin server. */
  readonly authority: string;
  readonly bearer: string;
}

export interface Difference {
  readonly id: string;
  readonly what: string;
  readonly reference: string;
  readonly apply: (expected: Expected, circumstances: Circumstances) => void;
}

const CONNECTION_FIELDS = [
  'connection',
  'proxy-connection',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
];
/** Methods that state a length even when there is no content. */
const STATES_NO_CONTENT = ['POST', 'PUT', 'PATCH', 'PROPFIND'];
/** Stands for the instant at which the sidecar sent its response. */
export const OWN_DATE = '(the instant of the response)';
const REFERENCE_FIELDS = new Set(['location', 'content-location', 'link', 'refresh']);
const KEPT: Fields = [
  ['Connection', 'keep-alive'],
  ['Keep-Alive', 'timeout=3600'],
];
const CLOSED: Fields = [['Connection', 'close']];

/** In the order in which they are applied. */
export const DIFFERENCES: readonly Difference[] = [
  {
    id: 'request-expect',
    what: '`Expect: 100-continue` is answered by the sidecar and not forwarded',
    reference: 'RFC 9110 §10.1.1',
    apply: ({ request }) => {
      request.headers = without(request.headers, ['expect']);
    },
  },
  {
    id: 'request-target',
    what: 'a target in absolute form is sent in origin form',
    reference: 'RFC 9112 §3.2.1',
    apply: ({ request }) => {
      request.target = request.target.replace(/^http:\/\/[^/]+/, '');
    },
  },
  {
    id: 'request-version',
    what: 'requests are sent in HTTP/1.1, also those of HTTP/1.0 clients',
    reference: 'RFC 9112 §2.3',
    apply: ({ request }) => {
      request.version = 'HTTP/1.1';
    },
  },
  {
    id: 'request-connection',
    what: 'connection-specific fields, and every field that `Connection` names, are removed',
    reference: 'RFC 9110 §7.6.1',
    apply: ({ request }) => {
      request.headers = withoutConnectionFields(request.headers);
    },
  },
  {
    id: 'request-own-fields',
    what: '`x-sidecar-*` fields and `Proxy-Authorization` are removed',
    reference: 'RFC 9110 §11.7.2',
    apply: ({ request }) => {
      request.headers = request.headers.filter(
        ([name]) => !/^(?:x[-_]sidecar[-_]|proxy[-_]authorization$)/i.test(name),
      );
    },
  },
  {
    id: 'request-content-type',
    what: 'a body without a `Content-Type` is sent as `application/json`, since legacy clients omit it',
    reference: 'RFC 9110 §8.3',
    apply: ({ request }) => {
      if (request.body !== '' && fieldOf(request.headers, 'content-type') === undefined)
        request.headers = [...request.headers, ['Content-Type', 'application/json']];
    },
  },
  {
    id: 'request-authorization',
    what: "the access token, after the client's fields, replaces the client's `Authorization`; fields of the names in `upstream.tokenHeader` and `upstream.headers` are replaced too",
    reference: 'RFC 6750 §2.1',
    apply: ({ request }, { bearer }) => {
      request.headers = [...without(request.headers, ['authorization']), ['Authorization', `Bearer ${bearer}`]];
    },
  },
  {
    id: 'request-length',
    what: '`Content-Length` comes last; a chunked body that fits the replay buffer gets one; `POST`, `PUT`, `PATCH` and `PROPFIND` without a body state 0, other methods nothing',
    reference: 'RFC 9112 §6.2, RFC 9110 §8.6',
    apply: ({ request }) => {
      const { length } = request.body;
      const others = without(request.headers, ['content-length']);
      const isStated = length > 0 || STATES_NO_CONTENT.includes(request.method);
      request.headers = isStated ? [...others, ['content-length', String(length)]] : others;
    },
  },
  {
    id: 'request-trailers',
    what: 'trailer fields are dropped',
    reference: 'RFC 9110 §6.5.1',
    apply: ({ request }) => {
      request.trailers = [];
    },
  },
  {
    id: 'request-host',
    what: "`Host` is the origin server's, and comes first with the sidecar's own `Connection`: `keep-alive`, or `close` with `HEAD`",
    reference: 'RFC 9110 §7.2, RFC 9112 §9.3',
    apply: ({ request }, { authority }) => {
      const connection = request.method === 'HEAD' ? 'close' : 'keep-alive';
      request.headers = [['host', authority], ['connection', connection], ...without(request.headers, ['host'])];
    },
  },
  {
    id: 'response-interim',
    what: 'interim responses (1xx) of the origin server are not forwarded (a known limit)',
    reference: 'RFC 9110 §15.2',
    apply: ({ response }, { sent }) => {
      response.interim = fieldOf(sent.headers, 'expect') === undefined ? 0 : 1;
    },
  },
  {
    id: 'response-version',
    what: 'responses are sent in HTTP/1.1',
    reference: 'RFC 9112 §2.3',
    apply: ({ response }) => {
      response.version = 'HTTP/1.1';
    },
  },
  {
    id: 'response-reason',
    what: 'a reason phrase that is empty, or not in ASCII, is replaced by the usual one',
    reference: 'RFC 9112 §4',
    apply: ({ response }) => {
      if (!/^[\t -~]+$/.test(response.reason)) response.reason = STATUS_CODES[response.status] ?? 'unknown';
    },
  },
  {
    id: 'response-connection',
    what: 'connection-specific fields, and every field that `Connection` names, are removed',
    reference: 'RFC 9110 §7.6.1',
    apply: ({ response }) => {
      response.headers = withoutConnectionFields(response.headers);
    },
  },
  {
    id: 'response-location',
    what: "a reference to the origin server's base URL in `Location`, `Content-Location`, `Link` or `Refresh` becomes a path under the sidecar",
    reference: 'RFC 9110 §8.7, §10.2.2, RFC 8288',
    apply: ({ response }, { authority }) => {
      response.headers = response.headers.map(([name, value]) =>
        REFERENCE_FIELDS.has(name.toLowerCase()) ? [name, relocate(value, authority)] : [name, value],
      );
    },
  },
  {
    id: 'response-cookies',
    what: 'a `Set-Cookie` loses `Secure`, `SameSite=None`, a `Domain` of the origin server, and the base path of its `Path` (`response.cookies`)',
    reference: 'RFC 6265 §5.2 to §5.4',
    apply: ({ response }, { authority }) => {
      const removed = ['Secure', 'SameSite=None', `Domain=${authority.split(':', 1)[0] ?? ''}`];
      response.headers = response.headers.map(([name, value]) => {
        if (name.toLowerCase() !== 'set-cookie' || value.includes('Domain=other')) return [name, value];
        return [name, removed.reduce((text, attribute) => text.replace(`; ${attribute}`, ''), value)];
      });
    },
  },
  {
    id: 'response-204-length',
    what: 'a 204 loses its `Content-Length`',
    reference: 'RFC 9110 §8.6',
    apply: ({ response }) => {
      if (response.status === 204) response.headers = without(response.headers, ['content-length']);
    },
  },
  {
    id: 'response-date',
    what: 'a response without a `Date` gets one',
    reference: 'RFC 9110 §6.6.1',
    apply: ({ response }) => {
      if (fieldOf(response.headers, 'date') === undefined) response.headers = [...response.headers, ['Date', OWN_DATE]];
    },
  },
  {
    id: 'response-trailers',
    what: 'trailer fields are dropped',
    reference: 'RFC 9110 §6.5.1',
    apply: ({ response }) => {
      response.trailers = [];
    },
  },
  {
    id: 'response-framing',
    what: 'a body without a length is chunked for an HTTP/1.1 client and ends with the connection for an HTTP/1.0 client',
    reference: 'RFC 9112 §6.3, §7',
    apply: ({ response }, { sent }) => {
      const isUnknown = response.framing === 'chunked' || response.framing === 'close';
      if (isUnknown) response.framing = sent.version === 'HTTP/1.0' ? 'close' : 'chunked';
    },
  },
  {
    id: 'response-end',
    what: "the client's connection is kept as the client asks by `Connection` or `Proxy-Connection` (in HTTP/1.0 with a stated length only), with the sidecar's own `Connection` and `Keep-Alive`, independent of the origin server's connection",
    reference: 'RFC 9112 §9',
    apply: ({ response }, { sent }) => {
      const options = ['connection', 'proxy-connection']
        .map((name) => fieldOf(sent.headers, name) ?? '')
        .join()
        .toLowerCase();
      const wantsIt = sent.version === 'HTTP/1.1' ? !options.includes('close') : options.includes('keep-alive');
      const isStated = sent.version === 'HTTP/1.1' || fieldOf(response.headers, 'content-length') !== undefined;
      const isKept = wantsIt && isStated;
      response.end = isKept ? 'kept' : 'closed';
      const coding: Fields = response.framing === 'chunked' ? [['Transfer-Encoding', 'chunked']] : [];
      response.headers = [...response.headers, ...(isKept ? KEPT : CLOSED), ...coding];
    },
  },
];

/** First value of a field; `name` in lower case. */
function fieldOf(fields: Fields, name: string): string | undefined {
  return fields.find(([candidate]) => candidate.toLowerCase() === name)?.[1];
}

function without(fields: Fields, names: readonly string[]): Fields {
  return fields.filter(([name]) => !names.includes(name.toLowerCase()));
}

function withoutConnectionFields(fields: Fields): Fields {
  const nominated = fields
    .filter(([name]) => name.toLowerCase() === 'connection')
    .flatMap(([, value]) => value.toLowerCase().split(','))
    .map((option) => option.trim());
  return without(fields, [...CONNECTION_FIELDS, ...nominated]);
}

function relocate(value: string, authority: string): string {
  const base = `http://${authority}`;
  return value === base ? '/' : value.replaceAll(`${base}/`, '/');
}
