/** Chunked bodies: sizes, extensions, line ends, what ends them, and trailers (RFC 9112 §7.1). */
import { SMUGGLED, chunked, forwarded, leftOpen, refusedByRfc, refusedHere } from './case.ts';

const POSTED = { method: 'POST', body: 'hi' };
const LAST = '0\r\n\r\n';

export const CHUNKS = [
  ...refusedByRfc('RFC 9112 §7.1', {
    'a chunk size that is no number': chunked(`zz\r\nhi\r\n${LAST}`),
    'a chunk size with a sign': chunked(`+2\r\nhi\r\n${LAST}`),
    'a negative chunk size': chunked(`-2\r\nhi\r\n${LAST}`),
    'a chunk size with 0x': chunked(`0x2\r\nhi\r\n${LAST}`),
    'a chunk size with an underscore': chunked(`0_2\r\nhi\r\n${LAST}`),
    'a chunk size with a dot': chunked(`2.0\r\nhi\r\n${LAST}`),
    'a chunk size with a comma': chunked(`2,2\r\nhi\r\n${LAST}`),
    'a chunk size of two words': chunked(`2 2\r\nhi\r\n${LAST}`),
    'a chunk size behind a blank': chunked(` 2\r\nhi\r\n${LAST}`),
    'a chunk size behind a control character': chunked(`\x012\r\nhi\r\n${LAST}`),
    'a chunk size with a letter behind it': chunked(`2g\r\nhi\r\n${LAST}`),
    'a chunk size with a NUL behind it': chunked(`2\0\r\nhi\r\n${LAST}`),
    'a chunk size beyond 64 bits': chunked(`10000000000000002\r\nhi\r\n${LAST}`),
    'a chunk size of 40 digits': chunked(`${'f'.repeat(40)}\r\nhi\r\n${LAST}`),
    'an empty chunk size': chunked(`\r\nhi\r\n${LAST}`),
    'an extension without a size': chunked(`;a=b\r\nhi\r\n${LAST}`),
    'a chunk longer than it says': chunked(`2\r\nhi!\r\n${LAST}`),
    'a chunk without its line end': chunked(`2\r\nhi${LAST}`),
    'a chunk with a line feed alone behind it': chunked(`2\r\nhi\n${LAST}`),
    'a chunk with a CR alone behind it': chunked(`2\r\nhi\r${LAST}`),
    'a chunk with two other bytes behind it': chunked(`2\r\nhixx${LAST}`),
    'a chunk size with a line feed alone behind it': chunked(`2\nhi\r\n${LAST}`),
    'a chunk size with a CR alone behind it': chunked(`2\rhi\r\n${LAST}`),
    'a chunk size with CR CR LF behind it': chunked(`2\r\r\nhi\r\n${LAST}`),
    'the last chunk with a line feed alone': chunked('2\r\nhi\r\n0\n\r\n'),
    'the last chunk with other bytes behind it': chunked('2\r\nhi\r\n0xx\r\n\r\n'),
    'bytes in the place of a trailer': chunked(`2\r\nhi\r\n0\r\nnonsense\r\n\r\n`),
  }),
  ...refusedHere('RFC 9112 §7.1.1: extensions', {
    'an extension with a line feed': chunked(`2;a\nb\r\nhi\r\n${LAST}`),
    'an extension with a CR': chunked(`2;a\rb\r\nhi\r\n${LAST}`),
    'an extension with a NUL': chunked(`2;a\0b\r\nhi\r\n${LAST}`),
    'an extension with a line end in quotes': chunked(`2;a="\r\nhi\r\n${LAST}"\r\n`),
    'an extension of 64 kB': chunked(`2;a=${'b'.repeat(65_536)}\r\nhi\r\n${LAST}`),
  }),
  ...forwarded('RFC 9112 §7.1, §7.1.1', {
    'an extension': [chunked(`2;a=b\r\nhi\r\n${LAST}`), POSTED],
    'an extension without a value': [chunked(`2;a\r\nhi\r\n${LAST}`), POSTED],
    'an extension in quotes': [chunked(`2;a="b;c"\r\nhi\r\n${LAST}`), POSTED],
    'an extension of the last chunk': [chunked('2\r\nhi\r\n0;a=b\r\n\r\n'), POSTED],
    'zeros before a chunk size': [chunked(`0002\r\nhi\r\n${LAST}`), POSTED],
    'a last chunk of several zeros': [chunked('2\r\nhi\r\n000\r\n\r\n'), POSTED],
    'a chunk size in capitals': [chunked(`A\r\n0123456789\r\n${LAST}`), { method: 'POST', body: '0123456789' }],
    'a chunk that looks like the last one': [
      chunked(`7\r\n\r\n0\r\n\r\n\r\n${LAST}`),
      { method: 'POST', body: '\r\n0\r\n\r\n' },
    ],
  }),
  ...leftOpen('RFC 9112 §7.1.1: white space before an extension', {
    'extensions of 64 kB together': chunked(`${'1;a=bcdefghijklmnop\r\nx\r\n'.repeat(3300)}${LAST}`),
    'a blank behind a chunk size': chunked(`2 \r\nhi\r\n${LAST}`),
    'a blank before an extension': chunked(`2 ;a=b\r\nhi\r\n${LAST}`),
    'an extension that is empty': chunked(`2;\r\nhi\r\n${LAST}`),
    'an extension with a byte above 0x7f': chunked(`2;a=\xe9\r\nhi\r\n${LAST}`),
    'an extension with a quote that stays open': chunked(`2;a="b\r\nhi\r\n${LAST}`),
  }),
  ...forwarded('RFC 9110 §6.5.1: trailers are dropped, never merged', {
    'a trailer': [chunked('2\r\nhi\r\n0\r\nX-Sum: 1\r\n\r\n'), { ...POSTED, absent: ['x-sum'] }],
    'a Host as a trailer': [chunked('2\r\nhi\r\n0\r\nHost: evil.example\r\n\r\n'), POSTED],
    'an Authorization as a trailer': [chunked('2\r\nhi\r\n0\r\nAuthorization: Basic eA==\r\n\r\n'), POSTED],
    'a Cookie as a trailer': [chunked('2\r\nhi\r\n0\r\nCookie: a=b\r\n\r\n'), { ...POSTED, absent: ['cookie'] }],
    'a request behind trailers that close': [
      chunked(`2\r\nhi\r\n0\r\nX: y\r\n\r\n${SMUGGLED}`),
      { ...POSTED, absent: ['x'] },
    ],
  }),
  ...refusedByRfc('RFC 9112 §7.1.2, §5.1', {
    'a trailer with a blank before its colon': chunked('2\r\nhi\r\n0\r\nX : y\r\n\r\n'),
    'a trailer without a name': chunked('2\r\nhi\r\n0\r\n: y\r\n\r\n'),
    'a trailer that is a request line': chunked(`2\r\nhi\r\n0\r\n${SMUGGLED}`),
  }),
  ...refusedHere('RFC 9112 §7.1.2, §5.2', {
    'a folded trailer': chunked('2\r\nhi\r\n0\r\nX: y\r\n z\r\n\r\n'),
    'a trailer with a NUL': chunked('2\r\nhi\r\n0\r\nX: a\0b\r\n\r\n'),
    'a trailer of 20 kB': chunked(`2\r\nhi\r\n0\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`),
  }),
  ...leftOpen('RFC 9110 §6.5.1: may not be sent as trailers', {
    'a Content-Length as a trailer': chunked('2\r\nhi\r\n0\r\nContent-Length: 99\r\n\r\n'),
    'a Transfer-Encoding as a trailer': chunked('2\r\nhi\r\n0\r\nTransfer-Encoding: gzip\r\n\r\n'),
  }),
];
