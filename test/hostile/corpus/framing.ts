/** How long a message is: Content-Length, Transfer-Encoding, both, neither, and what never ends (RFC 9112 §6, §8). */
import { HEAD, HOST, SMUGGLED, chunked, forwarded, get, leftOpen, post, refusedByRfc, refusedHere } from './case.ts';

const POSTED = { method: 'POST', body: 'hi' };
const TE = 'Transfer-Encoding: chunked\r\n';
const HI = '2\r\nhi\r\n0\r\n\r\n';

function length(value: string, content = 'hi'): string {
  return post(`Content-Length:${value}\r\n`, content);
}

function coding(value: string): string {
  return post(`Transfer-Encoding:${value}\r\n`, HI);
}

function named(what: string, write: (value: string) => string, values: readonly string[]): Record<string, string> {
  return Object.fromEntries(values.map((value) => [`${what} ${JSON.stringify(value)}`, write(value)]));
}

function withBody(method: string, lines: string, content: string): string {
  return `${method} /x HTTP/1.1\r\n${HEAD}${lines}\r\n${content}`;
}

const METHODS = ['GET', 'DELETE', 'OPTIONS', 'PUT', 'PATCH', 'POST', 'PROPFIND', 'SEARCH'];
const SMUGGLED_CHUNK = `${SMUGGLED.length.toString(16)}\r\n${SMUGGLED}\r\n0\r\n\r\n`;

