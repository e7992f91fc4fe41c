/** Requests and responses as clients and origin servers may send them, as bytes. */
import fc from 'fast-check';
import type { Traffic } from './raw-exchange.ts';

/** Stands for `host:port` of the receiver. */
export const HERE = '{here}';
/** Stands for `host:port` of the origin server. */
export const ORIGIN = '{origin}';

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND'];
const TARGETS = [
  '/',
  '/a',
  '/a/b?x=%20&y=1',
  '/a?',
  '/a/b?..',
  '/%7Ea;p=1',
  `http://${HERE}/absolute?x`,
  "/!$&'()*+,;=:@",
];
const DATE = 'Date: Sun, 22 Nov 2020 13:49:36 GMT';

const word = fc.string({
  unit: fc.constantFrom('a', 'b', 'X', 'Y', '0', '9', '-', '_', '.', '!', '~'),
  minLength: 1,
  maxLength: 12,
});
/** Visible characters, obs-text and what may stand between them (RFC 9110 §5.5). */
const value = fc
  .array(
    fc.oneof(fc.integer({ min: 0x21, max: 0x7e }), fc.integer({ min: 0x80, max: 0xff }), fc.constantFrom(0x20, 0x09)),
    { maxLength: 30 },
  )
  .map((codes) => String.fromCharCode(...codes).trim());
const longValue = fc.integer({ min: 1000, max: 4000 }).map((length) => 'v'.repeat(length));
const space = fc.constantFrom('', ' ', '  ', '\t');
const anyField = fc
  .tuple(
    word.map((name) => `X-${name}`),
    space,
    fc.oneof({ weight: 9, arbitrary: value }, { weight: 1, arbitrary: longValue }),
    space,
  )
  .filter(([name]) => !/^x[-_](?:sidecar|case)/i.test(name))
  .map(([name, before, text, behind]) => `${name}:${before}${text}${behind}`);
const requestField = fc.oneof(
  { weight: 3, arbitrary: anyField },
  {
    weight: 4,
    arbitrary: fc.constantFrom(
      ...[
        'Accept: */*',
        'accept-ENCODING: gzip, br',
        'Cookie: a=b; c=d',
        'COOKIE: e=f',
        'User-Agent: legacy/1.0 (a; b)',
        'Range: bytes=0-9',
      ],
      ...[
        'Authorization: Basic eDp5',
        'authorization: Bearer forged',
        'Proxy-Authorization: Basic eDp5',
        'TE: trailers',
        'Keep-Alive: 300',
      ],
      ...[
        'Proxy-Connection: keep-alive',
        'X-Sidecar-Note: here',
        'If-None-Match: "x", W/"y"',
        'Idempotency-Key: 1',
        'X-Empty:',
        'X-List: a',
        'x-list: b',
      ],
      ...['X-Forwarded-For: 10.0.0.1', 'Via: 1.1 other', 'Cache-Control: no-cache', 'Pragma: no-cache', 'X-Hop: 1'],
    ),
  },
);
const responseField = fc.oneof(
  { weight: 3, arbitrary: anyField },
  {
    weight: 4,
    arbitrary: fc.constantFrom(
      ...[
        'Set-Cookie: a=b; Path=/',
        'set-cookie: c=d',
        'Set-Cookie: e="f, g"',
        'Set-Cookie: sid=1; Expires=Wed, 21 Oct 2037 07:28:00 GMT; Secure; HttpOnly; SameSite=None; Domain=127.0.0.1; Path=/x',
        'Set-Cookie: sid=1; Secure; Domain=other.example',
        'ETag: "x"',
        'Content-Type: text/plain; charset=latin1',
      ],
      ...[
        `Location: http://${ORIGIN}/elsewhere?x#y`,
        'Location: /relative',
        'Location: https://other.example/x',
        `Content-Location: http://${ORIGIN}/a`,
        `Link: <http://${ORIGIN}/a?page=2>; rel="next"; title="a, b", <https://other.example/>; rel=up`,
        `Refresh: 5; url=http://${ORIGIN}/a`,
        'Server: Legacy/1.0',
      ],
      ...[
        'Connection: X-Hop',
        'X-Hop: 1',
        'Keep-Alive: timeout=5',
        'Vary: Accept',
        'vary: Origin',
        'WWW-Authenticate: Basic realm="a, b"',
      ],
      ...['Cache-Control: private', 'Content-Encoding: br', 'Accept-Ranges: bytes', 'X-Empty:', 'Warning: 199 - "odd"'],
    ),
  },
);
const content = fc
  .array(fc.integer({ min: 0, max: 255 }), { maxLength: 200 })
  .map((codes) => String.fromCharCode(...codes));
const body = fc.oneof(
  fc.constant(''),
  content,
  content,
  fc.tuple(content, fc.integer({ min: 1, max: 300 })).map(([text, times]) => text.repeat(times)),
);

/** A body as chunks of one size, with an optional extension and trailer section. */
function inChunks(text: string, size: number, trailers: readonly string[]): string {
  const chunks: string[] = [];
  for (let at = 0; at < text.length; at += size) {
    const piece = text.slice(at, at + size);
    chunks.push(`${piece.length.toString(16)}\r\n${piece}\r\n`);
  }
  return `${chunks.join('')}0\r\n${trailers.map((line) => `${line}\r\n`).join('')}\r\n`;
}

