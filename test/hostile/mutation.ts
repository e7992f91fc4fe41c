/** Valid requests, and what a fuzzer makes of them: bits flipped, bytes removed, doubled and put in, requests spliced. */
import fc from 'fast-check';
import { CLOSE, HEAD, HOST, SMUGGLED } from './corpus/case.ts';

const BODY = '{"destination":"ES","travellers":[{"birthDate":"1990-05-17"}]}';
const CHUNKS = `1f\r\n${BODY.slice(0, 31)}\r\n${(BODY.length - 31).toString(16)};a=b\r\n${BODY.slice(31)}\r\n0\r\nX-Sum: 1\r\n\r\n`;
const JSON_TYPE = 'Content-Type: application/json\r\n';

const VALID = [
  `GET /quotes HTTP/1.1\r\n${HEAD}\r\n`,
  `GET /quotes?page=2&sort=%2Bprice HTTP/1.1\r\n${HOST}Accept: application/json\r\nUser-Agent: fuzz\r\n\r\n`,
  `POST /quotes HTTP/1.1\r\n${HEAD}${JSON_TYPE}Content-Length: ${BODY.length}\r\n\r\n${BODY}`,
  `POST /quotes HTTP/1.1\r\n${HEAD}${JSON_TYPE}Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n${CHUNKS}`,
  `POST /quotes HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n${CHUNKS}GET /next HTTP/1.1\r\n${HEAD}\r\n`,
  `PUT /quotes/1 HTTP/1.1\r\n${HEAD}Expect: 100-continue\r\nContent-Length: 2\r\n\r\nhi`,
  `DELETE /quotes/1 HTTP/1.1\r\n${HEAD}Transfer-Encoding: chunked\r\n\r\n${SMUGGLED.length.toString(16)}\r\n${SMUGGLED}\r\n0\r\n\r\n`,
  `POST /a HTTP/1.1\r\n${HOST}Content-Length: 5\r\n\r\nfirstPOST /b HTTP/1.1\r\n${HEAD}Content-Length: 6\r\n\r\nsecond`,
  `OPTIONS /quotes HTTP/1.1\r\n${HEAD}Authorization: Bearer forged\r\nCookie: a=b; c=d\r\n\r\n`,
  `HEAD /quotes HTTP/1.1\r\n${HOST}Connection: close, X-Hop\r\nX-Hop: 1\r\nTE: trailers\r\n\r\n`,
  `GET http://localhost/quotes HTTP/1.1\r\n${HEAD}X-Sidecar-Note: here\r\n\r\n`,
  `POST /quotes HTTP/1.0\r\nContent-Length: 2\r\n\r\nhi`,
  `GET /events HTTP/1.1\r\n${HOST}Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n${CLOSE}\r\n`,
];

/** What parsers stumble over. */
const TOKENS = [
  ...[
    '\r\n',
    '\n',
    '\r',
    '\0',
    ' ',
    '\t',
    ':',
    ',',
    ';',
    '"',
    '\x0b',
    '\x80',
    '\xff',
    '%',
    '%2e',
    '/../',
    '\\',
    '#',
    '?',
  ],
  ...[
    '\r\n ',
    '\r\n\r\n',
    '0\r\n\r\n',
    ' HTTP/1.1\r\n',
    'HTTP/1.0',
    'chunked',
    'Content-Length: 5\r\n',
    '-1',
    '+1',
    '0x',
  ],
  ...['Transfer-Encoding: chunked\r\n', 'Transfer-Encoding: gzip\r\n', 'Host: evil.example\r\n', 'Origin: null\r\n'],
  ...['Connection: keep-alive\r\n', 'Connection: authorization\r\n', 'Expect: 100-continue\r\n', 'Upgrade: h2c\r\n'],
  ...['__proto__: x\r\n', 'X_Y: z\r\n', 'ffffffff', '99999999999999999999', SMUGGLED, 'a:b\r\n'.repeat(300)],
];

type Mutation = (bytes: string) => string;

/** A place in any number of bytes. */
const place = fc.nat({ max: 1_000_000 });

function at(bytes: string, where: number): number {
  return where % (bytes.length + 1);
}

const flip = fc.tuple(place, fc.nat({ max: 7 })).map(([where, bit]): Mutation => (bytes) => {
  const index = where % Math.max(1, bytes.length);
  const flipped = String.fromCharCode((bytes.charCodeAt(index) || 0) ^ (1 << bit));
  return bytes.slice(0, index) + flipped + bytes.slice(index + 1);
});
const remove = fc.tuple(place, fc.integer({ min: 1, max: 12 })).map(([where, length]): Mutation => (bytes) => {
  return bytes.slice(0, at(bytes, where)) + bytes.slice(at(bytes, where) + length);
});
const double = fc.tuple(place, fc.integer({ min: 1, max: 60 })).map(([where, length]): Mutation => (bytes) => {
  const end = at(bytes, where) + length;
  return bytes.slice(0, end) + bytes.slice(at(bytes, where));
});
const putIn = fc
  .tuple(place, fc.oneof(fc.constantFrom(...TOKENS), fc.string({ unit: 'binary-ascii', maxLength: 20 })))
  .map(
    ([where, token]): Mutation =>
      (bytes) =>
        bytes.slice(0, at(bytes, where)) + token + bytes.slice(at(bytes, where)),
  );
const addField = fc
  .tuple(fc.string({ unit: 'grapheme-ascii', maxLength: 12 }), fc.string({ unit: 'binary-ascii', maxLength: 30 }))
  .map(
    ([name, value]): Mutation =>
      (bytes) =>
        bytes.replace('\r\n', () => `\r\n${name}: ${value}\r\n`),
  );
const splice = fc
  .tuple(place, place, fc.constantFrom(...VALID))
  .map(([where, otherWhere, other]): Mutation => (bytes) => {
    return bytes.slice(0, at(bytes, where)) + other.slice(at(other, otherWhere));
  });
const cutOff = place.map(
  (where): Mutation =>
    (bytes) =>
      bytes.slice(0, at(bytes, where)),
);

/** The bytes of a request as the fuzzer sends it. */
export const mutatedRequest: fc.Arbitrary<Buffer> = fc
  .tuple(
    fc.constantFrom(...VALID),
    fc.array(
      fc.oneof(
        { weight: 3, arbitrary: flip },
        { weight: 2, arbitrary: remove },
        { weight: 2, arbitrary: double },
        { weight: 4, arbitrary: putIn },
        { weight: 2, arbitrary: addField },
        { weight: 2, arbitrary: splice },
        { weight: 1, arbitrary: cutOff },
      ),
      { maxLength: 4 },
    ),
  )
  .map(([valid, mutations]) =>
    Buffer.from(
      mutations.reduce((bytes, mutate) => mutate(bytes), valid),
      'latin1',
    ),
  );