export const FRAMING = [
  ...refusedByRfc('RFC 9110 §8.6, RFC 9112 §6.3', {
    ...named('the length', length, [
      ' -2',
      ' +2',
      ' 0x2',
      ' 2 2',
      ' 2,3',
      ' 2;',
      ' 2.0',
      ' 2e0',
      ' "2"',
      '',
      ' ,',
      ' 2\x0b',
      ' \x0c2',
      ' \xb2',
      ' two',
      ' 99999999999999999999999999',
      ' 18446744073709551618',
    ]),
    'two lengths that differ': post('Content-Length: 2\r\nContent-Length: 3\r\n', 'hi!'),
    'two lengths, one of them empty': post('Content-Length: 2\r\nContent-Length:\r\n', 'hi'),
    'two lengths in different spellings': post('Content-Length: 2\r\ncontent-length: 02\r\n', 'hi'),
  }),
  ...refusedHere('RFC 9112 §6.3: may be read as one', {
    'the same length twice': post('Content-Length: 2\r\nContent-Length: 2\r\n', 'hi'),
    'a list of the same length': length(' 2, 2'),
    'a length behind 2500 fields': `POST /x HTTP/1.1\r\n${HOST}Content-Length: 2\r\n${'a:b\r\n'.repeat(2500)}Content-Length: 2\r\n\r\nhi`,
  }),
  ...forwarded('RFC 9110 §8.6', {
    'a length of 0': [length(' 0', ''), { method: 'POST' }],
    'a length without a blank': [length('2'), POSTED],
    'a length between blanks and tabs': [length(' \t2 \t'), POSTED],
    'a length with zeros in front': [length(' 0002'), POSTED],
  }),
  ...refusedByRfc('RFC 9112 §6.1, §6.3', {
    ...named('the coding', coding, [
      ' gzip',
      ' identity',
      ' chunked, gzip',
      ' chunked, identity',
      ' xchunked',
      ' chunked-x',
      ' chunkedx',
      ' "chunked"',
      " 'chunked'",
      ' chunked;q=1',
      ' chunked chunked',
      ' chunked, chunked',
      '\x0bchunked',
      ' chunked\x0b',
      ' \x01chunked',
      ' chu\xf1ked',
      ' cow',
    ]),
    'two codings': post(`${TE}${TE}`, HI),
    'two codings, the second another': post(`${TE}Transfer-Encoding: cow\r\n`, HI),
    'two codings, the first another': post(`Transfer-Encoding: identity\r\n${TE}`, HI),
    'a blank before the colon of the coding': post('Transfer-Encoding : chunked\r\n', HI),
    'a coding in HTTP/1.0': `POST /x HTTP/1.0\r\n${HOST}${TE}\r\n${HI}`,
    'a coding in HTTP/1.0 that keeps its connection': `POST /x HTTP/1.0\r\n${HOST}Connection: keep-alive\r\n${TE}\r\n${HI}${SMUGGLED}`,
  }),
  ...refusedHere('RFC 9112 §6.1: may be read by the coding alone, or be passed on', {
    'a length and a coding': post(`Content-Length: 12\r\n${TE}`, HI),
    'a coding and a length': post(`${TE}Content-Length: 12\r\n`, HI),
    'a coding and a length of 0': post(`${TE}Content-Length: 0\r\n`, HI),
    'a coding and a length that is none': post(`${TE}Content-Length: x\r\n`, HI),
    'another coding before chunked': coding(' gzip, chunked'),
    'a coding behind 2500 fields beside a length': `POST /x HTTP/1.1\r\n${HOST}Content-Length: 12\r\n${'a:b\r\n'.repeat(2500)}${TE}\r\n${HI}`,
    'a NUL behind the coding': coding(' chunked\0'),
  }),
  ...leftOpen('RFC 9110 §5.6.1, §5.6.3: empty elements of a list, tabs', {
    ...named('the coding', coding, [' ,chunked', ' chunked,', '', '\tchunked\t']),
    'a coding behind 2500 fields': `POST /x HTTP/1.1\r\n${HOST}${'a:b\r\n'.repeat(2500)}${TE}\r\n${HI}`,
  }),
  ...forwarded('RFC 9112 §7', {
    'a coding in capitals': [coding(' CHUNKED'), POSTED],
    'a coding without a blank': [coding('chunked'), POSTED],
    'an empty chunked body': [chunked('0\r\n\r\n'), { method: 'POST' }],
    'many chunks of one byte': [
      chunked(
        `${'hello, chunks'
          .split('')
          .map((sign) => `1\r\n${sign}\r\n`)
          .join('')}0\r\n\r\n`,
      ),
      { method: 'POST', body: 'hello, chunks' },
    ],
  }),
  ...forwarded('CVE-2026-29057: a body that looks like a request stays a body', {
    ...Object.fromEntries(
      METHODS.flatMap((method) => [
        [`a chunked ${method}`, [withBody(method, TE, SMUGGLED_CHUNK), { method, body: SMUGGLED }] as const],
        [
          `a ${method} with a length`,
          [withBody(method, `Content-Length: ${SMUGGLED.length}\r\n`, SMUGGLED), { method, body: SMUGGLED }] as const,
        ],
      ]),
    ),
    'a POST with a length in HTTP/1.0': [
      `POST /x HTTP/1.0\r\n${HOST}Content-Length: ${SMUGGLED.length}\r\n\r\n${SMUGGLED}`,
      { method: 'POST', body: SMUGGLED },
    ],
  }),
  ...refusedHere('RFC 9112 §8: what is incomplete is not forwarded', {
    'an end in the request line': { thenFin: 'GET /x HT' },
    'an end behind the request line': { thenFin: 'GET /x HTTP/1.1\r\n' },
    'an end in a field': { thenFin: `GET /x HTTP/1.1\r\n${HEAD}X: y` },
    'an end before the last line feed': { thenFin: `GET /x HTTP/1.1\r\n${HEAD}\r` },
    'an end before the body': { thenFin: length(' 2', '') },
    'an end within the body': { thenFin: length(' 2', 'h') },
    'an end before the first chunk': { thenFin: chunked('') },
    'an end in a chunk size': { thenFin: chunked('2') },
    'an end behind a chunk size': { thenFin: chunked('2\r\n') },
    'an end in a chunk': { thenFin: chunked('2\r\nh') },
    'an end behind a chunk': { thenFin: chunked('2\r\nhi') },
    'an end between chunks': { thenFin: chunked('2\r\nhi\r\n') },
    'an end in the last chunk': { thenFin: chunked('2\r\nhi\r\n0') },
    'an end behind the last chunk': { thenFin: chunked('2\r\nhi\r\n0\r\n') },
    'an end in a trailer': { thenFin: chunked('2\r\nhi\r\n0\r\nX: y') },
    'an end behind a trailer': { thenFin: chunked('2\r\nhi\r\n0\r\nX: y\r\n') },
    'an end before the last line feed of the body': { thenFin: chunked('2\r\nhi\r\n0\r\n\r') },
    'an end after nothing': { thenFin: '' },
    'an end after an empty line': { thenFin: '\r\n' },
  }),
  ...forwarded('RFC 9110 §10.1.1', {
    'an Expect': [post('Expect: 100-continue\r\nContent-Length: 2\r\n', 'hi'), { ...POSTED, absent: ['expect'] }],
    'an Expect in capitals': [
      post('EXPECT: 100-CONTINUE\r\nContent-Length: 2\r\n', 'hi'),
      { ...POSTED, absent: ['expect'] },
    ],
    'an Expect with chunks': [post(`Expect: 100-continue\r\n${TE}`, HI), { ...POSTED, absent: ['expect'] }],
    'an Expect without a body': [`GET /x HTTP/1.1\r\n${HEAD}Expect: 100-continue\r\n\r\n`, { absent: ['expect'] }],
    'an Expect in HTTP/1.0': [
      `POST /x HTTP/1.0\r\n${HOST}Expect: 100-continue\r\nContent-Length: 2\r\n\r\nhi`,
      { ...POSTED, absent: ['expect'] },
    ],
  }),
  ...leftOpen('RFC 9110 §10.1.1: other expectations', {
    'another expectation': `GET /x HTTP/1.1\r\n${HEAD}Expect: 200-ok\r\n\r\n`,
    'a disguised Expect': post('Expect: y 100-continue\r\nContent-Length: 2\r\n', 'hi'),
    'two expectations': post('Expect: 100-continue, x\r\nContent-Length: 2\r\n', 'hi'),
    'a HEAD with a body': withBody('HEAD', 'Content-Length: 2\r\n', 'hi'),
  }),
  ...forwarded('RFC 9112 §9.3.2, §9.6: pipelining', {
    'two requests in one packet': [`GET /x HTTP/1.1\r\n${HOST}\r\n${get('/y')}`, {}, { target: '/y' }],
    'a request behind a body': [
      `POST /x HTTP/1.1\r\n${HOST}Content-Length: 2\r\n\r\nhi${get('/y')}`,
      POSTED,
      { target: '/y' },
    ],
    'a request behind chunks': [`POST /x HTTP/1.1\r\n${HOST}${TE}\r\n${HI}${get('/y')}`, POSTED, { target: '/y' }],
    'a request behind one that closes': [`${get('/x')}${SMUGGLED}`],
    'a request behind a body that closes': [length(' 2', `hi${SMUGGLED}`), POSTED],
    'a request behind an empty body that closes': [length(' 0', SMUGGLED), { method: 'POST' }],
    'a request behind chunks that close': [chunked(`${HI}${SMUGGLED}`), POSTED],
    'a request behind one without a length that closes': [post('', SMUGGLED), { method: 'POST' }],
  }),
  ...refusedByRfc('RFC 9112 §11.2: a request hidden behind a broken one', {
    'a request behind a length that is none': `POST /x HTTP/1.1\r\n${HOST}Content-Length: 2x\r\n\r\nhi${SMUGGLED}`,
    'a request behind an unknown coding': `POST /x HTTP/1.1\r\n${HOST}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n${SMUGGLED}`,
    'a request behind two lengths': `POST /x HTTP/1.1\r\n${HOST}Content-Length: 0\r\nContent-Length: 4\r\n\r\n${SMUGGLED}`,
    'a request behind a blank before the colon': `POST /x HTTP/1.1\r\n${HOST}Content-Length : 4\r\n\r\n${SMUGGLED}`,
    'a request behind a field without a colon': `GET /x HTTP/1.1\r\n${HOST}broken\r\n\r\n${SMUGGLED}`,
    'a request behind a coding in HTTP/1.0': `POST /x HTTP/1.0\r\n${HOST}Connection: keep-alive\r\n${TE}\r\n${HI}${SMUGGLED}`,
    'a request behind a coding and a body in HTTP/1.0': `POST /x HTTP/1.0\r\n${HOST}Connection: keep-alive\r\n${TE}Expect: 100-continue\r\n\r\n${HI}${SMUGGLED}`,
    'a request behind a second Host': `GET /x HTTP/1.1\r\n${HOST}${HOST}\r\n${SMUGGLED.replace('localhost', 'evil.example')}`,
  }),
  ...refusedHere('RFC 9112 §11.2: a request hidden by both lengths', {
    'CL.TE': `POST /x HTTP/1.1\r\n${HOST}Content-Length: ${5 + SMUGGLED.length}\r\n${TE}\r\n0\r\n\r\n${SMUGGLED}`,
    'TE.CL': `POST /x HTTP/1.1\r\n${HOST}${TE}Content-Length: 4\r\n\r\n${SMUGGLED_CHUNK}`,
    'CL.TE by a CR in a value': `POST /x HTTP/1.1\r\n${HOST}Content-Length: 5\r\nX: y\r${TE}\r\n0\r\n\r\n`,
    'CL.TE by a line feed': `POST /x HTTP/1.1\r\n${HOST}Content-Length: 5\r\nX: y\n${TE}\r\n0\r\n\r\n`,
    'CL.TE by folding': `POST /x HTTP/1.1\r\n${HOST}Content-Length: 5\r\nX: y\r\n ${TE}\r\n0\r\n\r\n`,
  }),
];