interface Framed {
  readonly fields: readonly string[];
  readonly bytes: string;
}

const lengthName = fc.constantFrom('Content-Length', 'content-length');
const trailers = fc.constantFrom([], ['X-Sum: 1'], ['X-Sum: 1', 'x-sum: 2']);

const request = fc
  .record({
    method: fc.constantFrom(...METHODS),
    target: fc.constantFrom(...TARGETS),
    isOld: fc.integer({ min: 0, max: 7 }).map((lot) => lot === 0),
    fields: fc.array(requestField, { maxLength: 8 }),
    connection: fc.constantFrom('', '', '', 'close', 'keep-alive', 'X-Hop', 'Keep-Alive, x-hop'),
    body,
    chunks: fc.option(fc.integer({ min: 1, max: 5000 })),
    trailers,
    lengthName,
    statesNothing: fc.boolean(),
    expects: fc.boolean(),
  })
  .map((plan) => {
    const { method, isOld, connection, expects } = plan;
    const framed = frameRequest(plan);
    const lines = [
      `${method} ${plan.target} HTTP/1.${isOld ? '0' : '1'}`,
      `Host: ${HERE}`,
      ...plan.fields,
      ...framed.fields,
      ...(connection === '' ? [] : [`Connection: ${connection}`]),
      ...(expects && !isOld && framed.bytes !== '' ? ['Expect: 100-continue'] : []),
    ];
    return { method, head: `${lines.join('\r\n')}\r\n\r\n`, body: framed.bytes };
  });

interface RequestFraming {
  readonly method: string;
  readonly isOld: boolean;
  readonly body: string;
  readonly chunks: number | null;
  readonly trailers: readonly string[];
  readonly lengthName: string;
  readonly statesNothing: boolean;
}

function frameRequest({
  method,
  isOld,
  body: text,
  chunks,
  trailers: behind,
  lengthName: name,
  statesNothing,
}: RequestFraming): Framed {
  if (['GET', 'HEAD', 'OPTIONS'].includes(method) && statesNothing) return { fields: [], bytes: '' };
  if (text === '' && statesNothing) return { fields: [], bytes: '' };
  if (chunks === null || isOld) return { fields: [`${name}: ${String(text.length)}`], bytes: text };
  const announced = behind.length === 0 ? [] : ['Trailer: X-Sum'];
  return {
    fields: ['Transfer-Encoding: chunked', ...announced],
    bytes: inChunks(text, Math.max(chunks, text.length / 50), behind),
  };
}

/** None of these is followed by another attempt. */
const STATUSES = [
  '200 OK',
  '200 ',
  '200 Fine, thanks',
  '201 Created',
  '202 Accepted',
  '204 No Content',
  '206 Partial Content',
  '299 ',
];
const OTHERS = [
  '301 Moved Permanently',
  '302 Found',
  '304 Not Modified',
  '307 Temporary Redirect',
  '400 Bad Request',
  '404 Not Found',
  '409 Conflict',
  '422 \xe9',
];

const response = fc.record({
  status: fc.constantFrom(...STATUSES, ...OTHERS, '500 Internal Server Error'),
  isOld: fc.integer({ min: 0, max: 7 }).map((lot) => lot === 0),
  fields: fc.array(responseField, { maxLength: 8 }),
  date: fc.boolean(),
  body,
  framing: fc.constantFrom('length', 'chunked', 'close'),
  size: fc.integer({ min: 1, max: 5000 }),
  trailers,
  lengthName,
  early: fc.integer({ min: 0, max: 5 }).map((lot) => Math.max(0, lot - 3)),
  closes: fc.boolean(),
  cut: fc.constantFrom(0.2, 0.5, 0.8, 1, 1, 1),
});

/** Everything that goes over the wire in one exchange. */
export const traffic: fc.Arbitrary<Traffic> = fc.tuple(request, response).map(([sent, plan]) => {
  const status = Number(plan.status.slice(0, 3));
  const isBare = sent.method === 'HEAD' || status === 204 || status === 304;
  const framing = plan.isOld && plan.framing === 'chunked' ? 'close' : plan.framing;
  const text = isBare ? '' : plan.body;
  const framed: Record<typeof framing, Framed> = {
    length: { fields: [`${plan.lengthName}: ${String(status === 204 ? 0 : plan.body.length)}`], bytes: text },
    chunked: {
      fields: status === 204 ? [] : ['Transfer-Encoding: chunked'],
      bytes: isBare ? '' : inChunks(text, Math.max(plan.size, text.length / 50), plan.trailers),
    },
    close: { fields: [], bytes: text },
  };
  const { fields, bytes } = framed[framing];
  const lines = [
    `HTTP/1.${plan.isOld ? '0' : '1'} ${plan.status}`,
    ...plan.fields,
    ...fields,
    ...(plan.date ? [DATE] : []),
  ];
  const early = 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n'.repeat(plan.early);
  return {
    ...sent,
    response: `${early}${lines.join('\r\n')}\r\n\r\n${bytes}`,
    cut: plan.cut,
    closes: plan.closes || plan.isOld || (framing === 'close' && !isBare),
  };
});
