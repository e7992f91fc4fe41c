/** Field lines: syntax, folding, control characters, names that alias others, connection-specific ones, sizes. */
import { CLOSE, HEAD, HOST, forwarded, get, leftOpen, post, refusedByRfc, refusedHere, withFields } from './case.ts';

const NOT_IN_A_NAME = [...'(),/;<=>?@[\\]{}"'.split(''), '\0', '\x01', '\x0b', '\x7f', '\xe9'];
const CONTROLS = ['\x01', '\x08', '\x0b', '\x0c', '\x1b', '\x1f', '\x7f'];
const FILLER = 'a:b\r\n';

function hidden(field: string): string {
  // Parsers that keep only so many fields must not lose one that counts.
  return `GET /x HTTP/1.1\r\n${HEAD}${FILLER.repeat(2500)}${field}\r\n\r\n`;
}

export const FIELDS = [
  ...refusedByRfc('RFC 9110 §5.1, §5.6.2', {
    'a field without a name': withFields(': value'),
    'a field without a colon': withFields('value'),
    'a field name of two words': withFields('X Y: value'),
    ...Object.fromEntries(
      NOT_IN_A_NAME.map((sign) => [`a field name with ${JSON.stringify(sign)}`, withFields(`X${sign}Y: v`)]),
    ),
  }),
  ...refusedByRfc('RFC 9112 §5.1', {
    'a blank before the colon': withFields('X : value'),
    'a tab before the colon': withFields('X\t: value'),
    'a blank before the colon of Content-Length': post('Content-Length : 2\r\n', 'hi'),
  }),
  ...refusedHere('RFC 9112 §5.2, §2.2: may be replaced by a blank, or read leniently', {
    'a folded field': withFields('X: a', ' b'),
    'a field folded with a tab': withFields('X: a', '\tb'),
    'a field folded to a blank': withFields('X: a', ' '),
    'a folded Transfer-Encoding': post('Transfer-Encoding:\r\n chunked\r\n', '0\r\n\r\n'),
    'a first field after a blank': `GET /x HTTP/1.1\r\n ${HEAD}\r\n`,
    'a line feed alone as every line end': get('/x').replaceAll('\r\n', '\n'),
    'a line feed alone behind the request line': `GET /x HTTP/1.1\n${HEAD}\r\n`,
    'a line feed alone behind a field': `GET /x HTTP/1.1\r\n${HEAD}X: y\n\r\n`,
    'a line feed alone at the end of the head': `GET /x HTTP/1.1\r\n${HEAD}\n`,
    'a NUL in a value': withFields('X: a\0b'),
    'a CR in a value': withFields('X: a\rb'),
    'a CR before a field in a value': withFields('X: a\rTransfer-Encoding: chunked'),
    'a CR at the end of a value': withFields('X: a\r'),
  }),
  ...refusedByRfc('RFC 9112 §2.2', {
    'a CR alone as every line end': get('/x').replaceAll('\r\n', '\r'),
    'a CR alone behind the request line': `GET /x HTTP/1.1\r${HEAD}\r\n`,
    'CR CR LF as a line end': `GET /x HTTP/1.1\r\r\n${HEAD}\r\n`,
    'LF CR as a line end': `GET /x HTTP/1.1\n\r${HEAD}\r\n`,
  }),
  ...leftOpen(
    'RFC 9110 §5.5: other control characters may be kept',
    Object.fromEntries(CONTROLS.map((sign) => [`a value with ${JSON.stringify(sign)}`, withFields(`X: a${sign}b`)])),
  ),
  ...forwarded('RFC 9110 §5.5', {
    'an empty value': [withFields('X:'), { present: { x: '' } }],
    'a value between blanks and tabs': [withFields('X: \t a b \t '), { present: { x: 'a b' } }],
    'a value with bytes above 0x7f': [withFields('X: caf\xe9'), { present: { x: 'caf\xe9' } }],
    'a value that is a request line': [withFields('X: GET /y HTTP/1.1'), { present: { x: 'GET /y HTTP/1.1' } }],
  }),
  ...forwarded('CVE-2026-21710', {
    'a field __proto__': [withFields('__proto__: polluted'), { present: { ['__proto__']: 'polluted' } }],
    'two fields __proto__': [withFields('__proto__: a', '__proto__: b')],
    'a field constructor': [withFields('constructor: x'), { present: { constructor: 'x' } }],
    'a field hasOwnProperty': [withFields('hasOwnProperty: x')],
    'a field toString': [withFields('toString: x')],
    'Connection naming __proto__': [`GET /x HTTP/1.1\r\n${HOST}Connection: close, __proto__\r\n\r\n`],
  }),
  ...forwarded('CVE-2025-64484', {
    'Authorization_ beside the real one': [
      withFields('Authorization: a', 'Proxy_Authorization: b'),
      { absent: ['proxy_authorization'] },
    ],
    'a length with an underscore': [withFields('Content_Length: 99'), { absent: ['content_length'] }],
    'a coding with an underscore': [withFields('Transfer_Encoding: chunked'), { absent: ['transfer_encoding'] }],
    'a field of our own with underscores': [withFields('X_Sidecar_Key: a'), { absent: ['x_sidecar_key'] }],
  }),
  ...forwarded('RFC 9110 §7.6.1, CVE-2026-33805', {
    'Connection naming Authorization': [`GET /x HTTP/1.1\r\n${HOST}Connection: close, authorization\r\n\r\n`],
    'Connection naming Host': [`GET /x HTTP/1.1\r\n${HOST}Connection: close, host\r\n\r\n`],
    'Connection naming Content-Length': [
      `POST /x HTTP/1.1\r\n${HOST}Connection: close, content-length\r\nContent-Length: 2\r\n\r\nhi`,
      { method: 'POST', body: 'hi' },
    ],
    'Connection naming Transfer-Encoding': [
      `POST /x HTTP/1.1\r\n${HOST}Connection: close, transfer-encoding\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n`,
      { method: 'POST', body: 'hi' },
    ],
    'Connection naming a field': [
      `GET /x HTTP/1.1\r\n${HOST}Connection: close, X-Hop\r\nX-Hop: a\r\nX-End: b\r\n\r\n`,
      { absent: ['x-hop'], present: { 'x-end': 'b' } },
    ],
    'two Connection fields': [
      `GET /x HTTP/1.1\r\n${HOST}Connection: x-hop\r\nConnection: close\r\nX-Hop: a\r\n\r\n`,
      { absent: ['x-hop'] },
    ],
    'Connection with empty elements': [`GET /x HTTP/1.1\r\n${HOST}Connection: , ,close,,\r\n\r\n`],
    'connection-specific fields that are not named': [
      withFields('Keep-Alive: timeout=1', 'Proxy-Connection: close', 'TE: trailers', 'Trailer: X', 'Upgrade: foo'),
      { absent: ['keep-alive', 'proxy-connection', 'te', 'trailer', 'upgrade', 'connection-x'] },
    ],
  }),
  ...forwarded('RFC 9110 §11.6.2', {
    'an Authorization': [withFields('Authorization: Basic Zm9yZ2Vk')],
    'two of them': [withFields('Authorization: a', 'AUTHORIZATION: b')],
    'a Proxy-Authorization': [withFields('Proxy-Authorization: Basic eA=='), { absent: ['proxy-authorization'] }],
  }),
  ...refusedHere('the sidecar’s own fields', {
    'a deadline that is none': withFields('X-Sidecar-Timeout-Ms: soon'),
    'a deadline of 0': withFields('X-Sidecar-Timeout-Ms: 0'),
    'two deadlines': withFields('X-Sidecar-Timeout-Ms: 1000', 'X-Sidecar-Timeout-Ms: 1000'),
  }),
  ...forwarded('the sidecar’s own fields', {
    'a field of our own': [withFields('X-Sidecar-Anything: a'), { absent: ['x-sidecar-anything'] }],
    'a deadline': [withFields('X-Sidecar-Timeout-Ms: 60000'), { absent: ['x-sidecar-timeout-ms'] }],
  }),
  ...refusedHere('Fetch standard: a web page speaks', {
    'an Origin': withFields('Origin: https://evil.example'),
    'the Origin null': withFields('Origin: null'),
    'an empty Origin': withFields('Origin:'),
    'the Origin of this port': withFields('Origin: http://localhost'),
    'two Origins': withFields('Origin: null', 'Origin: null'),
    'a Sec-Fetch-Site of cross-site': withFields('Sec-Fetch-Site: cross-site'),
    'a Sec-Fetch-Site of same-site': withFields('Sec-Fetch-Site: same-site'),
    'a Sec-Fetch-Site of same-origin': withFields('Sec-Fetch-Site: same-origin'),
    'two of them, the first none': withFields('Sec-Fetch-Site: none', 'Sec-Fetch-Site: cross-site'),
    'an unknown Sec-Fetch-Site': withFields('Sec-Fetch-Site: moon'),
    'a preflight': `OPTIONS /x HTTP/1.1\r\n${HEAD}Origin: https://evil.example\r\nAccess-Control-Request-Method: PUT\r\n\r\n`,
    'a form that is sent': post('Origin: null\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n', 'hi'),
    'an Origin behind 2500 fields': hidden('Origin: https://evil.example'),
  }),
  ...forwarded('Fetch standard: a person typed it', {
    'a Sec-Fetch-Site of none': [withFields('Sec-Fetch-Site: none')],
  }),
  ...refusedHere('RFC 6585 §5', {
    'a field of 20 kB': withFields(`X: ${'x'.repeat(20_000)}`),
    'a field name of 20 kB': withFields(`${'x'.repeat(20_000)}: v`),
    'fields of 20 kB together': withFields(
      ...Array.from({ length: 1000 }, (_, at) => `X-${String(at)}: ${'x'.repeat(12)}`),
    ),
    'a field of 1 MB': withFields(`X: ${'x'.repeat(1_000_000)}`),
  }),
  ...leftOpen('RFC 6585 §5', {
    '2500 fields': hidden('X-Last: y'),
    'a field of 15 kB': withFields(`X: ${'x'.repeat(15_000)}`),
  }),
  ...refusedByRfc('RFC 9112 §3.2, behind 2500 other fields', {
    'a second Host behind 2500 fields': hidden('Host: evil.example'),
  }),
  ...refusedHere('RFC 9110 §7.8, RFC 9113 §3.1: upgrades', {
    'an upgrade to a WebSocket': `GET /x HTTP/1.1\r\n${HOST}Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n`,
    'an upgrade with a request behind it': `GET /x HTTP/1.1\r\n${HOST}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n${get('/smuggled')}`,
  }),
  ...forwarded('RFC 9110 §7.8', {
    'an upgrade to h2c': [
      `GET /x HTTP/1.1\r\n${HOST}Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n`,
    ],
    'an upgrade to h2c without its settings': [`GET /x HTTP/1.1\r\n${HOST}Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n`],
    'an upgrade to h2c among others': [
      `GET /x HTTP/1.1\r\n${HOST}Connection: Upgrade\r\nUpgrade: websocket, h2c\r\n\r\n`,
    ],
    'an upgrade to a WebSocket in HTTP/1.0': [
      `GET /x HTTP/1.0\r\n${HOST}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n`,
    ],
    'a POST that upgrades': [
      `POST /x HTTP/1.1\r\n${HOST}Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 2\r\n\r\nhi`,
      { method: 'POST', body: 'hi' },
    ],
    'an upgrade to TLS': [
      `OPTIONS /x HTTP/1.1\r\n${HOST}Connection: Upgrade\r\nUpgrade: TLS/1.0\r\n\r\n`,
      { method: 'OPTIONS' },
    ],
    'an upgrade to h2c with a request behind it': [
      `GET /x HTTP/1.1\r\n${HOST}Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n${get('/y')}`,
      {},
      { target: '/y' },
    ],
    'an upgrade to h2c with a body that reads like a request': [
      `POST /x HTTP/1.1\r\n${HOST}Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: ${String(get('/smuggled').length)}\r\n\r\n${get('/smuggled')}`,
      { method: 'POST', body: get('/smuggled') },
    ],
    'Upgrade without Connection': [
      `GET /x HTTP/1.1\r\n${HOST}${CLOSE}Upgrade: websocket\r\n\r\n`,
      { absent: ['upgrade'] },
    ],
  }),
  ...leftOpen('RFC 9110 §7.8', {
    'Connection: Upgrade without Upgrade': `GET /x HTTP/1.1\r\n${HOST}Connection: Upgrade\r\n\r\n`,
  }),
];
